"""Datasets that somebody altered, read for training: the right rows, or a sentence.

Shards, manifests and states are altered by their bytes and by their structure. What rows are right
is told by plain readers. No command is run.
"""

import collections
import gzip
import io
import itertools
import json
import os
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import dataset_files
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from plain import drawn_text
from plain.json_lines import places_of
from protobuf_example import features_by_protobuf
from written_dataset import file_entry, framed, parquet_shard, write_files

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.reading.dataset import Dataset
from tokcore.records.tfrecord import parse_features, read_records

from .room import Room, Violation

_IDS = 258  # of the byte scheme
_MOST_BATCHES = 300  # that are read where there is no last one

Row = dict[str, list[int]]


def attack_record_shards(room: Room, dice: random.Random) -> None:
    shards, features = _draw_rows(dice)
    files = [[len(rows), framed(rows)[0] if rows else b''] for rows in shards]
    victim = dice.randrange(len(files))
    before = files[victim][1]
    if dice.random() < 0.5:
        files[victim][1] = drawn_text.mutated(dice, before)
    else:
        payloads = [*read_records(before, 'before')]
        files[victim][1] = b''.join(map(dataset_files.framed, _changed_records(dice, payloads)))
    if dice.random() < 0.3:
        files[victim][0] = _changed_number(dice, files[victim][0])
    told = [(rows, data if dice.random() < 0.8 else before) for rows, data in files]
    expected: list[Row] | None = []
    may_refuse = False
    for rows, data in files:
        found, is_odd = _plain_records(data, features)
        may_refuse |= is_odd
        expected = (
            None if expected is None or found is None or len(found) != rows else expected + found
        )
    if any(told_data != data and len(told_data) != len(data) for (_, told_data), (_, data)
           in zip(told, files, strict=True)):  # fmt: skip
        expected = None
    names = [f'd-train-{k:05d}-of-{len(files):05d}' for k in range(len(files))]
    folder = _write(room, dice, names, files, told, features, 'tfrecord')
    _check(folder, features, expected, may_refuse)


def attack_parquet_shards(room: Room, dice: random.Random) -> None:
    shards, features = _draw_rows(dice)
    files = [[len(rows), parquet_shard(rows, features)] for rows in shards]
    victim = dice.randrange(len(files))
    before = files[victim][1]
    by_bytes = dice.random() < 0.4
    if by_bytes:
        files[victim][1] = drawn_text.mutated(dice, before)
    else:
        table, options = _drawn_table(dice, shards[victim], features)
        stream = io.BytesIO()
        pq.write_table(table, stream, **options)
        files[victim] = [table.num_rows, stream.getvalue()]
    if dice.random() < 0.2:
        files[victim][0] = _changed_number(dice, files[victim][0])
    # With a checksum that fits, pages of other bytes may be other ids, and Parquet tells nobody.
    told = [
        (rows, before if by_bytes and k == victim else data) for k, (rows, data) in enumerate(files)
    ]
    expected: list[Row] | None = []
    if told[victim][1] != files[victim][1]:
        expected = None
    for rows, data in files if expected is not None else ():
        found = _plain_parquet(data, features)
        expected = (
            None if expected is None or found is None or len(found) != rows else expected + found
        )
    names = [f'd-train-{k:05d}-of-{len(files):05d}.parquet' for k in range(len(files))]
    folder = _write(room, dice, names, files, told, features, 'parquet')
    _check(folder, features, expected)


def attack_reader_manifests(room: Room, dice: random.Random) -> None:
    shards, features = _draw_rows(dice)
    is_parquet = dice.random() < 0.4
    files = [
        (
            len(rows),
            parquet_shard(rows, features) if is_parquet else framed(rows)[0] if rows else b'',
        )
        for rows in shards
    ]
    ending = '.parquet' if is_parquet else ''
    names = [f'd-train-{k:05d}-of-{len(files):05d}{ending}' for k in range(len(files))]
    output_format = 'parquet' if is_parquet else 'tfrecord'
    folder = _write(room, dice, names, files, files, features, output_format)
    path = folder / 'tokbeam.json'
    if dice.random() < 0.15:
        _make_special(dice, dice.choice([path, *(folder / name for name in names)]))
    elif dice.random() < 0.3:
        path.write_bytes(drawn_text.mutated(dice, path.read_bytes()))
    else:
        fields = json.loads(path.read_bytes())
        if dice.random() < 0.4:
            fields['vocabularies'] = [
                {'side': 'both', 'name': 'v', 'size': _IDS, 'bytes': 3, 'crc32c': '00000000',
                 'special_ids': {'pad': 0, 'end': 1}, 'scheme_options': {}}
            ]  # fmt: skip
        for _ in range(dice.choice([1, 1, 2, 4])):
            fields = _changed_json(dice, fields)
        path.write_text(json.dumps(fields, ensure_ascii=dice.random() < 0.5), errors='replace')
    _check(folder, features, [row for rows in shards for row in rows], may_refuse=True)


def attack_reader_states(room: Room, dice: random.Random) -> None:
    shards, features = _draw_rows(dice)
    files = [(len(rows), framed(rows)[0] if rows else b'') for rows in shards]
    names = [f'd-train-{k:05d}-of-{len(files):05d}' for k in range(len(files))]
    folder = _write(room, dice, names, files, files, features, 'tfrecord')
    dataset = open_dataset(folder)
    asked = dice.choice([{'batch_size': dice.randint(1, 5), 'start': 0}, {'tokens_per_batch': 60}])
    asked = {**asked, 'window': dice.choice([1, 3, 8, 99]), 'epochs': dice.choice([1, 2, None])}
    readers = {}
    if dice.random() < 0.3:
        readers = {'num_readers': 2, 'reader_index': dice.randrange(2)}
        asked['seed'] = dice.randrange(9)
    if not any(shards):
        asked['epochs'] = 1
    iterator = dataset.batches('train', **asked, **readers)
    try:
        for _ in itertools.islice(iterator, dice.randint(0, 20)):
            pass
    except InputError as error:  # epochs have no batch, and no end
        _check_sentence(error)
    state = json.loads(json.dumps(iterator.state()))
    if dice.random() < 0.1:
        _same('the rest', _rest(dataset.from_state(state, **readers)), _rest(iterator))
        return
    if dice.random() < 0.1:
        state = dice.choice(_ODD_VALUES)
    else:
        for _ in range(dice.choice([1, 1, 2, 4])):
            state = _changed_json(dice, state)
    known = {id_ for rows in shards for row in rows for ids in row.values() for id_ in ids}
    try:
        found = dataset.from_state(state)
        known |= {each for each in found.state()['arguments'].values() if type(each) is int} | {
            0,
            1,
        }
        for batch in itertools.islice(found, _MOST_BATCHES):
            for array in batch.values():
                if array.dtype != np.int32:
                    raise Violation(f'an array of {array.dtype}')
            ids = {id_ for name, array in batch.items() if array.ndim == 2 for id_ in array.flat}
            if not ids <= known:
                raise Violation(f'ids that the dataset has not: {sorted(ids - known)[:9]}')
    except InputError as error:
        _check_sentence(error)


def attack_text_batches(room: Room, dice: random.Random) -> None:
    """Lines of any bytes as TensorFlow NMT's batches: the words between U+0020, by their ids."""
    import tensorflow as tf

    from tokcore.reading.tensorflow import inference_batches

    special = ['<unk>', '<s>', '</s>']
    words = [*special, *dict.fromkeys(drawn_text.sentence(dice).split() + ['the', 'line'])]
    vocabulary = ''.join(f'{word}\n' for word in words).encode()
    data = drawn_text.text(dice)
    packed = data
    if dice.random() < 0.3:
        packed = gzip.compress(data, mtime=0)
        if dice.random() < 0.5:
            packed = drawn_text.mutated(dice, packed, 1)
            data = None
    path = room.write('text', packed)
    if dice.random() < 0.1:
        data = None
        _make_special(dice, path)
    if dice.random() < 0.2:
        vocabulary = drawn_text.mutated(dice, vocabulary)
        data = None
    try:
        batches = inference_batches(path, room.write('v', vocabulary), batch_size=3)
        found = [
            ids[:size].tolist()
            for batch in batches.as_numpy_iterator()
            for ids, size in zip(batch['source'], batch['source_sequence_length'], strict=True)
        ]
    except InputError as error:
        _check_sentence(error)
        if data is not None:
            raise Violation(f'sound lines are refused: {error}') from error
        return
    except tf.errors.OpError as error:
        if data is not None or not packed.startswith(b'\x1f\x8b'):
            raise Violation(f'sound lines are refused: {error}') from error
        return
    if data is None:
        return
    ids_of = {word.encode(): id_ for id_, word in enumerate(words)}
    # As TensorFlow, which takes out every carriage return, and then ends at an empty last line.
    lines = data.replace(b'\r', b'').split(b'\n')
    lines = lines if lines[-1] else lines[:-1]
    _same('the lines', found, [[ids_of.get(w, 0) for w in line.split(b' ') if w] for line in lines])


# Reading, and what it must give.


def _check(
    folder: Path, features: Sequence[str], expected: list[Row] | None, may_refuse: bool = False
) -> None:
    """Reads a dataset in all ways; `expected` None: it must be refused somewhere in each."""
    for read, is_whole in _ways_to_read(folder):
        try:
            dataset, rows = read()
        except InputError as error:
            _check_sentence(error)
            if expected is not None and not may_refuse:
                raise Violation(f'sound rows are refused: {error}') from error
            continue
        if not is_whole:
            if expected is not None:
                rest = collections.Counter(_hashed(expected, dataset.features))
                extra = collections.Counter(_hashed(rows, dataset.features)) - rest
                _same('rows that were not written', dict(extra), {})
            continue
        if expected is None:
            raise Violation(f'rows are given of what cannot be read: {rows[:3]}')
        _same('the rows', sorted(_hashed(rows, dataset.features)),
              sorted(_hashed(expected, dataset.features)))  # fmt: skip


def _ways_to_read(folder: Path) -> Iterable[tuple[Callable[[], tuple[Dataset, list[Row]]], bool]]:
    def examples(on_error: str) -> tuple[Dataset, list[Row]]:
        dataset = open_dataset(folder)
        found = dataset.examples('train', on_error=on_error)
        return dataset, [{name: ids.tolist() for name, ids in row.items()} for row in found]

    def batches(on_error: str) -> tuple[Dataset, list[Row]]:
        dataset = open_dataset(folder)
        found = dataset.batches('train', tokens_per_batch=50, window=5, pad=0, on_error=on_error)
        return dataset, [
            {
                name: batch[name][k, : batch[f'{name}_length'][k]].tolist()
                for name in dataset.features
            }
            for batch in found
            for k in range(len(batch[f'{dataset.features[0]}_length']))
        ]

    def pairs(on_error: str) -> tuple[Dataset, list[Row]]:
        dataset = open_dataset(folder)
        for batch in dataset.batches(
            'train', batch_size=2, start=0, pad=0, end=1, on_error=on_error
        ):
            if batch['target_output'].max(initial=0) >= _IDS:
                raise Violation('an id beyond the vocabulary')
        return dataset, []

    yield lambda: examples('stop'), True
    yield lambda: batches('stop'), True
    yield lambda: examples('skip'), False
    yield lambda: batches('skip'), False
    yield lambda: pairs('skip'), False


def _hashed(rows: Iterable[Row], features: Sequence[str]) -> list[tuple]:
    return [tuple(tuple(row.get(name, ())) for name in features) for row in rows]


def _rest(batches: Iterable[dict[str, np.ndarray]]) -> list[object]:
    found: list[object] = []
    try:
        found.extend(map(_listed, itertools.islice(batches, _MOST_BATCHES)))
    except InputError as error:
        found.append(str(error))
    return found


def _listed(batch: dict[str, np.ndarray]) -> dict[str, list]:
    return {name: each.tolist() for name, each in batch.items()}


def _check_sentence(error: InputError) -> None:
    sentence = str(error)
    if not sentence.isprintable() or len(sentence) > 2000 or not sentence:
        raise Violation(f'no sentence: {sentence[:300]!r}')


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise Violation(f'{what}: {repr(found)[:600]} in place of {repr(expected)[:600]}')


# Datasets, and what is altered in them.


def _draw_rows(dice: random.Random) -> tuple[list[list[Row]], list[str]]:
    features = dice.choice([['targets'], ['inputs', 'targets']])
    shards = [
        [
            {name: [*(dice.randrange(_IDS) for _ in range(dice.choice([0, 1, 3, 9, 40]))), 1]
             for name in features}
            for _ in range(dice.choice([0, 1, 2, 7, 20]))
        ]
        for _ in range(dice.randint(1, 3))
    ]  # fmt: skip
    return shards, features


def _write(
    room: Room, dice: random.Random, names: Sequence[str], files: Sequence[Sequence],
    told: Sequence[Sequence], features: Sequence[str], output_format: str,
) -> Path:  # fmt: skip
    """Writes files, and a manifest that tells of `told` in their place."""
    folder = room.here / 'dataset'
    written = [(name, rows, data) for name, (rows, data) in zip(names, files, strict=True)]
    write_files(folder, written, len(features) == 2, {'output_format': output_format})
    path = folder / 'tokbeam.json'
    fields = json.loads(path.read_bytes())
    fields['files'] = [file_entry(name, *each) for name, each in zip(names, told, strict=True)]
    path.write_text(json.dumps(fields))
    return folder


def _make_special(dice: random.Random, path: Path) -> None:
    """Puts what is no regular file in place of one."""
    path.unlink()
    kind = dice.choice(['fifo', 'folder', '/dev/zero', '/dev/null', path.name, 'nothing', '/'])
    if kind == 'fifo':
        os.mkfifo(path)
    elif kind == 'folder':
        path.mkdir()
    else:
        path.symlink_to(kind)


def _changed_number(dice: random.Random, number: int) -> int:
    return dice.choice([0, -1, number + 1, max(number - 1, 0), number * 2, 10**6, 10**12, 10**30])


def _plain_records(data: bytes, features: Sequence[str]) -> tuple[list[Row] | None, bool]:
    """Returns the rows of TFRecords as protobuf parses them, or None if one of them is no row of ids.

    Also whether one is laid out as no writer does it: it may be refused, and is not read otherwise.
    """
    rows, is_odd = [], False
    try:
        for record in read_records(data, 'shard'):
            parsed = features_by_protobuf(record)
            if parsed is None or not all(_are_ids(parsed.get(name)) for name in features):
                return None, False
            rows.append({name: parsed[name] for name in features})
            is_odd |= not _is_usual(record, rows[-1])
    except InputError:
        return None, False
    return rows, is_odd


def _is_usual(record: bytes, row: Row) -> bool:
    try:
        parsed = parse_features(record)
    except ValueError:
        return False
    return all(parsed.get(name) == ids for name, ids in row.items())


def _plain_parquet(data: bytes, features: Sequence[str]) -> list[Row] | None:
    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError, ValueError):
        return None
    if any(table.column_names.count(name) != 1 for name in features):
        return None
    for name in features:
        kind = table.schema.field(name).type
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        if not is_list or not pa.types.is_integer(kind.value_type):
            return None
    rows = table.select(features).to_pylist()
    return rows if all(_are_ids(ids) for row in rows for ids in row.values()) else None


def _are_ids(ids: object) -> bool:
    return isinstance(ids, list) and all(type(id_) is int and 0 <= id_ < _IDS for id_ in ids)


def _changed_records(dice: random.Random, payloads: list[bytes]) -> list[bytes]:
    payloads = [*payloads]
    for _ in range(dice.choice([1, 1, 3])):
        place = dice.randint(0, len(payloads))
        change = dice.randrange(5)
        if change == 0 and payloads:
            del payloads[place : place + 1]
        elif change == 1:
            payloads.insert(place, dice.choice([b'', b'\x00', dice.randbytes(9), *payloads[:1]]))
        elif change == 2:
            payloads.insert(place, _example(dice))
        elif place < len(payloads):
            payloads[place] = drawn_text.mutated(dice, payloads[place], 1)
    return payloads


def _example(dice: random.Random) -> bytes:
    """An Example as other writers may lay it out, with ids that may be none."""

    def varint(number: int) -> bytes:
        number &= (1 << 64) - 1
        digits = bytearray()
        while number >= 128:
            digits.append(number & 127 | 128)
            number >>= 7
        return bytes([*digits, number])

    def part(tag: int, data: bytes) -> bytes:
        return bytes([tag]) + varint(len(data)) + data

    entries = []
    for name in dice.choices([b'inputs', b'targets', b'score', b'', b'\xff'], k=dice.randint(0, 4)):
        ids = [dice.choice([5, 257, 258, -1, 1 << 31, 1 << 40, 1]) if dice.random() < 0.2 else 7
               for _ in range(dice.randint(0, 4))]  # fmt: skip
        packed = part(10, b''.join(map(varint, ids)))
        single = b''.join(b'\x08' + varint(id_) for id_ in ids)
        value = part(26, dice.choice([packed, single, packed + single]))
        if dice.random() < 0.1:
            value = dice.choice(
                [part(10, part(10, b'x')), part(18, part(10, b'1234')), b'', b'\x1a']
            )
        entries.append(part(10, part(10, name) + part(18, value)))
    return part(10, b''.join(entries))


def _drawn_table(
    dice: random.Random, rows: list[Row], features: Sequence[str]
) -> tuple[pa.Table, dict[str, object]]:
    """A table of rows in which columns may be of another type, or elements none of ids."""
    columns, names = [], []
    for name in features:
        values: list = [row[name] for row in rows]
        kind = dice.choice(
            [pa.int32(), pa.int32(), pa.int8(), pa.uint16(), pa.int64(), pa.uint64()]
        )
        for _ in range(dice.choice([0, 0, 1, 3]) if values else 0):
            place = dice.randrange(len(values))
            values[place] = dice.choice(
                [None, [], [None], [258], [-1], [5, 1 << 40], [1 << 31], [1 << 63]]
            )
        kind = dice.choice([pa.list_, pa.list_, pa.large_list])(kind)
        if dice.random() < 0.2:
            kind, values = dice.choice(_OTHER_COLUMNS)(values)
        try:
            column = pa.array(values, kind)
        except (pa.ArrowException, OverflowError):
            values = [[id_ % 128 for id_ in row[name]] for row in rows]
            column = pa.array(values, pa.list_(pa.int64()))
        columns.append(column)
        names.append(name)
    if dice.random() < 0.1:
        names[-1] = dice.choice(['inputs', 'other', ''])
    if dice.random() < 0.1:
        columns.append(columns[0])
        names.append(dice.choice(['targets', 'score']))
    options = {
        'row_group_size': dice.choice([1, 3, 1000]),
        'compression': dice.choice(['snappy', 'none', 'zstd']),
    }
    return pa.Table.from_arrays(columns, names=names), options


_OTHER_COLUMNS: list[Callable[[list], tuple[pa.DataType, list]]] = [
    lambda rows: (pa.list_(pa.string()), [['7'] for _ in rows]),
    lambda rows: (pa.list_(pa.float64()), [[1.9] for _ in rows]),
    lambda rows: (pa.string(), ['7' for _ in rows]),
    lambda rows: (pa.int64(), [7 for _ in rows]),
    lambda rows: (pa.null(), [None for _ in rows]),
    lambda rows: (pa.list_(pa.int32(), 2), [[7, 8] for _ in rows]),
    lambda rows: (pa.list_(pa.list_(pa.int32())), [[[7]] for _ in rows]),
    lambda rows: (pa.struct({'list': pa.list_(pa.int32())}), [{'list': [7]} for _ in rows]),
    lambda rows: (pa.map_(pa.int32(), pa.int32()), [[(7, 8)] for _ in rows]),
    lambda rows: (pa.list_(pa.bool_()), [[True] for _ in rows]),
    lambda rows: (pa.list_(pa.date32()), [[7] for _ in rows]),
    lambda rows: (pa.binary(), [b'7' for _ in rows]),
]

_ODD_VALUES = [
    None, True, False, 0, 1, -1, 2, 1.5, -0.0, 1e308, 10**6, 10**12, 10**30, 1 << 31, 1 << 63, '', 'x', '7',
    'train', 'byte', 'word', 'bpe', 'tsv', 'text', 'skip', '\0', '\x1b[2J', '\ud800', '/dev/zero', '..', '.',
    '../x', 'a/b', '$A', '$A $A', [], {}, [None], [[]], [0], [1, 0], [0, 1], {'': None}, {'role': 'text'},
    {'format': 'tsv'}, {'name': 'x'}, [-1], ['x'], 'x' * 5000, list(range(300)), {'pad': 10**12},
]  # fmt: skip
_ODD_NAMES = [
    '', 'x', 'self', 'split', 'name', 'rows', 'format', 'template', 'scheme', 'columns', 'label', 'labels',
    'keep', 'fields', 'languages', 'datasets', 'pad', 'boundaries', 'window', 'output_format', 'quoting',
    'pad_to_boundary', 'max_length', 'num_buckets', 'source_max_length', 'min_length', 'first_epoch',
]  # fmt: skip


def _changed_json(dice: random.Random, content: object) -> object:
    """Returns a JSON value with one value in it changed."""
    found = [*places_of(content)]
    if not found:
        return dice.choice(_ODD_VALUES)
    holder, key = dice.choice(found)
    change = dice.randrange(8)
    if change == 0:
        del holder[key]
    elif change == 1 and isinstance(holder, list):
        holder.insert(key, holder[dice.randrange(len(holder))])
    elif change == 2 and isinstance(holder, list):
        dice.shuffle(holder)
    elif change == 1 and isinstance(holder, dict):
        holder[dice.choice(_ODD_NAMES)] = dice.choice(_ODD_VALUES)
    elif change == 3 and type(holder[key]) is int:
        holder[key] = _changed_number(dice, holder[key])
    elif change == 4:
        other, other_key = dice.choice(found)
        holder[key] = json.loads(json.dumps(other[other_key]))
    else:
        holder[key] = dice.choice(_ODD_VALUES)
    return json.loads(json.dumps(content))
