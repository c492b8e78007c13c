"""Runs pipelines on the engine that the user chose.

A name is mapped to a runner and Beam's options. What the runner lacks (packages, options, a job
server) is refused before any work. When a pipeline fails, a user's mistake is found however deeply
the runner has wrapped it, and Beam's own logs of it are kept short.
"""

import contextlib
import dataclasses
import functools
import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import (
    DirectOptions,
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    ProfilingOptions,
    SetupOptions,
    StandardOptions,
    TypeOptions,
)
from apache_beam.runners.portability.portable_runner import PortableRunner
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState, create_runner
from apache_beam.transforms.environments import DockerEnvironment

import tokcore.errors
from pipelines.engines.runners import (
    FLINK_NUMBERS,
    LOCAL_NUMBERS,
    LOCAL_RUNNER,
    OTHER_NAMES,
    Runner,
    embedded_runner,
    flink_runner,
    in_a_line,
    local_runner,
    portable_runner,
    prism_runner,
    spark_runner,
)
from pipelines.options.beam import beam_options, text_without_secrets, without_secrets
from pipelines.system_errors import as_input_error, as_input_error_from_text
from tokcore.encoding.scheme import Scheme
from tokcore.errors import InputError
from tokcore.options import shown
from tokcore.schemes import find_scheme
from tokcore.warm_up import compile_kernels

_EXTRAS = {
    'dataflow': 'apache-beam[gcp]',
    'interactive': 'apache-beam[interactive]',
    'dask': 'apache-beam[dask]',
}

_PRESETS = {
    LOCAL_RUNNER: local_runner,
    'FlinkRunner': flink_runner,
    'SparkRunner': spark_runner,
    'PrismRunner': prism_runner,
    'PortableRunner': portable_runner,
    'SwitchingDirectRunner': prism_runner,  # what extends it; itself it is never taken
}
"""By Beam's name what makes a `Runner` of Beam's options."""

_KNOWN_RUNNERS = {path: path.rpartition('.')[2] for path in StandardOptions.ALL_KNOWN_RUNNERS}

_CANCEL_SECONDS = 30

_USER_ERROR = re.compile(r'tokcore\.errors\.(\w+): (.*)')
_STEP_NOTE = re.compile(r" \[while running '.*")

# Beam's modules that log options as they were given.
_TELLING_LOGGERS = (
    'apache_beam.options.pipeline_options',
    'apache_beam.utils.subprocess_server',
)

# Beam's module that logs what a step raised, with its traceback, and raises it too.
_RAISING_LOGGER = 'apache_beam.runners.common'

RunPipeline = Callable[[Callable[[beam.Pipeline], None]], None]
"""As `Engine.run`: runs a pipeline, which it builds by a function, and waits for its end."""


@dataclass(frozen=True)
class Engine:
    """A runner with its options, and how many work items a worker keeps in flight."""

    runner: Runner
    flags: tuple[str, ...]  # the runner's among them
    workers: int
    deadline: float | None = None  # seconds for each pipeline
    scheme: Scheme = dataclasses.field(default_factory=find_scheme)  # whose kernels workers run

    def options(self) -> PipelineOptions:
        options = PipelineOptions(list(self.flags))
        # All DoFns live in modules; the main session would only add what pickling can fail on.
        options.view_as(SetupOptions).save_main_session = False
        return options

    def run(self, build: Callable[[beam.Pipeline], None]) -> None:
        """Builds a pipeline, runs it and waits for its end.

        Raises:
            InputError: a worker met a user's mistake, on whichever side of a process border, or
                the system refused it something; or the cluster does not take the job.
            RuntimeError: the pipeline failed otherwise, or did not end in time and was cancelled.
        """
        self.compile_first(functools.partial(compile_kernels, self.scheme))
        self.runner.prepare()
        runner = self.runner.beam_runner(self.flags)
        pipeline = beam.Pipeline(runner=runner, options=self.options())
        build(pipeline)
        try:
            state = self._wait(self._submit(pipeline))
        except Exception as error:
            mistake = users_mistake(error)
            if mistake is None:
                raise
            raise mistake from error
        if state not in (None, PipelineState.DONE):
            raise RuntimeError(f'the pipeline ended in state {state}')

    def compile_first(self, compile_all: Callable[[], None]) -> None:
        """Compiles kernels for worker processes, each of which would do it; here they can wait."""
        if not self.runner.in_process:
            compile_all()

    def _submit(self, pipeline: beam.Pipeline) -> PipelineResult:
        try:
            return pipeline.run()
        except self.runner.submission_errors as error:
            reason = text_without_secrets(in_a_line(error), self.flags)
            raise InputError(
                f'--runner {self.runner.name} does not take the job ({reason}); check its options, '
                'and that what they name can be reached'
            ) from error

    def _wait(self, result: PipelineResult) -> str | None:
        if self.deadline is None:
            return result.wait_until_finish()
        # Beam takes milliseconds, and gives the state that the pipeline is then in.
        state = result.wait_until_finish(duration=round(self.deadline * 1000))
        if state is not None and not PipelineState.is_terminal(state):
            # What does not end may not answer either, so nothing waits for the answer long.
            cancelling = threading.Thread(target=result.cancel, daemon=True)
            cancelling.start()
            cancelling.join(_CANCEL_SECONDS)
            raise RuntimeError(
                f'the pipeline was {state} after {self.deadline:g} seconds (--deadline) and was '
                'cancelled'
            )
        return state


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


def choose_engine(
    flags: Sequence[str], workers: int | None, deadline: float | None = None
) -> Engine:
    """Returns the engine that a user's `--runner` and Beam options name.

    Args:
        flags: options for Beam's `PipelineOptions`.
        workers: `--workers`, or None for the default: the cores in a local process, else 1, since
            a cluster (or Beam's own worker processes) brings the parallelism.
        deadline: seconds after which a pipeline is cancelled.

    Raises:
        InputError: options that Beam does not take, a mode that loses elements, or a deadline for
            what cannot be cancelled.
    """
    filter_beam_logs()
    options = beam_options(flags)
    name = _runner_name(options.view_as(StandardOptions).runner)
    runner = preset(LOCAL_RUNNER if name in OTHER_NAMES else name, options)
    if not runner.is_local and options.view_as(PortableOptions).job_endpoint == 'embed':
        runner = embedded_runner(runner, options)
    _refuse_modes(options)
    if deadline is not None and not runner.can_cancel:
        raise InputError(
            "--deadline needs a runner that can cancel a pipeline, and Beam's local one cannot; "
            'leave it out, or give another --runner'
        )
    _refuse_numbers(options)
    FileSystems.set_options(options)
    kept = list(flags)
    for option, value in (*runner.settings, ('--runner', runner.name)):
        kept = [*_without_option(kept, option), f'{option}={value}']
    return Engine(runner, tuple(kept), workers or runner.workers, deadline)


def preset(name: str, options: PipelineOptions, extended: Sequence[str] = ()) -> Runner:
    """Returns the runner of a name, or of the first one known that it extends, else a cluster."""
    for each in (name, *extended):
        if each in _PRESETS:
            return _PRESETS[each](name, options)
    return Runner(name)


def _refuse_modes(options: PipelineOptions) -> None:
    """Refuses what Beam offers and what does not work, with no runner."""
    if options.view_as(DirectOptions).direct_running_mode == 'multi_threading':
        raise InputError(
            '--direct_running_mode=multi_threading loses elements in Beam 2.77; use --workers '
            'for threads, or --direct_running_mode=multi_processing'
        )
    types = options.view_as(TypeOptions)
    if types.runtime_type_check or types.performance_runtime_type_check:
        raise InputError(
            '--runtime_type_check and --performance_runtime_type_check hold all outputs of a step '
            'to the type of one, and here steps have several; leave them out'
        )


def _runner_name(given: str | None) -> str:
    """Returns a runner's name as Beam resolves it: in any case, and with or without `Runner`."""
    if given is None:
        return 'local'
    by_name = {name.lower(): name for name in (*_KNOWN_RUNNERS.values(), 'local')}
    for name in (given.lower(), f'{given.lower()}runner'):
        if name in by_name:
            return by_name[name]
    return _KNOWN_RUNNERS.get(given, given)


def _refuse_numbers(options: PipelineOptions) -> None:
    """Refuses numbers of workers that no machine or cluster has."""
    for kind, name, low, high in (*LOCAL_NUMBERS, *FLINK_NUMBERS):
        number = getattr(options.view_as(kind), name, None)
        # -1 leaves it to the cluster, as the default does.
        if number is None or (number == -1 and kind is FlinkRunnerOptions) or low <= number <= high:
            continue
        raise InputError(f'--{name} {shown(str(number))} is not from {low:,} to {high:,}')


def _without_option(flags: Sequence[str], name: str) -> list[str]:
    kept, skip = [], False
    for flag in flags:
        if skip:
            skip = False
        elif flag == name:
            skip = True
        elif not flag.startswith(name + '='):
            kept.append(flag)
    return kept


def users_mistake(error: BaseException) -> InputError | None:
    """Returns what the user or the system is to blame for, however a runner has wrapped it."""
    if isinstance(error, InputError):
        return type(error)(_STEP_NOTE.sub('', str(error)))
    # From a worker process the exception comes as the text of its traceback.
    found = _USER_ERROR.findall(str(error))
    if found:
        name, message = found[-1]
        kind = getattr(tokcore.errors, name, InputError)
        return kind(_STEP_NOTE.sub('', message))
    text = _STEP_NOTE.sub('', str(error))
    if isinstance(error, OSError) and error.errno is None:
        error = OSError(text)
    doing = 'run the job'
    return as_input_error(error, doing) or as_input_error_from_text(text, doing)


def filter_beam_logs() -> None:
    """Keeps secrets out of what Beam logs, and what it raises besides."""
    for name in _TELLING_LOGGERS:
        logging.getLogger(name).addFilter(_hide_secrets)
    logging.getLogger(_RAISING_LOGGER).addFilter(_is_no_mistake)


def _hide_secrets(record: logging.LogRecord) -> bool:
    """Takes secrets out of a log record; a filter that lets all records through."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            list(without_secrets([*map(str, each)])) if isinstance(each, (list, tuple)) else each
            for each in record.args
        )
    record.msg, record.args = text_without_secrets(record.getMessage()), None
    return True


def _is_no_mistake(record: logging.LogRecord) -> bool:
    """Lets log records through, but for what will be told in a sentence."""
    return not (record.exc_info and record.exc_info[1] and users_mistake(record.exc_info[1]))
