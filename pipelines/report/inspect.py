"""What a folder or a file holds, one entry after another: rows, pieces of a vocabulary, tokens counted.

What it is follows from its content. Entries are read in the order in which they are stored.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import operator
import os
import random
import typing
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.artifacts.counts import COUNT_COLUMNS, counts_name
from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.vocabularies import read_vocabulary, scheme_of, vocabulary_reader
from pipelines.files import filesystem
from pipelines.shard_formats.formats import stored_format
from pipelines.shard_formats.shard_format import what_ends
from pipelines.stages.convert import recorded_columns
from tokcore.encoding.vocabulary import Vocabulary, spelled_ids, without_special_ids
from tokcore.errors import InputError
from tokcore.reading.dataset import Dataset, open_dataset
from tokcore.records.manifest import MANIFEST_NAME, ROOT_STAGES, Manifest, file_of_shard
from tokcore.records.tfrecord import masked_crc32c, parse_features, stream_records

_FLAT_ENDINGS = ('.npy', '.bin')

_PARQUET = b'PAR1'

_READ_BYTES = 64 << 10


Column = dict[str, Any]
"""A list of `values`; or `ids`, with the `pieces` and the `text` that they stand for, which may be None."""

Entry = tuple[dict[str, Any], dict[str, Column]]
"""A row, a piece of a vocabulary, or a token of counts.

First its fields: `number`, its place from 0, of a piece the id; `split`, of a row of a dataset; `token`, the piece
or the token; `count`, of a token. Then the columns of a row, by feature.
"""

Content = tuple[str, Iterable[Entry], Mapping[str, int]]
"""What a path is, for a reader; all entries, read as they are taken; and of a dataset the bytes of the text of
each split."""


def content_of(path: str, split: str | None = None, vocabulary: str | None = None) -> Content:
    """Returns what a path holds.

    Args:
        path: an absolute path of a folder or a file.
        split: of a dataset; None: all of them.
        vocabulary: a file that gives ids of a file of TFRecords their pieces; a dataset has its own.

    Raises:
        InputError: there is nothing, or its kind is not known; or later, for damage.
    """
    if filesystem.is_folder(path):
        return _folder(path, split, vocabulary)
    if not filesystem.exists(path):
        raise InputError(
            f'{path} does not exist; give a dataset, a TFRecord file, a vocabulary or counts'
        )
    with filesystem.open_binary(path) as stream:
        head = stream.read(len(_PARQUET))
    if head == _PARQUET:
        with _opened_parquet(path) as file:
            names = file.schema_arrow.names
        if {*COUNT_COLUMNS} <= set(names):
            return 'counts', _counted([path]), {}
        return 'Parquet', _table(path, names), {}
    for is_packed in (False, True):
        with _opened(path, is_packed) as records:
            if _has_record_head(records):
                return 'TFRecords', _records(path, vocabulary, is_packed), {}
    if path.endswith(_FLAT_ENDINGS):
        _refuse_flat(os.path.dirname(path), os.path.basename(path))
    scheme = scheme_of([path])
    entries = read_vocabulary(path, scheme).entries
    pieces: Iterable[Entry] = (
        ({'number': id_, 'token': piece}, {}) for id_, piece in enumerate(entries.pieces)
    )
    return f'vocabulary of --scheme {scheme.name}', pieces, {}


def _refuse_flat(folder: str, name: str) -> None:
    """Raises InputError for a file in which nothing says what it is, and says how it is read."""
    manifest = read_manifest(os.path.join(folder, MANIFEST_NAME))
    if manifest is None:
        return
    form = stored_format(manifest)
    for file in manifest.files:
        if file.name == name and (hint := form.hint(file)):
            raise InputError(f'{os.path.join(folder, name)} {hint}')


def _folder(path: str, split: str | None, vocabulary: str | None) -> Content:
    manifest = read_manifest(os.path.join(path, MANIFEST_NAME))
    if manifest is None:
        raise InputError(
            f'{path} has no {MANIFEST_NAME}; give a folder that a command has finished, or a file'
        )
    if manifest.stage not in ROOT_STAGES:
        names = [file.name for file in manifest.files] or [counts_name(0)]
        return 'counts', _counted([os.path.join(path, name) for name in names]), {}
    if (what := stored_format(manifest).described(manifest)) is not None:
        return what, _documents(path, manifest, split), {}
    dataset = open_dataset(path, vocabulary=vocabulary)
    splits = [split] if split else [*dataset.splits]
    rows = (row for name in splits for row in _rows(dataset, name))
    what = f'dataset of --scheme {dataset.scheme.name}'
    if manifest.end_of_document:
        what += f', documents {what_ends(manifest)} where rows are joined'
    texts = {tally.split: tally.text_bytes for tally in manifest.lines if tally.split in splits}
    return what, rows, texts


def _rows(dataset: Dataset, split: str) -> Iterator[Entry]:
    for number, example in enumerate(dataset.examples(split)):
        columns = {
            feature: _column(
                ids, dataset.vocabulary(feature), functools.partial(dataset.text, feature=feature)
            )
            for feature, ids in example.items()
        }
        yield {'number': number, 'split': split}, columns


def _column(ids: np.ndarray, vocabulary: Vocabulary, text: Callable[[list[int]], str]) -> Column:
    values = ids.tolist()
    pieces = spelled_ids(values, vocabulary)
    spelled: str | None = None
    with contextlib.suppress(InputError):  # a tokenizer may have a decoder that is not read
        spelled = text(values)
    return {'ids': values, 'pieces': pieces, 'text': spelled}


def _documents(folder: str, manifest: Manifest, split: str | None) -> Iterator[Entry]:
    """Yields the documents of a dataset that joins them, each with its end."""
    form = stored_format(manifest)
    scheme, columns = recorded_columns(os.path.join(folder, MANIFEST_NAME), manifest)
    read, files = vocabulary_reader(scheme), {file.name: file for file in manifest.files}
    vocabularies = {
        column.name: scheme.fixed or read(os.path.join(folder, column.vocabulary)).entries
        for column in columns
    }
    numbers: collections.Counter[str] = collections.Counter()
    found = [file_of_shard(file.name) for file in manifest.files if file.is_stored]
    wanted = [file for file in found if file and split in (None, file.split)]
    for shard, name in {file.shard: file.split for file in wanted}.items():
        paths = [os.path.join(folder, each) for each in form.file_names(shard, [*vocabularies])]
        for sides in form.documents(paths, files):
            entries = {
                feature: _column(ids, vocabulary, vocabulary.decode)
                for (feature, vocabulary), ids in zip(vocabularies.items(), sides, strict=True)
            }
            yield {'number': numbers[name], 'split': name}, entries
            numbers[name] += 1


@contextlib.contextmanager
def _opened(path: str, is_packed: bool) -> Iterator[BinaryIO]:
    """Opens a file of records, which may be packed by TensorFlow's options GZIP or ZLIB."""
    with filesystem.open_binary(path) as stream:
        yield typing.cast(BinaryIO, _Unpacked(stream, path)) if is_packed else stream


class _Unpacked:
    """The content of a gzip or a zlib file."""

    def __init__(self, stream: BinaryIO, path: str):
        self._stream, self._path = stream, path
        self._part: Any = None  # of several, one after another
        self._packed, self._data = b'', bytearray()

    def read(self, size: int) -> bytes:
        """Returns so many bytes, fewer at the end; raises InputError if the file is damaged."""
        while len(self._data) < size:
            self._packed = self._packed or self._stream.read(_READ_BYTES)
            if not self._packed:
                if self._part is None or self._part.eof:
                    break
                raise InputError(f'{self._path} is compressed and cut off; copy the file again')
            if self._part is None or self._part.eof:
                self._part = zlib.decompressobj(zlib.MAX_WBITS | 32)  # of either kind
            try:
                self._data += self._part.decompress(self._packed, size - len(self._data))
            except zlib.error as error:
                raise InputError(
                    f'{self._path} is compressed and damaged ({error}); copy the file again'
                ) from error
            self._packed = self._part.unconsumed_tail or self._part.unused_data
        taken = bytes(self._data[:size])
        del self._data[:size]
        return taken


def _records(path: str, vocabulary: str | None, is_packed: bool) -> Iterator[Entry]:
    entries: Vocabulary | None = None
    if vocabulary is not None:
        scheme = scheme_of([vocabulary])
        entries = read_vocabulary(vocabulary, scheme).entries
        template = scheme.template(entries, None)
    with _opened(path, is_packed) as stream:
        for number, record in enumerate(stream_records(stream, path)):
            try:
                features = parse_features(record)
            except (ValueError, UnicodeDecodeError):
                features = {'record': [record]}
            columns: dict[str, Column] = {}
            for name, values in features.items():
                columns[name] = {'values': values}
                ids = [value for value in values if isinstance(value, int)]
                if entries is None or len(ids) < len(values):
                    continue
                if all(0 <= id_ < entries.vocab_size for id_ in ids):
                    pieces = [entries.pieces[id_] for id_ in ids]
                    own = without_special_ids(ids, template, entries.special_ids)
                    columns[name] = {'ids': ids, 'pieces': pieces, 'text': entries.decode(own)}
            yield {'number': number}, columns


def _counted(paths: Sequence[str]) -> Iterator[Entry]:
    rows = (row for path in paths for row in _table_rows(path, COUNT_COLUMNS))
    for number, row in enumerate(rows):
        yield {'number': number, 'token': str(row['token']), 'count': int(row['count'])}, {}


def _table(path: str, names: Sequence[str]) -> Iterator[Entry]:
    for number, row in enumerate(_table_rows(path, names)):
        columns = {
            name: {'values': value if isinstance(value, list) else [value]}
            for name, value in row.items()
        }
        yield {'number': number}, columns


def _table_rows(path: str, names: Sequence[str]) -> Iterator[dict]:
    with _opened_parquet(path) as file:
        for batch in file.iter_batches(columns=[*names]):
            yield from batch.to_pylist()


@contextlib.contextmanager
def _opened_parquet(path: str) -> Iterator[pq.ParquetFile]:
    with filesystem.open_binary(path) as stream:
        try:
            yield pq.ParquetFile(stream)
        except (pa.ArrowException, OSError) as error:
            reason = ' '.join(str(error).split())[:200]
            raise InputError(
                f'{path} is not a whole Parquet file ({reason}); get it again'
            ) from error


def _has_record_head(stream: BinaryIO) -> bool:
    """Whether a stream begins with the length of a record and its checksum."""
    try:
        head = stream.read(12)
    except InputError:  # it is not packed
        return False
    return len(head) == 12 and head[8:] == masked_crc32c(head[:8]).to_bytes(4, 'little')


def sampled(entries: Iterable[Entry], count: int, seed: int) -> list[Entry]:
    """Returns a uniform sample of entries, in their order (Vitter's algorithm R)."""
    dice = random.Random(seed)
    sample: list[tuple[int, Entry]] = []
    for number, entry in enumerate(entries):
        if number < count:
            sample.append((number, entry))
        elif (place := dice.randrange(number + 1)) < count:
            sample[place] = number, entry
    return [entry for _, entry in sorted(sample, key=operator.itemgetter(0))]


def statistics(entries: Iterable[Entry]) -> dict[str, dict[str, object]]:
    """Returns numbers of all entries: of rows by feature, of tokens and counts together."""
    lengths: dict[str, collections.Counter[int]] = {}
    ids: dict[str, set] = {}
    tokens = total = characters = 0
    for fields, columns in entries:
        for name, column in columns.items():
            name = f'{fields.get("split", "")} {name}'.strip()
            values = column['ids'] if 'ids' in column else column['values']
            lengths.setdefault(name, collections.Counter())[len(values)] += 1
            ids.setdefault(name, set()).update(value for value in values if isinstance(value, int))
        if 'token' in fields:
            tokens += 1
            characters += len(fields['token'])
            total += fields.get('count', 0)
    numbers: dict[str, dict[str, object]] = {}
    for name, counter in lengths.items():
        rows = counter.total()
        size = sum(length * count for length, count in counter.items())
        numbers[name] = {
            'rows': rows,
            'values': size,
            'least': min(counter),
            'median': lower_median(counter),
            'most': max(counter),
            'mean': round(size / rows, 2),
            'distinct': len(ids[name]),
        }
    if tokens:
        numbers['tokens'] = {
            'entries': tokens, 'characters': characters, **({'counted': total} if total else {})
        }  # fmt: skip
    return numbers


def lower_median(counter: collections.Counter[int]) -> int:
    """Returns the median of numbers, each counted; of two the lower one, of none 0."""
    half = (counter.total() + 1) // 2
    for length in sorted(counter):
        half -= counter[length]
        if half <= 0:
            return length
    return 0
