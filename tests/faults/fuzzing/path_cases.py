"""Paths of every kind for every option that takes one: the right file, or a sentence."""

import os
import random
import socket
from pathlib import Path

from plain.lines import NamedText, single_rows

from tokcore.subword.text_encoder import SubwordTextEncoder

from . import results
from .room import Room
from .vocabulary_cases import SOUND_VOCABULARY

_TEXT = b'the line of words\nand a line 2024\n' * 3

_SOUND_NAMES = [
    'plain', 'with space', ' ', '  lead', 'trail ', 'a\nb', 'a\rb', 'a\tb', '\n', 'x\x01y', '[ab]', 'a*b',
    'a?b', '[', ']', '*', '**', '?', '{a,b}', '!a', 'a\\b', '\\', "a'b", 'a"b', '$HOME', '~', '~root',
    '%s', '%41', 'a:b', 'a;b', '|', '&', '#', '=', '--x', '-x', '-', 'é', '语料', '😀', '\u2028', '\ufeff',
    'x' * 180, '\udcff', 'a\udcc3b', 'tokbeam', 'x.gz', 'x.bz2', 'x.zst', '.hidden', '...', 'a..b', 'CON',
    'x.tokbeam.json', 'counts-00000-of-00032.parquet', 'deep/er/and/deeper', 'a//b', './a', 'a/./b',
    'a/../b',
]  # fmt: skip
_LONG_NAMES = [
    'x' * 200,
    'x' * 230,
    'x' * 250,
    'x' * 255,
    'x' * 256,
    '字' * 85,
    'x/' * 2100 + 'x',
    'x' * 5000,
]
_DEVICES = ['/dev/null', '/dev/zero', '/dev/full', '/dev/stdin', '/dev/fd/0', '/proc/self/mem']
_ODD_PATHS = [
    '', '/dev/null/x', '/proc/nowhere/x', 'foo://x', 'https://example.invalid/x', 'file://x', 'a://', '://', 'text', 'text/x',
    'link', 'dangling', 'loop', 'folder', 'folder/', 'pipe', 'socket', 'linked/text', 'text/',
]  # fmt: skip


def attack_paths(room: Room, dice: random.Random) -> None:
    _furnish(room)
    role = dice.choice(['input', 'input', 'vocab', 'output', 'output', 'work', 'counts', 'stream'])
    if role == 'stream':
        _streams(room, dice)
        return
    kind = dice.choice(['sound', 'sound', 'long', 'odd', 'odd'])
    name = dice.choice({'sound': _SOUND_NAMES, 'long': _LONG_NAMES, 'odd': _ODD_PATHS}[kind])
    if kind == 'odd' and role not in ('output', 'work') and dice.random() < 0.3:
        name = dice.choice(_DEVICES)  # to be read only: who is root could replace them
    statuses = [0] if kind == 'sound' else [0, 2]
    {'input': _input, 'vocab': _vocab, 'output': _output, 'work': _work, 'counts': _counts}[role](
        room, dice, name, kind, statuses
    )


def _furnish(room: Room) -> None:
    here = room.here
    room.write('text', _TEXT)
    room.write('vocab', SOUND_VOCABULARY)
    (here / 'link').symlink_to('text')
    (here / 'dangling').symlink_to('nowhere')
    (here / 'loop').symlink_to('loop')
    (here / 'folder').mkdir()
    (here / 'folder' / 'mine').write_text('mine\n')
    (here / 'linked').symlink_to('.')
    os.mkfifo(here / 'pipe')
    _make_socket(here)


def _make_socket(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            # Its own path might be longer than a socket's may be.
            listening.bind(f'/proc/self/fd/{handle}/socket')
    finally:
        os.close(handle)


def _option(dice: random.Random, option: str, path: str) -> list[str]:
    if path.startswith('-') or not path or dice.random() < 0.5:
        return [f'{option}={path}']
    return [option, path]


def _place(room: Room, name: str, data: bytes) -> bool:
    """Writes a file of an odd name where the filesystem takes it; returns whether it did."""
    try:
        if (room.here / name).exists():
            return False
        room.write(name, data)
    except (OSError, ValueError):
        return False
    return True


def _input(room, dice, name, kind, statuses) -> None:
    is_there = kind != 'odd' and _place(room, name, _TEXT)
    command = dice.choice(['count', 'encode', 'vocab'])
    line, may = {
        'count': (['count', '--output', 'counts'], ['counts']),
        'encode': (['encode', '--vocab', 'vocab', '--name', 'n', '--shards', '2', '--output', 'out'], ['out']),
        'vocab': (['vocab', '--vocab-size', '90', '--output', 'vocab.x'],
                  ['vocab.x', 'vocab.x.tokbeam.json', 'vocab.x.tokbeam.run.json']),
    }[command]  # fmt: skip
    ended = room.run(
        *line,
        *_option(dice, '--text', name),
        statuses=statuses if is_there else [0, 2],
        may_change=may,
    )
    if ended.status == 0 and is_there:
        _check(room, command)


def _check(room: Room, command: str, output: str = '') -> None:
    rows = single_rows([NamedText('text', _TEXT)], None, 1 << 30)
    if command == 'count':
        results.check_counts(room.here / (output or 'counts'), rows, (0,))
    elif command == 'encode':
        encoder = SubwordTextEncoder.load(room.here / 'vocab')
        results.check_dataset(
            room.here / (output or 'out'), 'n', {'train': 2}, {'train': rows}, [encoder], ['']
        )
    else:
        SubwordTextEncoder.load(room.here / (output or 'vocab.x'))


def _vocab(room, dice, name, kind, statuses) -> None:
    is_there = kind != 'odd' and _place(room, name, SOUND_VOCABULARY)
    statuses = statuses if is_there else [0, 2]
    if dice.random() < 0.5:
        command = dice.choice(['tokenize', 'detokenize'])
        room.run(command, *_option(dice, '--vocab', name), stdin=b'2 3\n', statuses=statuses)
        return
    ended = room.run(
        'encode', '--text', 'text', '--name', 'n', '--shards', '2', '--output', 'out',
        *_option(dice, '--vocab', name), statuses=statuses, may_change=['out'],
    )  # fmt: skip
    if ended.status == 0 and is_there:
        _check(room, 'encode')


def _counts(room, dice, name, kind, statuses) -> None:
    is_there = kind != 'odd' and _place(room, name, b'the 5\nof 7\na\t3\n')
    room.run(
        'vocab', '--vocab-size', '90', '--output', 'vocab.x', *_option(dice, '--counts', name),
        statuses=statuses if is_there else [0, 2],
        may_change=['vocab.x', 'vocab.x.tokbeam.json', 'vocab.x.tokbeam.run.json'],
    )  # fmt: skip


def _output(room, dice, name, kind, statuses) -> None:
    command = dice.choice(['count', 'encode', 'vocab'])
    line = {
        'count': ['count', '--text', 'text'],
        'encode': ['encode', '--text', 'text', '--vocab', 'vocab', '--name', 'n', '--shards', '2'],
        'vocab': ['vocab', '--text', 'text', '--vocab-size', '90'],
    }[command]
    line += ['--overwrite'] if dice.random() < 0.2 else []
    path = os.path.normpath(name)
    if command == 'vocab' and path.endswith('.tokbeam.json'):
        statuses = [2]  # the name of a manifest
    ended = room.run(
        *line, *_option(dice, '--output', name), statuses=statuses,
        may_change_if=lambda changed: _is_made(changed, path, command),
    )  # fmt: skip
    if ended.status == 0 and kind != 'odd':
        _check(room, command, path)


def _is_made(changed: str, path: str, command: str) -> bool:
    """Whether a path is of an output, or a folder on the way to it."""
    changed = changed.removeprefix('here/')
    if f'{path}/'.startswith(f'{changed}/'):
        return True
    if command == 'vocab':
        return changed in (f'{path}.tokbeam.json', f'{path}.tokbeam.run.json')
    # Through the links that stand for them.
    return changed.startswith((f'{path}/', 'folder/n-', 'folder/counts-', 'folder/tok'))


def _work(room, dice, name, kind, statuses) -> None:
    ended = room.run(
        'encode', '--text', 'text', '--vocab', 'vocab', '--name', 'n', '--shards', '2',
        '--output', 'out', *_option(dice, '--work', name), statuses=statuses, may_change=['out'],
    )  # fmt: skip
    if ended.status == 0:
        _check(room, 'encode')


def _streams(room: Room, dice: random.Random) -> None:
    """Standard input and output that are not there, or not what they should be."""
    command = dice.choice(['tokenize', 'detokenize', 'tokenize', 'detokenize', 'count'])
    stdin = dice.choice(
        [None, str(room.here / 'folder'), '/dev/null', b'2 3\n', b'2 3', b'\n' * 50_000]
    )
    stdout = dice.choice(['', None, '/dev/full', '/dev/null', '/dev/full'])
    line = ['--vocab', 'vocab'] if command != 'count' else ['--text', 'text', '--output', 'counts']
    room.run(command, *line, stdin=stdin, stdout=stdout, may_change=['counts'])
