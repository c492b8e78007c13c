"""All jobs run by both revisions, over the same texts and with several numbers of workers."""

import dataclasses
import json
import resource
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from earlier_revisions import Command, run_all

from .comparison import Compared, compare_results
from .jobs_combined import LEARNING, OWN_FILTER, combined_jobs, learning_jobs
from .jobs_compared import Job, ordinary_jobs
from .materials import make_materials
from .odd_corpora import OddCorpora
from .odd_files import OddFiles

_OURS = Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Ran:
    """A job that both revisions have run.

    Attributes:
        job: what was run.
        workers: how many.
        status: the exit status of this checkout.
        compared: the results.
    """

    job: Job
    workers: int
    status: object
    compared: Compared


def compare_with(
    packages: Path,
    folder: Path,
    corpora: Path | None = None,
    small: bool = False,
    workers: Sequence[int] = (1, 2),
    only: str = '',
) -> list[Ran]:
    """Runs all jobs with both revisions and compares what they made; without jobs it returns nothing.

    Args:
        packages: of the other revision.
        folder: for texts and results.
        corpora: a folder with real text for the ordinary jobs; None for generated text.
        small: whether only the beginning of each of its corpora is taken.
        workers: numbers of work items in flight.
        only: the beginning of the names of jobs that are compared.
    """
    texts = folder / 'texts'
    texts.mkdir(parents=True)
    jobs = _needed(_all_jobs(packages, folder, texts, corpora, small), only)
    ran = []
    for number in workers if jobs else ():
        roots = [folder / f'{name}-{number}' for name in ('before', 'now')]
        started, used = time.monotonic(), _processor_seconds()
        with ThreadPoolExecutor() as pool:
            both = zip((packages, _OURS), roots, strict=True)
            for run in [pool.submit(_run, code, jobs, root, number) for code, root in both]:
                run.result()
        print(
            f'workers {number}: {len(jobs)} jobs, each by both, in {time.monotonic() - started:.0f} s, '
            f'{_processor_seconds() - used:.0f} s of processor time',
            flush=True,
        )
        for job in jobs:
            if job.name.startswith(only):
                before, now = (root / job.name for root in roots)
                status = json.loads((now / 'outcome.json').read_bytes())['status']
                ran.append(Ran(job, number, status, compare_results(before, now)))
    return ran


def _all_jobs(
    packages: Path, folder: Path, texts: Path, corpora: Path | None, small: bool
) -> list[Job]:
    ordinary = ordinary_jobs(make_materials(texts, corpora, small))
    odd_corpora = OddCorpora(texts / 'odd')
    odd_files = OddFiles(texts / 'files', odd_corpora)
    # Both revisions encode with vocabularies of the other one, so that how a vocabulary is learned
    # changes no other jobs.
    learned = folder / 'learned'
    learning = [*learning_jobs(odd_corpora)]
    _run(packages, learning, learned, 1)
    for job in learning:
        outcome = (learned / job.name / 'outcome.json').read_text()
        if json.loads(outcome)['status'] != 0:
            raise ValueError(
                f'there is no vocabulary for the other jobs: {job.name} gave {outcome}'
            )
    vocabularies = {name: learned / f'learn.{name}' / 'vocab' for name in LEARNING}
    for path in vocabularies.values():
        # Without it, the file is one that a user brings, whatever the rules of the revisions are called.
        path.with_name('vocab.tokbeam.json').unlink()
    vocabularies |= {'pretrained-ranks': odd_files.ranks, 'pretrained-json': odd_files.tokenizer}
    combined = combined_jobs(odd_corpora, odd_files, vocabularies)
    return [*ordinary, *combined, *odd_files.jobs()]


def _needed(jobs: Iterable[Job], only: str) -> list[Job]:
    """The jobs that are asked for, with those whose output they go on from."""
    kept: list[Job] = []
    used: set[str] = set()
    for job in reversed([*jobs]):
        if job.name.startswith(only) or job.name in used:
            kept.insert(0, job)
            used |= job.uses
    return kept


def _run(packages: Path, jobs: Sequence[Job], root: Path, workers: int) -> None:
    for job in jobs:
        (root / job.name).mkdir(parents=True)
    (root / 'own_rows.py').write_text(OWN_FILTER)
    lines = [job.line(workers) for job in jobs]
    commands = [
        Command(line, root / job.name, job.stdin) for line, job in zip(lines, jobs, strict=True)
    ]
    run_all(packages, commands, root)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
