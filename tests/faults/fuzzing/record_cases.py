"""Results whose manifest or run record was changed: data and no orders, whatever they say."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from plain import drawn_text
from plain.json_lines import places_of

from .room import Room, Violation
from .vocabulary_cases import SOUND_VOCABULARY

_COMMANDS = {
    'encode': (['encode', '--text', 'text', '--vocab', 'vocab', '--name', 'n', '--shards', '2'], 'out'),
    'build': (['build', '--text', 'text', '--vocab-size', '90', '--name', 'n', '--shards', '2'], 'out'),
    'count': (['count', '--text', 'text'], 'counts'),
    'vocab': (['vocab', '--text', 'text', '--vocab-size', '90'], 'vocab.x'),
}  # fmt: skip
_TEXT = ('the line of words\nand a line 2024\n语料 第\n'.encode() + b'bad \xff\n') * 5
_SKIP = ['--on-error', 'skip', '--min-count-range', '1:2']

_OURS = re.compile(
    r'here/(out|counts|vocab\.x)(/counts)?'
    r'(/(\.?tokbeam(\.run)?\.json|n-(train|dev|test)-\d{5}-of-\d{5}|counts-\d{5}-of-00032\.parquet'
    r'|index(/corpus\.jsonl|/n-(train|dev|test)-\d{5}-of-\d{5})?'
    r'|tokenizer(/vocab)?'
    r'|vocab\.n\.\d+\.subwords|rejected(/train\.invalid_utf8\.jsonl)?)?)?'
    r'|here/vocab\.x\.tokbeam(\.run)?\.json'
    r'|here/(vocab\.x|counts)\.rejected(/train\.invalid_utf8\.jsonl)?'
)
"""What a command may change in the folder that it is given: nothing but what it makes itself."""

_SOMEBODYS = ['thesis.txt', 'notes/deep/page', 'n-train-notes', 'rejected/mine', 'counts/mine']


def make_results(run: Callable[..., object], folder: Path) -> None:
    """Makes a result of each command in a folder, from which cases take copies."""
    (folder / 'text').write_bytes(_TEXT)
    (folder / 'vocab').write_bytes(SOUND_VOCABULARY)
    for words, output in _COMMANDS.values():
        run([*words, *_skipping(words), '--output', output if words[0] != 'build' else 'build'])


def _skipping(words: list[str]) -> list[str]:
    return _SKIP if words[0] in ('build', 'vocab') else _SKIP[:2]


def attack_manifests(room: Room, dice: random.Random) -> None:
    _attack(room, dice, 'tokbeam.json')


def attack_run_records(room: Room, dice: random.Random) -> None:
    _attack(room, dice, 'tokbeam.run.json')


def _attack(room: Room, dice: random.Random, record: str) -> None:
    command = dice.choice(list(_COMMANDS))
    words, output = _COMMANDS[command]
    for name in ('text', 'vocab'):
        shutil.copy2(room.made / name, room.here / name)
    made = 'build' if command == 'build' else output
    for path in room.made.glob(f'{made}*'):
        copy = shutil.copytree if path.is_dir() else shutil.copy2
        copy(path, room.here / path.name.replace(made, output, 1))
    folder = room.here if command == 'vocab' else room.here / output
    reference = _result_files(room.here)
    for name in _SOMEBODYS:
        if dice.random() < 0.5:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text('mine\n')
    vanishing = _seed(room, dice, folder) if dice.random() < 0.5 else []
    for _ in range(dice.choice([1, 1, 2])):
        _spoil(room, dice, dice.choice(_records(folder, output, command, record)))
    line = [*words, *_skipping(words), '--output', output]
    is_other = dice.random() < 0.3
    if is_other:
        line += {
            'encode': ['--seed', '1'], 'build': ['--shards', '3'], 'count': ['--max-line-size', '9'],
            'vocab': ['--reserved-token', 'x'],
        }[command]  # fmt: skip
    overwrites = dice.random() < 0.5
    line += ['--overwrite'] if overwrites else []
    is_reader = dice.random() < 0.15
    if is_reader:
        line = _reading_it(command, output)
    ended = room.run(
        *line,
        may_change_if=lambda path: bool(_OURS.fullmatch(path)),
        may_vanish=vanishing,
        may_finish=['out/counts'] if command == 'build' else [],
    )
    if ended.status == 0 and overwrites and not (is_other or is_reader):
        now = _result_files(room.here)
        wrong = [name for name in reference if now.get(name) != reference[name]]
        if wrong:
            raise Violation(f'made again, but not the same: {wrong}')


def _reading_it(command: str, output: str) -> list[str]:
    """A command that only reads the result."""
    if command in ('count', 'build'):
        counts = output if command == 'count' else f'{output}/counts'
        return ['vocab', '--counts', counts, '--vocab-size', '80', '--output', 'vocab.x']
    vocabulary = output if command == 'vocab' else 'vocab'
    return ['encode', '--text', 'vocab', '--vocab', vocabulary, '--name', 'n', '--output', 'counts']


def _records(folder: Path, output: str, command: str, record: str) -> list[Path]:
    if command == 'vocab':
        return [folder / f'{output}.{record}']
    if command == 'build':
        return [folder / record, folder / record, folder / 'counts' / record]
    return [folder / record]


def _seed(room: Room, dice: random.Random, folder: Path) -> list[str]:
    """Puts names of the tool's own in its way; returns the links that it may remove."""
    digits = ''.join(dice.choices('0123456789abcdef', k=32))
    names = [
        f'.tokbeam-attempt-{digits}', f'.tokbeam-attempt-run-{digits}', '.tokbeam-attempt-x',
        f'.tokbeam-attempt-tokbeam.json-{digits}', '.tokbeam-lock',
        '.tokbeam', f'.tokbeam/shuffle-{digits}', f'.tokbeam/learner-{digits}', 'rejected',
        'n-train-00000-of-00002', 'counts', f'.tokbeam/shuffle-{digits}/plan.json',
    ]  # fmt: skip
    vanishing = []
    for name in dice.sample(names, dice.choice([1, 1, 3])):
        path = folder / name
        if path.exists() or path.is_symlink():
            continue
        if any(parent.is_symlink() for parent in path.parents if parent != folder):
            continue
        if any(parent.is_file() for parent in path.parents):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        how = dice.choice(['link', 'link', 'file link', 'folder', 'file', 'plan'])
        if name == '.tokbeam-lock' and how in ('folder', 'plan', 'file'):
            how = 'file'
            vanishing.append(os.path.relpath(path, room.folder))
        if how in ('link', 'file link'):
            path.symlink_to(room.victim if how == 'link' else room.victim / 'precious')
            vanishing.append(os.path.relpath(path, room.folder))
        elif how == 'file':
            path.write_text('mine\n')
        else:
            path.mkdir()
            (path / 'mine').write_text('mine\n')
            if how == 'plan':
                plan = {'output': str(folder), 'run_bytes': 1, 'files': ['../../../victim']}
                (path / 'plan.json').write_text(json.dumps(plan))
    return vanishing


def _spoil(room: Room, dice: random.Random, path: Path) -> None:
    if not path.is_file():
        return
    how = dice.random()
    data = path.read_bytes()
    if how < 0.2:
        path.write_bytes(drawn_text.mutated(dice, data))
    elif how < 0.3:
        path.write_bytes(dice.choice(_ODD_DOCUMENTS))
    elif how < 0.35:
        path.unlink()
        if dice.random() < 0.5:
            path.symlink_to(room.victim / 'tokbeam.json')
        elif dice.random() < 0.5:
            path.mkdir()
        else:
            os.mkfifo(path)
    elif how < 0.4:
        path.unlink()
    else:
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            return
        for _ in range(dice.choice([1, 1, 2, 5])):
            content = _changed(room, dice, content)
        path.write_text(json.dumps(content, ensure_ascii=dice.random() < 0.5), errors='replace')


_ODD_DOCUMENTS = [
    b'', b'null', b'[]', b'{}', b'0', b'"x"', b'[' * 100_000, b'{"a":' * 50_000, b'NaN', b'1' * 5000,
    b'{"format": 1}', b'{"format": 1e400}', b'\xff', b'\xef\xbb\xbf{}', b'{"format": 1, "format": 2}',
    b'{"files": ["../../victim", "thesis.txt"], "inputs": [], "seconds": {}, "runner": []}',
    b'{"files": "thesis.txt", "inputs": {}, "seconds": [], "runner": ""}', b'\x00' * 50,
    b'{"format": ' + b'9' * 5000 + b'}',
]  # fmt: skip


def _changed(room: Room, dice: random.Random, content: object) -> object:
    """Returns a JSON value with one place of it changed."""
    places = list(places_of(content))
    if not places:
        return _odd_value(room, dice)
    # Lists of names are what a run goes by.
    named = [each for each in places if each[1] in ('files', 'rejected', 'name', 'vocabularies')]
    holder, key = dice.choice(named if named and dice.random() < 0.5 else places)
    change = dice.random()
    if change < 0.15:
        del holder[key]
    elif change < 0.3 and isinstance(holder[key], list):
        holder[key] += [_odd_value(room, dice) for _ in range(dice.choice([1, 3]))]
    elif change < 0.4 and isinstance(holder, dict):
        holder[_odd_name(room, dice)] = _odd_value(room, dice)
    elif change < 0.6:
        holder[key] = _odd_name(room, dice)
    else:
        holder[key] = _odd_value(room, dice)
    return content


def _odd_name(room: Room, dice: random.Random) -> str:
    return dice.choice([
        '../victim', '../../victim', '../../victim/precious', str(room.victim), f'{room.victim}/', '..', '.', '',
        'thesis.txt', 'notes', 'notes/deep/page', 'notes/', './thesis.txt', 'rejected', 'counts',
        'rejected/mine', 'rejected/../thesis.txt', 'counts/mine', 'n-train-notes', 'a\0b', 'x' * 300,
        'n-train-00000-of-00002/../thesis.txt', '.tokbeam', '.tokbeam-attempt-x', '\ud800', '*',
        'text', '../text', '../vocab', 'rejected/train.invalid_utf8.jsonl', 'n-train-00001-of-00002',
        'n-train-00005-of-00009', 'vocab.n.90.subwords', 'tokbeam.json', 'a\nb', '~', '-rf',
    ])  # fmt: skip


def _odd_value(room: Room, dice: random.Random) -> object:
    return dice.choice([
        None, True, 0, -1, 1, 1 << 63, 10**400, 1.5, -0.0, float('nan'), float('inf'), '', 'x', [], {},
        [[]], [None], {'a': {}}, [1, 2, 3], ['x', 1, 1.0], '00000000', {'name': '../victim'},
        [_odd_name(room, dice)], _odd_name(room, dice),
        {'name': _odd_name(room, dice), 'bytes': 0, 'crc32c': '00000000', 'rows': 0},
        {'name': 7, 'bytes': 'x', 'crc32c': None, 'rows': []},
    ])  # fmt: skip


def _result_files(folder: Path) -> dict[str, bytes]:
    """The bytes of what a command makes and does not change from run to run."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob('*')
        if path.is_file()
        and _OURS.fullmatch(f'here/{path.relative_to(folder)}')
        and not path.name.endswith('tokbeam.run.json')
    }
