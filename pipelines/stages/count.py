"""The stage that counts: training lines in, one or two COUNTS folders out.

Such folders are merged partition by partition, without reading text again.
"""

import dataclasses
import functools
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
    log_counts,
    read_counts_or_empty,
)
from pipelines.artifacts.manifest import earlier_rules, read_manifest
from pipelines.artifacts.outputs import StageKey, StageOutput, StageTask
from pipelines.engines.engine import Engine
from pipelines.engines.progress import advance, track_work
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.jobs.job import CorpusReading, Execution, ReadPlan, plan_reading
from pipelines.jobs.sampling import SampledPlan, plan_sample
from pipelines.jobs.stats import (
    ReadStats,
    log_filtered,
    read_job_stats,
    rejection_budget,
    write_stats,
)
from pipelines.options.job import RejectionLimit
from pipelines.options.vocabulary import SampledVocabulary
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
from tokcore.corpus.sampling import RowSample
from tokcore.counts.tables import COUNT_PARTITIONS, SideGroups
from tokcore.encoding.scheme import Scheme, TokenRules
from tokcore.errors import InputError
from tokcore.options import recorded
from tokcore.records.manifest import MANIFEST_NAME, Manifest, OutputFile, SampleRecord
from tokcore.text.unicode import check_unicode
from tokcore.warm_up import compile_kernels

_OVERFLOW_NAME = 'overflow'

_MERGING = 'merging counts'


def count_stage(
    reading: CorpusReading,
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

    def make(*attempts: Attempt | None) -> list[StageResult]:
        missing = [place for place, attempt in enumerate(attempts) if attempt is not None]
        paths = [attempts[place].path for place in missing]
        plan = planned or plan_reading(reading, execution, paths[0])
        counting = [folders[place] for place in missing]
        sides = frozenset(side for folder in counting for side in folder.sides)
        sampled = plan_sample(plan, sampling.vocab_sample, execution, paths[0], sides)
        counted = count_into(sampled, execution, counting, paths)
        return [
            StageResult(
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
    reading: CorpusReading, folder: CountsFolder, sampling: SampledVocabulary
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

    with track_work('count', READING, plan.stored_bytes):
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
            self.groups,
            self.reading.corpus.splits,
            self.workers,
            self.reading.on_error,
            filesystem.join(self.paths[0], _OVERFLOW_NAME),
            scheme=self.scheme,
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
        return filesystem.join(self.paths[0], 'files')

    def made(self) -> dict[str, CountedFolder]:
        """Returns what was counted into each path, when the pipeline has run.

        Raises:
            InputError: a split has no line with text.
        """
        written = list(read_stats(self._files_path, WrittenCounts))
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


def merge_stage(folders: Sequence[str], output: str, execution: Execution) -> None:
    """Adds up COUNTS folders into a new one.

    Raises:
        InputError: a folder that is not whole, is of another Unicode version or is the output
            itself, or another result in the output.
    """
    counts = find_counts(folders)
    manifests = [_counts_manifest(folder, output) for folder in folders]
    rules = _common_rules(dict(zip(folders, manifests, strict=True)))
    check_recorded(counts, rules)
    key = StageKey(
        'count',
        {'merged': len(folders), 'side': [manifest.options.get('side') for manifest in manifests]},
        counts.wanted_inputs(),
        rules,
    )
    tokens = sum(manifest.tokens or 0 for manifest in manifests)

    def make(attempt: Attempt) -> list[StageResult]:
        started = time.monotonic()
        table = _merge_into(counts, rules, attempt.path, execution.engine)
        if table.tokens != tokens:
            raise InputError(
                f'what is merged has {table.tokens} tokens, but {MANIFEST_NAME} of the folders '
                f'states {tokens} in all; count them again with --overwrite'
            )
        manifest = key.manifest(
            tuple(each.checksum() for each in key.inputs),
            tokens=tokens,
            files=table.files,
        )
        return [StageResult(manifest, seconds={'merge': time.monotonic() - started})]

    task = StageTask(key, StageOutput.of_counts(output), count_names())
    [made] = run_stage([task], make, execution)
    if made is not None:
        log_counts(made.manifest, output)


def _counts_manifest(folder: str, output: str) -> Manifest:
    path = filesystem.absolute(folder)
    if path == output:
        raise InputError(f'{folder} is merged and is the output; give another --output')
    manifest = read_manifest(filesystem.join(path, MANIFEST_NAME))
    if manifest is None:
        raise InputError(
            f'{folder} is no COUNTS folder: it has no {MANIFEST_NAME}; --merge takes the folders '
            'that `tokbeam count` makes'
        )
    check_unicode(manifest.unicode, f'the count folder {folder}')
    return manifest


def _common_rules(manifests: Mapping[str, Manifest]) -> TokenRules:
    """Returns the rules by which all folders were counted.

    Raises:
        InputError: there are two of them; both are named.
    """
    rules = {folder: manifest.rules or earlier_rules() for folder, manifest in manifests.items()}
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
    report = filesystem.join(path, 'files')
    call = functools.partial(_merge_partition, path, rules)
    merging = MapToStats(list(enumerate(by_partition)), call, report)
    with track_work('merge', _MERGING, len(by_partition), 'files'):
        engine.run(lambda pipeline: pipeline | 'MergeCounts' >> merging)
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
