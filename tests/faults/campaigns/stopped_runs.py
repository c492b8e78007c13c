"""Runs that are stopped at a drawn moment, and what must then be true of what they leave.

The jobs are small, and run in forked children of a warm process, so that each takes about a second.
`FUZZ_SEED` and `FUZZ_CASES` choose the moments and how many there are.
"""

import json
import os
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import google_crc32c
from forked_commands import Ended, Lane
from generated_text import as_tsv, pairs_with_gaps
from killed_runs import names_in
from leftovers import final_files, result_files

SEED = int(os.environ.get('FUZZ_SEED', '0'))

_POLL_SECONDS = 0.001
_COMPILING_SECONDS = 300

Files = dict[str, bytes]


def cases(usual: int) -> range:
    """The numbers of the cases to be played: as many as are wanted, or the usual few."""
    return range(int(os.environ.get('FUZZ_CASES', usual)))


@dataclass
class Job:
    """A command with the folder that its results go to, and what it makes there.

    `output` is what `--output` names below that folder. The seconds and the number of names that
    appear are those of the run that made the reference.
    """

    arguments: list[object]
    output: str
    spread: list[list[str]] = field(default_factory=list)  # options that change no byte
    reference: Files = field(default_factory=dict, repr=False)
    seconds: float = 0
    names: int = 0

    def command(self, folder: Path, *extra: object) -> list[object]:
        return [*self.arguments, '--output', folder / self.output, *extra]

    def draw_spread(self, dice: random.Random) -> list[str]:
        """Draws options that change how the work is done, and no byte of it."""
        chosen = [dice.choice(each) for each in self.spread if dice.random() < 0.7]
        return [word for option in chosen for word in option.split()]

    def measure(self, lane: Lane, folder: Path) -> None:
        """Makes the reference in a new folder, and looks at how long that takes."""
        folder.mkdir()
        lane.start(self.command(folder), folder, seconds=_COMPILING_SECONDS)
        seen: set[str] = set()
        watch(lane, folder, seen, lambda: False)
        ended = lane.end()
        assert ended.status == 0, ended.stderr
        self.reference = result_files(folder)
        self.seconds, self.names = ended.seconds, len(seen)


def make_jobs(lanes: Sequence[Lane], folder: Path) -> dict[str, Job]:
    """Returns the jobs of all commands over a small corpus, each with its reference."""
    corpus = folder / 'pairs.tsv'
    corpus.write_bytes(as_tsv(pairs_with_gaps(1000, 3)))
    words = sorted({word for pair in pairs_with_gaps(200, 4) for word in pair[0].split()})
    counts = folder / 'counts.txt'
    counts.write_text(''.join(f'{word} {1 + number % 30}\n' for number, word in enumerate(words)))
    vocabulary = folder / 'vocabulary'
    run(lanes[0], ['vocab', '--tsv', corpus, '--vocab-size', 900, '--output', vocabulary], folder,
        seconds=_COMPILING_SECONDS)  # fmt: skip
    workers = ['--workers 1', '--workers 2', '--workers 3']
    sizes = ['@item-size 10KiB', '@item-size 40KiB', '@item-size 1MiB']
    shuffles = ['@shuffle files', '@buffer 16KiB', '@buffer 64KiB', '@shuffle engine']
    dataset = ['--name', 'n', '--shards', 4]
    jobs = {
        'count': Job(['count', '--tsv', corpus], 'counts', [workers, sizes]),
        'vocab': Job(
            ['vocab', '--counts', counts, '--vocab-size', 300, '--min-count-range', '2:4',
             '--learner', 'beam'],
            'vocab.x', [workers],
        ),
        'encode': Job(
            ['encode', '--tsv', corpus, '--dev', corpus, '--vocab', vocabulary, *dataset],
            'out', [workers, sizes, shuffles],
        ),
        'build': Job(
            ['build', '--tsv', corpus, '--vocab-size', 900, *dataset],
            'out', [workers, sizes, shuffles],
        ),
    }  # fmt: skip
    _measure(lanes, jobs, folder)
    return jobs


def make_other_jobs(lanes: Sequence[Lane], jobs: dict[str, Job], folder: Path) -> dict[str, Job]:
    """Returns for each job one with the same output and another result, with its reference."""
    changes = {
        'count': ['--side', 'inputs'],
        'vocab': ['--reserved-token', 'x'],
        'encode': ['--seed', 1, '--shards', 6],
        'build': ['--seed', 1],
    }
    others = {
        name: Job([*job.arguments, *changes[name]], job.output, job.spread)
        for name, job in jobs.items()
    }
    _measure(lanes, others, folder)
    return others


def _measure(lanes: Sequence[Lane], jobs: dict[str, Job], folder: Path) -> None:
    free = list(lanes)

    def measure(name: str) -> None:
        lane = free.pop()
        jobs[name].measure(lane, folder / name)
        free.append(lane)

    with ThreadPoolExecutor(len(lanes)) as pool:
        list(pool.map(measure, jobs))


def run(lane: Lane, command: Sequence[object], folder: Path, **how) -> Ended:
    """Runs a command that must succeed."""
    ended = lane.run(command, folder, **how)
    assert ended.status == 0, ended.stderr
    return ended


@dataclass(frozen=True)
class Moment:
    """When to stop a run: at a number of names that appeared, or after some seconds."""

    names: int | None
    seconds: float


def draw_moment(dice: random.Random, job: Job) -> Moment:
    """Draws a moment, by names where files are written, or by time where they are thought out."""
    if dice.random() < 0.5:
        return Moment(dice.randint(1, job.names), 0)
    return Moment(None, job.seconds * dice.uniform(0, 1.05))


def wait_for(lane: Lane, folder: Path, moment: Moment) -> bool:
    """Waits for a moment of what a lane has started; returns False if it ended before."""
    seen = set(names_in(folder))
    before = len(seen)
    started = time.monotonic()

    def has_come() -> bool:
        if moment.names is not None:
            return len(seen) - before >= moment.names
        return time.monotonic() - started >= moment.seconds

    return watch(lane, folder, seen, has_come)


def watch(lane: Lane, folder: Path, seen: set[str], has_come: Callable[[], bool]) -> bool:
    """Looks at a folder until something has come; returns False if the run ended before."""
    while not has_come():
        if lane.has_ended():
            return False
        seen.update(names_in(folder))
        time.sleep(_POLL_SECONDS)
    return True


def assert_whole(folder: Path, *references: Files) -> None:
    """Each final file is one of a reference's, and a manifest stands by all files it lists."""
    files = result_files(folder)
    for name, data in files.items():
        assert any(reference.get(name) == data for reference in references), f'{name} is not whole'
    for name, data in final_files(folder).items():
        if name.endswith('.json'):
            json.loads(data)
    for name in files:
        if name.endswith('tokbeam.json'):
            assert_manifest_holds(folder / name)


def assert_manifest_holds(path: Path) -> None:
    """All that a manifest lists is there, with its checksum."""
    manifest = json.loads(path.read_bytes())
    listed = manifest['files'] + manifest.get('index', [])
    for file in listed + manifest['vocabularies'] + manifest['rejected']:
        data = (path.parent / file['name']).read_bytes()
        assert f'{google_crc32c.value(data):08x}' == file['crc32c'], file['name']


def assert_finished(folder: Path, reference: Files) -> None:
    """The result is the reference's, and nothing of the tool's own is left, nor any other file."""
    found = result_files(folder)
    assert found.keys() == reference.keys(), found.keys() ^ reference.keys()
    other = [name for name in reference if found[name] != reference[name]]
    assert not other, other
    left = [str(path) for path in folder.rglob('.tokbeam*')]
    assert not left, left
