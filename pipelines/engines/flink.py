"""What is Flink's: its slots, what one may shuffle, and one job server for all jobs of a process.

What a bundle may put out there, which whoever puts out much has to ask, is in `bundle_bound`.
"""

import functools

from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
from apache_beam.runners.portability.flink_runner import (
    MAGIC_HOST_NAMES,
    FlinkJarJobServer,
    FlinkRunner,
)
from apache_beam.runners.portability.job_server import JobServer

from pipelines.engines.bundle_bound import MOST_BUNDLE_BYTES
from pipelines.engines.job_servers import JobServerJar
from pipelines.engines.runner import Runner
from tokcore.errors import InputError

_MOST_PARALLELISM = 32_768
"""Flink's own bound."""

FLINK_NUMBERS = tuple(
    (FlinkRunnerOptions, name, 1, _MOST_PARALLELISM) for name in ('parallelism', 'max_parallelism')
)
"""Options, with the least and the most that they may be."""


def flink_runner(name: str, options: PipelineOptions) -> Runner:
    """Returns Flink with as many slots as `--parallelism` says."""
    flink = options.view_as(FlinkRunnerOptions)
    # Without --parallelism it is the cluster's own default, which nobody here knows, or 1.
    slots = max(1, flink.parallelism)
    return Runner(
        name,
        processes=slots,
        through_files=True,
        has_containers=flink.flink_master.strip() not in MAGIC_HOST_NAMES,
        beam_runner=_shared_runner,
        refuse_shuffle=functools.partial(_refuse_full_slots, slots),
        # What goes into an uber jar is of the cluster's version, which only the cluster knows.
        refuse_unasked=JobServerJar(
            FlinkJarJobServer, 'flink_job_server_jar', flink.flink_submit_uber_jar
        ).refuse_unasked,
    )


class _FlinkRunner(FlinkRunner):
    """Beam's own starts a job server for each job, and all of them live until the process ends."""

    def __init__(self):
        super().__init__()
        self._job_server: JobServer | None = None

    def default_job_server(self, options: PipelineOptions) -> JobServer:
        if self._job_server is None:
            self._job_server = super().default_job_server(options)
        return self._job_server


@functools.cache
def _shared_runner(flags: tuple[str, ...]) -> _FlinkRunner:
    return _FlinkRunner()


def _refuse_full_slots(slots: int, size: int, items: int) -> None:
    """Refuses what would hang: batch on Flink makes one bundle of all that a slot does."""
    # Slots beyond the items stay empty.
    if size // max(1, min(slots, items)) <= MOST_BUNDLE_BYTES:
        return
    needed = -(-size // MOST_BUNDLE_BYTES)
    too_few = f' with at least as many work items, which are {items} now,' if items < needed else ''
    raise InputError(
        f'about {size >> 20} MiB of records would go through {min(slots, items)} Flink slots, and '
        f'more than {MOST_BUNDLE_BYTES >> 20} MiB through one can stop the job for ever; give '
        f'--parallelism={needed} or more{too_few} on a cluster with as many slots'
    )
