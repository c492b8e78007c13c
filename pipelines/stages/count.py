"""The stage that counts: training lines in, one or two COUNTS folders out."""

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
from pipelines.artifacts.manifest import OutputFile
from pipelines.artifacts.stage_output import StageKey, StageOutput, StageTask
from pipelines.engines.progress import counted
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.jobs.job import Execution, Reading
from pipelines.jobs.read_plan import ReadPlan, plan_reading
from pipelines.jobs.read_stats import ReadStats, read_job_stats, report_stats
from pipelines.stages.run_stage import Made, run_stage
from pipelines.transforms.count_tokens import TABLES, CountTokens, WriteCounts, WrittenCounts
from pipelines.transforms.read_blocks import READING
from pipelines.transforms.write_report import WriteReport, read_report

_OVERFLOW_NAME = 'overflow'


def count_stage(
    reading: Reading,
    execution: Execution,
    folders: Sequence[CountsFolder],
    planned: ReadPlan | None = None,
) -> tuple[OutputFile, ...]:
    """Counts the training lines' tokens into folders, each ended by its manifest.

    A folder that already holds this result is left as it is. Returns the files of rejected lines,
    which are kept in `COUNTS.rejected`.

    Args:
        reading: the training corpus.
        execution: how it is run.
        folders: what to count.
        planned: its work items, if they are cut already: for another stage, which reads the same
            lines and keeps those that are rejected, so that they are not kept here.

    Raises:
        InputError: a line that cannot be used, an empty corpus, or a folder with another result.
    """
    tasks = [
        StageTask(wanted_counts(reading, folder), StageOutput.of_counts(folder.path), count_names())
        for folder in folders
    ]

    def make(*attempts: Attempt | None) -> list[Made]:
        missing = [place for place, attempt in enumerate(attempts) if attempt is not None]
        paths = [attempts[place].path for place in missing]
        plan = planned or plan_reading(reading, execution, paths[0])
        counted = count_into(plan, execution, [folders[place] for place in missing], paths)
        stats = counted.stats
        # The workers wrote rejected lines to the first attempt; only a count of one folder keeps
        # them.
        return [
            Made(
                tasks[place].key.manifest(
                    stats.inputs, stats.lines, tokens=table.tokens, files=table.files
                ),
                () if planned else stats.rejected,
            )
            for place, table in zip(missing, counted.tables, strict=True)
        ]

    made = run_stage(tasks, make, execution)
    for folder, each in zip(folders, made, strict=True):
        if each is not None:
            log_counts(each.manifest, folder.path)
    return next((each.rejected for each in made if each is not None), ())


def wanted_counts(reading: Reading, folder: CountsFolder) -> StageKey:
    """Returns what the bytes of a COUNTS folder depend on."""
    options = {'side': folder.side, **reading.for_manifest()}
    return StageKey('count', options, reading.corpus.wanted_inputs(), reading.scheme.rules)


@dataclass(frozen=True)
class CountedCorpus:
    stats: ReadStats
    tables: tuple[CountedTable, ...]  # one for each folder


def count_into(
    plan: ReadPlan, execution: Execution, folders: Sequence[CountsFolder], paths: Sequence[str]
) -> CountedCorpus:
    """Counts into an attempt's folders, one for each of `folders`; rejected lines go to the first."""
    reading, workers = plan.reading, execution.engine.workers
    groups = tuple(folder.sides for folder in folders)
    files_path = filesystem.join(paths[0], 'files')

    def build(pipeline: beam.Pipeline) -> None:
        counted = plan.read(pipeline) | 'CountTokens' >> CountTokens(
            groups,
            reading.corpus.splits,
            workers,
            reading.on_error,
            filesystem.join(paths[0], _OVERFLOW_NAME),
            scheme=reading.scheme,
        )
        report_stats(counted, paths[0])
        (
            counted[TABLES]
            | 'WriteCounts' >> WriteCounts(paths, workers, reading.scheme)
            | 'ReportFiles' >> WriteReport(files_path)
        )

    with counted('count', READING, plan.stored_bytes):
        execution.engine.run(build)
    written = list(read_report(files_path, WrittenCounts))
    tables = tuple(
        counted_table(
            [each for each in written if each.group == group], path, reading.scheme.rules
        )
        for group, path in enumerate(paths)
    )
    return CountedCorpus(read_job_stats(reading.corpus, paths[0]), tables)
