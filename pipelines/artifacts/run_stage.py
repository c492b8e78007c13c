"""What every stage does around its own work: claim, look whether it is done, make, publish."""

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.artifacts.manifest import Manifest, OutputFile
from pipelines.artifacts.stage_output import StageKey, StageOutput, run_record
from pipelines.files.attempts import Attempt

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Made:
    """A stage's result, whole in its attempt: the manifest, and what it does not list by itself."""

    manifest: Manifest
    rejected: tuple[OutputFile, ...] = ()  # by their names in the attempt
    seconds: dict[str, float] | None = None  # of its parts; None for the whole as one


class KeptWork(Protocol):
    """Work beside an output that a rerun goes on with: sorted runs, a learner's rounds."""

    def sweep(self) -> None:
        """Deletes it: the output is whole."""

    def swept(self) -> contextlib.AbstractContextManager[None]:
        """Sweeps it behind a block that makes the output, unless it is still of use."""


def run_stage(
    output: StageOutput,
    key: StageKey,
    names: Sequence[str],
    make: Callable[[Attempt], Made],
    *,
    overwrite: bool,
    flags: Sequence[str],
    kept: Sequence[KeptWork] = (),
    given: Sequence[str] = (),
    check: Callable[[], None] = lambda: None,
) -> Made | None:
    """Makes a stage's output unless it is there; returns what was made, None if it was there.

    Args:
        output: where it goes.
        key: what is asked for.
        names: of the files that are made.
        make: makes them in an attempt's folder.
        overwrite: whether another result may be replaced.
        flags: Beam's options, for the run record.
        kept: swept when the output is whole.
        given: paths that are read beside the inputs.
        check: refuses, before anything is made, what cannot be.

    Raises:
        InputError: as `StageOutput.up_to_date`, `check` and `make`.
    """
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        claim = stack.enter_context(output.claim())
        if output.up_to_date(claim, key, names, overwrite, given) is not None:
            for each in kept:
                each.sweep()
            _LOGGER.info('%s: already done in %s', key.stage, output.path)
            return None
        check()
        for each in kept:
            stack.enter_context(each.swept())
        attempt = stack.enter_context(output.attempt())
        made = make(attempt)
        seconds = made.seconds or {key.stage: time.monotonic() - started}
        run = run_record(key.inputs, seconds, flags)
        output.publish(claim, attempt, names, made.manifest, run, made.rejected)
    return made
