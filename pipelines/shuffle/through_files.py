"""Encoding with the shuffle through files: from its plan to its end, and what a rerun finds."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.files import filesystem
from pipelines.files.claims import CLAIM_NAME, Claim
from pipelines.files.work_folder import WORK_FOLDER
from pipelines.jobs.corpus_files import Job
from pipelines.jobs.read_stats import report_read, report_rejected
from pipelines.jobs.shuffle_options import fit_memory
from pipelines.shuffle.plan import (
    begin_shuffle,
    plan_shuffle,
    sweep_shuffles,
    sweep_unbegun,
)
from pipelines.shuffle.run_merging import RUNS, SHARDS, MergeRuns, WriteRuns
from pipelines.transforms.count_tokens import FACTS, REJECTED
from pipelines.transforms.encode_blocks import BlockEncoder, EncodedFeature, SplitShards
from pipelines.transforms.write_report import WriteReport
from tokcore.errors import InputError, OperatingSystemError


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
        InputError: a line that cannot be used, or too little memory or room on the disk.
    """
    memory = fit_memory(
        job.shuffle,
        job.engine,
        job.item_bytes,
        len({each.vocabulary for each in features}),
        job.longest_line,
    )
    encoder = BlockEncoder(features, job.corpus.splits, seed, job.on_error)
    work = work_folder(job, output)
    planned = plan_shuffle(job, layout, features, seed, memory, work, output)
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

    with Claim(filesystem.join(plan.folder, CLAIM_NAME), plan.folder) as claim:
        claim.require()
        begin_shuffle(planned, job, encoder)
        job.engine.run(build)


@dataclass(frozen=True)
class KeptRuns:
    """The sorted runs for an output, which a rerun goes on with."""

    job: Job
    output: str

    def sweep(self) -> None:
        """Deletes them, as far as no other run is at work on them."""
        sweep_shuffles(work_folder(self.job, self.output), self.output)

    @contextlib.contextmanager
    def swept(self) -> Iterator[None]:
        """Leaves no runs behind a block that makes the output's result, unless they are of use.

        They are where a run was killed, has failed or was refused something by the system, and have
        gone with a whole result, or with a refusal: then the input or the options must change.
        """
        try:
            yield
        except OperatingSystemError:
            sweep_unbegun(work_folder(self.job, self.output), self.output)
            raise
        except InputError:
            self.sweep()
            raise
        self.sweep()
