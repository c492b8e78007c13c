"""Beam's own engine on this machine: threads of this process, or worker processes.

It is pinned as `FnApiRunner`: plain `DirectRunner` would first try to download another runner.
"""

import dataclasses

from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.runners.worker import statesampler

from pipelines.engines.runner import Runner
from pipelines.machine.process_memory import available_bytes
from pipelines.machine.processors import usable_cores
from tokcore.errors import InputError
from tokcore.options.values import MOST_WORKERS

LOCAL_RUNNER = 'FnApiRunner'
OTHER_NAMES = ('local', 'DirectRunner', 'SwitchingDirectRunner')

LOCAL_NUMBERS = ((DirectOptions, 'direct_num_workers', 0, MOST_WORKERS),)
"""Options, with the least and the most that they may be."""

_SAMPLING_MS = 20

_MEMORY_SHARE = 6
"""Beam's local runner holds a shuffle in memory at four to six times its size."""


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


def _end_bundles_soon() -> None:
    """Has Beam look every 20 ms, and not every 200, at which step is running.

    The end of every bundle waits until the look under way is over. Beam has no option for it; if it
    is no longer a default that can be replaced, nothing is.
    """
    initializer = statesampler.StateSampler.__init__
    if initializer.__defaults__ == (statesampler.DEFAULT_SAMPLING_PERIOD_MS,):
        initializer.__defaults__ = (_SAMPLING_MS,)
