"""The one place that maps a user's word for an engine to Beam's options, and runs pipelines.

`local` (and `DirectRunner`) is Beam's in-process engine pinned as `FnApiRunner`: plain
`DirectRunner` would first try to download another runner. On Flink one job server, if Beam is to
start it, serves all jobs of a process.
"""

import functools
import os
import re
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
)
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.job_server import JobServer
from apache_beam.runners.runner import PipelineResult, PipelineState
from apache_beam.runners.worker import statesampler

from tokcore.errors import FullDiskError, InputError
from tokcore.warm_up import compile_kernels

_LOCAL_NAMES = {None, 'local', 'DirectRunner', 'direct', 'FnApiRunner'}
_USER_ERROR = re.compile(r'tokcore\.errors\.(InputError|FullDiskError): (.*)')
_STEP_NOTE = re.compile(r" \[while running '.*")
_CANCEL_SECONDS = 30

_SAMPLING_MS = 20


@dataclass(frozen=True)
class Engine:
    """A runner with its options, and how many work items a worker keeps in flight."""

    flags: tuple[str, ...]
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
            InputError: a worker met a user's mistake, on whichever side of a process border.
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
            state = self._wait(pipeline.run())
        except Exception as error:
            mistake = _users_mistake(error)
            if mistake is None:
                raise
            raise mistake from error
        if state not in (None, PipelineState.DONE):
            raise RuntimeError(f'the pipeline ended in state {state}')

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
        InputError: a mode that loses elements, or a deadline for what cannot be cancelled.
    """
    options = PipelineOptions(list(flags))
    runner = options.view_as(StandardOptions).runner
    mode = options.view_as(DirectOptions).direct_running_mode
    if mode == 'multi_threading':
        raise InputError(
            '--direct_running_mode=multi_threading loses elements in Beam 2.77; use --workers '
            'for threads, or --direct_running_mode=multi_processing'
        )
    is_fn_api = runner in _LOCAL_NAMES
    in_process = is_fn_api and mode in (None, 'in_memory')
    is_local = is_fn_api or options.view_as(PortableOptions).job_endpoint == 'embed'
    if is_local and deadline is not None:
        raise InputError(
            "--deadline needs a runner that can cancel a pipeline, and Beam's local one cannot; "
            'leave it out, or give another --runner'
        )
    if workers is None:
        workers = (os.cpu_count() or 1) if in_process else 1
    FileSystems.set_options(options)
    kept = _without_option(flags, '--runner')
    kept.append('--runner=FnApiRunner' if is_fn_api else f'--runner={runner}')
    slots = _flink_slots(options) if runner == 'FlinkRunner' else None
    return Engine(tuple(kept), workers, is_local, in_process, slots, deadline)


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


def _users_mistake(error: BaseException) -> InputError | None:
    if isinstance(error, InputError):
        return type(error)(_STEP_NOTE.sub('', str(error)))
    # From a worker process the exception comes as the text of its traceback.
    found = _USER_ERROR.findall(str(error))
    if not found:
        return None
    name, message = found[-1]
    kind = FullDiskError if name == FullDiskError.__name__ else InputError
    return kind(_STEP_NOTE.sub('', message))
