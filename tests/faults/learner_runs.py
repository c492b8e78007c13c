"""Runs learners on Beam in forked children, and stops them when they have logged a round."""

import os
import random
import signal
from pathlib import Path
from typing import TextIO

from forked_commands import Ended, Lane

FINISHED = 'was finished by an earlier run'

SECONDS = 300
"""A round takes one or two on an idle machine; this only ends a run that hangs."""

SEARCHES = ('t2t', 'closest')

ROUNDS = 4


def write_syllables(path: Path) -> Path:
    """Writes counts of some hundred tokens that share parts, so that each min-count counts."""
    dice = random.Random(5)
    syllables = ['ka', 'to', 'ing', 'st', 'er', '文', 'on', 'de', 'ma']
    words = {''.join(dice.choices(syllables, k=dice.randint(1, 5))) for _ in range(900)}
    path.write_text(''.join(f'{word} {dice.randint(1, 30)}\n' for word in sorted(words)))
    return path


def learning(counts: Path, *options: object, size: int = 520) -> list[object]:
    """A command that learns into `vocab`, by either search in rounds of min-count 12, 8, 10, 11."""
    return [
        'vocab', '--counts', counts, '--vocab-size', size, '--min-count-range', '5:20',
        '--output', 'vocab', *options,
    ]  # fmt: skip


def stop_after_round(
    lane: Lane, arguments: list[object], folder: Path, number: int, by: int
) -> tuple[int, TextIO, str]:
    """Runs a command until it has logged a round, and then sends its processes a signal.

    Returns its process, what it goes on to say, and what it has said.
    """
    pipe = folder / 'stderr'
    os.mkfifo(pipe)
    process = lane.start(arguments, folder, stderr=str(pipe), seconds=SECONDS)
    saying = open(pipe)
    pipe.unlink()
    said = ''
    for line in saying:
        said += line
        if f': round {number}: ' in line:
            os.killpg(process, by)
            return process, saying, said
    raise AssertionError(f'no round {number}: {said} {lane.end()}')


def kill_after_round(lane: Lane, arguments: list[object], folder: Path, number: int) -> str:
    """Kills a command when it has logged a round; returns its stderr so far.

    It may have got further by the time that it dies, after the last round even to its end.
    """
    _, saying, said = stop_after_round(lane, arguments, folder, number, signal.SIGKILL)
    saying.close()
    assert lane.end().status in (0, -signal.SIGKILL)
    return said


def run(lane: Lane, arguments: list[object], folder: Path) -> Ended:
    return lane.run(arguments, folder, seconds=SECONDS)


def succeed(lane: Lane, arguments: list[object], folder: Path) -> str:
    """Runs a command, which must succeed, and returns its stderr."""
    ended = run(lane, arguments, folder)
    assert ended.status == 0, ended.stderr
    return ended.stderr
