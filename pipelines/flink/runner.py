"""Flink as a runner: a cluster that is set up for tokbeam, or one behind Beam's job server.

One job server serves all jobs of a process.
"""

import functools

from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
from apache_beam.runners.portability.flink_runner import (
    MAGIC_HOST_NAMES,
    FlinkJarJobServer,
    FlinkRunner,
)
from apache_beam.runners.portability.job_server import JobServer

from pipelines.engines.runners import JobServerJar, Runner
from pipelines.flink.cluster import ask_cluster, cluster_runner, is_cluster


def flink_runner(name: str, options: PipelineOptions) -> Runner:
    """Returns Flink with as many slots as `--parallelism` says.

    It is a cluster that is set up for tokbeam, or one behind Beam's job server.
    """
    flink = options.view_as(FlinkRunnerOptions)
    # Without --parallelism it is the cluster's default, which is unknown here, or 1.
    slots = max(1, flink.parallelism)
    if is_cluster(options, MAGIC_HOST_NAMES):
        return Runner(
            name,
            processes=slots,
            through_files=True,
            has_containers=True,
            ask=ask_cluster,
            beam_runner=cluster_runner,
        )
    return Runner(
        name,
        processes=slots,
        through_files=True,
        has_containers=flink.flink_master.strip() not in MAGIC_HOST_NAMES,
        beam_runner=_shared_runner,
        # An uber jar contains the cluster's version, which only the cluster knows.
        refuse_unasked=JobServerJar(
            FlinkJarJobServer, 'flink_job_server_jar', flink.flink_submit_uber_jar
        ).refuse_unasked,
    )


class _FlinkRunner(FlinkRunner):
    """Starts one job server; Beam's class starts one for each job, and all live until the end."""

    def __init__(self):
        super().__init__()
        self._job_server: JobServer | None = None

    def default_job_server(self, options: PipelineOptions) -> JobServer:
        if self._job_server is None:
            self._job_server = super().default_job_server(options)
        return self._job_server


@functools.cache
def _shared_runner(flags: tuple[str, ...], output: str | None) -> _FlinkRunner:
    return _FlinkRunner()
