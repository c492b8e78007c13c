"""The one place that maps a user's word for an engine to Beam's options, and runs pipelines.

`local` (and `DirectRunner`) is Beam's in-process engine pinned as `FnApiRunner`: plain
`DirectRunner` would first try to download another runner. On Flink one job server, if Beam is to
start it, serves all jobs of a process.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import apache_beam as beam
import grpc
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
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.job_server import JobServer
from apache_beam.runners.runner import PipelineResult, PipelineState
from apache_beam.runners.worker import statesampler

from pipelines.engines.pipeline_errors import filter_beam_logs, users_mistake
from pipelines.engines.processors import usable_cores
from pipelines.options.beam_flags import beam_options
from pipelines.options.secrets import text_without_secrets
from pipelines.options.values import MOST_WORKERS, shown
from tokcore.errors import InputError
from tokcore.warm_up import compile_kernels

_LOCAL_RUNNER = 'FnApiRunner'
_LOCAL_NAMES = {'local', 'DirectRunner', 'SwitchingDirectRunner', _LOCAL_RUNNER}
_KNOWN_RUNNERS = {path: path.rpartition('.')[2] for path in StandardOptions.ALL_KNOWN_RUNNERS}

_CANCEL_SECONDS = 30

_SAMPLING_MS = 20

_MOST_PARALLELISM = 32_768
"""Flink's own bound."""

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
class Engine:
    """A runner with its options, and how many work items a worker keeps in flight."""

    runner: str  # its name as Beam knows it
    flags: tuple[str, ...]  # the runner's among them
    workers: int
    is_local: bool  # what is shuffled waits in this process's memory
    in_process: bool
    flink_slots: int | None = None  # None on other engines
    deadline: float | None = None  # seconds for each pipeline

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
        if self.in_process:
            _end_bundles_soon()
        else:
            compile_kernels()
        runner = None if self.flink_slots is None else _flink_runner(self.flags)
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

    def _submit(self, pipeline: beam.Pipeline) -> PipelineResult:
        if self.runner == _LOCAL_RUNNER:
            return pipeline.run()  # which runs it to its end
        try:
            return pipeline.run()
        except _SUBMISSION_ERRORS as error:
            reason = ' '.join(str(error).split()) or type(error).__name__
            raise InputError(
                f'--runner {self.runner} does not take the job '
                f'({text_without_secrets(reason, self.flags)}); check its options, and that what '
                'they name can be reached'
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


def _end_bundles_soon() -> None:
    """Has Beam look every 20 ms, and not every 200, at which step is running.

    The end of every bundle waits until the look under way is over. Beam has no option for it; if it
    is no longer a default that can be replaced, nothing is.
    """
    initializer = statesampler.StateSampler.__init__
    if initializer.__defaults__ == (statesampler.DEFAULT_SAMPLING_PERIOD_MS,):
        initializer.__defaults__ = (_SAMPLING_MS,)


class _FlinkRunner(FlinkRunner):
    """Beam's own starts a job server for each job, and all of them live until the process ends."""

    def __init__(self):
        super().__init__()
        self._job_server: JobServer | None = None

    def default_job_server(self, options: PipelineOptions) -> JobServer:
        if self._job_server is None:
            self._job_server = super().default_job_server(options)
        return self._job_server


@functools.lru_cache(maxsize=None)
def _flink_runner(flags: tuple[str, ...]) -> _FlinkRunner:
    return _FlinkRunner()


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
    direct = options.view_as(DirectOptions)
    mode = direct.direct_running_mode
    if mode == 'multi_threading':
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
    is_fn_api = name in _LOCAL_NAMES
    in_process = is_fn_api and mode in (None, 'in_memory')
    is_local = is_fn_api or options.view_as(PortableOptions).job_endpoint == 'embed'
    if is_local and deadline is not None:
        raise InputError(
            "--deadline needs a runner that can cancel a pipeline, and Beam's local one cannot; "
            'leave it out, or give another --runner'
        )
    _refuse_numbers(options)
    if workers is None:
        workers = min(usable_cores(), MOST_WORKERS) if in_process else 1
    FileSystems.set_options(options)
    name = _LOCAL_RUNNER if is_fn_api else name
    kept = _without_option(flags, '--runner')
    if is_fn_api and direct.direct_num_workers == 0:
        # Beam would take all processors that there are.
        kept = _without_option(kept, '--direct_num_workers')
        kept.append(f'--direct_num_workers={min(usable_cores(), MOST_WORKERS)}')
    kept.append(f'--runner={name}')
    slots = _flink_slots(options) if name == 'FlinkRunner' else None
    return Engine(name, tuple(kept), workers, is_local, in_process, slots, deadline)


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
    for kind, name, low, high in [
        (DirectOptions, 'direct_num_workers', 0, MOST_WORKERS),
        (FlinkRunnerOptions, 'parallelism', 1, _MOST_PARALLELISM),
        (FlinkRunnerOptions, 'max_parallelism', 1, _MOST_PARALLELISM),
    ]:
        number = getattr(options.view_as(kind), name, None)
        # -1 leaves it to the cluster, as the default does.
        if number is None or (number == -1 and kind is FlinkRunnerOptions) or low <= number <= high:
            continue
        raise InputError(f'--{name} {shown(str(number))} is not from {low:,} to {high:,}')


def _flink_slots(options: PipelineOptions) -> int:
    # Without --parallelism it is the cluster's own default, which nobody here knows, or 1.
    return max(1, options.view_as(FlinkRunnerOptions).parallelism)


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
