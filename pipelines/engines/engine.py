"""Runs pipelines on the runner that the user chose.

A name is mapped to a runner and Beam's options. If the runner lacks something (a package, an option,
a job server), it is refused before any work. When a pipeline fails, a user's mistake is recognized
however deeply the runner has wrapped it, and Beam's own logs of it are left out.
"""

import dataclasses
import functools
import logging
import pkgutil
import re
import shutil
from collections.abc import Callable, Sequence
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
    LOCAL_RUNNER,
    OTHER_NAMES,
    Runner,
    dataflow_runner,
    embedded_runner,
    in_a_line,
    local_runner,
    portable_runner,
    prism_runner,
    spark_runner,
)
from pipelines.engines.work_reports import reports_read
from pipelines.files.system_errors import as_input_error, as_input_error_from_text
from pipelines.options.beam import (
    beam_options,
    refuse_secrets,
    text_without_secrets,
    without_secrets,
)
from tokcore.encoding.scheme import Scheme
from tokcore.errors import InputError
from tokcore.options import MOST_WORKERS, shown
from tokcore.schemes import find_scheme
from tokcore.warm_up import compile_kernels

_EXTRAS = {
    'dataflow': 'apache-beam[gcp]',
    'interactive': 'apache-beam[interactive]',
    'dask': 'apache-beam[dask]',
}

_PRESETS = {
    LOCAL_RUNNER: local_runner,
    'SparkRunner': spark_runner,
    'PrismRunner': prism_runner,
    'PortableRunner': portable_runner,
    'DataflowRunner': dataflow_runner,
    'SwitchingDirectRunner': prism_runner,  # for runners that extend it; by itself it is local
}
"""For Beam's name of a runner the function that makes a `Runner` of Beam's options."""

_ELSEWHERE = {
    'FlinkRunner': 'pipelines.flink.cluster:flink_runner',
}
"""Likewise for runners in folders that nothing else needs: the module and the function."""

_KNOWN_RUNNERS = {path: path.rpartition('.')[2] for path in StandardOptions.ALL_KNOWN_RUNNERS}

_LOGGER = logging.getLogger(__name__)

_NUMBERS = (
    (DirectOptions, 'direct_num_workers', 0, MOST_WORKERS),
    (FlinkRunnerOptions, 'parallelism', 1, 32_768),  # Flink's own maximum
    (FlinkRunnerOptions, 'max_parallelism', 1, 32_768),
)
"""Beam's options, each with its least and its greatest value."""

_NEAR_BYTES = 16 << 20
"""So much is read here before a cluster has begun a job, which takes some seconds."""

_USER_ERROR = re.compile(r'tokcore\.errors\.(\w+): (.*)')
_STEP_NOTE = re.compile(r" \[while running '.*")
_INTERRUPT = re.compile(r'^(?:RuntimeError: )?KeyboardInterrupt\b', re.MULTILINE)
"""An interrupt of the main thread in a step, as Beam wraps it."""

# Beam's modules that log options as the user typed them.
_OPTION_LOGGERS = (
    'apache_beam.options.pipeline_options',
    'apache_beam.utils.subprocess_server',
)

# Beam's module that logs the error of a step, with its traceback, and also raises it.
_STEP_LOGGER = 'apache_beam.runners.common'

RunPipeline = Callable[[Callable[[beam.Pipeline], None]], None]
"""As `Engine.run`: runs a pipeline, which it builds by a function, and waits for its end."""


@dataclass(frozen=True)
class Engine:
    """A runner with its options.

    Attributes:
        runner: its capabilities.
        flags: all of Beam's options, those of the runner among them.
        workers: the work items that a worker process keeps in flight.
        scheme: the workers run its kernels.
        output: the path of what is made; None: something that nobody else makes.
    """

    runner: Runner
    flags: tuple[str, ...]
    workers: int
    scheme: Scheme = dataclasses.field(default_factory=find_scheme)
    output: str | None = None

    def options(self) -> PipelineOptions:
        options = _KeptViews(list(self.flags))
        # All DoFns are in modules; the main session would only add objects that pickling can fail on.
        options.view_as(SetupOptions).save_main_session = False
        return options

    def run(self, build: Callable[[beam.Pipeline], None], folder: str | None = None) -> None:
        """Builds a pipeline, runs it and waits for its end.

        Args:
            build: adds to a pipeline what it does.
            folder: of an attempt, in which worker processes leave how far they are.

        Raises:
            InputError: a user's mistake, in this process or in a worker's; the system refused
                something; or the cluster does not take the job.
            RuntimeError: the pipeline failed otherwise.
            KeyboardInterrupt: it was interrupted in this process.
        """
        self.compile_first(functools.partial(compile_kernels, self.scheme))
        self.runner.prepare()
        runner = self.runner.beam_runner(self.flags, self.output)
        pipeline = beam.Pipeline(runner=runner, options=self.options())
        with reports_read(None if self.runner.in_process else folder):
            build(pipeline)
            try:
                state = self._submit(pipeline).wait_until_finish()
            except Exception as error:
                if _INTERRUPT.search(str(error)):
                    raise KeyboardInterrupt from error
                mistake = users_mistake(error)
                if mistake is None:
                    raise
                raise mistake from error
        if state not in (None, PipelineState.DONE):
            raise RuntimeError(f'the pipeline ended in state {state}')

    def near(self, size: int) -> 'Engine':
        """Returns the engine for light work on `size` bytes: of a few, this process itself."""
        if self.runner.is_local or size > _NEAR_BYTES:
            return self
        runner = local_runner(LOCAL_RUNNER, self.options())
        flags = _with_options(self.flags, (*runner.settings, ('--runner', LOCAL_RUNNER)))
        return dataclasses.replace(self, runner=runner, flags=tuple(flags), workers=runner.workers)

    def compile_first(self, compile_all: Callable[[], None]) -> None:
        """Compiles kernels before Beam's processes start here, each of which would compile them too.

        A cluster's are forked from one that has; to load them here takes half a second a command.
        """
        if self.runner.is_local and not self.runner.in_process:
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


class _KeptViews(PipelineOptions):
    """Options whose views are made once.

    A view parses all options again, and Beam makes six for each transform of a pipeline.
    """

    def view_as(self, cls):
        views = self.__dict__.setdefault('_views', {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != '_views'}


def check_engine(engine: Engine) -> Engine:
    """Refuses an engine that cannot work, or that would download what the user did not ask for.

    Returns it with the options that a cluster reports of itself.

    Raises:
        InputError: the runner is not installed, lacks options, would download a program, or its
            cluster cannot run the job.
    """
    reported = engine.runner.ask(engine.options())
    if reported:
        settled = tuple(_with_options(engine.flags, reported))
        runner = preset(engine.runner.name, beam_options(settled))
        engine = dataclasses.replace(engine, runner=runner, flags=settled)
    flags = [flag for flag in engine.flags if not flag.startswith('--runner=')]
    name, options = engine.runner.name, engine.options()
    if name == LOCAL_RUNNER and not flags:
        return engine
    bases = type(_beam_runner(name)).__mro__
    # A user's own class starts what its base class starts, unless that is the portable runner.
    extended = [base.__name__ for base in bases if base is not PortableRunner]
    runner = preset(name, options, extended)
    if not options.view_as(PortableOptions).job_endpoint:
        runner.refuse_unasked(name, options)
    if runner.has_containers:
        _refuse_unasked_image(name, options)
    profiling = options.view_as(ProfilingOptions)
    if (profiling.profile_cpu or profiling.profile_memory) and not profiling.profile_location:
        raise InputError('--profile_cpu and --profile_memory need a --profile_location')
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # the exception says the same
    try:
        pipeline = beam.Pipeline(options=options)
        if engine.runner.in_process:
            pipeline | beam.Create([(0, 0)]) | beam.Reshuffle() | beam.CombinePerKey(sum)
            pipeline.run().wait_until_finish()
        shutil.rmtree(pipeline.local_tempdir, ignore_errors=True)  # Beam does after a run alone
    except Exception as error:
        reason = text_without_secrets(in_a_line(error), engine.flags)
        shown_flags = ' '.join(without_secrets(engine.flags))
        raise InputError(
            f'Beam cannot work with {shown_flags}: {reason}; change its options'
        ) from error
    finally:
        logging.disable(before)
    return engine


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
            f'--runner {name!r} is not a runner of Beam; give local, FlinkRunner, '
            'SparkRunner, PrismRunner, PortableRunner or DataflowRunner'
        ) from error
    if not isinstance(runner, PipelineRunner):
        raise InputError(f'--runner {name!r} is not a runner of Beam, but something else')
    return runner


def _refuse_unasked_image(name: str, options: PipelineOptions) -> None:
    """Refuses Beam's default container: Docker would download it, and it does not have tokbeam."""
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


def choose_engine(flags: Sequence[str], workers: int | None) -> Engine:
    """Returns the engine that a user's `--runner` and Beam options name.

    Args:
        flags: options for Beam's `PipelineOptions`.
        workers: `--workers`, or None for the default: the cores in a local process, else 1, since
            a cluster (or Beam's own worker processes) brings the parallelism.

    Raises:
        InputError: options that Beam does not take, or a mode that loses elements.
    """
    filter_beam_logs()
    options = beam_options(flags)
    name = _runner_name(options.view_as(StandardOptions).runner)
    runner = preset(LOCAL_RUNNER if name in OTHER_NAMES else name, options)
    if not runner.is_local and options.view_as(PortableOptions).job_endpoint == 'embed':
        runner = embedded_runner(runner, options)
    if not runner.is_local:
        refuse_secrets(flags, runner.name)
    _refuse_modes(options)
    _refuse_numbers(options)
    FileSystems.set_options(options)
    all_flags = _with_options(flags, (*runner.settings, ('--runner', runner.name)))
    return Engine(runner, tuple(all_flags), workers or runner.workers)


def preset(name: str, options: PipelineOptions, extended: Sequence[str] = ()) -> Runner:
    """Returns the runner of a name, or that of the first known class that it extends.

    A runner that is not known at all is a cluster with the defaults of `Runner`.
    """
    for known_name in (name, *extended):
        if known_name in _PRESETS:
            return _PRESETS[known_name](name, options)
        if known_name in _ELSEWHERE:
            return pkgutil.resolve_name(_ELSEWHERE[known_name])(name, options)
    return Runner(name)


def _refuse_modes(options: PipelineOptions) -> None:
    """Refuses modes of Beam that do not work with any runner."""
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


def _runner_name(typed: str | None) -> str:
    """Returns a runner's name as Beam resolves it: case does not matter, and `Runner` may lack."""
    if typed is None:
        return 'local'
    by_name = {name.lower(): name for name in (*_KNOWN_RUNNERS.values(), 'local')}
    for name in (typed.lower(), f'{typed.lower()}runner'):
        if name in by_name:
            return by_name[name]
    return _KNOWN_RUNNERS.get(typed, typed)


def _refuse_numbers(options: PipelineOptions) -> None:
    """Refuses numbers of workers that no machine or cluster has."""
    for view, name, low, high in _NUMBERS:
        number = getattr(options.view_as(view), name, None)
        # -1 leaves it to the cluster, as the default does.
        if number is None or (number == -1 and view is FlinkRunnerOptions) or low <= number <= high:
            continue
        raise InputError(f'--{name} {shown(str(number))} is not from {low:,} to {high:,}')


def _with_options(flags: Sequence[str], settings: Sequence[tuple[str, object]]) -> list[str]:
    all_flags = list(flags)
    for option, value in settings:
        all_flags = [*_without_option(all_flags, option), f'{option}={value}']
    return all_flags


def _without_option(flags: Sequence[str], name: str) -> list[str]:
    others, skip = [], False
    for flag in flags:
        if skip:
            skip = False
        elif flag == name:
            skip = True
        elif not flag.startswith(name + '='):
            others.append(flag)
    return others


def users_mistake(error: BaseException) -> InputError | None:
    """Returns the error that the user or the system is to blame for; None for a failure.

    The runner may have wrapped it, or sent it as the text of a worker's traceback.
    """
    text = _STEP_NOTE.sub('', str(error))
    if isinstance(error, InputError):
        return type(error)(text)
    if matches := _USER_ERROR.findall(str(error)):
        name, message = matches[-1]
        return getattr(tokcore.errors, name, InputError)(_STEP_NOTE.sub('', message))
    if isinstance(error, OSError) and error.errno is None:
        error = OSError(text)
    doing = 'run the job'
    return as_input_error(error, doing) or as_input_error_from_text(text, doing)


def filter_beam_logs() -> None:
    """Keeps secrets out of Beam's logs, and leaves out errors that it also raises."""
    for name in _OPTION_LOGGERS:
        logging.getLogger(name).addFilter(_hide_secrets)
    logging.getLogger(_STEP_LOGGER).addFilter(_is_not_users_mistake)


def _hide_secrets(record: logging.LogRecord) -> bool:
    """Removes secrets from a log record; this filter lets all records through."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            list(without_secrets([*map(str, argument)]))
            if isinstance(argument, (list, tuple))
            else argument
            for argument in record.args
        )
    record.msg, record.args = text_without_secrets(record.getMessage()), None
    return True


def _is_not_users_mistake(record: logging.LogRecord) -> bool:
    """Lets a record through unless it has a user's mistake, which `main` prints, or an interrupt."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return True
    return not isinstance(error, KeyboardInterrupt) and users_mistake(error) is None
