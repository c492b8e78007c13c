"""Figures of a dataset: its rows and their text, the use of its vocabularies, and how it was made.

One pass over the shards counts ids and lengths, and holds no row. What was left out, the search and the
times of stages are recorded in the folder. Where rows stood in the corpus is not: with the job that made
them a pipeline tells that, and counts the text of all rows. Without it text is decoded of the first rows
of each split; order keys shuffle a whole split, so these are a uniform sample.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow.parquet as pq

from pipelines.artifacts.manifest import RUN_NAME, read_manifest, read_run
from pipelines.engines.progress import advance, stage_running, track_work
from pipelines.files import filesystem
from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.trust.corpus_figures import CorpusFigures, CorpusOrder, read_corpus
from pipelines.trust.inspect import lower_median
from pipelines.trust.row_text import ReadableDataset, TextFigures, TextTally, word_sums
from tokcore.encoding.vocabulary import Vocabulary, spelled_ids, without_special_ids
from tokcore.errors import InputError
from tokcore.object_stores import is_object
from tokcore.reading.manifest import DatasetManifest
from tokcore.reading.shards import EncodedRows, ShardFile, open_shard
from tokcore.reading.stored_datasets import copied_dataset
from tokcore.records.manifest import MANIFEST_NAME, Manifest

_COUNTING = 'counting'

_ROWS = 1 << 14
"""Rows that are held at once by a thread."""

_SAMPLE_SHARE = 100
"""The sample that the whole is compared with is one row in so many."""

TEXT_ROWS = 5_000
"""Rows of a split whose text is decoded without the corpus: shares of one in a hundred are then right to
a tenth, and plain Python takes seconds for them."""

_RATIO_STEPS = 4
_MOST_DOUBLINGS = 4
"""Ratios of lengths are counted in quarters of a doubling, up to 16 times as long or as short."""

_CURVE_POINTS = 120
_EXAMPLES = 40
_PLACES = 1_500
_REJECTED_LINES = 3
_REJECTED_BYTES = 300


@dataclass(frozen=True)
class Lengths:
    """The lengths of rows of a feature, in ids, with the template.

    Attributes:
        ids: of all rows together.
        mean, median, longest: of a row; the median is the lower one of two.
        histogram: (shortest, longest, rows), ascending; every row is in one.
    """

    ids: int
    mean: float
    median: int
    longest: int
    histogram: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class RowFigures:
    """The rows of a split, or of one of its datasets.

    Attributes:
        split: its name.
        dataset: its name; '' of all rows of the split.
        rows: how many.
        lengths: by feature.
        ratios: of pairs, (ratio, rows): the targets of so many rows are `ratio` to 2^(1/4) `ratio` times
            as long as the inputs, in ids; what is beyond 16 times is in the outermost. Rows with an empty
            side are in none.
        text: by feature, of all rows, or of the first `TEXT_ROWS` if the corpus was not read.
    """

    split: str
    dataset: str
    rows: int
    lengths: Mapping[str, Lengths]
    ratios: tuple[tuple[float, int], ...]
    text: Mapping[str, TextFigures]


@dataclass(frozen=True)
class VocabularyUse:
    """How often the entries of a vocabulary occur in all rows, templates included.

    Attributes:
        side: inputs, targets or both.
        size: its entries.
        used: those that occur.
        single_characters: entries that are one character or one byte.
        single_share: of all ids, those of such entries.
        by_count: (least, most, entries): so many entries occur least to most times.
        by_rank: (rank from 1, count), at ranks that are evenly spaced on a logarithmic axis.
        commonest: (piece, count), of the entries that occur most.
        unused: pieces that never occur, the first of them.
    """

    side: str
    size: int
    used: int
    single_characters: int
    single_share: float
    by_count: tuple[tuple[int, int, int], ...]
    by_rank: tuple[tuple[int, int], ...]
    commonest: tuple[tuple[str, int], ...]
    unused: tuple[str, ...]


@dataclass(frozen=True)
class TokenCounts:
    """A table of counts in the folder: its name, distinct and running tokens, and counts by rank."""

    name: str
    distinct: int
    running: int
    by_rank: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Search:
    """The search for a vocabulary: the size wanted, the min-count taken, and (min-count, size) tried."""

    side: str
    wanted: int | None
    size: int
    min_count: int | None
    tried: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SampleFigures:
    """A sample of the rows, one in a hundred of each split, against all rows.

    Attributes:
        side: of the vocabulary.
        rows, ids, used, longest: of the sample, and of all rows.
        unseen_entries: entries that all rows use and the sample does not.
        unseen_ids: how often these occur in all rows.
    """

    side: str
    rows: tuple[int, int]
    ids: tuple[int, int]
    used: tuple[int, int]
    longest: tuple[int, int]
    unseen_entries: int
    unseen_ids: int


@dataclass(frozen=True)
class Shuffle:
    """How the order of a split depends on the order of its corpus.

    Both correlations are Pearson's, of the rows' ranks in the corpus; of a random order they are normal
    around 0 with a standard deviation of 1 / sqrt(rows).

    Attributes:
        split: its name.
        rows: of it.
        rank_correlation: of a row's rank in the corpus with its place in the split (Spearman's).
        serial_correlation: of the ranks of neighbouring rows of the split.
        places: (rank, place) of some rows, each from 0 to 1.
    """

    split: str
    rows: int
    rank_correlation: float
    serial_correlation: float
    places: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class LeftOut:
    """The lines of a split or of a dataset, and what became of them.

    Attributes:
        split: its name.
        dataset: its name; '' of the whole split.
        lines: that were read.
        added: rows that filters made of others.
        examples: that were written.
        reasons: why lines are not examples, with their number.
        ids, unknown: of the text, and of these the ids of an unknown token; None if there is no such id.
        text_bytes: of the text of all sides, without prefixes and line ends.
    """

    split: str
    dataset: str
    lines: int
    added: int
    examples: int
    reasons: Mapping[str, int]
    ids: int | None
    unknown: int | None
    text_bytes: int


@dataclass(frozen=True)
class RejectedFile:
    """A file of lines that were left out: its name, how many lines, and the first ones."""

    name: str
    lines: int
    samples: tuple[str, ...]


@dataclass(frozen=True)
class Figures:
    """All figures of a dataset; see the types of the attributes.

    Attributes:
        folder: its name.
        stage: the command that made it.
        root: in hexadecimal; None of earlier versions.
        options: as the manifest has them.
        unicode: the version.
        inputs: (split, role, name, bytes of the whole file's text).
        shards: how many files.
        bytes: of the shards.
        rows: of each split, and of its datasets where `shuffles` are known.
        left_out: of each split and of each dataset that has a name.
        rejected: the files of lines that were left out.
        vocabularies, counts, searches, samples: of each vocabulary.
        shuffles: of each split; None if the corpus was not read.
        without_corpus: why the corpus was not read; None if it was.
        seconds: that stages took, in the last run that did something.
    """

    folder: str
    stage: str
    root: str | None
    options: Mapping[str, object]
    unicode: str
    inputs: tuple[tuple[str, str, str, int], ...]
    shards: int
    bytes: int
    rows: tuple[RowFigures, ...]
    left_out: tuple[LeftOut, ...]
    rejected: tuple[RejectedFile, ...]
    vocabularies: tuple[VocabularyUse, ...]
    counts: tuple[TokenCounts, ...]
    searches: tuple[Search, ...]
    samples: tuple[SampleFigures, ...]
    shuffles: tuple[Shuffle, ...] | None
    without_corpus: str | None
    seconds: Mapping[str, float]


def dataset_figures(
    folder: str,
    job_of_corpus: Callable[[], BuildJob | EncodeJob] | None = None,
    needs_corpus: bool = True,
    workers: int = 1,
    work: str | None = None,
    check: Callable[[], None] = lambda: None,
) -> Figures:
    """Returns the figures of a folder that `tokbeam build` or `tokbeam encode` has finished.

    Memory follows the sizes of vocabularies and the number of distinct lengths.

    Args:
        folder: an absolute path.
        job_of_corpus: returns the job that made it, to read its corpus too; None: neither the order nor
            datasets are told.
        needs_corpus: whether a corpus that cannot be read is an error; else the figures tell it.
        workers: shards that are read at once.
        work: as `read_corpus` takes it.
        check: refuses, before rows are read, figures that cannot be shown.

    Raises:
        InputError: as `check`; there is no dataset of TFRecords or Parquet, or it is damaged; the corpus is
            needed and is not at hand, or the job is another.
    """
    here = copied_dataset(folder, None) if is_object(folder) else folder
    contents = DatasetManifest.read(here, is_object(folder))
    dataset = ReadableDataset.of(contents)
    manifest = read_manifest(os.path.join(here, MANIFEST_NAME))
    assert manifest is not None, 'it was read above'
    check()
    rows = {split: sum(shard.rows for shard in shards) for split, shards in contents.splits.items()}
    corpus: CorpusFigures | None = None
    why = '--no-corpus'
    shuffles: list[Shuffle] = []
    figures: list[RowFigures] = []
    tallies: list[_Tallies] = []
    with contextlib.ExitStack() as stack:
        if job_of_corpus is not None:
            try:
                reading = read_corpus(job_of_corpus(), manifest, rows, dataset.vocabularies, work)
                corpus = stack.enter_context(reading)
            except InputError as error:
                if needs_corpus:
                    raise
                why = str(error)
        total = sum(shard.bytes for shards in contents.splits.values() for shard in shards)
        stack.enter_context(stage_running('report'))
        stack.enter_context(track_work('report', _COUNTING, total))
        for split, shards in contents.splits.items():
            order = None if corpus is None else corpus.orders[split]
            own = _tallies(dataset, shards, order, workers)
            tallies.append(own)
            figures += _row_figures(dataset, split, own, corpus)
            shuffles.append(own.shuffle.figures(split))
    run = read_run(os.path.join(folder, RUN_NAME))
    uses = [_Use.of(side, features, dataset) for side, features in _sides(dataset, manifest)]
    return Figures(
        folder=os.path.basename(folder),
        stage=manifest.stage,
        root=manifest.root,
        options=manifest.options,
        unicode=manifest.unicode,
        inputs=tuple((text.split, text.role, text.name, text.bytes) for text in manifest.inputs),
        shards=len(manifest.files),
        bytes=sum(file.bytes for file in manifest.files),
        rows=tuple(figures),
        left_out=tuple(_left_out(manifest)),
        rejected=tuple(_rejected(folder, manifest)),
        vocabularies=tuple(use.figures([of_split.all for of_split in tallies]) for use in uses),
        counts=tuple(_counts(folder)),
        searches=tuple(_searches(manifest)),
        samples=tuple(use.sample(tallies) for use in uses),
        shuffles=None if corpus is None else tuple(shuffles),
        without_corpus=why if corpus is None else None,
        seconds={} if run is None else dict(sorted(run.seconds.items())),
    )


class _Tally:
    """Counts of rows: of each id, of each length, and of ratios of lengths."""

    def __init__(self, sizes: Mapping[str, int]):
        self.rows = 0
        self.counts = {name: np.zeros(size, np.int64) for name, size in sizes.items()}
        self.lengths: dict[str, collections.Counter[int]] = {
            name: collections.Counter() for name in sizes
        }
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

    def longest(self, features: Sequence[str]) -> int:
        return max((max(self.lengths[name], default=0) for name in features), default=0)


@dataclass
class _ShuffleTally:
    """Sums over rows that follow one another in a split, of their ranks in the corpus.

    Ranks and places count from the middle of the split, so that both have the mean 0 in all of it.

    Attributes:
        rows: of the split.
        with_place: the sum of the products of a row's rank and its place.
        with_next: likewise of its rank and that of the row after it.
        first, last: the ranks of the first and the last row; None if there is none.
        places: (rank, place) of some rows, each from 0 to 1.
    """

    rows: int
    with_place: float = 0.0
    with_next: float = 0.0
    first: float | None = None
    last: float | None = None
    places: list[tuple[float, float]] = field(default_factory=list)

    def add_rows(self, begin: int, ranks: np.ndarray) -> None:
        """Adds the rows from place `begin` on, by their ranks: int64[...], at least one."""
        end, middle, last = begin + len(ranks), (self.rows - 1) / 2, max(1, self.rows - 1)
        centred = ranks - middle
        chosen = np.unique(np.linspace(0, self.rows - 1, min(self.rows, _PLACES)).astype(np.int64))
        own = chosen[(chosen >= begin) & (chosen < end)]
        part = _ShuffleTally(
            self.rows,
            # Not by `@`: BLAS's threads take longer for so few rows, and add in an order of their own.
            float((centred * (np.arange(begin, end) - middle)).sum()),
            float((centred[:-1] * centred[1:]).sum()),
            float(centred[0]),
            float(centred[-1]),
            [
                (round(rank / last, 4), round(place / last, 4))
                for rank, place in zip(ranks[own - begin].tolist(), own.tolist(), strict=True)
            ],
        )
        self.add(part)

    def add(self, other: _ShuffleTally) -> None:
        """Adds those of the rows that follow."""
        self.with_place += other.with_place
        self.with_next += other.with_next
        if self.last is not None and other.first is not None:
            self.with_next += self.last * other.first
        self.first = other.first if self.first is None else self.first
        self.last = self.last if other.last is None else other.last
        self.places += other.places

    def figures(self, split: str) -> Shuffle:
        rows, first, last = self.rows, self.first or 0.0, self.last or 0.0
        squares = rows * (rows * rows - 1) / 12  # of all ranks
        # Of neighbours one lacks the last row, the other the first.
        pairs = max(1, rows - 1)
        before, after = (squares - edge * edge - edge * edge / pairs for edge in (last, first))
        return Shuffle(
            split,
            rows,
            _correlation(self.with_place, squares, squares),
            _correlation(self.with_next - last * first / pairs, before, after),
            tuple(self.places),
        )


def _correlation(products: float, squares: float, other_squares: float) -> float:
    """Pearson's correlation from sums of centred numbers; 0 where it is not defined."""
    scale = math.sqrt(max(0.0, squares) * max(0.0, other_squares))
    return round(products / scale, 6) if scale else 0.0


class _Tallies:
    """Those of a split: of all its rows, of the sample, of each dataset by its number; and its order."""

    def __init__(self, sizes: Mapping[str, int], rows: int):
        self._sizes = sizes
        self.all, self.sample = _Tally(sizes), _Tally(sizes)
        self.by_dataset: dict[int, _Tally] = {}
        self.shuffle = _ShuffleTally(rows)

    def of_dataset(self, number: int) -> _Tally:
        return self.by_dataset.setdefault(number, _Tally(self._sizes))

    def add(self, other: _Tallies) -> None:
        """Adds those of the rows that follow."""
        self.all.add(other.all)
        self.sample.add(other.sample)
        for number, tally in other.by_dataset.items():
            self.of_dataset(number).add(tally)
        self.shuffle.add(other.shuffle)


def _tallies(
    dataset: ReadableDataset, shards: Sequence[ShardFile], order: CorpusOrder | None, workers: int
) -> _Tallies:
    sizes = dataset.sizes
    rows_of_split = sum(shard.rows for shard in shards)
    in_sample = -(-rows_of_split // _SAMPLE_SHARE)
    result = _Tallies(sizes, rows_of_split)

    def tallied(number: int, first: int, shard: ShardFile) -> _Tallies:
        own = _Tallies(sizes, rows_of_split)
        reader = open_shard(shard, [*sizes], sizes)
        for begin, end, ranks, datasets in _parts(order, number, shard.rows):
            rows = reader.read(begin, end)[1]
            own.all.add_rows(rows)
            if first + begin < in_sample:
                own.sample.add_rows(rows.part(0, min(len(rows), in_sample - first - begin)))
            if order is not None:
                own.shuffle.add_rows(first + begin, ranks)
            if order is not None and len(order.names) > 1:
                for index in np.unique(datasets).tolist():
                    own.of_dataset(index).add_rows(rows.take(np.flatnonzero(datasets == index)))
            advance(_COUNTING, shard.bytes * end // shard.rows - shard.bytes * begin // shard.rows)
        return own

    firsts = np.cumsum([0, *(shard.rows for shard in shards)]).tolist()[:-1]
    with ThreadPoolExecutor(max(1, workers)) as pool:
        for own in pool.map(tallied, itertools.count(), firsts, shards):
            result.add(own)
    return result


def _parts(
    order: CorpusOrder | None, shard: int, rows: int
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Yields ranges of a shard's rows, and of each the ranks and datasets, which are empty if not known."""
    nothing = np.empty(0, np.int64)
    if order is None:
        for begin in range(0, rows, _ROWS):
            yield begin, min(begin + _ROWS, rows), nothing, nothing
        return
    begin = 0
    for ranks, datasets in order.buckets(shard):
        for first in range(0, len(ranks), _ROWS):
            own = slice(first, first + _ROWS)
            end = begin + len(ranks[own])
            yield begin, end, ranks[own], datasets[own]
            begin = end
    if begin != rows:
        raise InputError(
            f'shard {shard} has {rows:,} rows, and its corpus gives {begin:,}; tokbeam verify --rerun tells '
            'what differs'
        )


def _row_figures(
    dataset: ReadableDataset, split: str, tallies: _Tallies, corpus: CorpusFigures | None
) -> Iterator[RowFigures]:
    if corpus is None:
        yield _figures_of(split, '', tallies.all, _text_of_first_rows(dataset, split))
        return
    yield _figures_of(split, '', tallies.all, _text_of(dataset, tallies.all, corpus, split, ''))
    names = corpus.orders[split].names
    for number, name in enumerate(names if len(names) > 1 else ()):
        own = tallies.of_dataset(number)
        yield _figures_of(split, name, own, _text_of(dataset, own, corpus, split, name))


def _figures_of(
    split: str, name: str, tally: _Tally, text: Mapping[str, TextFigures]
) -> RowFigures:
    half = len(tally.ratios) // 2
    ratios = [
        (2 ** ((number - half) / _RATIO_STEPS), count)
        for number, count in enumerate(tally.ratios.tolist())
        if count
    ]
    lengths = {feature: _lengths(own) for feature, own in tally.lengths.items()}
    return RowFigures(split, name, tally.rows, lengths, tuple(ratios), text)


def _text_of(
    dataset: ReadableDataset, tally: _Tally, corpus: CorpusFigures, split: str, name: str
) -> dict[str, TextFigures]:
    """The text of all rows of a tally; ids are those that are stored, without templates."""
    figures = {}
    for feature in dataset.vocabularies:
        template = dataset.rows.template(feature)
        counts, unknown_id = tally.counts[feature], dataset.rows.special_ids(feature).unknown
        unknown = None
        if unknown_id is not None:
            around = (*template.before, *template.after).count(unknown_id)
            unknown = int(counts[unknown_id]) - around * tally.rows
        ids = int(counts.sum()) - template.size * tally.rows
        figures[feature] = corpus.texts[split, name, feature].figures(ids, unknown)
    return figures


def _text_of_first_rows(dataset: ReadableDataset, split: str) -> dict[str, TextFigures]:
    rows = list(itertools.islice(dataset.rows.examples(split), TEXT_ROWS))
    figures = {}
    for feature, vocabulary in dataset.vocabularies.items():
        template, special = dataset.rows.template(feature), vocabulary.special_ids
        own = [without_special_ids(row[feature].tolist(), template, special) for row in rows]
        text, scheme, group = TextTally(), dataset.rows.scheme, (split, '', feature)
        text.add_texts([vocabulary.decode(ids) for ids in own])
        encoder = scheme.encoder(vocabulary, scheme.encoding())
        sums = text.sums(group) + word_sums(group, text.words(), encoder)
        unknown = None
        if special.unknown is not None:
            unknown = sum(ids.count(special.unknown) for ids in own)
        figures[feature] = sums.figures(sum(map(len, own)), unknown)
    return figures


def _lengths(counter: collections.Counter[int]) -> Lengths:
    rows = counter.total()
    ids = sum(length * count for length, count in counter.items())
    longest = max(counter, default=0)
    bounds = _bounds(longest)
    counts = [0] * len(bounds)
    places = np.searchsorted(bounds, list(counter), side='right') - 1
    for place, count in zip(places.tolist(), counter.values(), strict=True):
        counts[place] += count
    ends = [*(bound - 1 for bound in bounds[1:]), longest]
    histogram = tuple(zip(bounds, ends, counts, strict=True))
    mean = round(ids / rows, 4) if rows else 0.0
    return Lengths(ids, mean, lower_median(counter), longest, histogram)


def _bounds(longest: int) -> list[int]:
    """Where the parts of a histogram of lengths begin: each is a fifth longer than the one before."""
    bounds, bound = [0], 1
    while bound <= longest:
        bounds.append(bound)
        bound = max(bound + 1, bound * 6 // 5)
    return bounds


def _sides(dataset: ReadableDataset, manifest: Manifest) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields each vocabulary's side, and the features whose ids are of it."""
    records = manifest.vocabularies
    features = tuple(dataset.sizes)
    if len(features) > 1 and (not records or 'both' in {record.side for record in records}):
        yield 'both', features
        return
    for feature in features:
        yield feature, (feature,)


@dataclass(frozen=True)
class _Use:
    """A vocabulary, and the features whose ids are of it."""

    side: str
    features: tuple[str, ...]
    size: int
    vocabulary: Vocabulary

    @classmethod
    def of(cls, side: str, features: tuple[str, ...], dataset: ReadableDataset) -> _Use:
        [first, *_] = features
        return cls(side, features, dataset.sizes[first], dataset.vocabularies[first])

    def counts(self, tallies: Sequence[_Tally]) -> np.ndarray:
        """How often each id occurs: int64[size]."""
        counts = np.zeros(self.size, np.int64)
        for tally in tallies:
            for feature in self.features:
                counts += tally.counts[feature]
        return counts

    def figures(self, tallies: Sequence[_Tally]) -> VocabularyUse:
        counts = self.counts(tallies)
        pieces = spelled_ids(range(self.size), self.vocabulary)
        decode = self.vocabulary.decode
        is_single = np.array([len(decode([id_])) == 1 for id_ in range(self.size)], bool)
        order = np.argsort(-counts, kind='stable')[:_EXAMPLES]
        return VocabularyUse(
            self.side,
            self.size,
            int(np.count_nonzero(counts)),
            int(is_single.sum()),
            round(float(counts[is_single].sum() / max(1, counts.sum())), 6),
            tuple(_by_count(counts)),
            curve(counts),
            tuple((pieces[id_], int(counts[id_])) for id_ in order.tolist() if counts[id_]),
            tuple(pieces[id_] for id_ in np.flatnonzero(counts == 0)[:_EXAMPLES].tolist()),
        )

    def sample(self, tallies: Sequence[_Tallies]) -> SampleFigures:
        sample = [of_split.sample for of_split in tallies]
        every = [of_split.all for of_split in tallies]
        ours, theirs = self.counts(sample), self.counts(every)
        unseen = (ours == 0) & (theirs > 0)
        return SampleFigures(
            self.side,
            (sum(tally.rows for tally in sample), sum(tally.rows for tally in every)),
            (int(ours.sum()), int(theirs.sum())),
            (int(np.count_nonzero(ours)), int(np.count_nonzero(theirs))),
            (
                max((tally.longest(self.features) for tally in sample), default=0),
                max((tally.longest(self.features) for tally in every), default=0),
            ),
            int(unseen.sum()),
            int(theirs[unseen].sum()),
        )


def _by_count(counts: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yields how many entries occur never, once, twice to nine times, and so on by powers of ten."""
    bounds = [0, 1, 2]
    while bounds[-1] <= counts.max(initial=0):
        bounds.append(10 if bounds[-1] == 2 else bounds[-1] * 10)
    for least, bound in zip(bounds, bounds[1:]):
        yield least, bound - 1, int(((counts >= least) & (counts < bound)).sum())


def curve(counts: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Returns (rank, count) of the counts above 0, int64[n], at evenly spaced logarithms of the rank."""
    ordered = np.sort(counts[counts > 0])[::-1]
    if not len(ordered):
        return ()
    ranks = np.unique(np.rint(np.geomspace(1, len(ordered), _CURVE_POINTS)).astype(np.int64))
    return tuple(zip(ranks.tolist(), ordered[ranks - 1].tolist(), strict=True))


def _counts(folder: str) -> Iterator[TokenCounts]:
    for name in sorted(filesystem.entries(folder)):
        path = os.path.join(folder, name)
        if not name.startswith('counts') or not filesystem.is_folder(path):
            continue
        manifest = read_manifest(os.path.join(path, MANIFEST_NAME))
        if manifest is None:
            continue
        parts = [np.empty(0, np.int64)]
        for file in manifest.files:
            with filesystem.open_binary(os.path.join(path, file.name)) as stream:
                parts.append(pq.read_table(stream, columns=['count'])['count'].to_numpy())
        counts = np.concatenate(parts)
        yield TokenCounts(name, len(counts), int(counts.sum()), curve(counts))


def _searches(manifest: Manifest) -> Iterator[Search]:
    wanted = manifest.options.get('vocab_size')
    for record in manifest.vocabularies:
        if record.tried:
            yield Search(
                record.side,
                wanted if isinstance(wanted, int) else None,
                record.size,
                record.min_count,
                record.tried,
            )


def _left_out(manifest: Manifest) -> Iterator[LeftOut]:
    for tally in (*manifest.lines, *manifest.datasets):
        reasons = {
            'empty': tally.empty,
            'missing side': tally.missing_side,
            **tally.left_out,
            **tally.filtered,
            'beyond max_examples': tally.beyond_max_examples,
            'not sampled': tally.not_sampled,
        }
        yield LeftOut(
            tally.split,
            tally.dataset,
            tally.lines,
            tally.added,
            tally.examples,
            {name: count for name, count in reasons.items() if count},
            tally.ids,
            tally.unknown,
            tally.text_bytes,
        )


def _rejected(folder: str, manifest: Manifest) -> Iterator[RejectedFile]:
    for file in manifest.rejected:
        path = os.path.join(folder, file.name)
        samples = []
        with filesystem.open_binary(path) as stream:
            for _ in range(min(_REJECTED_LINES, file.rows)):
                line = stream.readline(_REJECTED_BYTES)
                samples.append(line.decode('utf-8', 'replace').rstrip('\n'))
                while line and not line.endswith(b'\n'):
                    line = stream.readline(1 << 20)
        yield RejectedFile(file.name, file.rows, tuple(samples))
