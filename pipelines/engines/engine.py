"""The one place that maps a user's word for an engine to Beam's options, and runs pipelines."""

import dataclasses
import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import (
    DirectOptions,
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    SetupOptions,
    StandardOptions,
    TypeOptions,
)
from apache_beam.runners.runner import PipelineResult, PipelineState

from pipelines.engines.flink import FLINK_NUMBERS, flink_runner
from pipelines.engines.job_servers import in_a_line, portable_runner, prism_runner, spark_runner
from pipelines.engines.local import (
    LOCAL_NUMBERS,
    LOCAL_RUNNER,
    OTHER_NAMES,
    embedded_runner,
    local_runner,
)
from pipelines.engines.pipeline_errors import filter_beam_logs, users_mistake
from pipelines.engines.runner import Runner
from pipelines.options.beam_flags import beam_options
from pipelines.options.secrets import text_without_secrets
from tokcore.encoding.scheme import Scheme
from tokcore.errors import InputError
from tokcore.options.values import shown
from tokcore.schemes import find_scheme
from tokcore.warm_up import compile_kernels

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
