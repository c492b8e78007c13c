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
import threading
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
from pipelines.report.repeats import hash_rows, hashes_in_file, repeats
from pipelines.report.row_text import Group, TextSums, TextTally, legible, word_sums
from tokcore.encoding.vocabulary import Vocabulary, without_special_ids
from tokcore.errors import InputError
from tokcore.object_stores import is_object
from tokcore.reading.batching import BudgetBatches, NmtBatches, growing_boundaries
from tokcore.reading.dataset import Dataset
from tokcore.reading.manifest import DatasetManifest, copied_dataset
from tokcore.reading.shards import EncodedRows, ShardFile, open_shard
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
    sizes = {split: sum(shard.rows for shard in own) for split, own in contents.splits.items()}
    texts: Mapping[Group, TextSums] = {}
    orders: Mapping[str, CorpusOrder] = {}
    why: str | None = '--no-corpus'
    rows: list[Figures] = []
    longest: list[Figures] = []
    tallies: list[_SplitTally] = []
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
            tally = _SplitTally(dataset, split, sizes[split], orders.get(split))
            tally.add_shards(shards, workers)
            longest += _longest_rows(tally)
            rows += _row_figures(tally, texts)
            tallies.append(tally)
    run = read_run(os.path.join(folder, RUN_NAME))
    sides = _features_by_side(dataset, manifest)
    min_counts = {record.side: record.min_count for record in manifest.vocabularies}
    wanted = manifest.options.get('vocab_size')
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
                **_vocabulary_use(side, tallies, features, vocabularies[features[0]]),
                'wanted': wanted if isinstance(wanted, int) else None,
                'min_count': min_counts.get(side, min_counts.get('both')),
            }
            for side, features in sides.items()
        ],
        'examples': [row for split in sizes for row in _examples(dataset, split)],
        'longest_rows': longest,
        'repeats': list(repeats({tally.split: tally.hashes for tally in tallies})),
        'padding': [each for tally in tallies for each in _padding(tally)],
        'shuffles': [_shuffle(tally) for tally in tallies] if why is None else None,
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
            counts = np.bincount(own)
            values = np.flatnonzero(counts)
            of_values = zip(values.tolist(), counts[values].tolist(), strict=True)
            self.lengths[name].update(dict(of_values))
        if len(lengths) == 2:
            has_both = (lengths[0] > 0) & (lengths[1] > 0)
            doublings = np.log2(lengths[1][has_both] / lengths[0][has_both])
            bins = np.floor(doublings * _RATIO_STEPS).astype(np.int64) + len(self.ratios) // 2
            bins = np.clip(bins, 0, len(self.ratios) - 1)
            self.ratios += np.bincount(bins, minlength=len(self.ratios))


class _SplitTally:
    """What is counted of the rows of a split; threads share it.

    Attributes:
        order: where the rows stood in the corpus; None if that was not read.
        all, by_dataset: counts of all rows, and of those of each of several datasets by its number.
        lengths: int64[features, rows] of the first rows.
        hashes: uint64[rows], in a temporary file.
        longest: (-ids, number, place in the corpus, the first ids of each feature) of the rows of the most ids,
            these first.
        ranks: of each part of the rows: the number of its first row; the sum of the products of a row's rank
            in the corpus and its number, and of its rank and the next one; the first and the last rank. Ranks
            and numbers count from the middle of the split, so that both have the mean 0 in all of it.
    """

    def __init__(self, dataset: Dataset, split: str, rows: int, order: CorpusOrder | None):
        self.dataset, self.split, self.order = dataset, split, order
        self._sizes = {feature: dataset.vocab_size(feature) for feature in dataset.features}
        self.all = _Tally(self._sizes)
        self.by_dataset = collections.defaultdict[int, _Tally](lambda: _Tally(self._sizes))
        self.lengths = np.empty((len(self._sizes), min(rows, _BATCHED_ROWS)), np.int64)
        self.hashes = hashes_in_file(rows)
        self.longest: list[tuple[int, int, int, Sequence[Sequence[int]]]] = []
        self.ranks: list[tuple[int, float, float, float, float]] = []
        self._lock = threading.Lock()

    def add_shards(self, shards: Sequence[ShardFile], workers: int) -> None:
        """Adds all rows of the split."""

        def add_shard(number: int, first: int, shard: ShardFile) -> None:
            reader = open_shard(shard, [*self._sizes], self._sizes)
            for begin, end, ranks, datasets, places in self._parts(number, shard.rows):
                rows = reader.read(begin, end)[1]
                self.hashes[first + begin : first + end] = hash_rows(rows)
                with self._lock:
                    self._add_rows(first + begin, rows, places)
                    if self.order is not None:
                        self._add_order(first + begin, rows, ranks, datasets)
                before, done = (shard.bytes * row // shard.rows for row in (begin, end))
                advance(_COUNTING, done - before)

        firsts = np.cumsum([0, *(shard.rows for shard in shards)]).tolist()[:-1]
        with ThreadPoolExecutor(max(1, workers)) as pool:
            list(pool.map(add_shard, itertools.count(), firsts, shards))  # raises their errors

    def _parts(
        self, shard: int, rows: int
    ) -> Iterator[tuple[int, int, np.ndarray, np.ndarray, np.ndarray]]:
        """Yields ranges of a shard's rows, and of each the ranks, datasets and places; zeros if not known."""
        unknown, begin = np.broadcast_to(np.int64(0), rows), 0
        for bucket in [(unknown,) * 3] if self.order is None else self.order.buckets(shard):
            for first in range(0, len(bucket[0]), _ROWS):
                ranks, datasets, places = (each[first : first + _ROWS] for each in bucket)
                yield begin, begin + len(ranks), ranks, datasets, places
                begin += len(ranks)
        if begin != rows:
            raise InputError(
                f'shard {shard} has {rows:,} rows, and its corpus gives {begin:,}; tokbeam verify --rerun '
                'names what differs'
            )

    def _add_rows(self, first: int, rows: EncodedRows, places: np.ndarray) -> None:
        """Adds rows from number `first` on, with their places in the corpus."""
        self.all.add_rows(rows)
        lengths = np.array([np.diff(offsets) for offsets in rows.offsets.values()])
        batched = self.lengths[:, first : first + len(rows)]
        batched[:] = lengths[:, : batched.shape[1]]
        ids = lengths.sum(axis=0)
        least = -self.longest[-1][0] if len(self.longest) == _LONGEST_ROWS else 0
        candidates = np.flatnonzero(ids >= least)
        order = candidates[np.argsort(-ids[candidates], kind='stable')]
        for row in order[:_LONGEST_ROWS].tolist():
            begin = [
                rows.ids[name][offsets[row] : offsets[row + 1]][:_BEGINNING_IDS].tolist()
                for name, offsets in rows.offsets.items()
            ]
            self.longest.append((-int(ids[row]), first + row, int(places[row]), begin))
        self.longest = sorted(self.longest)[:_LONGEST_ROWS]

    def _add_order(
        self, first: int, rows: EncodedRows, ranks: np.ndarray, datasets: np.ndarray
    ) -> None:
        """Adds where rows from number `first` on stood; at least one."""
        middle = (len(self.hashes) - 1) / 2
        centred, numbers = ranks - middle, np.arange(first, first + len(ranks)) - middle
        # Not by `@`: BLAS's threads take longer for so few rows, and add in an order of their own.
        with_number, with_next = (centred * numbers).sum(), (centred[:-1] * centred[1:]).sum()
        edges = float(centred[0]), float(centred[-1])
        self.ranks.append((first, float(with_number), float(with_next), *edges))
        if self.order is not None and len(self.order.names) > 1:
            for number in np.unique(datasets).tolist():
                of_dataset = rows.take(np.flatnonzero(datasets == number))
                self.by_dataset[number].add_rows(of_dataset)


def _row_figures(tally: _SplitTally, texts: Mapping[Group, TextSums]) -> Iterator[Figures]:
    parts = {'': tally.all}
    if tally.order is not None and len(tally.order.names) > 1:
        parts |= {name: tally.by_dataset[n] for n, name in enumerate(tally.order.names)}
    for name, part in parts.items():
        ratios = enumerate(part.ratios.tolist(), -len(part.ratios) // 2)
        yield {
            'split': tally.split,
            'dataset': name,
            'rows': part.rows,
            'lengths': {feature: _lengths(counter) for feature, counter in part.lengths.items()},
            'ratios': [(2 ** (step / _RATIO_STEPS), count) for step, count in ratios if count],
            'text': _text(tally, name, part, texts),
        }


def _text(tally: _SplitTally, name: str, part: _Tally, texts: Mapping[Group, TextSums]) -> Figures:
    """The text of all rows of a part, whose ids are those that are stored, without templates."""
    if tally.order is None:
        return _text_of_first_rows(tally.dataset, tally.split)
    figures = {}
    for feature, counts in part.counts.items():
        template = tally.dataset.template(feature)
        unknown_id = tally.dataset.special_ids(feature).unknown
        unknown = None
        if unknown_id is not None:
            around = (*template.before, *template.after).count(unknown_id)
            unknown = int(counts[unknown_id]) - around * part.rows
        ids, group = int(counts.sum()) - template.size * part.rows, (tally.split, name, feature)
        figures[feature] = texts.get(group, TextSums(group)).figures(ids, unknown)
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


def _longest_rows(tally: _SplitTally) -> Iterator[Figures]:
    for ids, number, place, begin in tally.longest:
        texts = {
            feature: tally.dataset.text(own, feature)
            for feature, own in zip(tally.dataset.features, begin, strict=True)
        }
        position = None if tally.order is None else tally.order.position(place)
        own = {'row': number, 'ids': -ids, 'text': texts, 'position': position}
        yield {'split': tally.split, **own}


def _padding(tally: _SplitTally) -> Iterator[Figures]:
    dataset, lengths = tally.dataset, tally.lengths
    features = dataset.features

    def share(rule: NmtBatches | BudgetBatches) -> float:
        arranged = rule.arrange(lengths)
        order = np.argsort(arranged.buckets, kind='stable')[arranged.left_out :]
        buckets = arranged.buckets[order]
        numbers = np.arange(len(order)) - np.searchsorted(buckets, buckets)  # in the bucket
        starts = np.flatnonzero(numbers % arranged.sizes[buckets] == 0)  # of batches
        widths = np.maximum.reduceat(lengths[:, order], starts, axis=1)
        cells = int((widths * np.diff(starts, append=len(order))).sum())
        return round(1 - int(lengths[:, order].sum()) / max(1, cells), 6)

    def of_rows(size: int, buckets: int) -> float:
        source = features[0] if len(features) > 1 else None
        around = dataset.template(features[0]), dataset.template(features[-1])
        return share(NmtBatches(size, 0, 0, {}, buckets, None, None, source, features[-1], *around))

    budget = BudgetBatches(_BATCH_IDS, {}, growing_boundaries(_BATCH_IDS), _BATCH_IDS, features)
    for batch, mixed, similar in [
        *((f'{size} rows', of_rows(size, 1), of_rows(size, 5)) for size in _BATCH_ROWS),
        (f'{_BATCH_IDS:,} ids', None, share(budget)),
    ]:
        own = {'batch': batch, 'mixed': mixed, 'similar': similar}
        yield {'split': tally.split, 'rows': lengths.shape[1], **own}


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


def _vocabulary_use(
    side: str, tallies: Sequence[_SplitTally], features: Sequence[str], vocabulary: Vocabulary
) -> Figures:
    counts = np.zeros(vocabulary.vocab_size, np.int64)
    for tally, feature in itertools.product(tallies, features):
        counts += tally.all.counts[feature]
    characters = np.array([len(vocabulary.decode([id_])) for id_ in range(len(counts))], np.int64)
    is_single = characters == 1
    characters[[id_ for id_ in vocabulary.special_ids if id_ is not None]] = 0
    commonest = np.argsort(-counts, kind='stable')[:_EXAMPLES]
    longest = np.argsort(-characters, kind='stable')[:_LONGEST_PIECES]
    unused = np.flatnonzero(counts == 0)[:_EXAMPLES]

    def with_pieces(ids: np.ndarray, *figures: np.ndarray) -> list[tuple[Any, ...]]:
        """Returns the pieces of entries with figures of all entries."""
        pieces = legible(ids.tolist(), vocabulary)
        return [*zip(pieces, *(own[ids].tolist() for own in figures), strict=True)]

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
        'commonest': with_pieces(commonest[counts[commonest] > 0], counts),
        'longest': with_pieces(longest, characters, counts),
        'unused': legible(unused.tolist(), vocabulary),
    }


def _shuffle(tally: _SplitTally) -> Figures:
    """Pearson's correlations of the ranks of rows in the corpus with their places, and with the next ranks.

    For a random order they are normal around 0 with a standard deviation of 1 / sqrt(rows).
    """
    rows, parts = len(tally.hashes), sorted(tally.ranks)
    with_number, with_next = sum(part[1] for part in parts), sum(part[2] for part in parts)
    with_next += sum(before[4] * after[3] for before, after in itertools.pairwise(parts))
    first, last = (parts[0][3], parts[-1][4]) if parts else (0.0, 0.0)
    squares = rows * (rows * rows - 1) / 12  # of all ranks
    # Of neighbours one lacks the last row, the other the first.
    pairs = max(1, rows - 1)
    before, after = (squares - edge * edge - edge * edge / pairs for edge in (last, first))
    return {
        'split': tally.split,
        'rows': rows,
        'rank_correlation': _correlation(with_number, squares, squares),
        'serial_correlation': _correlation(with_next - last * first / pairs, before, after),
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
