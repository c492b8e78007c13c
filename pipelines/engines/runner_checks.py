"""What an engine's runner lacks, told before any work: extras, options, a job server.

Some of Beam's runners fetch a job server from the network if none is given. Nothing is fetched here
unless it was asked for; the refusal says what it would be.
"""

import contextlib
import logging
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    PipelineOptions,
    PortableOptions,
    ProfilingOptions,
)
from apache_beam.runners.portability.portable_runner import PortableRunner
from apache_beam.runners.runner import PipelineRunner, create_runner
from apache_beam.transforms.environments import DockerEnvironment

from pipelines.engines.engine import Engine, preset
from pipelines.engines.job_servers import in_a_line
from pipelines.engines.local import LOCAL_RUNNER
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
    name, options = engine.runner.name, engine.options()
    if name == LOCAL_RUNNER and not flags:
        return
    kinds = type(_beam_runner(name)).__mro__
    # One of somebody's own starts what the one starts that it extends; a portable one may not.
    extended = [kind.__name__ for kind in kinds if kind is not PortableRunner]
    runner = preset(name, options, extended)
    if not options.view_as(PortableOptions).job_endpoint:
        runner.refuse_unasked(name, options)
    if runner.has_containers:
        _refuse_unasked_image(name, options)
    profiling = options.view_as(ProfilingOptions)
    if (profiling.profile_cpu or profiling.profile_memory) and not profiling.profile_location:
        raise InputError('--profile_cpu and --profile_memory need a --profile_location')
    try:
        with _quiet():
            _try(options, engine.runner.in_process)
    except Exception as error:
        reason = text_without_secrets(in_a_line(error), engine.flags)
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


def _beam_runner(name: str) -> PipelineRunner:
    try:
        runner = create_runner(name)
    except ImportError as error:
        extra = next((_EXTRAS[key] for key in _EXTRAS if key in name.lower()), None)
        remedy = f"install it: pip install '{extra}'" if extra else 'give another --runner'
        raise InputError(
            f'--runner {name} cannot be imported ({in_a_line(error)}); {remedy}'
        ) from error
    except Exception as error:
        raise InputError(
            f'--runner {name!r} is no runner of Beam; give local, FlinkRunner, '
            'SparkRunner, PrismRunner, PortableRunner or DataflowRunner'
        ) from error
    if not isinstance(runner, PipelineRunner):
        raise InputError(f'--runner {name!r} is no runner of Beam, but something else')
    return runner


def _refuse_unasked_image(name: str, options: PipelineOptions) -> None:
    """Refuses workers in Beam's own container: Docker downloads it, and tokbeam is not in it."""
    portable = options.view_as(PortableOptions)
    is_named = portable.environment_config or portable.lookup_environment_option(
        'docker_container_image'
    )
    if portable.environment_type or is_named:
        return
    raise InputError(
        f'--runner {name} would start workers in the container '
        f'{DockerEnvironment.default_docker_image()}, which Docker downloads; give '
        '--environment_type=PROCESS or EXTERNAL, or DOCKER with --environment_config=IMAGE'
    )
