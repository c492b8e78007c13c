"""Capabilities of the runners: Beam's local runner, Spark, Prism and other portable ones.

A `Runner` has what the rest of the program needs to know of a runner: its memory, its workers, what
it can shuffle. The local runner is `FnApiRunner`, since plain `DirectRunner` would first try to
download another one.
"""

import dataclasses
import functools
import os
import platform
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import (
    DirectOptions,
    GoogleCloudOptions,
    JobServerOptions,
    PipelineOptions,
    PrismRunnerOptions,
    SparkRunnerOptions,
    WorkerOptions,
)
from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.portability.fn_api_runner.fn_runner import (
    ExtendedProvisionInfo,
    FnApiRunner,
)
from apache_beam.runners.portability.job_server import JavaJarJobServer
from apache_beam.runners.portability.prism_runner import PrismJobServer
from apache_beam.runners.portability.spark_runner import LOCAL_MASTER_PATTERN, SparkJarJobServer
from apache_beam.runners.runner import PipelineRunner
from apache_beam.runners.worker import statesampler
from apache_beam.utils.subprocess_server import JavaJarServer, is_service_endpoint
from google.protobuf.struct_pb2 import Struct

from pipelines.engines.machine import available_bytes, resident_bytes, usable_cores
from pipelines.options.beam import beam_options
from tokcore.errors import InputError
from tokcore.options import MOST_WORKERS

LOCAL_RUNNER = 'FnApiRunner'
OTHER_NAMES = ('local', 'DirectRunner', 'SwitchingDirectRunner')

_SAMPLING_MS = 20

_PROCESS_BYTES = 320 << 20
"""The memory of a worker process before its first block: imports, kernels, a vocabulary."""

_GROWTH_BYTES = 96 << 20
"""What this process grows by before its first block: loaded kernels and Beam's plan."""

# Errors of submitting a job that the options or the cluster are to blame for.
_SUBMISSION_ERRORS = (
    OSError,
    RuntimeError,
    ValueError,
    ImportError,
    NotImplementedError,
    grpc.RpcError,
    grpc.FutureTimeoutError,
)


@dataclass(frozen=True)
class Runner:
    """The capabilities of a runner with its options; the defaults are those of an unknown cluster.

    Attributes:
        name: Beam's name of the runner.
        settings: Beam options that it overrides, as pairs of name (with dashes) and value.
        processes: the number of worker processes, as far as the options say.
        workers: the default of `--workers`, the work items in flight in each process.
        is_local: whether a shuffle is held in this machine's memory.
        in_process: whether all work is done in this process.
        through_files: whether it shuffles through files in the work folder, which suits it better than
            its own shuffle.
        has_containers: whether workers run in containers by default.
        submission_errors: errors of submitting a job that the options or the cluster are to blame
            for.
        prepare: is called before each pipeline.
        ask: takes Beam's options, and returns those that a cluster reports of itself, as `settings`;
            raises InputError if it cannot run the job.
        beam_runner: returns the runner for some flags and the path of an output; None if Beam creates
            it by its name.
        refuse_unasked: takes the runner's name and options; raises InputError if a job server is
            missing, or would be downloaded although the user did not ask for that.
        refuse_place: takes an option and a path that workers write below; raises InputError if they
            cannot reach it.
    """

    name: str
    settings: tuple[tuple[str, object], ...] = ()
    processes: int = 1
    workers: int = 1
    is_local: bool = False
    in_process: bool = False
    through_files: bool = False
    has_containers: bool = False
    submission_errors: tuple[type[Exception], ...] = _SUBMISSION_ERRORS
    prepare: Callable[[], None] = lambda: None
    ask: Callable[[PipelineOptions], tuple[tuple[str, object], ...]] = lambda options: ()
    beam_runner: Callable[[tuple[str, ...], str | None], PipelineRunner | None] = (
        lambda flags, output: None
    )
    refuse_unasked: Callable[[str, PipelineOptions], None] = lambda name, options: None
    refuse_place: Callable[[str, str], None] = lambda option, path: None

    def memory_share(self, limit: int | None) -> int | None:
        """Returns the bytes of memory that each process has for its work; None if unknown.

        Args:
            limit: the memory of the whole job; None: what is free.
        """
        if not self.is_local:
            return None if limit is None else max(0, limit // self.processes - _PROCESS_BYTES)
        others = 0 if self.in_process else self.processes * _PROCESS_BYTES
        if limit is None:
            return (available_bytes() - others) // self.processes
        here = resident_bytes() + (_GROWTH_BYTES if self.in_process else others)
        return max(0, limit - here) // self.processes


def spark_runner(name: str, options: PipelineOptions) -> Runner:
    master = options.view_as(SparkRunnerOptions).spark_master_url
    return Runner(
        name,
        has_containers=re.match(LOCAL_MASTER_PATTERN, master) is None,
        refuse_unasked=functools.partial(
            refuse_unasked_jar, SparkJarJobServer, 'spark_job_server_jar', False
        ),
    )


def prism_runner(name: str, options: PipelineOptions) -> Runner:
    return Runner(name, refuse_unasked=_refuse_unasked_prism)


def portable_runner(name: str, options: PipelineOptions) -> Runner:
    return Runner(name, has_containers=True, refuse_unasked=_refuse_missing_server)


def dataflow_runner(name: str, options: PipelineOptions) -> Runner:
    """Returns Google's service, whose workers share no disk and have only what their image has."""
    return Runner(
        name, refuse_unasked=_refuse_incomplete_dataflow, refuse_place=_refuse_local_place
    )


def in_a_line(error: BaseException) -> str:
    """Returns an error's message on one line, or its class's name if it has no message."""
    return ' '.join(str(error).split()) or type(error).__name__


def refuse_unasked_jar(
    server: type[JavaJarJobServer], option: str, is_other: bool, name: str, options: PipelineOptions
) -> None:
    """Refuses to download a job server in Java for a runner if the user did not ask for it.

    Args:
        server: Beam's class of the server, which Beam starts.
        option: the option for the path of the jar, without its dashes.
        is_other: whether the jar may be of another version than the one in Beam's cache.
        name: of the runner.
        options: Beam's.

    Raises:
        InputError: the jar would be downloaded, there is no Java, or there is no such jar.
    """
    server_options = options.view_as(JobServerOptions)
    java = server_options.job_server_java_launcher
    if shutil.which(java) is None:
        raise InputError(
            f'--runner {name} starts its job server with {java!r}, which is not there; install '
            'Java, or give its path as --job_server_java_launcher'
        )
    try:
        jar = server(options).path_to_jar()
    except (ValueError, RuntimeError) as error:
        raise InputError(f'--runner {name}: {in_a_line(error)}') from error
    if is_service_endpoint(jar) or os.path.exists(jar):
        return
    cache = getattr(server_options, 'jar_cache_dir', None) or JavaJarServer.JAR_CACHE
    is_cached = os.path.exists(os.path.join(cache, os.path.basename(jar)))
    if not options.get_all_options()[option] and (is_other or not is_cached):
        _refuse_download(name, 'its job server', jar, f'--{option}')


def _refuse_download(name: str, what: str, url: str, option: str) -> None:
    raise InputError(
        f'--runner {name} would download {what}, {url}; give {option}={url} to allow it, the path '
        'of such a file, or the --job_endpoint of a job server that runs'
    )


def _refuse_unasked_prism(name: str, options: PipelineOptions) -> None:
    prism = options.view_as(PrismRunnerOptions)
    if prism.prism_location:
        return
    version = prism.prism_beam_version_override or f'v{beam.__version__}'
    server = PrismJobServer(options)
    try:
        url = server.construct_download_url(version, platform.system(), platform.machine())
    except ValueError as error:
        raise InputError(f'--runner {name}: {in_a_line(error)}; give --prism_location') from error
    if not os.path.exists(os.path.join(PrismJobServer.BIN_CACHE, os.path.basename(url))):
        _refuse_download(name, 'Prism', url, '--prism_location')


def _refuse_missing_server(name: str, options: PipelineOptions) -> None:
    raise InputError(
        f'--runner {name} needs --job_endpoint, the HOST:PORT of a job server that runs'
    )


def _refuse_incomplete_dataflow(name: str, options: PipelineOptions) -> None:
    """Refuses a job that would wait for its workers and fail: Beam's own image lacks tokbeam."""
    cloud = options.view_as(GoogleCloudOptions)
    needed = {
        '--project': cloud.project,
        '--region': cloud.region,
        '--temp_location': cloud.temp_location,
        '--sdk_container_image': options.view_as(WorkerOptions).sdk_container_image,
    }
    missing = [option for option, value in needed.items() if not value]
    if missing:
        raise InputError(
            f'--runner {name} needs {", ".join(needed)}; not given: {", ".join(missing)}. '
            'deploy/dataflow/README.md has such a command, and the image with tokbeam in it'
        )


def _refuse_local_place(option: str, path: str) -> None:
    if '://' not in path:
        raise InputError(
            f'{option} {path} is on the disk of this machine, which no worker of Dataflow sees; give '
            'gs://BUCKET/FOLDER, and inputs that are there'
        )


def local_runner(name: str, options: PipelineOptions) -> Runner:
    """Returns Beam's local runner."""
    direct = options.view_as(DirectOptions)
    in_process = direct.direct_running_mode in (None, 'in_memory')
    cores = min(usable_cores(), MOST_WORKERS)
    processes = direct.direct_num_workers
    return Runner(
        name,
        # Beam would use all processors of the machine.
        settings=() if processes else (('--direct_num_workers', cores),),
        processes=1 if in_process else processes or cores,
        workers=cores if in_process else 1,
        is_local=True,
        in_process=in_process,
        through_files=True,
        submission_errors=(),  # submitting a job runs it to its end
        prepare=_end_bundles_soon if in_process else Runner.prepare,
        beam_runner=Runner.beam_runner if in_process else _quiet_processes,
    )


def _quiet_processes(flags: tuple[str, ...], output: str | None) -> FnApiRunner:
    """Returns a runner whose worker processes log what its own options say, warnings by default.

    Beam gives them no options, and they would log each connection, in the midst of a bar.
    """
    logged = beam_options(flags).view_as(WorkerOptions).default_sdk_harness_log_level
    options = Struct()
    options['beam:option:default_sdk_harness_log_level:v1'] = logged or 'WARNING'
    return FnApiRunner(
        provision_info=ExtendedProvisionInfo(
            beam_provision_api_pb2.ProvisionInfo(pipeline_options=options)
        )
    )


def embedded_runner(runner: Runner, options: PipelineOptions) -> Runner:
    """Returns a portable runner with `--job_endpoint=embed`, whose jobs run on this machine."""
    processes = options.view_as(DirectOptions).direct_num_workers or usable_cores()
    return dataclasses.replace(runner, processes=processes, is_local=True, through_files=True)


def _end_bundles_soon() -> None:
    """Makes Beam sample the running step every 20 ms instead of every 200.

    The end of every bundle waits for the current sample. Beam has no option for the period; if a
    later version keeps it elsewhere, nothing is changed.
    """
    initializer = statesampler.StateSampler.__init__
    if initializer.__defaults__ == (statesampler.DEFAULT_SAMPLING_PERIOD_MS,):
        initializer.__defaults__ = (_SAMPLING_MS,)
