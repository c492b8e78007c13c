"""Encoding with the shuffle through files: from its plan to its end, and what a rerun finds."""

from collections.abc import Sequence

import apache_beam as beam

from pipelines import filesystem
from pipelines.corpora import Job
from pipelines.count_stage import report_read, report_rejected
from pipelines.counting import FACTS, REJECTED
from pipelines.encoding import BlockEncoder, EncodedFeature, SplitShards
from pipelines.file_shuffle import RUNS, SHARDS, MergeRuns, WriteRuns
from pipelines.reports import WriteReport
from pipelines.shuffle_options import fit_memory
from pipelines.shuffle_plan import (
    ShufflePlan,
    begin_shuffle,
    has_runs,
    plan_shuffle,
    sweep_shuffles,
)
from tokcore.errors import FullDiskError, InputError

WORK_FOLDER = '.tokbeam'
"""Below the output: what survives a killed run, until the output is whole."""


def work_folder(job: Job, output: str) -> str:
    """Returns the folder for what a rerun goes on with."""
    return job.work or filesystem.join(output, WORK_FOLDER)


def encode_through_files(
    job: Job,
    features: Sequence[EncodedFeature],
    layout: Sequence[SplitShards],
    name: str,
    seed: int,
    path: str,
    output: str,
    report: str,
) -> None:
    """Encodes a planned job into shards in a folder, and reports them.

    Args:
        job: the corpus, cut into work items, and how it is to be run.
        features: what an example holds.
        layout: for each split its shards and buckets.
        name: of the dataset.
        seed: of the order keys.
        path: an attempt's folder, for shards and reports.
        output: the folder that the shards are for at last.
        report: the file that tells (file name, bytes, crc32c, examples) of each shard.

    Raises:
        InputError: a line that cannot be used, or too little memory or room on the disk. Finished
            runs are kept where a rerun can go on with them, and swept where the input must change.
    """
    memory = fit_memory(
        job.shuffle, job.engine, job.item_bytes, len({each.vocabulary for each in features})
    )
    encoder = BlockEncoder(features, job.corpus.splits, seed, job.on_error)
    work = work_folder(job, output)
    planned = plan_shuffle(job, layout, features, seed, memory, work)
    plan = planned.plan

    def build(pipeline: beam.Pipeline) -> None:
        written = pipeline | 'WriteRuns' >> WriteRuns(
            plan, planned.items, encoder, memory.workers
        )
        report_read(written[FACTS], path)
        merged = written[RUNS] | 'MergeRuns' >> MergeRuns(
            plan, name, path, memory.group_bytes, memory.workers
        )
        report_rejected(merged[REJECTED], path)
        merged[SHARDS] | 'ReportShards' >> WriteReport(report)

    try:
        begin_shuffle(planned, output, job, encoder)
        job.engine.run(build)
    except FullDiskError:
        if not has_runs(plan):
            _forget(plan, work, output)
        raise
    except InputError:
        _forget(plan, work, output)
        raise


def _forget(plan: ShufflePlan, work: str, output: str) -> None:
    if filesystem.is_folder(plan.folder):
        filesystem.delete(plan.folder)
    sweep_shuffles(work, output)
