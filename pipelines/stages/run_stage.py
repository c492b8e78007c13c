"""What every stage does around its own work: claim, look whether it is done, make, publish."""

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.artifacts.outputs import StageTask, publish, up_to_date
from pipelines.engines.progress import stage_running
from pipelines.files.claims import Claim
from pipelines.jobs.job import Execution
from pipelines.jobs.stats import refuse_losses
from tokcore.records.manifest import Manifest, OutputFile

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class StageResult:
    """A stage's result, whole in its attempt: the manifest, but for what follows from the rest."""

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
    tasks: Sequence[StageTask],
    make: Callable[..., Sequence[StageResult]],
    execution: Execution,
    *,
    kept: Sequence[KeptWork] = (),
    given: Sequence[str] = (),
    check: Callable[[], None] = lambda: None,
) -> list[StageResult | None]:
    """Makes those of a stage's results that are not there.

    Returns for each task what was made, None if it was there.

    Args:
        tasks: the results.
        make: takes an `Attempt` for each task, None if its result is there, and gives what it made
            in the attempts' folders.
        execution: how the job is run.
        kept: swept when the output is whole.
        given: paths that are read beside the inputs.
        check: refuses, before anything is made, what cannot be.

    Raises:
        InputError: as `up_to_date`, `check` and `make`; or a result that is there has lost more
            lines than may be.
    """
    started = time.monotonic()
    stage = tasks[0].key.stage
    results: list[StageResult | None] = [None] * len(tasks)
    with contextlib.ExitStack() as stack:
        claims: dict[int, Claim] = {}
        for place, task in enumerate(tasks):
            claim = stack.enter_context(task.output.claim())
            done = up_to_date(task, claim, execution.overwrite, [*given, *execution.read_beside])
            if done is None:
                claims[place] = claim
            elif execution.max_rejected is not None:
                refuse_losses(execution.max_rejected, done.lines)
        if not claims:
            for each in kept:
                each.sweep()
            _LOGGER.info(
                '%s: already done in %s', stage, ', '.join(task.output.path for task in tasks)
            )
            return results
        check()
        for each in kept:
            stack.enter_context(each.swept())
        attempts = [
            stack.enter_context(task.output.attempt(claims[place])) if place in claims else None
            for place, task in enumerate(tasks)
        ]
        with stage_running(stage):
            all_made = make(*attempts)
        whole = {stage: time.monotonic() - started}
        for (place, claim), made in zip(claims.items(), all_made, strict=True):
            task, results[place] = tasks[place], made
            run = task.key.run_record(made.seconds or whole, execution.engine.flags)
            rejected = task.output.rejected_files(made.rejected)
            manifest = dataclasses.replace(made.manifest, rejected=rejected)
            publish(task, claim, attempts[place], manifest, run, made.rejected)
    return results
