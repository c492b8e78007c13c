"""What an engine's runner lacks, told before any work: extras, options, a job server.

Some of Beam's runners fetch a job server from the network if none is given. Nothing is fetched here
unless it was asked for; the refusal says what it would be.
"""

import contextlib
import logging
import os
import platform
import re
import shutil
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    PrismRunnerOptions,
    ProfilingOptions,
    SparkRunnerOptions,
)
from apache_beam.runners.direct.direct_runner import SwitchingDirectRunner
from apache_beam.runners.portability import flink_runner, spark_runner
from apache_beam.runners.portability.job_server import JavaJarJobServer
from apache_beam.runners.portability.portable_runner import PortableRunner
from apache_beam.runners.portability.prism_runner import PrismJobServer, PrismRunner
from apache_beam.runners.runner import PipelineRunner, create_runner
from apache_beam.transforms.environments import DockerEnvironment
from apache_beam.utils.subprocess_server import JavaJarServer, is_service_endpoint

from pipelines.engines.engine import Engine
from pipelines.options.secrets import text_without_secrets, without_secrets
from tokcore.errors import InputError

_EXTRAS = {
    'dataflow': 'apache-beam[gcp]',
    'interactive': 'apache-beam[interactive]',
    'dask': 'apache-beam[dask]',
}


def check_engine(engine: Engine) -> None:
    """Refuses an engine that cannot work, or would take from the network what nobody asked for.

    Raises:
        InputError: there is no such runner here, it lacks options, or it would download a program.
    """
    flags = [flag for flag in engine.flags if not flag.startswith('--runner=')]
    if engine.runner == 'FnApiRunner' and not flags:
        return
    runner = _runner(engine)
    options = engine.options()
    if not options.view_as(PortableOptions).job_endpoint:
        _refuse_unasked_server(engine.runner, runner, options)
    _refuse_unasked_image(engine.runner, runner, options)
    profiling = options.view_as(ProfilingOptions)
    if (profiling.profile_cpu or profiling.profile_memory) and not profiling.profile_location:
        raise InputError('--profile_cpu and --profile_memory need a --profile_location')
    try:
        with _quiet():
            _try(options, engine.in_process)
    except Exception as error:
        reason = text_without_secrets(_in_a_line(error), engine.flags)
        given = ' '.join(without_secrets(engine.flags))
        raise InputError(f'Beam cannot work with {given}: {reason}; change its options') from error


def _try(options: PipelineOptions, in_process: bool) -> None:
    """Begins a pipeline, and in this process runs it: so what Beam cannot do shows."""
    pipeline = beam.Pipeline(options=options)
    if in_process:
        pipeline | beam.Create([(0, 0)]) | beam.Reshuffle() | beam.CombinePerKey(sum)
        pipeline.run().wait_until_finish()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps what is logged on the way: the exception tells it too."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _runner(engine: Engine) -> PipelineRunner:
    try:
        runner = create_runner(engine.runner)
    except ImportError as error:
        extra = next((_EXTRAS[key] for key in _EXTRAS if key in engine.runner.lower()), None)
        remedy = f"install it: pip install '{extra}'" if extra else 'give another --runner'
        raise InputError(
            f'--runner {engine.runner} cannot be imported ({_in_a_line(error)}); {remedy}'
        ) from error
    except Exception as error:
        raise InputError(
            f'--runner {engine.runner!r} is no runner of Beam; give local, FlinkRunner, '
            'SparkRunner, PrismRunner, PortableRunner or DataflowRunner'
        ) from error
    if not isinstance(runner, PipelineRunner):
        raise InputError(f'--runner {engine.runner!r} is no runner of Beam, but something else')
    return runner


def _refuse_unasked_server(name: str, runner: PipelineRunner, options: PipelineOptions) -> None:
    if isinstance(runner, flink_runner.FlinkRunner):
        flink = options.view_as(FlinkRunnerOptions)
        server = flink_runner.FlinkJarJobServer(options)
        # What goes into an uber jar is of the cluster's version, which only the cluster knows.
        jar = _jar_to_download(name, server, options, flink.flink_submit_uber_jar)
        if jar and not flink.flink_job_server_jar:
            raise InputError(_would_download(name, 'its job server', jar, '--flink_job_server_jar'))
    elif isinstance(runner, spark_runner.SparkRunner):
        server = spark_runner.SparkJarJobServer(options)
        jar = _jar_to_download(name, server, options)
        if jar and not options.view_as(SparkRunnerOptions).spark_job_server_jar:
            raise InputError(_would_download(name, 'its job server', jar, '--spark_job_server_jar'))
    elif isinstance(runner, (PrismRunner, SwitchingDirectRunner)):
        _refuse_unasked_prism(name, options)
    elif type(runner) is PortableRunner:
        raise InputError(
            f'--runner {name} needs --job_endpoint, the HOST:PORT of a job server that runs'
        )


def _would_download(name: str, what: str, url: str, option: str) -> str:
    return (
        f'--runner {name} would download {what}, {url}; give {option}={url} to allow it, the path '
        'of such a file, or the --job_endpoint of a job server that runs'
    )


def _jar_to_download(
    name: str, server: JavaJarJobServer, options: PipelineOptions, is_other: bool = False
) -> str | None:
    """Returns the URL of a job server's jar, None if it is on this machine.

    Args:
        name: of the runner.
        server: that would be started.
        options: Beam's.
        is_other: the jar may be of another version, so that it is not known to be here.
    """
    job_server = options.view_as(JobServerOptions)
    java = job_server.job_server_java_launcher
    if shutil.which(java) is None:
        raise InputError(
            f'--runner {name} starts its job server with {java!r}, which is not there; install '
            'Java, or give its path as --job_server_java_launcher'
        )
    try:
        jar = server.path_to_jar()
    except (ValueError, RuntimeError) as error:
        raise InputError(f'--runner {name}: {_in_a_line(error)}') from error
    if is_service_endpoint(jar) or os.path.exists(jar):
        return None
    cache = getattr(job_server, 'jar_cache_dir', None) or JavaJarServer.JAR_CACHE
    is_cached = os.path.exists(os.path.join(cache, os.path.basename(jar)))
    return None if is_cached and not is_other else jar


def _refuse_unasked_prism(name: str, options: PipelineOptions) -> None:
    if options.view_as(PrismRunnerOptions).prism_location:
        return
    server = PrismJobServer(options)
    version = f'v{beam.__version__}'
    asked = options.view_as(PrismRunnerOptions).prism_beam_version_override or version
    try:
        url = server.construct_download_url(asked, platform.system(), platform.machine())
    except ValueError as error:
        raise InputError(f'--runner {name}: {_in_a_line(error)}; give --prism_location') from error
    if not os.path.exists(os.path.join(PrismJobServer.BIN_CACHE, os.path.basename(url))):
        raise InputError(_would_download(name, 'Prism', url, '--prism_location'))


def _refuse_unasked_image(name: str, runner: PipelineRunner, options: PipelineOptions) -> None:
    """Refuses workers in Beam's own container: Docker downloads it, and tokbeam is not in it."""
    portable = options.view_as(PortableOptions)
    is_named = portable.environment_config or portable.lookup_environment_option(
        'docker_container_image'
    )
    if portable.environment_type or is_named or not _has_containers(runner, options):
        return
    raise InputError(
        f'--runner {name} would start workers in the container '
        f'{DockerEnvironment.default_docker_image()}, which Docker downloads; give '
        '--environment_type=PROCESS or EXTERNAL, or DOCKER with --environment_config=IMAGE'
    )


def _has_containers(runner: PipelineRunner, options: PipelineOptions) -> bool:
    """Tells whether a runner's workers are containers unless something else is asked for."""
    if isinstance(runner, flink_runner.FlinkRunner):
        master = options.view_as(FlinkRunnerOptions).flink_master
        return master.strip() not in flink_runner.MAGIC_HOST_NAMES
    if isinstance(runner, spark_runner.SparkRunner):
        master = options.view_as(SparkRunnerOptions).spark_master_url
        return re.match(spark_runner.LOCAL_MASTER_PATTERN, master) is None
    return type(runner) is PortableRunner


def _in_a_line(error: BaseException) -> str:
    return ' '.join(str(error).split()) or type(error).__name__
