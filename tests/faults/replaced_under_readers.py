"""Datasets that change at drawn moments while processes read them.

The ids of a row say of which dataset it is, and a file has as many bytes in each dataset, so that no size
tells them apart. A moment is a number of rows that were read: nothing waits for a time.
"""

import multiprocessing
import os
import pickle
import random
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from written_dataset import write_dataset, write_order

from tokcore import mixture, open_dataset
from tokcore.errors import InputError
from tokcore.reading.dataset import Dataset

_FIRST_IDS = {'a': 2, 'b': 44, 'c': 86}
"""Of 40 ids of a dataset, each of one byte."""

_ROWS, _SHARD_ROWS = 56, 7

_MOST_ABSENT = 10_000
"""Times that a reader looks for a dataset: in the end there is one."""

_SENTENCE = re.compile('open (it|the dataset) again')
_ABSENT = re.compile('has no tokbeam.json|is missing, or is not a file of|open the dataset again')


def write_originals(above: Path, output_format: str) -> dict[str, Path]:
    """Writes the datasets that take turns, each with its indexes and the order of its corpus.

    They are read here in all ways, so that the readers, which are forked, have all kernels.
    """
    above.mkdir()
    originals = {}
    for name in _FIRST_IDS:
        rows = [{'targets': row} for row in _rows(name)]
        shards = [rows[start : start + _SHARD_ROWS] for start in range(0, _ROWS, _SHARD_ROWS)]
        folder = write_dataset(above / name, shards, output_format=output_format)
        write_order(folder, np.arange(_ROWS)[::-1])
        originals[name] = folder
        for seed in range(8):
            for way in _WAYS.values():
                assert {*map(tuple, way(open_dataset(folder), random.Random(seed)))} == {
                    *map(tuple, _rows(name))
                }
    return originals


def play(dice: random.Random, folder: Path, originals: dict[str, Path], readers: int) -> list[int]:
    """Has processes read a folder in which datasets take turns.

    Returns how often a dataset was read to its end, was refused before, and could not be opened.

    Raises:
        AssertionError: a reader had a row of another dataset, or another error, or died.
    """
    _replace(folder, originals['a'], lambda: None)
    names = {_first_checksum(open_dataset(path)): name for name, path in originals.items()}
    moments, report = os.pipe()
    context = multiprocessing.get_context('fork')
    results = context.SimpleQueue()
    processes = [
        context.Process(target=_read, args=(folder, names, dice.getrandbits(32), report, results))
        for _ in range(readers)
    ]
    for process in processes:
        process.start()
    os.close(report)

    def moment() -> None:
        if dice.random() < 0.5:
            os.read(moments, dice.choice([1, 5, 50, 500]))

    for _ in range(dice.randint(5, 15)):
        _change(dice, folder, originals, moment)
        moment()
    _replace(folder, originals['a'], moment)
    while os.read(moments, 1 << 12):
        pass
    os.close(moments)
    counts = []
    for process in processes:
        process.join()
        assert process.exitcode == 0, f'a reader ended with {process.exitcode}'
        result = results.get()
        assert isinstance(result, list), result
        counts.append(result)
    return [*map(sum, zip(*counts, strict=True))]


def _rows(name: str) -> list[list[int]]:
    return [[_FIRST_IDS[name] + (row + k) % 40 for k in range(1 + row % 5)] for row in range(_ROWS)]


def _change(
    dice: random.Random, folder: Path, originals: dict[str, Path], moment: Callable[[], None]
) -> None:
    how = dice.choice(['replace', 'replace', 'restore', 'exchange', 'delete', 'cut off', 'index'])
    name = 'a' if how == 'restore' else dice.choice([*originals])
    if how in ('replace', 'restore'):
        _replace(folder, originals[name], moment)
    elif how == 'exchange':
        shutil.copytree(originals[name], folder.with_name('other'))
        folder.rename(folder.with_name('away'))
        moment()
        folder.with_name('other').rename(folder)
        shutil.rmtree(folder.with_name('away'))
    elif how == 'delete':
        paths = [path for path in folder.rglob('*') if path.is_file()]
        for path in dice.sample(paths, len(paths)):
            path.unlink()
            moment()
    else:
        paths = [*folder.glob('index/d-train-*' if how == 'index' else 'd-train-*')]
        for path in dice.sample(paths, min(len(paths), 3)):
            data = (originals[name] / path.relative_to(folder)).read_bytes()
            _put(path, data if how == 'index' else data[: dice.randrange(len(data))])
            moment()


def _replace(folder: Path, original: Path, moment: Callable[[], None]) -> None:
    """Replaces a dataset as a command does: there is no manifest until all files are those of one."""
    (folder / 'tokbeam.json').unlink(missing_ok=True)
    for path in original.rglob('*'):
        if path.is_file() and path.name != 'tokbeam.json':
            moment()
            _put(folder / path.relative_to(original), path.read_bytes())
    moment()
    _put(folder / 'tokbeam.json', (original / 'tokbeam.json').read_bytes())


def _put(path: Path, data: bytes) -> None:
    """Gives a file new bytes under its name; who has the old one mapped keeps it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name('.part')
    part.write_bytes(data)
    os.replace(part, path)


def _read(folder: Path, names: dict[str, str], seed: int, report: int, results: Any) -> None:
    os.nice(5)  # whoever replaces datasets goes first, and readers look in vain less often
    try:
        results.put(_counts(random.Random(seed), folder, names, report))
    except BaseException:
        results.put(traceback.format_exc())


def _first_checksum(dataset: Dataset) -> str:
    return dataset._manifest.splits['train'][0].crc32c


def _counts(dice: random.Random, folder: Path, names: dict[str, str], report: int) -> list[int]:
    """Reads whatever dataset is there, several times in drawn ways."""
    whole = refused = absent = 0
    reads = dice.randint(2, 8)
    while whole + refused < reads and absent < _MOST_ABSENT:
        os.write(report, b'.')
        try:
            dataset = open_dataset(folder)
        except InputError as error:
            assert _ABSENT.search(str(error)), error
            absent += 1
            os.sched_yield()  # to whoever puts one there
            continue
        name, way, found = names[_first_checksum(dataset)], dice.choice([*_WAYS]), []
        try:
            for row in _WAYS[way](dataset, dice):
                os.write(report, b'.')
                assert row in _rows(name), f'{way}: {row} is not a row of {name}'
                found.append(row)
        except InputError as error:
            assert _SENTENCE.search(str(error)), f'{way}: {error}'
            refused += 1
            continue
        copies = 2 if way == 'mixture' else 1
        assert sorted(found) == sorted(copies * _rows(name)), f'{way}: not all rows of {name}'
        whole += 1
    return [whole, refused, absent]


Rows = Iterable[list[int]]


def _batches(dataset: Dataset, dice: random.Random) -> Rows:
    shuffle = dice.choice([True, False, 'exact', 'corpus'])
    asked = {'shuffle': shuffle, 'window': dice.choice([2, 9])}
    batches = dataset.batches('train', tokens_per_batch=9, **asked)
    return _in_batches(batches.prefetch(2) if dice.random() < 0.2 else batches)


def _resumed(dataset: Dataset, dice: random.Random) -> Rows:
    batches = dataset.batches('train', tokens_per_batch=9, window=3)
    yield from _in_batches(next(batches) for _ in range(dice.randint(0, 5)))
    yield from _in_batches(dataset.from_state(batches.state()))


def _packed(dataset: Dataset, dice: random.Random) -> Rows:
    for batch in dataset.packed('train', 12, batch_size=2, window=5):
        for row, segments in zip(batch['targets'], batch['targets_segmentation'], strict=True):
            for number in range(1, segments.max() + 1):
                yield row[segments == number].tolist()


def _in_batches(batches: Iterable[dict[str, np.ndarray]]) -> Iterator[list[int]]:
    for batch in batches:
        for row, length in zip(batch['targets'], batch['targets_length'], strict=True):
            yield row[:length].tolist()


def _targets(rows: Iterable[dict[str, np.ndarray]]) -> Rows:
    return (row['targets'].tolist() for row in rows)


_WAYS: dict[str, Callable[[Dataset, random.Random], Rows]] = {
    'examples': lambda dataset, dice: _targets(
        dataset.examples('train', on_error=dice.choice(['stop', 'skip']))
    ),
    'batches': _batches,
    'resumed': _resumed,
    'packed': _packed,
    'mixture': lambda dataset, dice: _in_batches(
        mixture({'once': dataset, 'again': dataset}, stop='all').batches(
            'train', tokens_per_batch=9, window=5
        )
    ),
    'by number': lambda dataset, dice: _targets(
        map(dataset['train'].__getitem__, dice.sample(range(_ROWS), _ROWS))
    ),
    'pickled': lambda dataset, dice: _targets(
        pickle.loads(pickle.dumps(dataset)).examples('train')
    ),
}


def main(above: Path, seed: int, rounds: int) -> None:
    """Plays rounds with two to nine processes in each, and prints what readers met."""
    originals = {
        output_format: write_originals(above / output_format, output_format)
        for output_format in ('tfrecord', 'parquet')
    }
    counts = []
    for number in range(rounds):
        dice = random.Random(f'replaced-{seed}-{number}')
        folder = above / f'round-{number}' / 'd'
        readers = 1 + number % 8
        counts.append(play(dice, folder, originals[dice.choice([*originals])], readers))
    whole, refused, absent = map(sum, zip(*counts, strict=True))
    print(f'seed {seed}: {whole} read to the end, {refused} refused, {absent} not opened')
    assert whole and refused


if __name__ == '__main__':
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
