"""What every stage does around its own work: claim the output, see whether it is done, publish.

Files are made in an attempt's folder and renamed, the manifest last: until it is there, none of them
counts as a result.
"""

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.artifacts.outputs import StageTask, publish, up_to_date
from pipelines.engines.compiling import compile_ahead
from pipelines.engines.progress import stage_running
from pipelines.files.attempts import Attempt, KeptWork, WorkFolder, swept
from pipelines.files.claims import Claim, loss_named
from pipelines.jobs.job import Execution
from pipelines.options.beam import without_secrets
from tokcore.object_stores import counted_requests, requests_since
from tokcore.records.manifest import Manifest, OutputFile, with_root

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class StageResult:
    """The files in an attempt's folder, and a manifest to be completed.

    Attributes:
        manifest: of the result, without the final names of the files of rejected lines.
        rejected: these files, by their names in the attempt's folder.
        seconds: that each part took; None: the stage is timed as a whole.
    """

    manifest: Manifest
    rejected: tuple[OutputFile, ...] = ()
    seconds: dict[str, float] | None = None


def run_stage(
    tasks: Sequence[StageTask],
    make: Callable[..., Sequence[StageResult]],
    execution: Execution,
    *,
    kernels: Sequence[str] = (),
    parts: Sequence[str] = (),
    work: WorkFolder | None = None,
    kept: Sequence[KeptWork] = (),
    read: Sequence[str] = (),
    check: Callable[[], None] = lambda: None,
) -> list[StageResult | None]:
    """Makes the results that do not exist yet; returns a result for each task, None if it existed.

    Args:
        tasks: what is to exist.
        make: takes an `Attempt` for each task, None if its result exists, and returns what it made
            in the attempts' folders.
        execution: how the job is run.
        kernels: the parts of `warm_up.PARTS` whose kernels the work needs.
        parts: the stages that `make` runs, in order, if there are several.
        work: is there while `make` runs, if it was given.
        kept: is deleted when the output is complete.
        read: paths that are read in addition to the inputs.
        check: refuses, before anything is made, what cannot be made.

    Raises:
        InputError: as `up_to_date`, `check` and `make`; or an existing result has lost more lines
            than are allowed.
    """
    started, requests = time.monotonic(), counted_requests()
    stage = tasks[0].key.stage
    results: list[StageResult | None] = [None] * len(tasks)
    with contextlib.ExitStack() as stack:
        claims: dict[int, Claim] = {}
        replaced: dict[int, set[str]] = {}
        for number, task in enumerate(tasks):
            claim = stack.enter_context(task.output.claim())
            given = [*read, *execution.read_beside]
            done, replaced[number] = up_to_date(
                task, claim, execution.overwrite, given, execution.max_rejected
            )
            if done is None:
                claims[number] = claim
        if not claims:
            for each in kept:
                each.sweep()
            _LOGGER.info(
                '%s: already done in %s', stage, ', '.join(task.output.path for task in tasks)
            )
            return results
        check()
        compile_ahead(execution.engine.scheme, kernels)
        if work is not None:
            stack.enter_context(work.made())
        for each in kept:
            stack.enter_context(swept(each))
        attempts = [
            stack.enter_context(
                Attempt(task.output.folder, task.output.names, claims[number].folder)
            )
            if number in claims
            else None
            for number, task in enumerate(tasks)
        ]
        stack.enter_context(loss_named(claims.values()))
        with stage_running(stage, parts):
            made = make(*attempts)
        whole = {stage: time.monotonic() - started}
        for (number, claim), result in zip(claims.items(), made, strict=True):
            task, attempt = tasks[number], attempts[number]
            assert attempt is not None
            results[number] = result = dataclasses.replace(
                result, manifest=with_root(result.manifest)
            )
            run = task.key.run_record(
                result.seconds or whole,
                without_secrets(execution.engine.flags),
                execution.text,
                requests_since(requests),
            )
            manifest = dataclasses.replace(
                result.manifest, rejected=task.output.rejected_files(result.rejected)
            )
            publish(task, claim, attempt, manifest, run, result.rejected, replaced[number])
    return results
