"""The stage that counts: training lines in, one or two COUNTS folders out."""

import contextlib
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.artifacts.manifest import Manifest, OutputFile
from pipelines.artifacts.stage_output import StageKey, StageOutput, run_record
from pipelines.files import filesystem
from pipelines.files.claims import Claim
from pipelines.jobs.corpus_files import Job
from pipelines.jobs.read_stats import (
    ReadStats,
    read_job_stats,
    reading_options,
    report_stats,
    wanted_inputs,
)
from pipelines.transforms.count_tokens import (
    TABLES,
    CountTokens,
    WriteCounts,
    WrittenCounts,
    counts_name,
    write_counts_file,
)
from pipelines.transforms.write_report import WriteReport, read_report
from tokcore.counts.block_counting import COUNT_PARTITIONS
from tokcore.counts.merging import TokenTable
from tokcore.text.unicode_tables import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)

_OVERFLOW_NAME = 'overflow'

SIDES = {'inputs': (0,), 'targets': (1,), 'both': (0, 1)}
"""What `--side` chooses of a pair."""


@dataclass(frozen=True)
class CountsFolder:
    """One COUNTS folder to be made: which side of the pairs it counts, or 'text'."""

    path: str
    side: str  # a key of `SIDES`, or 'text'

    @property
    def sides(self) -> tuple[int, ...]:
        return SIDES.get(self.side, (0,))


def count_names() -> tuple[str, ...]:
    """Returns the file names of a COUNTS folder."""
    return tuple(counts_name(partition) for partition in range(COUNT_PARTITIONS))


def wanted_counts(job: Job, folder: CountsFolder) -> StageKey:
    """Returns what the bytes of a COUNTS folder depend on."""
    return StageKey('count', {'side': folder.side, **reading_options(job)}, wanted_inputs(job.corpus))


def count_stage(
    job: Job, folders: Sequence[CountsFolder], keep_rejected: bool = True
) -> tuple[OutputFile, ...]:
    """Counts the training lines' tokens into folders, each ended by its manifest.

    A folder that already holds this result is left as it is. Returns the files of rejected lines.

    Args:
        job: the training corpus.
        folders: what to count.
        keep_rejected: whether rejected lines are kept, in `COUNTS.rejected`; not if another stage
            reads the same lines and keeps them.

    Raises:
        InputError: a line that cannot be used, an empty corpus, or a folder with another result.
    """
    started = time.monotonic()
    wanted = {folder.path: wanted_counts(job, folder) for folder in folders}
    with contextlib.ExitStack() as stack:
        missing: dict[CountsFolder, Claim] = {}
        for folder in folders:
            output = StageOutput.of_counts(folder.path)
            claim = stack.enter_context(output.claim())
            if not output.up_to_date(claim, wanted[folder.path], count_names(), job.overwrite):
                missing[folder] = claim
        if not missing:
            _LOGGER.info('count: already done in %s', ', '.join(each.path for each in folders))
            return ()
        outputs = [StageOutput.of_counts(folder.path) for folder in missing]
        attempts = [stack.enter_context(output.attempt()) for output in outputs]
        job = job.planned(attempts[0].path)
        counted = count_into(job, list(missing), [attempt.path for attempt in attempts])
        rejected = counted.stats.rejected if keep_rejected else ()
        seconds = {'count': time.monotonic() - started}
        for folder, output, attempt, table in zip(
            missing, outputs, attempts, counted.tables, strict=True
        ):
            manifest = Manifest(
                'count',
                UNICODE_VERSION,
                wanted[folder.path].options,
                counted.stats.inputs,
                counted.stats.lines,
                tokens=table.tokens,
                files=table.files,
            )
            run = run_record(wanted[folder.path].inputs, seconds, job.engine.flags)
            # The workers wrote rejected lines to the first attempt; only a count of one folder keeps
            # them.
            output.publish(missing[folder], attempt, count_names(), manifest, run, rejected)
            _LOGGER.info(
                'count: %d tokens, %d distinct, in %s', table.tokens, table.distinct, folder.path
            )
    return rejected


@dataclass(frozen=True)
class CountedTable:
    """The files of one COUNTS folder and the running tokens in them."""

    tokens: int
    files: tuple[OutputFile, ...]

    @property
    def distinct(self) -> int:
        return sum(file.rows for file in self.files)


@dataclass(frozen=True)
class CountedCorpus:
    stats: ReadStats
    tables: tuple[CountedTable, ...]  # one for each folder


def count_into(
    job: Job, folders: Sequence[CountsFolder], paths: Sequence[str]
) -> CountedCorpus:
    """Counts into an attempt's folders, one for each of `folders`; rejected lines go to the first."""
    groups = tuple(folder.sides for folder in folders)
    files_path = filesystem.join(paths[0], 'files')

    def build(pipeline: beam.Pipeline) -> None:
        counted = job.read(pipeline) | 'CountTokens' >> CountTokens(
            groups,
            job.corpus.splits,
            job.engine.workers,
            job.on_error,
            filesystem.join(paths[0], _OVERFLOW_NAME),
        )
        report_stats(counted, paths[0])
        (
            counted[TABLES]
            | 'WriteCounts' >> WriteCounts(paths, job.engine.workers)
            | 'ReportFiles' >> WriteReport(files_path)
        )

    job.engine.run(build)
    written = list(read_report(files_path, WrittenCounts))
    tables = tuple(
        counted_table([each for each in written if each.group == group], path)
        for group, path in enumerate(paths)
    )
    return CountedCorpus(read_job_stats(job.corpus, paths[0]), tables)


def counted_table(files: Iterable[WrittenCounts], path: str) -> CountedTable:
    """Returns a COUNTS folder from what was written of it; empty partitions are written here."""
    written = {each.name: each for each in files}
    for partition in range(COUNT_PARTITIONS):
        if counts_name(partition) not in written:
            empty = write_counts_file(path, partition, TokenTable.from_items(()))
            written[empty.name] = empty
    listed = tuple(OutputFile.of(written[name]) for name in count_names())
    return CountedTable(sum(each.tokens for each in written.values()), listed)
