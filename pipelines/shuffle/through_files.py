"""Encoding with the shuffle through files: from its plan to its end, and what a rerun finds."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.engines.progress import counted
from pipelines.files import filesystem
from pipelines.files.claims import CLAIM_NAME, Claim
from pipelines.files.work_folder import WorkFolder
from pipelines.jobs.encode_options import EncodeOptions
from pipelines.jobs.job import Execution
from pipelines.jobs.read_plan import ReadPlan
from pipelines.jobs.read_stats import report_read, report_rejected
from pipelines.jobs.rejections import rejection_budget
from pipelines.jobs.shuffle_memory import fit_memory
from pipelines.shuffle.plan import begin_shuffle, plan_shuffle
from pipelines.shuffle.plan_folders import sweep_shuffles, sweep_unbegun
from pipelines.shuffle.run_merging import MERGING, RUNS, SHARDS, MergeRuns, WriteRuns
from pipelines.transforms.count_tokens import FACTS, REJECTED
from pipelines.transforms.encode_blocks import BlockEncoder, EncodedFeature
from pipelines.transforms.write_report import WriteReport
from tokcore.errors import InputError, OperatingSystemError


def encode_through_files(
    read_plan: ReadPlan,
    execution: Execution,
    features: Sequence[EncodedFeature],
    options: EncodeOptions,
    path: str,
    output: str,
    report: str,
) -> None:
    """Encodes what is read into shards in a folder, and reports them.

    Args:
        read_plan: what is read, as work items.
        execution: how that is run.
        features: what an example holds.
        options: the dataset's name, its shards and the seed of the order keys.
        path: an attempt's folder, for shards and reports.
        output: the folder that the shards are for at last.
        report: the file that tells (file name, bytes, crc32c, examples) of each shard.

    Raises:
        InputError: a line that cannot be used, or too little memory or room on the disk.
    """
    reading, seed = read_plan.reading, options.seed
    vocabularies = len({each.vocabulary for each in features})
    memory = fit_memory(
        execution, reading.longest_line, vocabularies, reading.corpus.may_have_parts
    )
    encoder = BlockEncoder(
        features, reading.corpus.splits, seed, reading.on_error, reading.scheme, options.encoding
    )
    work = WorkFolder(execution.work, output).path
    layout = options.layout(reading.corpus)
    planned = plan_shuffle(read_plan, layout, features, options, memory, work, output)

    folder = planned.plan.folder
    with Claim(filesystem.join(folder, CLAIM_NAME), folder) as claim:
        claim.require()
        plan = begin_shuffle(planned, read_plan, encoder)

        def build(pipeline: beam.Pipeline) -> None:
            written = pipeline | 'WriteRuns' >> WriteRuns(
                plan, planned.items, encoder, memory.workers, rejection_budget(read_plan, execution)
            )
            report_read(written[FACTS], path)
            merged = written[RUNS] | 'MergeRuns' >> MergeRuns(
                plan, options.name, path, memory.group_bytes, memory.workers
            )
            report_rejected(merged[REJECTED], path)
            merged[SHARDS] | 'ReportShards' >> WriteReport(report)

        with counted('shuffle', MERGING, None, 'examples'):
            execution.engine.run(build)


@dataclass(frozen=True)
class KeptRuns:
    """The sorted runs for an output in a work folder, which a rerun goes on with."""

    work: str
    output: str

    def sweep(self) -> None:
        """Deletes them, as far as no other run is at work on them."""
        sweep_shuffles(self.work, self.output)

    @contextlib.contextmanager
    def swept(self) -> Iterator[None]:
        """Leaves no runs behind a block that makes the output's result, unless they are of use.

        They are where a run was killed, has failed or was refused something by the system, and have
        gone with a whole result, or with a refusal: then the input or the options must change.
        """
        try:
            yield
        except OperatingSystemError:
            sweep_unbegun(self.work, self.output)
            raise
        except InputError:
            self.sweep()
            raise
        self.sweep()
