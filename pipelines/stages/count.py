"""The stage that counts: training lines in, one or two COUNTS folders out.

Such folders are merged partition by partition, without reading text again.
"""

import dataclasses
import functools
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.artifacts.counts import (
    CountedTable,
    CountFiles,
    CountsFolder,
    check_recorded,
    count_names,
    counted_table,
    find_counts,
    log_sample,
    read_counts_or_empty,
)
from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.outputs import StageOutput, StageTask
from pipelines.engines.engine import Engine
from pipelines.engines.progress import advance, track_work
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.jobs.job import CorpusReading, CountJob, Execution, MergeJob
from pipelines.jobs.read_plan import ReadPlan, plan_reading
from pipelines.jobs.sampling import SampledPlan, plan_sample
from pipelines.jobs.stats import (
    ReadStats,
    read_job_stats,
    rejection_budget,
    write_stats,
)
from pipelines.options.job import RejectionLimit
from pipelines.stages.run_stage import StageResult, run_stage
from pipelines.transforms.count_tokens import (
    TABLES,
    CountTokens,
    WriteCounts,
    WrittenCounts,
    counts_name,
    write_counts_file,
)
from pipelines.transforms.read import READING, MapToStats
from pipelines.transforms.stats import RejectionBudget, WriteStats, read_stats
from tokcore.counts.sampling import RowSample
from tokcore.counts.tables import COUNT_PARTITIONS, SideGroups
from tokcore.encoding.scheme import Scheme, TokenRules
from tokcore.errors import InputError
from tokcore.records.manifest import MANIFEST_NAME, Manifest, SampleRecord
from tokcore.text.unicode import check_unicode
from tokcore.warm_up import compile_kernels

_OVERFLOW_NAME = 'overflow'

_MERGING = 'merging counts'


def count_stage(job: CountJob) -> Manifest | None:
    """Counts the training lines' tokens into COUNTS folders; raises as `count_folders`.

    Returns the manifest of the first that was made; None if all were there.
    """
    results = count_folders(job)
    made = [result.manifest for result in results if result is not None]
    for folder, result in zip(job.folders, results, strict=True):
        if result is not None:
            StageOutput.of_counts(folder.path).warn_rejected(result.rejected)
    if made:
        log_sample(made[0])
    return made[0] if made else None


def count_folders(job: CountJob, planned: ReadPlan | None = None) -> list[StageResult | None]:
    """Counts the training lines' tokens into folders, each completed by its manifest.

    The text is read once, also for several schemes. A folder that already has this result is left
    as it is, and has None among the results. Rejected lines are kept in `COUNTS.rejected`.

    Args:
        job: what is counted.
        planned: the work items, if another stage has cut them already. That stage reads the same
            lines and keeps the rejected ones, so they are not kept here.

    Raises:
        InputError: a line that cannot be used, an empty corpus or sample, or a folder with another
            result.
    """
    tasks = [
        StageTask(job.key(folder), StageOutput.of_counts(folder.path, folder.root), count_names())
        for folder in job.folders
    ]

    def make(*attempts: Attempt | None) -> list[StageResult]:
        missing = [
            (task, folder, attempt.path)
            for task, folder, attempt in zip(tasks, job.folders, attempts, strict=True)
            if attempt is not None
        ]
        _, folders, paths = zip(*missing, strict=True)
        plan = planned or plan_reading(job.reading, job.execution, paths[0])
        sides = frozenset(side for folder in folders for side in folder.sides)
        sampled = plan_sample(plan, job.sample.vocab_sample, job.execution, paths[0], sides)
        counts = _count_into(sampled, job.execution, folders, paths)
        return [
            StageResult(
                task.key.manifest(
                    count.stats.inputs,
                    count.stats.lines,
                    tokens=count.table.tokens,
                    files=count.table.files,
                    datasets=count.stats.datasets,
                    sample=count.sample,
                ),
                () if planned else count.stats.rejected,
            )
            for (task, _, _), count in zip(missing, counts, strict=True)
        ]

    return run_stage(tasks, make, job.execution, kernels=['counting'])


@dataclass(frozen=True)
class _CountedFolder:
    """What was read for a COUNTS folder, and what it holds."""

    stats: ReadStats
    table: CountedTable
    sample: tuple[SampleRecord, ...] = ()


def _count_into(
    sampled: SampledPlan,
    execution: Execution,
    folders: Sequence[CountsFolder],
    paths: Sequence[str],
) -> list[_CountedFolder]:
    """Counts into an attempt's folders, one for each of `folders`.

    Rejected lines go to the first of a scheme's folders.
    """
    plan = sampled.plan
    by_scheme: dict[Scheme, list[int]] = {}
    for number, folder in enumerate(folders):
        by_scheme.setdefault(folder.scheme or plan.reading.scheme, []).append(number)
    branches = [
        _CountInto(
            plan.reading,
            execution.engine.workers,
            scheme,
            tuple(folders[number].sides for number in numbers),
            tuple(paths[number] for number in numbers),
            execution.max_rejected,
            rejection_budget(plan, execution),
            sampled.sample,
        )
        for scheme, numbers in by_scheme.items()
    ]
    for branch in branches:
        execution.engine.compile_first(functools.partial(compile_kernels, branch.scheme))

    def build(pipeline: beam.Pipeline) -> None:
        blocks = plan.read(pipeline)
        for branch in branches:
            blocks | f'Count {branch.scheme.name}' >> branch

    with track_work('count', READING, plan.stored_bytes):
        execution.engine.run(build, paths[0])
    counts: dict[str, _CountedFolder] = {}
    for branch in branches:
        counts |= branch.counts()
    return [
        dataclasses.replace(
            counts[path],
            sample=sampled.records(
                folder.side, folder.sides, counts[path].stats.lines[0], counts[path].table.tokens
            ),
        )
        for folder, path in zip(folders, paths, strict=True)
    ]


@dataclass(eq=False)
class _CountInto(beam.PTransform):
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

    reading: CorpusReading
    workers: int
    scheme: Scheme
    groups: SideGroups
    paths: tuple[str, ...]
    max_rejected: RejectionLimit | None = None
    budget: RejectionBudget | None = None
    sample: RowSample | None = None

    def expand(self, blocks: beam.PCollection) -> beam.PCollection:
        counted = blocks | 'CountTokens' >> CountTokens(
            self.scheme,
            groups=self.groups,
            splits=self.reading.corpus.splits,
            workers=self.workers,
            on_error=self.reading.on_error,
            spill_folder=os.path.join(self.paths[0], _OVERFLOW_NAME),
            budget=self.budget,
            sample=self.sample,
        )
        write_stats(counted, self.paths[0])
        return (
            counted[TABLES]
            | 'WriteCounts' >> WriteCounts(self.paths, self.workers, self.scheme)
            | 'WriteFileStats' >> WriteStats(self._files_path)
        )

    @property
    def _files_path(self) -> str:
        return os.path.join(self.paths[0], 'files')

    def counts(self) -> dict[str, _CountedFolder]:
        """Returns what was counted into each path, after the pipeline has run.

        Raises:
            InputError: a split has no line with text.
        """
        written = list(read_stats(self._files_path, WrittenCounts))
        stats = read_job_stats(self.reading.corpus, self.paths[0], self.max_rejected)
        return {
            path: _CountedFolder(
                stats,
                counted_table(
                    [file for file in written if file.group == group], path, self.scheme.rules
                ),
            )
            for group, path in enumerate(self.paths)
        }


def merge_stage(job: MergeJob) -> Manifest | None:
    """Adds up COUNTS folders into a new one; returns as `count_stage`.

    Raises:
        InputError: a folder that is incomplete, is of another Unicode version or is the output
            itself, or another result in the output.
    """
    counts = find_counts(job.folders)
    manifests = [_counts_manifest(folder, job.output) for folder in job.folders]
    rules = _common_rules(dict(zip(job.folders, manifests, strict=True)))
    check_recorded(counts, rules)
    key = job.key(counts, manifests, rules)
    tokens = sum(manifest.tokens or 0 for manifest in manifests)

    def make(attempt: Attempt) -> list[StageResult]:
        started = time.monotonic()
        table = _merge_into(counts, rules, attempt.path, job.execution.engine)
        if table.tokens != tokens:
            raise InputError(
                f'the merged counts have {table.tokens} tokens, but {MANIFEST_NAME} of the folders '
                f'states {tokens} in all; count them again with --overwrite'
            )
        manifest = key.manifest(
            tuple(file.checksum() for file in key.inputs), tokens=tokens, files=table.files
        )
        return [StageResult(manifest, seconds={'merge': time.monotonic() - started})]

    task = StageTask(key, StageOutput.of_counts(job.output), count_names())
    [result] = run_stage([task], make, job.execution)
    if result is None:
        return None
    return result.manifest


def _counts_manifest(folder: str, output: str) -> Manifest:
    path = filesystem.absolute(folder)
    if path == output:
        raise InputError(f'{folder} is merged and is the output; give another --output')
    manifest = read_manifest(os.path.join(path, MANIFEST_NAME))
    if manifest is None:
        raise InputError(
            f'{folder} is not a COUNTS folder: it has no {MANIFEST_NAME}; --counts takes the folders '
            'that `tokbeam count` makes'
        )
    check_unicode(manifest.unicode, f'the count folder {folder}')
    return manifest


def _common_rules(manifests: Mapping[str, Manifest]) -> TokenRules:
    """Returns the rules by which all folders were counted.

    Raises:
        InputError: two folders have different rules; both are named.
    """
    rules = {folder: manifest.rules for folder, manifest in manifests.items()}
    first, *others = rules
    for folder in others:
        if rules[folder] != rules[first]:
            raise InputError(
                f'{first} was counted with {rules[first]}, {folder} with {rules[folder]}: they do '
                'not add up; count one of them again'
            )
    return rules[first]


def _merge_into(counts: CountFiles, rules: TokenRules, path: str, engine: Engine) -> CountedTable:
    by_partition = [
        CountFiles(tuple(file for file in counts.files if _base(file.name) == name))
        for name in (counts_name(partition) for partition in range(COUNT_PARTITIONS))
    ]
    counts.let_go(*counts.files)  # the workers read them
    report = os.path.join(path, 'files')
    call = functools.partial(_merge_partition, path, rules)
    merging = MapToStats(list(enumerate(by_partition)), call, report)
    with track_work('merge', _MERGING, len(by_partition), 'files'):
        engine.run(lambda pipeline: pipeline | 'MergeCounts' >> merging, path)
    return counted_table(read_stats(report, WrittenCounts), path, rules)


def _base(name: str) -> str:
    return name.rpartition('/')[2]


def _merge_partition(
    folder: str, rules: TokenRules, numbered: tuple[int, CountFiles]
) -> list[WrittenCounts]:
    partition, files = numbered
    written = write_counts_file(folder, partition, read_counts_or_empty(files), rules)
    advance(_MERGING, 1)
    return [written]
