"""Links planted during a job: what a link leads to is not touched, and published files are right.

A job replaces an earlier result. Before one of its steps, one of its files or folders is replaced by
a link. After the link is deleted, the same command must succeed.
"""

import json
import os
import random
from pathlib import Path

import google_crc32c
from planted_links import make_victim, state_of

from .room import Room, Violation

_TEXT = b'the line of words\nand a line \xff\nmore of it\nthe words of a line\n' * 5
_COUNTS = b''.join(b'word%d %d\n' % (number, number % 9 + 1) for number in range(60))

_AFTER_THE_END = 1.05
"""A factor for the steps of the earlier run: the run that replaces its result has some more."""


def attack_with_links(room: Room, dice: random.Random) -> None:
    room.write('text', _TEXT)
    room.write('counts.txt', _COUNTS)
    victim, out = make_victim(room.victim), room.here / 'out'
    before = state_of(victim)
    words = _words(dice, out)
    _, steps = _run(room, words, victim, None, '')
    step = int(dice.random() ** dice.choice([1, 2]) * steps * _AFTER_THE_END)
    others = _other_options(dice, words)
    planted, _ = _run(room, [*words, '--overwrite', *others], victim, step, str(dice.random()))
    room.history[-1] += f'  # a link before step {step} of {steps}: {planted}'
    _check_victim(victim, before)
    if planted is None:
        return
    if os.path.islink(planted):
        os.unlink(planted)
    _run(room, [*words, '--overwrite'], victim, None, '')
    _check_victim(victim, before)


def _words(dice: random.Random, out: Path) -> list[object]:
    text = ['--text', 'text', '--on-error', 'skip']
    dataset = ['--name', 'n', '--shards', dice.choice([1, 2]), '--output', out]
    size = dice.choice([20, 30])
    words = dice.choice(
        [
            ['encode', *text, '--scheme', 'byte', *dataset],
            ['build', *text, '--scheme', 'word', '--vocab-size', size, *dataset],
            ['count', *text, '--output', out / 'counts'],
            ['vocab', '--counts', 'counts.txt', '--scheme', 'word', '--vocab-size', size,
             '--output', out / 'vocabulary'],
        ]
    )  # fmt: skip
    if words[0] in ('encode', 'build'):
        words += dice.choice([[], ['@shuffle', 'files'], ['@shuffle', 'engine']])
        words += dice.choice([[], ['@item-size', 20]])
    if words[0] != 'vocab':
        words += dice.choice([[], ['--work', out / 'work']])
    return words


def _other_options(dice: random.Random, words: list[object]) -> list[object]:
    """Options by which the result differs from the earlier one."""
    if words[0] in ('encode', 'build'):
        return ['--seed', dice.choice([7, 8])]
    return ['--vocab-size', 40] if words[0] == 'vocab' else ['--max-line-size', 30]


def _run(
    room: Room, words: list[object], victim: Path, step: int | None, seed: str
) -> tuple[str | None, int]:
    """Runs a command with a planter; returns the link's path, and the number of steps."""
    out, record = room.here / 'out', room.here / 'planted.json'
    gone = room.here / 'gone' / str(len(room.history))
    record.write_text('{}')
    plant = {
        'folder': str(out), 'victim': str(victim), 'gone': str(gone), 'step': step, 'seed': seed,
        'record': str(record),
    }  # fmt: skip

    def may_leave(path: str) -> bool:
        planted = json.loads(record.read_text()).get('planted')
        # The folder that holds a planted link is not empty, so it stays.
        holds_link = planted is not None and Path(planted).is_relative_to(room.here / path)
        return holds_link or path.startswith('gone/')

    ended = room.run(
        *words, statuses=[0] if step is None else [0, 2], plant=plant, may_leave=may_leave,
        may_change_if=lambda path: path.startswith(('here/out', 'here/gone', 'here/planted.json')),
        may_keep=['out', 'gone', 'planted.json'],
    )  # fmt: skip
    content = json.loads(record.read_text())
    if ended.status == 0:
        _check_published(out, content['planted'])
    return content['planted'], content['steps']


def _check_victim(victim: Path, before: dict[str, object]) -> None:
    if state_of(victim) != before:
        raise Violation('what a link leads to was touched')


def _check_published(out: Path, planted: str | None) -> None:
    """Raises Violation if a file is not as its manifest says, except below the link.

    A link in an attempt takes the file's final name with the other files: who may write to the output is
    trusted with what is in it.
    """
    for folder, _, names in os.walk(out):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith('tokbeam.json') and path != planted and '/.tokbeam' not in path:
                _check_listed(path, planted)


def _check_listed(manifest: str, planted: str | None) -> None:
    content = json.loads(Path(manifest).read_bytes())
    for file in [*content['files'], *content.get('index', ()), *content.get('rejected', ())]:
        path = os.path.join(os.path.dirname(manifest), file['name'])
        if planted is not None:
            is_of_attempt = '/.tokbeam-attempt-' in planted and os.path.basename(path) in planted
            if path.startswith(planted) or is_of_attempt:
                continue
        if f'{google_crc32c.value(Path(path).read_bytes()):08x}' != file['crc32c']:
            raise Violation(f'{path} is not as {manifest} says')
