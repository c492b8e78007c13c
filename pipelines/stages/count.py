"""The stage that counts: training lines in, one or two COUNTS folders out.

Such folders are merged partition by partition, without reading text again.
"""

import dataclasses
import functools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.artifacts.counts import (
    CountFiles,
    CountsFolder,
    check_recorded,
    count_names,
    counted_table,
    find_counts,
    log_sample,
    read_counts_or_empty,
    read_parquet_counts,
)
from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.outputs import StageOutput, StageTask
from pipelines.engines.progress import advance, track_work
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.jobs.job import CountJob, MergeJob
from pipelines.jobs.reading import (
    ReadPlan,
    ReadStats,
    plan_reading,
    plan_sample,
    read_job_stats,
    write_stats,
)
from pipelines.stages.run_stage import StageResult, run_stage
from pipelines.transforms.count_tokens import (
    TABLES,
    CountTokens,
    WriteCounts,
    WrittenCounts,
    counts_name,
    write_counts_file,
)
from pipelines.transforms.read import MapToStats
from pipelines.transforms.stats import WriteStats, read_stats
from tokcore.counts.sampling import RowSample
from tokcore.counts.tables import COUNT_PARTITIONS, SideGroups, partition_of
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.last_word import SENTENCE_END, CorpusEnd, empty_sentences, last_word
from tokcore.encoding.scheme import Scheme, TokenRules
from tokcore.errors import InputError
from tokcore.records.manifest import MANIFEST_NAME, Manifest, OutputFile
from tokcore.text.unicode import check_unicode
from tokcore.warm_up import compile_kernels

_OVERFLOW_NAME, _FILES_NAME = 'overflow', 'files'

_MERGING = 'merging counts'


def count_stage(job: CountJob) -> Manifest | None:
    """Counts the training lines' tokens into COUNTS folders, dataset by dataset; raises as `count_folders`.

    Returns the manifest of the first that was made, with the lines and files of all datasets; None if all
    were there.
    """
    results = [result for part in job.parts for result in count_folders(part)]
    made = [result.manifest for result in results if result is not None]
    for folder, result in zip(job.folders, results, strict=True):
        if result is not None:
            StageOutput.of_counts(folder.path).warn_rejected(result.rejected)
    if not made:
        return None
    log_sample(made[0])
    if not job.folders[0].dataset:
        return made[0]
    tallies = {tally.dataset: tally for each in made for tally in each.datasets}
    files = tuple(file for each in made for file in each.files)
    tokens = sum(each.tokens or 0 for each in made)
    return dataclasses.replace(made[0], lines=(*tallies.values(),), files=files, tokens=tokens)


def count_folders(job: CountJob, planned: ReadPlan | None = None) -> list[StageResult | None]:
    """Counts the training lines' tokens into folders, each completed by its manifest.

    The text is read once, also for several schemes. A folder that already has this result is left
    as it is, and has None among the results. Rejected lines are kept in `COUNTS.rejected`.

    Args:
        job: what is counted.
        planned: the work items of these lines, if another stage has cut them already. That stage reads
            the same lines and keeps the rejected ones, so they are not kept here.

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
        execution, first = job.execution, missing[0][2]
        plan = plan_reading(job.reading, execution, first) if planned is None else planned
        sides = frozenset(side for folder in job.folders for side in folder.sides)
        sampled = plan_sample(plan, job.sample.vocab_sample, execution, first, sides)
        by_scheme: dict[Scheme, list[tuple[CountsFolder, str]]] = {}
        for _, folder, path in missing:
            scheme = folder.scheme or job.reading.scheme
            by_scheme.setdefault(scheme, []).append((folder, path))
        # Rejected lines go to the first of a scheme's folders.
        branches = [
            _CountInto(
                sampled.plan,
                scheme,
                tuple(folder.sides for folder, _ in folders),
                tuple(path for _, path in folders),
                sampled.sample,
            )
            for scheme, folders in by_scheme.items()
        ]
        for branch in branches:
            execution.engine.compile_first(functools.partial(compile_kernels, branch.scheme))

        def build(pipeline: beam.Pipeline) -> None:
            blocks = sampled.plan.read(pipeline)
            for branch in branches:
                blocks | f'Count {branch.scheme.name}' >> branch

        with plan.tracked('count'):
            execution.engine.run(build, first)
        counts: dict[str, tuple[ReadStats, int, tuple[OutputFile, ...]]] = {}
        for branch in branches:
            counts |= branch.counts()
        results = []
        for task, folder, path in missing:
            stats, tokens, files = counts[path]
            manifest = task.key.manifest(
                stats.inputs,
                stats.lines,
                tokens=tokens,
                files=files,
                datasets=stats.datasets,
                sample=sampled.records(folder.side, folder.sides, stats.lines[0], tokens),
            )
            results.append(StageResult(manifest, () if planned else stats.rejected))
        return results

    return run_stage(tasks, make, job.execution, kernels=['counting'])


@dataclass(eq=False)
class _CountInto(beam.PTransform):
    """Counts blocks by one scheme into folders, and reports what was read in the first of them.

    Attributes:
        plan: what is read.
        scheme: how lines become tokens.
        groups: for each folder which sides it counts.
        paths: of the folders.
        sample: what lines must be in to be counted; None: any.
    """

    plan: ReadPlan
    scheme: Scheme
    groups: SideGroups
    paths: tuple[str, ...]
    sample: RowSample | None = None

    def expand(self, blocks: beam.PCollection) -> beam.PCollection:
        counted = blocks | 'CountTokens' >> CountTokens(
            self.scheme,
            groups=self.groups,
            splits=self.plan.reading.corpus.splits,
            workers=self.plan.workers,
            on_error=self.plan.reading.on_error,
            spill_folder=os.path.join(self.paths[0], _OVERFLOW_NAME),
            budget=self.plan.budget,
            sample=self.sample,
        )
        write_stats(counted, self.paths[0])
        return (
            counted[TABLES]
            | 'WriteCounts' >> WriteCounts(self.paths, self.plan.workers, self.scheme)
            | 'WriteFileStats' >> WriteStats(os.path.join(self.paths[0], _FILES_NAME))
        )

    def counts(self) -> dict[str, tuple[ReadStats, int, tuple[OutputFile, ...]]]:
        """Returns what was counted into each path, after the pipeline has run.

        Raises:
            InputError: a split has no line with text.
        """
        written = list(read_stats(os.path.join(self.paths[0], _FILES_NAME), WrittenCounts))
        stats = read_job_stats(self.plan.reading.corpus, self.paths[0], self.plan.max_rejected)
        counted = {}
        for group, path in enumerate(self.paths):
            files = [file for file in written if file.group == group]
            if self.scheme.counts_last_word:
                files = self._with_last_word(files, path, self.groups[group])
            counted[path] = stats, *counted_table(files, path, self.scheme.rules)
        return counted

    def _with_last_word(
        self, files: list[WrittenCounts], path: str, sides: Sequence[int]
    ) -> list[WrittenCounts]:
        """Writes the last word into the file of the first partition; returns all files."""
        by_name = {file.name: file for file in files}

        def table_of(partition: int) -> TokenTable:
            name = counts_name(partition)
            if name not in by_name:
                return TokenTable.from_items(())
            return read_parquet_counts(os.path.join(path, name))

        reading = self.plan.reading
        splits = [
            dataclasses.replace(split, max_line_bytes=reading.max_line_bytes)
            for split in reading.corpus.splits
        ]
        end = CorpusEnd(
            self.scheme, splits, filesystem.open_binary, self.plan.items['train'],
            frozenset(side for sides in self.groups for side in sides), self.sample,
        )  # fmt: skip
        empty = empty_sentences(table_of(partition_of(SENTENCE_END.encode(), COUNT_PARTITIONS)))
        table = dataclasses.replace(table_of(0), last_word=last_word(empty, end, sides))
        by_name[counts_name(0)] = write_counts_file(path, 0, table, self.scheme.rules)
        return list(by_name.values())


def merge_stage(job: MergeJob) -> Manifest | None:
    """Adds up COUNTS folders into a new one; returns as `count_stage`.

    Raises:
        InputError: a folder that is incomplete, is of another Unicode version or is the output
            itself, or another result in the output.
    """
    counts = find_counts(job.folders)
    manifests = [_counts_manifest(folder, job.output) for folder in job.folders]
    rules = manifests[0].rules
    for folder, manifest in zip(job.folders, manifests, strict=True):
        if manifest.rules != rules:
            raise InputError(
                f'{job.folders[0]} was counted with {rules}, {folder} with {manifest.rules}: they do '
                'not add up; count one of them again'
            )
    check_recorded(counts, rules)
    key = job.key(counts, manifests, rules)
    tokens = sum(manifest.tokens or 0 for manifest in manifests)

    def make(attempt: Attempt) -> list[StageResult]:
        started = time.monotonic()
        names = [counts_name(partition) for partition in range(COUNT_PARTITIONS)]
        by_partition = [
            CountFiles(tuple(file for file in counts.files if file.name.rpartition('/')[2] == name))
            for name in names
        ]
        counts.let_go(*counts.files)  # the workers read them
        report = os.path.join(attempt.path, _FILES_NAME)
        call = functools.partial(_merge_partition, attempt.path, rules)
        merging = MapToStats(list(enumerate(by_partition)), call, report)
        with track_work('merge', _MERGING, len(by_partition), 'files'):
            job.execution.engine.run(
                lambda pipeline: pipeline | 'MergeCounts' >> merging, attempt.path
            )
        written = read_stats(report, WrittenCounts)
        merged, files = counted_table(written, attempt.path, rules)
        if merged != tokens:
            raise InputError(
                f'the merged counts have {merged} tokens, but {MANIFEST_NAME} of the folders '
                f'states {tokens} in all; count them again with --overwrite'
            )
        manifest = key.manifest(
            tuple(file.checksum() for file in key.inputs), tokens=tokens, files=files
        )
        return [StageResult(manifest, seconds={'merge': time.monotonic() - started})]

    task = StageTask(key, StageOutput.of_counts(job.output), count_names())
    [result] = run_stage([task], make, job.execution)
    return None if result is None else result.manifest


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


def _merge_partition(
    folder: str, rules: TokenRules, numbered: tuple[int, CountFiles]
) -> list[WrittenCounts]:
    partition, files = numbered
    written = write_counts_file(folder, partition, read_counts_or_empty(files), rules)
    advance(_MERGING, 1)
    return [written]
