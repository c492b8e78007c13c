"""The stage that counts: training lines in, one or two COUNTS folders out."""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.artifacts.counts_folder import (
    CountedTable,
    CountsFolder,
    count_names,
    counted_table,
    log_counts,
)
from pipelines.artifacts.manifest import OutputFile, SampleRecord
from pipelines.artifacts.stage_output import StageKey, StageOutput, StageTask
from pipelines.engines.progress import counted
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.jobs.job import Execution, Reading
from pipelines.jobs.read_plan import ReadPlan, plan_reading
from pipelines.jobs.read_stats import ReadStats, log_filtered, read_job_stats, report_stats
from pipelines.jobs.rejections import rejection_budget
from pipelines.jobs.vocab_sampling import SampledPlan, plan_sample
from pipelines.options.rejection_limits import RejectionLimit
from pipelines.options.vocabulary_options import SampledVocabulary
from pipelines.stages.run_stage import Made, run_stage
from pipelines.transforms.count_tokens import TABLES, CountTokens, WriteCounts, WrittenCounts
from pipelines.transforms.read_blocks import READING
from pipelines.transforms.rejection_budget import RejectionBudget
from pipelines.transforms.write_report import WriteReport, read_report
from tokcore.corpus.sampling.sampled_rows import RowSample
from tokcore.counts.block_counting import SideGroups
from tokcore.encoding.scheme import Scheme
from tokcore.options.option_fields import recorded
from tokcore.warm_up import compile_kernels

_OVERFLOW_NAME = 'overflow'


def count_stage(
    reading: Reading,
    execution: Execution,
    folders: Sequence[CountsFolder],
    planned: ReadPlan | None = None,
    sampling: SampledVocabulary = SampledVocabulary(),
) -> list[tuple[OutputFile, ...]]:
    """Counts the training lines' tokens into folders, each ended by its manifest.

    The text is read once, for several schemes too. A folder that already holds this result is left
    as it is. Returns of each folder the files of rejected lines, which are kept in
    `COUNTS.rejected`.

    Args:
        reading: the training corpus.
        execution: how it is run.
        folders: what to count.
        planned: its work items, if they are cut already: for another stage, which reads the same
            lines and keeps those that are rejected, so that they are not kept here.
        sampling: what of the corpus is counted.

    Raises:
        InputError: a line that cannot be used, an empty corpus or sample, or a folder with another
            result.
    """
    tasks = [
        StageTask(
            wanted_counts(reading, folder, sampling),
            StageOutput.of_counts(folder.path, folder.root),
            count_names(),
        )
        for folder in folders
    ]

    def make(*attempts: Attempt | None) -> list[Made]:
        missing = [place for place, attempt in enumerate(attempts) if attempt is not None]
        paths = [attempts[place].path for place in missing]
        plan = planned or plan_reading(reading, execution, paths[0])
        counting = [folders[place] for place in missing]
        sides = frozenset(side for folder in counting for side in folder.sides)
        sampled = plan_sample(plan, sampling.vocab_sample, execution, paths[0], sides)
        counted = count_into(sampled, execution, counting, paths)
        return [
            Made(
                tasks[place].key.manifest(
                    each.stats.inputs, each.stats.lines, tokens=each.table.tokens,
                    files=each.table.files, datasets=each.stats.datasets, sample=each.sample,
                ),
                () if planned else each.stats.rejected,
            )
            for place, each in zip(missing, counted, strict=True)
        ]  # fmt: skip

    made = run_stage(tasks, make, execution)
    for folder, each in zip(folders, made, strict=True):
        if each is not None:
            log_counts(each.manifest, folder.path)
            if planned is None:
                log_filtered(each.manifest.lines)
    return [() if each is None else each.rejected for each in made]


def wanted_counts(
    reading: Reading, folder: CountsFolder, sampling: SampledVocabulary
) -> StageKey:
    """Returns what the bytes of a COUNTS folder depend on."""
    options = {'side': folder.side, **reading.for_manifest(), **recorded(sampling)}
    scheme = folder.scheme or reading.scheme
    return StageKey('count', options, reading.corpus.wanted_inputs(), scheme.rules)


@dataclass(frozen=True)
class CountedFolder:
    """What was read for a folder, and what is in it."""

    stats: ReadStats
    table: CountedTable
    sample: tuple[SampleRecord, ...] = ()


def count_into(
    sampled: SampledPlan,
    execution: Execution,
    folders: Sequence[CountsFolder],
    paths: Sequence[str],
) -> list[CountedFolder]:
    """Counts into an attempt's folders, one for each of `folders`.

    Rejected lines go to the first of a scheme's folders.
    """
    plan = sampled.plan
    by_scheme: dict[Scheme, list[int]] = {}
    for place, folder in enumerate(folders):
        by_scheme.setdefault(folder.scheme or plan.reading.scheme, []).append(place)
    branches = [
        CountInto(
            plan.reading,
            execution.engine.workers,
            scheme,
            tuple(folders[place].sides for place in places),
            tuple(paths[place] for place in places),
            execution.max_rejected,
            rejection_budget(plan, execution),
            sampled.sample,
        )
        for scheme, places in by_scheme.items()
    ]
    for branch in branches:
        execution.engine.compile_first(functools.partial(compile_kernels, branch.scheme))

    def build(pipeline: beam.Pipeline) -> None:
        blocks = plan.read(pipeline)
        for branch in branches:
            blocks | f'Count {branch.scheme.name}' >> branch

    with counted('count', READING, plan.stored_bytes):
        execution.engine.run(build)
    made: dict[str, CountedFolder] = {}
    for branch in branches:
        made |= branch.made()
    return [
        dataclasses.replace(
            made[path],
            sample=sampled.records(
                folder.side, folder.sides, made[path].stats.lines[0], made[path].table.tokens
            ),
        )
        for folder, path in zip(folders, paths, strict=True)
    ]


@dataclass(eq=False)
class CountInto(beam.PTransform):
    """Counts blocks by one scheme into folders, and reports what was read beside the first of them.

    Attributes:
        reading: the corpus.
        workers: blocks in flight in a worker.
        scheme: how lines become tokens.
        groups: for each folder which sides it counts.
        paths: of the folders.
        max_rejected: lines that may be left out of all.
        budget: the same for workers.
        sample: what lines must be in to be counted; None: any.
    """

    reading: Reading
    workers: int
    scheme: Scheme
    groups: SideGroups
    paths: tuple[str, ...]
    max_rejected: RejectionLimit | None = None
    budget: RejectionBudget | None = None
    sample: RowSample | None = None

    def expand(self, blocks: beam.PCollection) -> beam.PCollection:
        counted = blocks | 'CountTokens' >> CountTokens(
            self.groups,
            self.reading.corpus.splits,
            self.workers,
            self.reading.on_error,
            filesystem.join(self.paths[0], _OVERFLOW_NAME),
            scheme=self.scheme,
            budget=self.budget,
            sample=self.sample,
        )
        report_stats(counted, self.paths[0])
        return (
            counted[TABLES]
            | 'WriteCounts' >> WriteCounts(self.paths, self.workers, self.scheme)
            | 'ReportFiles' >> WriteReport(self._files_path)
        )

    @property
    def _files_path(self) -> str:
        return filesystem.join(self.paths[0], 'files')

    def made(self) -> dict[str, CountedFolder]:
        """Returns what was counted into each path, when the pipeline has run.

        Raises:
            InputError: a split has no line with text.
        """
        written = list(read_report(self._files_path, WrittenCounts))
        stats = read_job_stats(self.reading.corpus, self.paths[0], self.max_rejected)
        return {
            path: CountedFolder(
                stats,
                counted_table(
                    [each for each in written if each.group == group], path, self.scheme.rules
                ),
            )
            for group, path in enumerate(self.paths)
        }
