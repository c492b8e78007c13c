"""Counts of any bytes, as text, as Parquet and as folders: their sum, or a sentence."""

import collections
import io
import random
import shutil

import pyarrow as pa
import pyarrow.parquet as parquet
from plain import drawn_text
from plain.lines import lines_of

from . import results
from .room import Room, Violation

_MOST = (1 << 63) - 1
_WORDS = ['the', 'of', ' ', ', ', 'a', '语料', 'é', '2024', '\\', '_', "'", 'x' * 300]
_ODD_WORDS = [
    'a\rb', 'a\nb', '\r', '\n', '', '\x00', '\ufeff', '\u2028', 'a b', 'a\tb', '\U0010ffff', '<pad>',
    '\\10;', 'x' * 70_000,
]  # fmt: skip
_ODD_COUNTS = ['0', '00', '-1', '+1', '1.5', '1e3', '', '٣', str(_MOST), str(_MOST + 1), '9' * 400]


def attack_counts(room: Room, dice: random.Random) -> None:
    kind = dice.choice(['text', 'text', 'parquet', 'parquet', 'folder'])
    {'text': _text, 'parquet': _parquet, 'folder': _folder}[kind](room, dice)


def _text(room: Room, dice: random.Random) -> None:
    oddness = dice.choice([0, 0, 0.02, 0.3])
    lines = []
    for _ in range(dice.choice([0, 1, 5, 40])):
        is_odd = dice.random() < oddness
        word = dice.choice(_ODD_WORDS[:-1] if is_odd else _WORDS)
        count = dice.choice(_ODD_COUNTS if is_odd else ['1', '2', '17', '300', '001'])
        lines.append(f'{word}{dice.choice(" 	")}{count}')
    data = '\n'.join([*lines, '']).encode()
    if dice.random() < 0.3:
        data = drawn_text.mutated(dice, data)
    expected = _plain_counts(data)
    is_damaged = data.startswith((b'\x1f\x8b', b'PAR1'))
    stored = data
    if dice.random() < 0.2 and not is_damaged:
        stored, is_damaged = drawn_text.zipped(dice, data)
    room.write('c', stored)
    if is_damaged:
        statuses = [2]
    else:
        statuses = [0, 2] if expected else [2]
    if expected and all('\r' not in token for token in expected):
        # Then only a sum of substrings' counts that is too large can still be refused.
        statuses = [0] if sum(expected.values()) < 1 << 40 and not is_damaged else statuses
    _learn(room, dice, ['c'], statuses)


def _plain_counts(data: bytes) -> collections.Counter | None:
    """Returns the counts that a file holds, or None if it is not a file of counts."""
    counts: collections.Counter = collections.Counter()
    for _, line in lines_of(data):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            return None
        if not text.strip():
            continue
        text = text.removesuffix('\r')
        separator = '\t' if '\t' in text else ' '
        token, _, count = text.rpartition(separator)
        if not token or not (count.isascii() and count.isdigit()) or int(count) > _MOST:
            return None
        counts[token] += int(count)
    return counts if counts and max(counts.values()) <= _MOST else None


def _parquet(room: Room, dice: random.Random) -> None:
    data = _draw_parquet(dice)
    if dice.random() < 0.6:
        data = drawn_text.mutated(dice, data, dice.choice([1, 1, 3]))
        if dice.random() < 0.3:
            data = data[:4] + drawn_text.mutated(dice, data[4:])
    room.write('c', data)
    _learn(room, dice, ['c'], [0, 2])


def _draw_parquet(dice: random.Random) -> bytes:
    count = dice.choice([0, 1, 5, 40])
    words = dice.choices(_WORDS + (_ODD_WORDS if dice.random() < 0.3 else []), k=count)
    numbers = [dice.choice([1, 2, 17, 300]) for _ in words]
    tokens: pa.Array = pa.array(words, dice.choice([pa.string()] * 3 + [pa.large_string()]))
    counts: pa.Array = pa.array(numbers, dice.choice([pa.int64()] * 3 + [pa.int32(), pa.uint64()]))
    odd = dice.random()
    if odd < 0.05:
        tokens = tokens.dictionary_encode()
    elif odd < 0.1:
        tokens = pa.array([word.encode() + b'\xff' for word in words], pa.binary())
    elif odd < 0.15:
        tokens = pa.array([None if dice.random() < 0.2 else word for word in words], pa.string())
    elif odd < 0.2:
        counts = pa.array([None if dice.random() < 0.2 else each for each in numbers], pa.int64())
    elif odd < 0.25:
        counts = pa.array([dice.choice([-1, 0, _MOST]) for _ in words], pa.int64())
    elif odd < 0.3:
        counts = pa.array([1 << 64 - 1 for _ in words], pa.uint64())
    elif odd < 0.35:
        counts = pa.array([float(each) for each in numbers], pa.float64())
    elif odd < 0.4:
        counts = pa.array([[each] for each in numbers], pa.list_(pa.int64()))
    names = dice.choice(
        [('token', 'count')] * 9 + [('token', 'token'), ('Token', 'n'), ('', '\x00')]
    )
    version = dice.choice([None, None, b'\xff', b'1.0.0', b'', b'15.0.0' * 9])
    table = pa.table([tokens, counts], schema=pa.schema(
        [(names[0], tokens.type), (names[1], counts.type)],
        metadata=None if version is None else {b'tokbeam.unicode': version, b'unicode': version},
    ))  # fmt: skip
    stream = io.BytesIO()
    parquet.write_table(
        table,
        stream,
        row_group_size=dice.choice([None, 2]),
        compression=dice.choice(['snappy', 'none', 'zstd', 'gzip']),
        use_dictionary=dice.random() < 0.5,
    )
    return stream.getvalue()


def _folder(room: Room, dice: random.Random) -> None:
    """A finished COUNTS folder one of whose files was changed, or none; `--merge` or learned from."""
    shutil.copytree(room.made / 'counts', room.here / 'c')
    shutil.copytree(room.made / 'counts', room.here / 'd')
    statuses = [0]
    if dice.random() < 0.7:
        path = dice.choice(sorted((room.here / 'c').glob('*.parquet')))
        before = path.read_bytes()
        flipped = dice.random() < 0.5
        after = _flipped(dice, before) if flipped else drawn_text.mutated(dice, before)
        path.write_bytes(after)
        statuses = [0] if after == before else [2]
        if dice.random() < 0.1:
            path.unlink()
            statuses = [2]
    if dice.random() < 0.5:
        _learn(room, dice, ['c'], statuses)
        return
    command = ['count', '--counts', 'c', 'd', '--output', 'sum']
    if room.run(*command, statuses=statuses, may_change=['sum']).status == 0:
        once = results.counts_in(room.made / 'counts')
        if results.counts_in(room.here / 'sum') != once + once:
            raise Violation('the sum is wrong')


def _flipped(dice: random.Random, data: bytes) -> bytes:
    spoiled = bytearray(data)
    spoiled[dice.randrange(len(spoiled))] ^= 1 << dice.randrange(8)
    return bytes(spoiled)


def _learn(room: Room, dice: random.Random, counts: list[str], statuses: list[int]) -> None:
    learner = ['--learner', 'beam', '--min-count-range', '1:2'] if dice.random() < 0.02 else []
    room.run(
        'vocab', '--counts', *counts, '--vocab-size', 900, '--output', 'vocab.x', *learner,
        statuses=statuses, may_change=['vocab.x', 'vocab.x.tokbeam.json', 'vocab.x.tokbeam.run.json'],
    )  # fmt: skip
