"""The runners: Beam's own on this machine, Flink, and others behind a job server.

`Runner` says what the rest of the program needs to know of one: its memory, its workers, what it
can shuffle. The local runner is `FnApiRunner`, since plain `DirectRunner` would first try to
download another one. One Flink job server serves all jobs of a process.
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
    FlinkRunnerOptions,
    JobServerOptions,
    PipelineOptions,
    PrismRunnerOptions,
    SparkRunnerOptions,
)
from apache_beam.runners.portability.flink_runner import (
    MAGIC_HOST_NAMES,
    FlinkJarJobServer,
    FlinkRunner,
)
from apache_beam.runners.portability.job_server import JavaJarJobServer, JobServer
from apache_beam.runners.portability.prism_runner import PrismJobServer
from apache_beam.runners.portability.spark_runner import LOCAL_MASTER_PATTERN, SparkJarJobServer
from apache_beam.runners.runner import PipelineRunner
from apache_beam.runners.worker import statesampler
from apache_beam.utils.subprocess_server import JavaJarServer, is_service_endpoint

from pipelines.engines.machine import available_bytes, resident_bytes, usable_cores
from pipelines.engines.pool import MOST_BUNDLE_BYTES
from tokcore.errors import InputError
from tokcore.options import MOST_WORKERS

_MOST_PARALLELISM = 32_768
"""Flink's own bound."""

FLINK_NUMBERS = tuple(
    (FlinkRunnerOptions, name, 1, _MOST_PARALLELISM) for name in ('parallelism', 'max_parallelism')
)
"""Options, with the least and the most that they may be."""

LOCAL_RUNNER = 'FnApiRunner'
OTHER_NAMES = ('local', 'DirectRunner', 'SwitchingDirectRunner')

LOCAL_NUMBERS = ((DirectOptions, 'direct_num_workers', 0, MOST_WORKERS),)
"""Options, with the least and the most that they may be."""

_SAMPLING_MS = 20

_MEMORY_SHARE = 6
"""Beam's local runner holds a shuffle in memory at four to six times its size."""

_PROCESS_BYTES = 320 << 20
"""A worker process before its first block: imports, kernels, a vocabulary."""

_STILL_TO_COME = 96 << 20
"""What this process grows by before its first block: kernels that are loaded, Beam's plan."""

# What submitting a job to a cluster fails with where the options or the cluster are to blame.
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
    """A runner with its options; by default a cluster of which nothing else is known.

    Attributes:
        name: as Beam knows it.
        settings: options of Beam that it sets, whatever was given, by their names with dashes.
        processes: that work at once, as far as the options tell.
        workers: work items in flight in each, unless `--workers` gives another number.
        is_local: whether what is shuffled waits in this machine's memory.
        in_process: whether all work is done in this process.
        can_cancel: whether a pipeline that runs can be cancelled.
        through_files: whether it shuffles through files unless asked otherwise.
        has_containers: whether workers are containers unless something else is asked for.
        submission_errors: what says that the options or the cluster are to blame if a job is not
            taken.
        prepare: called before each pipeline.
        beam_runner: gives the runner for these options, or None if Beam makes it by its name.
        refuse_shuffle: raises InputError if the runner's own shuffle cannot take so many bytes of
            records, of so many work items.
        refuse_unasked: raises InputError if a job server, of the runner of this name, would be
            fetched from the network that nobody asked for, or is missing.
    """

    name: str
    settings: tuple[tuple[str, object], ...] = ()
    processes: int = 1
    workers: int = 1
    is_local: bool = False
    in_process: bool = False
    can_cancel: bool = True
    through_files: bool = False
    has_containers: bool = False
    submission_errors: tuple[type[Exception], ...] = _SUBMISSION_ERRORS
    prepare: Callable[[], None] = lambda: None
    beam_runner: Callable[[tuple[str, ...]], PipelineRunner | None] = lambda flags: None
    refuse_shuffle: Callable[[int, int], None] = lambda size, items: None
    refuse_unasked: Callable[[str, PipelineOptions], None] = lambda name, options: None

    def memory_share(self, limit: int | None) -> int | None:
        """Returns the bytes that a process has for its work, None where nobody here knows.

        Args:
            limit: of the whole job; None for what is free.
        """
        if not self.is_local:
            return None if limit is None else max(0, limit // self.processes - _PROCESS_BYTES)
        others = 0 if self.in_process else self.processes * _PROCESS_BYTES
        if limit is None:
            return (available_bytes() - others) // self.processes
        here = resident_bytes() + (_STILL_TO_COME if self.in_process else others)
        return max(0, limit - here) // self.processes


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


def spark_runner(name: str, options: PipelineOptions) -> Runner:
    master = options.view_as(SparkRunnerOptions).spark_master_url
    return Runner(
        name,
        has_containers=re.match(LOCAL_MASTER_PATTERN, master) is None,
        refuse_unasked=JobServerJar(SparkJarJobServer, 'spark_job_server_jar').refuse_unasked,
    )


def prism_runner(name: str, options: PipelineOptions) -> Runner:
    return Runner(name, refuse_unasked=_refuse_unasked_prism)


def portable_runner(name: str, options: PipelineOptions) -> Runner:
    return Runner(name, has_containers=True, refuse_unasked=_refuse_missing_server)


def in_a_line(error: BaseException) -> str:
    """Returns what an error says, or else its name."""
    return ' '.join(str(error).split()) or type(error).__name__


@dataclass(frozen=True)
class JobServerJar:
    """A job server in Java, which Beam starts and, if it is not here, downloads.

    Attributes:
        server: of Beam's.
        option: that gives the jar, without its dashes.
        is_other: whether it may be of another version, so that it is not known to be here.
    """

    server: type[JavaJarJobServer]
    option: str
    is_other: bool = False

    def refuse_unasked(self, name: str, options: PipelineOptions) -> None:
        """Refuses a jar that would be downloaded for a runner and that nobody asked for.

        Raises:
            InputError: that, or there is no Java, or no such jar.
        """
        given = options.view_as(JobServerOptions)
        java = given.job_server_java_launcher
        if shutil.which(java) is None:
            raise InputError(
                f'--runner {name} starts its job server with {java!r}, which is not there; install '
                'Java, or give its path as --job_server_java_launcher'
            )
        try:
            jar = self.server(options).path_to_jar()
        except (ValueError, RuntimeError) as error:
            raise InputError(f'--runner {name}: {in_a_line(error)}') from error
        if is_service_endpoint(jar) or os.path.exists(jar):
            return
        cache = getattr(given, 'jar_cache_dir', None) or JavaJarServer.JAR_CACHE
        is_cached = os.path.exists(os.path.join(cache, os.path.basename(jar)))
        if not options.get_all_options()[self.option] and (self.is_other or not is_cached):
            _refuse_download(name, 'its job server', jar, f'--{self.option}')


def _refuse_download(name: str, what: str, url: str, option: str) -> None:
    raise InputError(
        f'--runner {name} would download {what}, {url}; give {option}={url} to allow it, the path '
        'of such a file, or the --job_endpoint of a job server that runs'
    )


def _refuse_unasked_prism(name: str, options: PipelineOptions) -> None:
    prism = options.view_as(PrismRunnerOptions)
    if prism.prism_location:
        return
    asked = prism.prism_beam_version_override or f'v{beam.__version__}'
    server = PrismJobServer(options)
    try:
        url = server.construct_download_url(asked, platform.system(), platform.machine())
    except ValueError as error:
        raise InputError(f'--runner {name}: {in_a_line(error)}; give --prism_location') from error
    if not os.path.exists(os.path.join(PrismJobServer.BIN_CACHE, os.path.basename(url))):
        _refuse_download(name, 'Prism', url, '--prism_location')


def _refuse_missing_server(name: str, options: PipelineOptions) -> None:
    raise InputError(
        f'--runner {name} needs --job_endpoint, the HOST:PORT of a job server that runs'
    )


def local_runner(name: str, options: PipelineOptions) -> Runner:
    """Returns Beam's own engine."""
    direct = options.view_as(DirectOptions)
    in_process = direct.direct_running_mode in (None, 'in_memory')
    cores = min(usable_cores(), MOST_WORKERS)
    asked = direct.direct_num_workers
    return Runner(
        name,
        # Beam would take all processors that there are.
        settings=() if asked else (('--direct_num_workers', cores),),
        processes=1 if in_process else asked or cores,
        in_process=in_process,
        workers=cores if in_process else 1,
        submission_errors=(),  # to submit a job is to run it to its end
        prepare=_end_bundles_soon if in_process else Runner.prepare,
        **_HERE,
    )


def embedded_runner(runner: Runner, options: PipelineOptions) -> Runner:
    """Returns a portable runner as it is with `--job_endpoint=embed`: its jobs run here."""
    processes = options.view_as(DirectOptions).direct_num_workers or usable_cores()
    return dataclasses.replace(runner, processes=processes, **_HERE)


def _refuse_beyond_memory(size: int, items: int) -> None:
    free = available_bytes()
    if size * _MEMORY_SHARE > free:
        raise InputError(
            f'shuffling about {size >> 20} MiB of records needs six times as much memory, and '
            f'{free >> 20} MiB are free; shuffle through files (--shuffle=files), or on a cluster'
        )


_HERE = {
    'is_local': True,
    'can_cancel': False,
    'through_files': True,
    'refuse_shuffle': _refuse_beyond_memory,
}


def _end_bundles_soon() -> None:
    """Has Beam look every 20 ms, and not every 200, at which step is running.

    The end of every bundle waits until the look under way is over. Beam has no option for it; if it
    is no longer a default that can be replaced, nothing is.
    """
    initializer = statesampler.StateSampler.__init__
    if initializer.__defaults__ == (statesampler.DEFAULT_SAMPLING_PERIOD_MS,):
        initializer.__defaults__ = (_SAMPLING_MS,)
