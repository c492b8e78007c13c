"""What a command made, read back with plain readers and compared with what the rules say."""

import collections
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import google_crc32c
import pyarrow.parquet as parquet
from plain.lines import REASONS, SplitRows, json_lines, parsed_json_lines

from tokcore.records.tfrecord import parse_example, read_records
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.t2t import tokenize

from .room import Violation


def check_dataset(
    folder: Path,
    name: str,
    shards: Mapping[str, int],
    expected: Mapping[str, SplitRows],
    encoders: Sequence[SubwordTextEncoder],
    prefixes: Sequence[str],
) -> None:
    """Compares a dataset with the rows of its splits, an encoder and a prefix for each side."""
    manifest = json.loads((folder / 'tokbeam.json').read_bytes())
    files = {each['name']: each for each in manifest['files']}
    names = {
        f'{name}-{split}-{shard:05d}-of-{count:05d}'
        for split, count in shards.items()
        for shard in range(count)
    }
    _same('the files of the manifest', set(files), names)
    for split, rows in expected.items():
        found = collections.Counter(
            _decoded(example, encoders)
            for file in sorted(names)
            if file.startswith(f'{name}-{split}-')
            for example in _examples(folder, files[file])
        )
        texts = collections.Counter(
            tuple(prefix + text for prefix, text in zip(prefixes, row, strict=True))
            for row in rows.rows
        )
        _same(f'the examples of {split}', found, texts)
    sizes = {
        split: sum(len(text.encode('utf-8', 'surrogatepass')) for row in rows.rows for text in row)
        for split, rows in expected.items()
    }
    found_sizes = {each['split']: each.pop('text_bytes', 0) for each in manifest['lines']}
    _same('the bytes of text', found_sizes, sizes)
    check_lines(manifest, folder / 'rejected', expected)


def check_counts(folder: Path, expected: SplitRows, sides: Sequence[int]) -> None:
    """Compares a COUNTS folder with the tokens of the rows' sides."""
    tokens = collections.Counter(
        token for row in expected.rows for side in sides for token in tokenize(row[side])
    )
    manifest = json.loads((folder / 'tokbeam.json').read_bytes())
    _same('the tokens', counts_in(folder), tokens)
    _same('the number of tokens', manifest['tokens'], tokens.total())


def counts_in(folder: Path) -> collections.Counter:
    """Returns the counts of a COUNTS folder whose files are those of its manifest."""
    manifest = json.loads((folder / 'tokbeam.json').read_bytes())
    found: collections.Counter = collections.Counter()
    for each in manifest['files']:
        _check_file(folder / each['name'], each)
        with open(folder / each['name'], 'rb') as stream:
            table = parquet.read_table(stream)
        tokens = table['token'].to_pylist()
        _same(f'the rows of {each["name"]}', len(tokens), each['rows'])
        if found.keys() & set(tokens) or len(set(tokens)) < len(tokens):
            raise Violation(f'{each["name"]} has a token again')
        found.update(dict(zip(tokens, table['count'].to_pylist(), strict=True)))
    return found


def check_lines(manifest: dict, rejected: Path, expected: Mapping[str, SplitRows]) -> None:
    """Compares a manifest's counts of lines, and the files of those left out."""
    found = {
        each['split']: dict.fromkeys((*REASONS, 'missing_side'), 0) | each
        for each in manifest['lines']
    }
    _same(
        'the lines',
        found,
        {split: {'split': split} | rows.tally() for split, rows in expected.items()},
    )
    files = {path.name: path for path in rejected.glob('*')}
    wanted = {
        f'{split}.{reason}.jsonl': (rows, reason)
        for split, rows in expected.items()
        for reason in REASONS
        if any(reject.reason == reason for reject in rows.rejects)
    }
    _same('the files of rejected lines', set(files), set(wanted))
    for name, (rows, reason) in wanted.items():
        found_lines = parsed_json_lines(files[name].read_bytes())
        for line in found_lines:
            line.pop('why', None)
        _same(name, found_lines, json_lines(rows.rejects, reason))


def _examples(folder: Path, file: Mapping) -> list[dict[str, list[int]]]:
    data = _check_file(folder / file['name'], file)
    examples = [parse_example(record) for record in read_records(data, file['name'])]
    _same(f'the examples in {file["name"]}', len(examples), file['rows'])
    return examples


def _check_file(path: Path, file: Mapping) -> bytes:
    data = path.read_bytes()
    checksum = f'{google_crc32c.value(data):08x}'
    _same(f'{path.name} and its manifest', (len(data), checksum), (file['bytes'], file['crc32c']))
    return data


def _decoded(
    example: Mapping[str, Sequence[int]], encoders: Sequence[SubwordTextEncoder]
) -> tuple[str, ...]:
    sides = ['targets'] if len(encoders) == 1 else ['inputs', 'targets']
    _same('the features', sorted(example), sides)
    for side in sides:
        _same('the last id', example[side][-1], 1)
    return tuple(
        encoder.decode(example[side][:-1]) for side, encoder in zip(sides, encoders, strict=True)
    )


def _same(what: str, found: object, expected: object) -> None:
    if found == expected:
        return
    if isinstance(found, collections.Counter):
        found, expected = found - expected, expected - found
    raise Violation(f'{what}: {_short(found)} in place of {_short(expected)}')


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 1000 else f'{text[:1000]}…'
