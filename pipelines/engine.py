"""The one place that maps a user's word for an engine to Beam's options, and runs pipelines.

`local` (and `DirectRunner`) is Beam's in-process engine pinned as `FnApiRunner`: plain
`DirectRunner` would first try to download another runner.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    SetupOptions,
    StandardOptions,
)

from tokcore.errors import InputError
from tokcore.warm_up import compile_kernels

_LOCAL_NAMES = {None, 'local', 'DirectRunner', 'direct', 'FnApiRunner'}
_USER_ERROR = re.compile(r'tokcore\.errors\.InputError: (.*)')
_STEP_NOTE = re.compile(r" \[while running '.*")


@dataclass(frozen=True)
class Engine:
    """A runner with its options, and how many work items a worker keeps in flight."""

    flags: tuple[str, ...]
    workers: int
    is_local: bool
    in_process: bool

    def options(self) -> PipelineOptions:
        options = PipelineOptions(list(self.flags))
        # All DoFns live in modules; the main session would only add what pickling can fail on.
        options.view_as(SetupOptions).save_main_session = False
        return options

    def run(self, build: Callable[[beam.Pipeline], None]) -> None:
        """Builds a pipeline, runs it and waits for its end.

        Raises:
            InputError: a worker met a user's mistake, on whichever side of a process border.
            RuntimeError: the pipeline failed otherwise.
        """
        if not self.in_process:
            compile_kernels()
        pipeline = beam.Pipeline(options=self.options())
        build(pipeline)
        try:
            result = pipeline.run()
            state = result.wait_until_finish()
        except Exception as error:
            mistake = _users_mistake(error)
            if mistake is None:
                raise
            raise InputError(mistake) from error
        if state not in (None, 'DONE'):
            raise RuntimeError(f'the pipeline ended in state {state}')


def choose_engine(flags: Sequence[str], workers: int | None) -> Engine:
    """Returns the engine that a user's `--runner` and Beam options name.

    Args:
        flags: options for Beam's `PipelineOptions`.
        workers: `--workers`, or None for the default: the cores in a local process, else 1, since
            a cluster (or Beam's own worker processes) brings the parallelism.
    """
    options = PipelineOptions(list(flags))
    runner = options.view_as(StandardOptions).runner
    mode = options.view_as(DirectOptions).direct_running_mode
    if mode == 'multi_threading':
        raise InputError(
            '--direct_running_mode=multi_threading loses elements in Beam 2.77; use --workers '
            'for threads, or --direct_running_mode=multi_processing'
        )
    is_local = runner in _LOCAL_NAMES
    in_process = is_local and mode in (None, 'in_memory')
    if workers is None:
        workers = (os.cpu_count() or 1) if in_process else 1
    FileSystems.set_options(options)
    kept = _without_option(flags, '--runner')
    kept.append('--runner=FnApiRunner' if is_local else f'--runner={runner}')
    return Engine(tuple(kept), workers, is_local, in_process)


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


def _users_mistake(error: BaseException) -> str | None:
    if isinstance(error, InputError):
        return _STEP_NOTE.sub('', str(error))
    # From a worker process the exception comes as the text of its traceback.
    found = _USER_ERROR.findall(str(error))
    return _STEP_NOTE.sub('', found[-1]) if found else None
