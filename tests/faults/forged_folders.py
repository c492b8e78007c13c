"""Edits of a dataset's folder, and what its readers make of the folder before and after.

An edit changes, removes or moves one value of the manifest, or changes one file. Where it changes a file,
the manifest may be made to state the new bytes, so that only the root tells.
"""

import contextlib
import functools
import hashlib
import itertools
import json
import operator
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dataset_files
import google_crc32c
from written_dataset import change_manifest, listed

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.reading.dataset import Dataset
from tokcore.records.tfrecord import read_records
from tokcore.tokenizers import load_tokenizer, tokenizer_of

MANIFEST = 'tokbeam.json'

ADDED = [
    'added_tokens.json', 'special_tokens_map.json', 'tokenizer/added_tokens.json', 'chat_template.jinja',
    'tokenizer.model', 'x-train-00000-of-00001', 'more/x-train-00000-of-00001.parquet', 'index/records.json',
    'index/other', 'notes.md', 'more/notes.txt',
]  # fmt: skip
"""Names of files that are added."""


class Edit(NamedTuple):
    """An edit, and what it does, for whoever reads a failure."""

    what: str
    apply: Callable[[Path], None]


def all_edits(dice: random.Random, folder: Path) -> list[Edit]:
    """Returns edits of each value of the manifest and of each file, in an order that is drawn."""
    fields = json.loads((folder / MANIFEST).read_bytes())
    edits = [*_edits_of_manifest(dice, fields), *_edits_of_files(dice, folder)]
    dice.shuffle(edits)
    return edits


def readings(folder: Path) -> dict[str, Any]:
    """Returns what each way of reading gives of a folder; None where it is refused in a sentence."""
    fields = json.loads((folder / MANIFEST).read_bytes())
    found = {name: _or_none(way, folder) for name, way in _WAYS.items()}
    found['formats of others'] = _read_plainly(folder, fields)
    found['tokenizers'] = _tokenizer_files(folder)
    return found


def changed_readings(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Returns the ways of reading that give something else than before, and are not refused."""
    return [name for name in before if after[name] is not None and after[name] != before[name]]


def _edits_of_manifest(dice: random.Random, fields: dict[str, Any]) -> Iterator[Edit]:
    for path in _paths(fields):
        value = functools.reduce(operator.getitem, path, fields)
        for other in _other_values(dice, value):
            if other != value:
                yield Edit(f'{path} is {other!r:.60}', partial(_set, path, other))
        yield Edit(f'{path} is removed', partial(_remove, path))
    lists = [name for name, value in fields.items() if isinstance(value, list)]
    lists += ['datasets', 'sample', 'end_of_document', 'index']
    for source, target in itertools.permutations(dict.fromkeys(lists), 2):
        for count in (1, len(fields[source])) if fields.get(source) else ():
            what = f'{count} of {source} are moved to {target}'
            yield Edit(what, partial(_move, source, target, count))


def _move(source: str, target: str, count: int, folder: Path) -> None:
    def move(fields: dict[str, Any]) -> None:
        records = fields[source][-count:]
        fields[source] = fields[source][:-count]
        fields[target] = [*fields.get(target, []), *records]

    change_manifest(folder, move)


def _set(path: list, value: Any, folder: Path) -> None:
    change_manifest(
        folder,
        lambda fields: operator.setitem(
            functools.reduce(operator.getitem, path[:-1], fields), path[-1], value
        ),
    )


def _remove(path: list, folder: Path) -> None:
    change_manifest(
        folder, lambda fields: functools.reduce(operator.getitem, path[:-1], fields).pop(path[-1])
    )


def _paths(value: Any, path: tuple = ()) -> Iterator[list]:
    """Yields the place of each value in a value of JSON, lists and objects among them."""
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield [*path, key]
            yield from _paths(item, (*path, key))


def _other_values(dice: random.Random, value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, dice.choice([0, -1, value // 2, 1 << 70, str(value)])]
    if isinstance(value, str):
        digit = value[:-1] + ('1' if value[-1:] != '1' else '2')
        return [digit, dice.choice(['', 'both', 'targets', 'byte', 'parquet', 'tfrecord', None, 5])]
    if isinstance(value, list):
        others = [value[::-1], value + value[:1], [], value[1:]]
        return [dice.choice([other for other in others if other != value] or [[1]])]
    if isinstance(value, dict):
        return [dice.choice([{}, {**value, 'x': 1}, None])]
    return [dice.choice([0, '', 'x', [], {}])]


def _edits_of_files(dice: random.Random, folder: Path) -> Iterator[Edit]:
    names = sorted(
        str(path.relative_to(folder))
        for path in folder.rglob('*')
        if path.is_file() and path.name not in (MANIFEST, 'tokbeam.run.json')
    )
    for name in names:
        data = (folder / name).read_bytes()
        for how, other in _other_bytes(dice, data):
            for is_stated in (False, True):
                what = f'{name} is {how}' + (', and the manifest says so' if is_stated else '')
                yield Edit(what, partial(_replace, name, other, is_stated))
        yield Edit(f'{name} is removed', lambda folder, name=name: (folder / name).unlink())
        twin = dice.choice([other for other in names if other != name])
        yield Edit(f'{name} and {twin} change places', partial(_exchange, name, twin))
        yield Edit(f'{name} is moved', partial(_rename, name))
    for name in ADDED:
        data = dice.choice([b'{}', (folder / dice.choice(names)).read_bytes()])
        for list_name in (None, 'rejected', 'index'):
            what = f'{name} is added to {list_name or "nothing"}'
            yield Edit(what, partial(_add, name, data, list_name))


def _other_bytes(dice: random.Random, data: bytes) -> Iterator[tuple[str, bytes]]:
    if data:
        place = dice.randrange(len(data))
        yield (
            'flipped',
            data[:place] + bytes([data[place] ^ 1 << dice.randrange(8)]) + data[place + 1 :],
        )
        yield 'cut off', data[: dice.randrange(len(data))]
    yield 'longer', data + dice.choice([b'\0', b'\n', data[:40] or b'x'])
    parts = _parts(data)
    dice.shuffle(parts)
    if b''.join(parts) != data:
        yield 'permuted', b''.join(parts)


def _parts(data: bytes) -> list[bytes]:
    """The records of TFRecords, lines of text, the offsets of an index after its head, or words of bytes."""
    if data.startswith(b'tbindex'):
        return [data[at : at + 8] for at in range(0, len(data), 8)]
    try:
        return [dataset_files.framed(record) for record in read_records(data, 'x')]
    except (InputError, ValueError):
        pass
    if (lines := data.splitlines(keepends=True)) and len(lines) > 2:
        return lines
    return [data[at : at + 4] for at in range(0, len(data), 4)]


def _replace(name: str, data: bytes, is_stated: bool, folder: Path) -> None:
    (folder / name).write_bytes(data)
    if is_stated:
        change_manifest(folder, lambda fields: _state(fields, name, data))


def _state(fields: Any, name: str, data: bytes) -> None:
    """Has each entry of a file state some bytes; as many rows as before."""
    if isinstance(fields, dict) and fields.get('name') == name:
        fields |= _entry(name, data)
    for value in fields.values() if isinstance(fields, dict) else fields:
        if isinstance(value, (dict, list)):
            _state(value, name, data)


def _entry(name: str, data: bytes) -> dict[str, object]:
    return {
        'name': name,
        'bytes': len(data),
        'crc32c': f'{google_crc32c.value(data):08x}',
        'sha256': hashlib.sha256(data).hexdigest(),
    }


def _exchange(name: str, twin: str, folder: Path) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes((folder / twin).read_bytes())
    (folder / twin).write_bytes(data)


def _rename(name: str, folder: Path) -> None:
    (folder / name).rename(folder / f'{name}.moved')


def _add(name: str, data: bytes, list_name: str | None, folder: Path) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    entry = _entry(name, data) | {'rows': data.count(b'\n')}
    if list_name is not None:
        change_manifest(folder, lambda fields: fields.setdefault(list_name, []).append(entry))


def copy_of(folder: Path, to: Path) -> Path:
    """Returns a new copy of a folder."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    return to


def _or_none(way: Callable[[Dataset], Any], folder: Path) -> Any:
    try:
        return way(open_dataset(folder))
    except InputError:
        return None


def _about(dataset: Dataset) -> Any:
    with contextlib.suppress(InputError):
        return dataset.features, dataset.splits, dataset.has_no_ends, dataset.scheme
    return dataset.features, dataset.splits, dataset.has_no_ends, None


def _vocabularies(dataset: Dataset) -> Any:
    return [
        (
            dataset.vocab_size(feature),
            dataset.special_ids(feature),
            dataset.template(feature),
            dataset.end_of_document(feature),
            [*dataset.vocabulary(feature).pieces],
            [*tokenizer_of(dataset.vocabulary(feature), dataset.scheme).encode('the Day, 12')],
        )
        for feature in dataset.features
    ]


def _texts(dataset: Dataset) -> Any:
    return [
        [dataset.text(ids, feature) for feature, ids in row.items()]
        for split in dataset.splits
        for row in dataset.examples(split)
    ]


def _arrays(method: str, *arguments: Any, **asked: Any) -> Callable[[Dataset], Any]:
    """Returns a way of reading the training rows."""
    return lambda dataset: [*map(listed, getattr(dataset, method)('train', *arguments, **asked))]


_WAYS: dict[str, Callable[[Dataset], Any]] = {
    'about': _about,
    'vocabularies': _vocabularies,
    'tokenizer': lambda dataset: [*load_tokenizer(dataset.folder).encode('the Day, 12')],
    'texts': _texts,
    'examples': lambda dataset: [
        listed(row) for split in dataset.splits for row in dataset.examples(split)
    ],
    'batches': _arrays('batches', tokens_per_batch=64, max_length=60),
    'source and target': _arrays('batches', batch_size=4),
    'packed': _arrays('packed', 64),
    'joined': _arrays('packed', 64, strategy='concat'),
    'by number': lambda dataset: [
        listed(row) for split in dataset.splits for row in dataset[split][:]
    ],
    'exact': _arrays('batches', tokens_per_batch=64, shuffle='exact'),
}


def _read_plainly(folder: Path, fields: dict[str, Any]) -> Any:
    """What readers of other programs take: of each file that is listed its name, type, rows and bytes."""
    try:
        return [
            fields['options'].get('output_format'),
            fields.get('end_of_document'),
            [
                (
                    file['name'], file['rows'], file.get('dtype'), file.get('dropped'),
                    (folder / file['name']).read_bytes() if file['rows'] else b'',
                )
                for file in fields['files']
            ],
        ]  # fmt: skip
    except (KeyError, TypeError, AttributeError, OSError, ValueError):
        return None


def _tokenizer_files(folder: Path) -> dict[str, bytes]:
    """The files that transformers may read of a tokenizer, wherever they are, and shards for datasets."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob('*'))
        if path.is_file()
        and path.name not in (MANIFEST, 'tokbeam.run.json')
        and (path.suffix in ('.json', '.jinja', '.model') or '-train-' in path.name)
        and 'index' not in path.parts
    }
