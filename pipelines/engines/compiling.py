"""Kernels that a job needs are compiled before it begins, once for a machine."""

import functools
import logging
import time
from collections.abc import Sequence

from pipelines.engines.machine import available_bytes, usable_cores
from pipelines.engines.progress import advance, stage_running, track_work
from tokcore.encoding.scheme import Scheme
from tokcore.kernels.jit import CACHE_FOLDER
from tokcore.warm_up import KERNELS, PARTS, PROCESS_BYTES, compile_in_processes, missing_parts

_LOGGER = logging.getLogger(__name__)

_COMPILING = 'compiling'


def compile_ahead(scheme: Scheme, parts: Sequence[str]) -> None:
    """Compiles the kernels of parts of a job, keys of `PARTS`, if this machine never has.

    Several at once, in processes of their own.
    """
    missing = missing_parts(scheme, [part for part in PARTS if part in parts])
    if not missing:
        return
    _LOGGER.info(
        'compiling kernels for %s, once for this machine; mostly half a minute',
        ', '.join(missing),
    )
    started = time.monotonic()
    processes = max(1, min(usable_cores(), available_bytes() // PROCESS_BYTES))
    kernels = sum(KERNELS[part] for part in missing)
    with (
        stage_running('compile kernels'),
        track_work('compile kernels', _COMPILING, kernels, 'kernels'),
    ):
        failed = compile_in_processes(
            scheme, missing, processes, functools.partial(advance, _COMPILING)
        )
    for error in dict.fromkeys(failed.values()):
        late = ', '.join(part for part, reason in failed.items() if reason == error)
        _LOGGER.warning('the kernels of %s are compiled as they are called: %s', late, error)
    if len(failed) < len(missing):
        _LOGGER.info('compiled in %.1f s, kept in %s', time.monotonic() - started, CACHE_FOLDER)
