"""All jobs run by both revisions, over the same texts and with several numbers of workers."""

import time
from collections.abc import Sequence
from pathlib import Path

from earlier_revisions import run_all

from .comparison import Compared, compare_results
from .jobs_compared import Job, jobs_in
from .materials import make_materials

_OURS = Path(__file__).resolve().parents[2]


def compare_with(
    packages: Path,
    folder: Path,
    corpora: Path | None = None,
    small: bool = False,
    workers: Sequence[int] = (1, 2),
    only: str = '',
) -> dict[str, list[Compared]]:
    """Runs all jobs with both and returns, for each with each number of workers, its files.

    Args:
        packages: of the other revision.
        folder: for texts and results.
        corpora: a folder with real text; None for generated text.
        small: whether only the beginning of each corpus is taken.
        workers: numbers of work items in flight.
        only: the beginning of the names of jobs that are compared.
    """
    texts = folder / 'texts'
    texts.mkdir(parents=True)
    given = make_materials(texts, corpora, small)
    rows = {}
    for number in workers:
        roots = {}
        for name, code in [('before', packages), ('now', _OURS)]:
            roots[name] = folder / f'{name}-{number}'
            jobs = _needed(jobs_in(roots[name], given), roots[name], only)
            _run(code, jobs, roots[name], ['--workers', number])
        for job in jobs:
            if job.name.startswith(only):
                rows[f'{job.name}, workers {number}'] = compare_results(
                    roots['before'] / job.name, roots['now'] / job.name
                )
    return rows


def _needed(jobs: Sequence[Job], root: Path, only: str) -> list[Job]:
    """The jobs that are asked for, with those whose output they go on from."""
    kept: list[Job] = []
    for job in reversed(jobs):
        used = {argument for each in kept for argument in each.arguments}
        if job.name.startswith(only) or job.output(root) in used:
            kept.insert(0, job)
    return kept


def _run(packages: Path, jobs: Sequence[Job], root: Path, extra: Sequence[object]) -> None:
    started = time.monotonic()
    for job in jobs:
        (root / job.name).mkdir(parents=True)
    run_all(packages, [job.line(root, extra) for job in jobs])
    print(f'{root.name}: {len(jobs)} jobs in {time.monotonic() - started:.0f} s', flush=True)
