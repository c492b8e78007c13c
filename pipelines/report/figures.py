"""Figures of a dataset: its rows and their text, the use of its vocabularies, and how it was made.

One pass over the shards counts ids and lengths, and holds no row. What was left out and the times of
stages are recorded in the folder. Where rows stood in the corpus is not recorded: a pipeline reads
the corpus again, with the job that made the rows, and counts the text of all rows. Without it the text of the
first rows of each split is decoded; order keys shuffle a whole split, so these are a uniform sample.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pipelines.artifacts.manifest import RUN_NAME, read_manifest, read_run
from pipelines.engines.progress import advance, stage_running, track_work
from pipelines.files import filesystem
from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.report.corpus_figures import CorpusOrder, read_corpus
from pipelines.report.inspect import lower_median
from pipelines.report.repeats import RowHashes, repeats
from pipelines.report.row_text import Group, TextSums, TextTally, legible, word_sums
from tokcore.encoding.vocabulary import Vocabulary, without_special_ids
from tokcore.errors import InputError
from tokcore.object_stores import is_object
from tokcore.reading.batching import (
    BatchRule,
    BudgetBatches,
    NmtBatches,
    growing_boundaries,
)
from tokcore.reading.dataset import Dataset
from tokcore.reading.manifest import DatasetManifest, copied_dataset
from tokcore.reading.shard_files import ShardFile
from tokcore.reading.shards import EncodedRows, open_shard
from tokcore.records.manifest import MANIFEST_NAME, Manifest

Figures = dict[str, Any]
"""Figures as values of JSON. Those of a dataset are:

    folder, stage, root, options, unicode: as the manifest has them.
    inputs: (split, role, name, bytes of the whole file's text) of each file.
    shards, bytes: how many files there are, and their bytes.
    rows: of each split and, where the corpus was read, of each of its datasets: split; dataset, '' for the
        whole split; rows; lengths by feature; ratios; text by feature, as `TextSums.figures` returns it, of
        all rows, or of the first `TEXT_ROWS` if the corpus was not read.
    left_out: of each split and of each dataset that has a name: split, dataset; lines read, added by filters,
        examples written; reasons, why the other lines are not examples, with their number; ids of the text,
        unknown, those of an unknown token, None if there is no such id; text_bytes of all sides, without
        prefixes and line ends.
    rejected: of each file of lines that were left out: name, lines, samples of the first lines.
    vocabularies: of each side (inputs, targets or both): wanted size, and min_count, how often an entry had to
        occur, None if the vocabulary was given or its learner needs none; size, used entries;
        single_characters, entries of one character or byte, and single_share, their share of all ids;
        by_count: (least, most, entries); by_rank: (rank from 1, count); commonest: (piece, count); longest:
        (piece, characters, count), the entries of the most characters; unused, the first that never occur.
    examples: of each split, its first rows: split, row, pieces by feature: (piece, id); ids, how many it has.
    longest_rows: of each split, the rows of the most ids: split, row, ids, text by feature, its beginning;
        position, the file and the byte and line, or the row, in the corpus; None if it was not read.
    repeats: of each split: split, rows, distinct, most, how often the commonest row occurs, in_train, how many
        of the rows occur in train too, None for train and without it.
    padding: of each split and batch: split, rows that batches are made of, batch, what it has; mixed, similar,
        the share of padding of rows as they come, None for ids, and of rows of similar lengths.
    shuffles: of each split: split, rows, rank_correlation, serial_correlation. None if the corpus was not read.
    without_corpus: why the corpus was not read; None if it was.
    seconds: that stages took, in the last run that did something.

Lengths are in ids, templates included: ids of all rows; mean, median (the lower one of two) and longest of a
row; histogram: (shortest, longest, rows), ascending. Ratios are (ratio, rows): the targets of so many pairs are
`ratio` to 2^(1/4) `ratio` times as long as the inputs; pairs beyond 16 times are counted in the outermost, and
those with an empty side in none.
"""

_COUNTING = 'counting'

_ROWS = 1 << 14
"""Rows that a thread reads at once."""

TEXT_ROWS = 5_000
"""Rows of a split whose text is decoded without the corpus: shares of one in a hundred are then right to
a tenth, and plain Python takes seconds for them."""

_RATIO_STEPS = 4
_MOST_DOUBLINGS = 4
"""Ratios of lengths are counted in quarters of a doubling, up to 16 times as long or as short."""

_BATCH_ROWS = (16, 32, 64, 256)
_BATCH_IDS = 4096
_BATCHED_ROWS = 1 << 16
"""Rows of which batches are made: a window of `Dataset.batches`."""

_EXAMPLE_ROWS = 3
_EXAMPLE_IDS = 100
_LONGEST_ROWS = 5
_LONGEST_PIECES = 30
_BEGINNING_IDS = 12

_CURVE_POINTS = 120
_EXAMPLES = 40
_REJECTED_LINES = 3
_REJECTED_BYTES = 300


def dataset_figures(
    folder: str,
    job_of_corpus: Callable[[], BuildJob | EncodeJob] | None = None,
    needs_corpus: bool = True,
    workers: int = 1,
    work: str | None = None,
    check: Callable[[], None] = lambda: None,
) -> Figures:
    """Returns the figures of a folder that `tokbeam build` or `tokbeam encode` has finished.

    Memory follows the sizes of vocabularies and the number of distinct lengths; a temporary file has 8 bytes
    for each row.

    Args:
        folder: an absolute path.
        job_of_corpus: returns the job that made it, to read its corpus too; None: neither the order nor
            the datasets are reported.
        needs_corpus: whether a corpus that cannot be read is an error; else the figures say why.
        workers: shards that are read at once.
        work: as `read_corpus` takes it.
        check: refuses, before rows are read, figures that cannot be shown.

    Raises:
        InputError: as `check`; there is no dataset of TFRecords or Parquet, or it is damaged; the corpus is
            needed and is not at hand, or the job is another.
    """
    here = copied_dataset(folder, None) if is_object(folder) else folder
    contents = DatasetManifest.read(here, is_object(folder))
    dataset = Dataset(contents)
    vocabularies = {feature: dataset.vocabulary(feature) for feature in dataset.features}
    manifest = read_manifest(os.path.join(here, MANIFEST_NAME))
    assert manifest is not None, 'it was read above'
    check()
    sizes = {
        split: sum(shard.rows for shard in shards) for split, shards in contents.splits.items()
    }
    texts: Mapping[Group, TextSums] = {}
    orders: Mapping[str, CorpusOrder] = {}
    why: str | None = '--no-corpus'
    rows: list[Figures] = []
    tallies: dict[str, _Tallies] = {}
    hashes = {split: RowHashes(size) for split, size in sizes.items()}
    longest: list[Figures] = []
    with contextlib.ExitStack() as stack:
        if job_of_corpus is not None:
            try:
                reading = read_corpus(job_of_corpus(), manifest, sizes, vocabularies, work)
                (texts, orders), why = stack.enter_context(reading), None
            except InputError as error:
                if needs_corpus:
                    raise
                why = str(error)
        stack.enter_context(stage_running('report'))
        total = sum(shard.bytes for shards in contents.splits.values() for shard in shards)
        stack.enter_context(track_work('report', _COUNTING, total))
        for split, shards in contents.splits.items():
            order = orders.get(split)
            tallies[split] = _tally_split(dataset, shards, order, workers, hashes[split])
            longest += _longest_rows(dataset, split, tallies[split], order)
            rows += _row_figures(dataset, split, tallies[split], texts, order)
    run = read_run(os.path.join(folder, RUN_NAME))
    sides = _features_by_side(dataset, manifest)
    min_counts = {record.side: record.min_count for record in manifest.vocabularies}
    wanted = manifest.options.get('vocab_size')
    nothing = _Tally(_sizes(dataset))  # of a folder without shards
    in_all = [nothing, *(tally.all for tally in tallies.values())]
    shuffles = [_shuffle(split, tally.order) for split, tally in tallies.items()]
    return {
        'folder': os.path.basename(folder),
        'stage': manifest.stage,
        'root': manifest.root,
        'options': manifest.options,
        'unicode': manifest.unicode,
        'inputs': [(text.split, text.role, text.name, text.bytes) for text in manifest.inputs],
        'shards': len(manifest.files),
        'bytes': sum(file.bytes for file in manifest.files),
        'rows': rows,
        'left_out': list(_left_out(manifest)),
        'rejected': list(_rejected(folder, manifest)),
        'vocabularies': [
            {
                **_vocabulary_use(side, in_all, features, vocabularies[features[0]]),
                'wanted': wanted if isinstance(wanted, int) else None,
                'min_count': min_counts.get(side, min_counts.get('both')),
            }
            for side, features in sides.items()
        ],
        'examples': [row for split in sizes for row in _examples(dataset, split)],
        'longest_rows': longest,
        'repeats': list(repeats(hashes)),
        'padding': [
            each for split in sizes for each in _padding(dataset, split, tallies[split].lengths)
        ],
        'shuffles': shuffles if why is None else None,
        'without_corpus': why,
        'seconds': {} if run is None else dict(sorted(run.seconds.items())),
    }


class _Tally:
    """Counts of rows: of each id, of each length, and of ratios of lengths."""

    def __init__(self, sizes: Mapping[str, int]):
        self.rows = 0
        self.counts = {name: np.zeros(size, np.int64) for name, size in sizes.items()}
        self.lengths = {name: collections.Counter[int]() for name in sizes}
        self.ratios = np.zeros(2 * _MOST_DOUBLINGS * _RATIO_STEPS, np.int64)

    def add_rows(self, rows: EncodedRows) -> None:
        self.rows += len(rows)
        lengths = [np.diff(offsets) for offsets in rows.offsets.values()]
        for (name, ids), own in zip(rows.ids.items(), lengths, strict=True):
            self.counts[name] += np.bincount(ids, minlength=len(self.counts[name]))
            values, counts = np.unique(own, return_counts=True)
            self.lengths[name].update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        if len(lengths) == 2:
            has_both = (lengths[0] > 0) & (lengths[1] > 0)
            doublings = np.log2(lengths[1][has_both] / lengths[0][has_both])
            bins = np.floor(doublings * _RATIO_STEPS).astype(np.int64) + len(self.ratios) // 2
            bins = np.clip(bins, 0, len(self.ratios) - 1)
            self.ratios += np.bincount(bins, minlength=len(self.ratios))

    def add(self, other: _Tally) -> None:
        self.rows += other.rows
        self.ratios += other.ratios
        for name, counts in other.counts.items():
            self.counts[name] += counts
            self.lengths[name].update(other.lengths[name])


class _OrderTally:
    """Sums over rows that follow one another in a split, of their ranks in the corpus.

    Ranks and places count from the middle of the split, so that both have the mean 0 in all of it.
    """

    def __init__(self, rows: int):
        self.rows = rows  # of the split
        self.with_place = 0.0  # the sum of the products of a row's rank and its place
        self.with_next = 0.0  # likewise of its rank and that of the row after it
        self.first: float | None = None  # the rank of the first row; None if there is none
        self.last: float | None = None

    def add_rows(self, begin: int, ranks: np.ndarray) -> None:
        """Adds the rows from place `begin` on, by their ranks: int64[...], at least one."""
        end, middle = begin + len(ranks), (self.rows - 1) / 2
        centred, part = ranks - middle, _OrderTally(self.rows)
        # Not by `@`: BLAS's threads take longer for so few rows, and add in an order of their own.
        part.with_place = float((centred * (np.arange(begin, end) - middle)).sum())
        part.with_next = float((centred[:-1] * centred[1:]).sum())
        part.first, part.last = float(centred[0]), float(centred[-1])
        self.add(part)

    def add(self, other: _OrderTally) -> None:
        """Adds those of the rows that follow."""
        self.with_place += other.with_place
        self.with_next += other.with_next
        if self.last is not None and other.first is not None:
            self.with_next += self.last * other.first
        self.first = other.first if self.first is None else self.first
        self.last = self.last if other.last is None else other.last


class _Tallies:
    """Tallies of one split: all rows, each dataset by its number, and the order.

    Attributes:
        longest: (-ids, number, place in the corpus or None, the first ids of each feature) of the rows of
            the most ids, these first.
        lengths: int64[features, rows] of the first rows.
    """

    def __init__(self, sizes: Mapping[str, int], rows: int):
        self.all = _Tally(sizes)
        self.by_dataset = collections.defaultdict[int, _Tally](lambda: _Tally(sizes))
        self.order = _OrderTally(rows)
        self.longest: list[tuple[int, int, int | None, Sequence[Sequence[int]]]] = []
        self.lengths = np.empty((len(sizes), 0), np.int64)

    def add_lengths(self, first: int, rows: EncodedRows, places: np.ndarray) -> None:
        """Adds the lengths of rows from number `first` on, with their places, if these are known."""
        lengths = np.array([np.diff(offsets) for offsets in rows.offsets.values()])
        self.lengths = np.append(self.lengths, lengths[:, : max(0, _BATCHED_ROWS - first)], axis=1)
        ids = lengths.sum(axis=0)
        least = -self.longest[-1][0] if len(self.longest) == _LONGEST_ROWS else -1
        candidates = np.flatnonzero(ids > least)
        order = candidates[np.argsort(-ids[candidates], kind='stable')]
        for row in order[:_LONGEST_ROWS].tolist():
            begin = [
                rows.ids[name][offsets[row] : offsets[row + 1]][:_BEGINNING_IDS].tolist()
                for name, offsets in rows.offsets.items()
            ]
            place = int(places[row]) if len(places) else None
            self.longest.append((-int(ids[row]), first + row, place, begin))
        self.longest = sorted(self.longest)[:_LONGEST_ROWS]

    def add(self, other: _Tallies) -> None:
        """Adds those of the rows that follow."""
        self.all.add(other.all)
        for number, tally in other.by_dataset.items():
            self.by_dataset[number].add(tally)
        self.order.add(other.order)
        self.longest = sorted([*self.longest, *other.longest])[:_LONGEST_ROWS]
        self.lengths = np.append(self.lengths, other.lengths, axis=1)


def _sizes(dataset: Dataset) -> dict[str, int]:
    """Returns how many ids each feature has."""
    return {feature: dataset.vocab_size(feature) for feature in dataset.features}


def _tally_split(
    dataset: Dataset,
    shards: Sequence[ShardFile],
    order: CorpusOrder | None,
    workers: int,
    hashes: RowHashes,
) -> _Tallies:
    sizes, rows_of_split = _sizes(dataset), sum(shard.rows for shard in shards)
    result = _Tallies(sizes, rows_of_split)

    def tally_shard(number: int, first: int, shard: ShardFile) -> _Tallies:
        tallies = _Tallies(sizes, rows_of_split)
        reader = open_shard(shard, [*sizes], sizes)
        for begin, end, ranks, datasets, places in _parts(order, number, shard.rows):
            rows = reader.read(begin, end)[1]
            tallies.all.add_rows(rows)
            tallies.add_lengths(first + begin, rows, places)
            hashes.put(first + begin, rows)
            if order is not None:
                tallies.order.add_rows(first + begin, ranks)
            if order is not None and len(order.names) > 1:
                for index in np.unique(datasets).tolist():
                    rows_of_dataset = rows.take(np.flatnonzero(datasets == index))
                    tallies.by_dataset[index].add_rows(rows_of_dataset)
            advance(_COUNTING, shard.bytes * end // shard.rows - shard.bytes * begin // shard.rows)
        return tallies

    firsts = np.cumsum([0, *(shard.rows for shard in shards)]).tolist()[:-1]
    with ThreadPoolExecutor(max(1, workers)) as pool:
        for tallies in pool.map(tally_shard, itertools.count(), firsts, shards):
            result.add(tallies)
    return result


def _parts(
    order: CorpusOrder | None, shard: int, rows: int
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray, np.ndarray]]:
    """Yields ranges of a shard's rows, and of each the ranks, datasets and places, which are empty if not
    known."""
    nothing = np.empty(0, np.int64)
    if order is None:
        for begin in range(0, rows, _ROWS):
            yield begin, min(begin + _ROWS, rows), nothing, nothing, nothing
        return
    begin = 0
    for ranks, datasets, places in order.buckets(shard):
        for first in range(0, len(ranks), _ROWS):
            own = slice(first, first + _ROWS)
            end = begin + len(ranks[own])
            yield begin, end, ranks[own], datasets[own], places[own]
            begin = end
    if begin != rows:
        raise InputError(
            f'shard {shard} has {rows:,} rows, and its corpus gives {begin:,}; tokbeam verify --rerun names '
            'what differs'
        )


def _row_figures(
    dataset: Dataset,
    split: str,
    tallies: _Tallies,
    texts: Mapping[Group, TextSums],
    order: CorpusOrder | None,
) -> Iterator[Figures]:
    names = () if order is None else order.names
    parts = [('', tallies.all)]
    if len(names) > 1:
        parts += [(name, tallies.by_dataset[number]) for number, name in enumerate(names)]
    for name, tally in parts:
        if order is None:
            text = _text_of_first_rows(dataset, split)
        else:
            text = _text_of(dataset, tally, texts, split, name)
        ratios = enumerate(tally.ratios.tolist(), -len(tally.ratios) // 2)
        yield {
            'split': split,
            'dataset': name,
            'rows': tally.rows,
            'lengths': {feature: _lengths(counter) for feature, counter in tally.lengths.items()},
            'ratios': [(2 ** (step / _RATIO_STEPS), count) for step, count in ratios if count],
            'text': text,
        }


def _text_of(
    dataset: Dataset,
    tally: _Tally,
    texts: Mapping[Group, TextSums],
    split: str,
    name: str,
) -> Figures:
    """The text of all rows of a tally; ids are those that are stored, without templates."""
    figures = {}
    for feature in dataset.features:
        template = dataset.template(feature)
        counts, unknown_id = tally.counts[feature], dataset.special_ids(feature).unknown
        unknown = None
        if unknown_id is not None:
            around = (*template.before, *template.after).count(unknown_id)
            unknown = int(counts[unknown_id]) - around * tally.rows
        ids = int(counts.sum()) - template.size * tally.rows
        figures[feature] = texts[split, name, feature].figures(ids, unknown)
    return figures


def _text_of_first_rows(dataset: Dataset, split: str) -> Figures:
    rows = list(itertools.islice(dataset.examples(split), TEXT_ROWS))
    figures = {}
    for feature in dataset.features:
        vocabulary, template = dataset.vocabulary(feature), dataset.template(feature)
        special = vocabulary.special_ids
        texts = [without_special_ids(row[feature].tolist(), template, special) for row in rows]
        tally, scheme, group = TextTally(), dataset.scheme, (split, '', feature)
        tally.add_texts([vocabulary.decode(ids) for ids in texts])
        encoder = scheme.encoder(vocabulary, scheme.encoding())
        sums = tally.sums(group) + word_sums(group, tally.words(), encoder)
        unknown = None
        if special.unknown is not None:
            unknown = sum(ids.count(special.unknown) for ids in texts)
        figures[feature] = sums.figures(sum(map(len, texts)), unknown)
    return figures


def _examples(dataset: Dataset, split: str) -> Iterator[Figures]:
    for number, row in enumerate(itertools.islice(dataset.examples(split), _EXAMPLE_ROWS)):
        pieces = {}
        for feature, ids in row.items():
            first = ids[:_EXAMPLE_IDS].tolist()
            pieces[feature] = [
                *zip(legible(first, dataset.vocabulary(feature)), first, strict=True)
            ]
        lengths = {feature: len(ids) for feature, ids in row.items()}
        yield {'split': split, 'row': number, 'pieces': pieces, 'ids': lengths}


def _longest_rows(
    dataset: Dataset, split: str, tallies: _Tallies, order: CorpusOrder | None
) -> Iterator[Figures]:
    for ids, number, place, begin in tallies.longest:
        texts = {
            feature: dataset.text(own, feature)
            for feature, own in zip(dataset.features, begin, strict=True)
        }
        position = None if order is None or place is None else order.position(place)
        yield {'split': split, 'row': number, 'ids': -ids, 'text': texts, 'position': position}


def _padding(dataset: Dataset, split: str, lengths: np.ndarray) -> Iterator[Figures]:
    features, rows = dataset.features, lengths.shape[1]
    of_pairs: dict[str, Any] = {
        'source': features[0] if len(features) > 1 else None,
        'target': features[-1],
        'source_template': dataset.template(features[0]),
        'target_template': dataset.template(features[-1]),
    }

    def share(rule: BatchRule) -> float:
        whole = rule.arrange(lengths)
        rest = lengths[:, whole.waiting()[0]]
        batches = [lengths[:, which] for which, _ in whole.full_batches()]
        batches += [rest[:, which] for which, _ in rule.arrange(rest).partial_batches()]
        cells = sum(int(own.max(axis=1).sum()) * own.shape[1] for own in batches)
        return round(1 - sum(int(own.sum()) for own in batches) / max(1, cells), 6)

    mixed, similar = (
        [NmtBatches(size, 0, 0, 0, buckets, **of_pairs) for size in _BATCH_ROWS]
        for buckets in (1, 5)
    )
    budget = BudgetBatches(_BATCH_IDS, 0, growing_boundaries(_BATCH_IDS), _BATCH_IDS, features)
    names = [*(f'{size} rows' for size in _BATCH_ROWS), f'{_BATCH_IDS:,} ids']
    firsts: list[BatchRule | None] = [*mixed, None]
    seconds: list[BatchRule] = [*similar, budget]
    for batch, first, second in zip(names, firsts, seconds, strict=True):
        share_of_first = None if first is None else share(first)
        yield {
            'split': split,
            'rows': rows,
            'batch': batch,
            'mixed': share_of_first,
            'similar': share(second),
        }


def _lengths(counter: collections.Counter[int]) -> Figures:
    longest = max(counter, default=0)
    # Where the parts of the histogram begin: each is a fifth longer than the one before.
    bounds, bound = [0], 1
    while bound <= longest:
        bounds.append(bound)
        bound = max(bound + 1, bound * 6 // 5)
    counts = [0] * len(bounds)
    places = np.searchsorted(bounds, list(counter), side='right') - 1
    for place, count in zip(places.tolist(), counter.values(), strict=True):
        counts[place] += count
    ends = [*(bound - 1 for bound in bounds[1:]), longest]
    rows, ids = counter.total(), sum(length * count for length, count in counter.items())
    return {
        'ids': ids,
        'mean': round(ids / rows, 4) if rows else 0.0,
        'median': lower_median(counter),
        'longest': longest,
        'histogram': [*zip(bounds, ends, counts, strict=True)],
    }


def _features_by_side(dataset: Dataset, manifest: Manifest) -> Mapping[str, Sequence[str]]:
    """Returns the features whose ids are of a vocabulary, by the side of the vocabulary."""
    records = manifest.vocabularies
    features = tuple(dataset.features)
    if len(features) > 1 and (not records or 'both' in {record.side for record in records}):
        return {'both': features}
    return {feature: (feature,) for feature in features}


def _id_counts(tallies: Sequence[_Tally], features: Sequence[str]) -> np.ndarray:
    """How often each id of a vocabulary occurs: int64[size]."""
    counts = [tally.counts[feature] for tally in tallies for feature in features]
    return np.stack(counts).sum(axis=0)


def _vocabulary_use(
    side: str, tallies: Sequence[_Tally], features: Sequence[str], vocabulary: Vocabulary
) -> Figures:
    counts = _id_counts(tallies, features)
    pieces = legible(range(len(counts)), vocabulary)
    characters = np.array([len(vocabulary.decode([id_])) for id_ in range(len(counts))], np.int64)
    is_single = characters == 1
    characters[[id_ for id_ in vocabulary.special_ids if id_ is not None]] = 0
    longest = np.argsort(-characters, kind='stable')[:_LONGEST_PIECES].tolist()
    order = np.argsort(-counts, kind='stable')[:_EXAMPLES]
    # Entries that occur never, once, twice to nine times, and so on by powers of ten.
    bounds = [0, 1, 2]
    while bounds[-1] <= counts.max(initial=0):
        bounds.append(10 if bounds[-1] == 2 else bounds[-1] * 10)
    return {
        'side': side,
        'size': len(counts),
        'used': int(np.count_nonzero(counts)),
        'single_characters': int(is_single.sum()),
        'single_share': round(float(counts[is_single].sum() / max(1, counts.sum())), 6),
        'by_count': [
            (least, bound - 1, int(((counts >= least) & (counts < bound)).sum()))
            for least, bound in zip(bounds, bounds[1:])
        ],
        'by_rank': _curve(counts),
        'commonest': [(pieces[id_], int(counts[id_])) for id_ in order.tolist() if counts[id_]],
        'longest': [(pieces[id_], int(characters[id_]), int(counts[id_])) for id_ in longest],
        'unused': [pieces[id_] for id_ in np.flatnonzero(counts == 0)[:_EXAMPLES].tolist()],
    }


def _shuffle(split: str, tally: _OrderTally) -> Figures:
    """Pearson's correlations of the ranks of rows in the corpus with their places, and with the next ranks.

    For a random order they are normal around 0 with a standard deviation of 1 / sqrt(rows).
    """
    rows, first, last = tally.rows, tally.first or 0.0, tally.last or 0.0
    squares = rows * (rows * rows - 1) / 12  # of all ranks
    # Of neighbours one lacks the last row, the other the first.
    pairs = max(1, rows - 1)
    before, after = (squares - edge * edge - edge * edge / pairs for edge in (last, first))
    return {
        'split': split,
        'rows': rows,
        'rank_correlation': _correlation(tally.with_place, squares, squares),
        'serial_correlation': _correlation(tally.with_next - last * first / pairs, before, after),
    }


def _correlation(products: float, squares: float, other_squares: float) -> float:
    """Pearson's correlation from sums of centred numbers; 0 where it is not defined."""
    scale = math.sqrt(max(0.0, squares) * max(0.0, other_squares))
    return round(products / scale, 6) if scale else 0.0


def _curve(counts: np.ndarray) -> list[tuple[int, int]]:
    """Returns (rank, count) of the counts above 0, int64[n], at evenly spaced logarithms of the rank."""
    ordered = np.sort(counts[counts > 0])[::-1]
    if not len(ordered):
        return []
    ranks = np.unique(np.rint(np.geomspace(1, len(ordered), _CURVE_POINTS)).astype(np.int64))
    return [*zip(ranks.tolist(), ordered[ranks - 1].tolist(), strict=True)]


def _left_out(manifest: Manifest) -> Iterator[Figures]:
    for tally in (*manifest.lines, *manifest.datasets):
        reasons = {
            'empty': tally.empty,
            'missing side': tally.missing_side,
            **tally.left_out,
            **tally.filtered,
            'beyond max_examples': tally.beyond_max_examples,
            'not sampled': tally.not_sampled,
            'removed': tally.removed,
        }
        yield {
            'split': tally.split,
            'dataset': tally.dataset,
            'lines': tally.lines,
            'added': tally.added,
            'examples': tally.examples,
            'reasons': {name: count for name, count in reasons.items() if count},
            'ids': tally.ids,
            'unknown': tally.unknown,
            'text_bytes': tally.text_bytes,
        }


def _rejected(folder: str, manifest: Manifest) -> Iterator[Figures]:
    for file in manifest.rejected:
        samples = []
        with filesystem.open_binary(os.path.join(folder, file.name)) as stream:
            for _ in range(min(_REJECTED_LINES, file.rows)):
                line = stream.readline(_REJECTED_BYTES)
                samples.append(line.decode('utf-8', 'replace').rstrip('\n'))
                while line and not line.endswith(b'\n'):
                    line = stream.readline(1 << 20)
        yield {'name': file.name, 'lines': file.rows, 'samples': samples}
