"""Counts the tokens of blocks: packed tables by hash partition, and the textbook form as reference.

The tables of all blocks of a bundle are added up before they are sent on, so a bundle's output
grows with the number of distinct tokens. Tables that exceed the bound of a bundle are written to
files, and only their paths cross the shuffle.
"""

import dataclasses
import functools
import os
import queue
import typing
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import google_crc32c
import pyarrow as pa
import pyarrow.parquet as parquet

from pipelines.engines.pool import (
    MOST_BUNDLE_BYTES,
    BundleOutput,
    OrderedPool,
    OversizedBundleError,
    PackedCoder,
    ThreadedMap,
    in_global_window,
    with_output_types,
)
from pipelines.files import filesystem
from pipelines.transforms.read import check_sides, checked_output, splits_of
from pipelines.transforms.stats import REJECTED, STATS, RejectionBudget, WrittenFile, tagged_stats
from tokcore.corpus.block_batches import Batch, BlockBatches
from tokcore.corpus.corpus import Block, OnError, Split
from tokcore.corpus.stats import BlockStats, reject_error
from tokcore.counts.sampling import RowSample, rows_to_count
from tokcore.counts.tables import (
    COUNT_PARTITIONS,
    BlockCounter,
    SideGroups,
    TableMerger,
    concatenate_tables,
    partition_table,
)
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.last_word import CorpusEnd
from tokcore.encoding.scheme import Scheme, TokenRules
from tokcore.errors import InputError
from tokcore.schemes import DEFAULT_SCHEME, find_scheme
from tokcore.text.unicode import UNICODE_VERSION, check_unicode

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from tokcore.keyword_types import SchemeKeywords

TABLES = 'tables'

UNICODE_KEY = 'tokbeam.unicode'
"""Where the schema of a Parquet file of counts records the Unicode version of its tokens."""

LAST_WORD_KEY = 'tokbeam.last_word'
"""Where the file of the first partition records `TokenTable.last_word`."""

METRICS = 'tokbeam.count'

_FLUSH_BYTES = 256 << 20
"""What a worker's tables may take before they are sent on. More would cost memory in each worker,
and half of it would send the frequent tokens twice as often."""

_STATS_BYTES = 100
"""The size of a tally or a checksum: a name and some numbers."""

_TABLE_SHARE = 0.75
"""The share of a bundle's bytes that tables may take; the rest is for paths, stats and rejected
lines."""

_PATH_MARK = b'@'
"""The first byte of a path that is sent instead of a packed table, which has another mark."""


class CountTokens(beam.PTransform):
    """Counts the tokens of blocks.

    Returns a dictionary of PCollections: `tables` has (key, `TokenTable`), one merged table for each
    key, which is group * COUNT_PARTITIONS + partition; `stats` has the `BlockStats` of blocks;
    `rejected` has `RejectedLines`. `LearnVocabulary` takes the dictionary, `WriteCounts` its tables.

    Examples:
        >>> with beam.Pipeline(runner='FnApiRunner') as pipeline:
        ...     counted = pipeline | pipelines.ReadCorpus('train.en') | pipelines.CountTokens('word')
        ...     totals = counted['tables'] | beam.MapTuple(lambda key, table: table.total)
        ...     _ = totals | beam.CombineGlobally(sum) | beam.Map(print)
        4103
    """

    def __init__(
        self,
        scheme: str | Scheme = DEFAULT_SCHEME,
        *,
        groups: SideGroups | None = None,
        splits: Sequence[Split] | None = None,
        workers: int = 1,
        on_error: OnError = 'stop',
        spill_folder: str | None = None,
        most_bundle_bytes: int = MOST_BUNDLE_BYTES,
        budget: RejectionBudget | None = None,
        sample: RowSample | None = None,
        **options: 'Unpack[SchemeKeywords]',
    ):
        """Takes a scheme, which splits rows into tokens.

        Args:
            scheme: its name, or the scheme itself.
            groups: the sides that are counted together, as ((0,), (1,)) or ((0, 1),); None: all
                sides.
            splits: the corpus, of which errors name the files; None: that of the `ReadCorpus` to
                whose output this is applied.
            workers: threads of a worker process.
            on_error: whether a line that cannot be used stops the job or is rejected.
            spill_folder: a folder that all workers reach, for tables that exceed a bundle's bound;
                None: such a table is an `OversizedBundleError`.
            most_bundle_bytes: the bound on the output of a bundle.
            budget: how many lines may be rejected; None: any number.
            sample: the rows that are counted; None: all of them.
            options: of the scheme, as the command has them: `pre_tokenizer`, `lower_case`, ...

        Raises:
            InputError: an unknown scheme, a scheme that learns nothing from tokens, or a value that
                an option cannot have.
            TypeError: the scheme has no such option, or it has a value of another type.
        """
        super().__init__()
        self.scheme = find_scheme(scheme, **options)
        if self.scheme.options is None:
            raise InputError(
                f'the scheme {self.scheme.name} learns nothing, so there is nothing to count for it'
            )
        if workers < 1:
            raise ValueError(f'{workers} workers; give at least 1')
        if on_error not in ('stop', 'skip'):
            raise ValueError(f"on_error is {on_error!r}; give 'stop' or 'skip'")
        self.groups, self.splits = groups, splits
        self.workers, self.on_error = workers, on_error
        self.spill_folder, self.most_bundle_bytes = spill_folder, most_bundle_bytes
        self.budget, self.sample = budget, sample

    def expand(self, blocks: beam.PCollection):  # Beam warns of a hint that is a dictionary
        splits = splits_of(blocks, self.splits, 'CountTokens')
        groups = self.groups or (tuple(range(len(splits[0].format.sides))),)
        sides = frozenset(side for sides in groups for side in sides)
        check_sides(sides, splits, 'CountTokens')
        counting = beam.ParDo(_CountBlocksFn(self, groups, splits))
        outputs = blocks | 'CountBlocks' >> counting.with_outputs(STATS, REJECTED, main=TABLES)
        key_to_table = (
            outputs[TABLES]  # (key, TableOrPath)
            | with_output_types(tuple[int, TableOrPath])
            | 'MergeTables' >> beam.CombinePerKey(MergeTablesFn())  # (key, TokenTable)
        )
        key_to_table.scheme, key_to_table.groups = self.scheme, groups  # for `LearnVocabulary`
        key_to_table.corpus_end = CorpusEnd(
            self.scheme, splits, filesystem.open_binary, sides=sides, sample=self.sample
        )
        return {TABLES: key_to_table, STATS: outputs[STATS], REJECTED: outputs[REJECTED]}


class _CountBlocksFn(beam.DoFn):
    """Counts blocks in several threads, which share the tables; sends the tables on when full."""

    def __init__(self, transform: CountTokens, groups: SideGroups, splits: Sequence[Split]):
        self._groups, self._splits = groups, splits
        self._workers, self._on_error = transform.workers, transform.on_error
        self._spill_folder = transform.spill_folder
        self._scheme, self._budget = transform.scheme, transform.budget
        self._sample = transform.sample
        self._output = BundleOutput(METRICS, transform.most_bundle_bytes)
        self._unicode = UNICODE_VERSION

    def setup(self) -> None:
        check_unicode(self._unicode, 'the driver', 'this worker')
        self._pool: OrderedPool = OrderedPool(self._workers)

    def start_bundle(self) -> None:
        self._output.begin()
        self._batches = BlockBatches(self._splits)
        self._begin_tables()

    def process(self, element: Block) -> Iterator:
        batches = self._batches.add(element)
        if not batches:
            return
        yield from self._count_batches(batches)
        if self._counters[0].nbytes(self._counters[1:]) >= _FLUSH_BYTES:
            yield from self._end_tables()
            self._begin_tables()

    def finish_bundle(self) -> Iterator:
        yield from map(in_global_window, self._end_tables())
        # Beam keeps this object for other bundles, while the tables are merged and written.
        del self._counters, self._idle
        self._output.end()

    def teardown(self) -> None:
        self._pool.close()

    def _begin_tables(self) -> None:
        scheme = self._scheme
        first = BlockCounter(
            self._groups, scheme.counting_normalizer, scheme.pre_tokenizer, self._sample,
            scheme.row_check,
        )  # fmt: skip
        self._counters = [first, *(first.for_another_thread() for _ in range(self._workers - 1))]
        self._idle: queue.SimpleQueue[BlockCounter] = queue.SimpleQueue()
        for counter in self._counters:
            self._idle.put(counter)

    def _count_batches(self, batches: Sequence[Batch]) -> Iterator[beam.pvalue.TaggedOutput]:
        for batch in batches:
            for stats in self._pool.submit(self._count, batch):
                yield from self._stats_outputs(stats)

    def _count(self, batch: Batch) -> BlockStats:
        counter = self._idle.get()
        try:
            return counter.add_batch(batch, self._splits, self._on_error, filesystem.open_binary)
        finally:
            self._idle.put(counter)

    def _end_tables(self) -> Iterator:
        """Yields the stats of the blocks in flight, and the tables of all blocks so far."""
        yield from self._count_batches(self._batches.rest())
        for stats in self._pool.drain():
            yield from self._stats_outputs(stats)
        for group, table in enumerate(self._counters[0].finish(self._counters[1:])):
            for partition, packed in self._packed_partitions(table):
                message = pack_or_spill(packed, self._output, self._spill_folder)
                yield group * COUNT_PARTITIONS + partition, message

    def _packed_partitions(self, table: TokenTable) -> Iterator[tuple[int, bytes]]:
        """Yields the partitions of a table, each packed; all threads share the work."""
        cuts = [len(table) * share // self._workers for share in range(self._workers + 1)]
        ranges = ((table, first, last) for first, last in zip(cuts, cuts[1:]))
        partition_to_parts: dict[int, list[TokenTable]] = {}

        def partition_range(table: TokenTable, first: int, last: int) -> list:
            return partition_table(table.part(first, last), COUNT_PARTITIONS)

        for partitioned in self._pool.map(partition_range, ranges):
            for partition, part in partitioned:
                partition_to_parts.setdefault(partition, []).append(part)
        partitions = sorted(partition_to_parts)
        parts = ((partition_to_parts.pop(partition),) for partition in partitions)
        packed = self._pool.map(lambda parts: concatenate_tables(parts).to_bytes(), parts)
        return zip(partitions, packed, strict=True)

    def _stats_outputs(self, stats: BlockStats) -> Iterator[beam.pvalue.TaggedOutput]:
        if self._budget is not None:
            self._budget.spend(stats)
        for output in tagged_stats(stats):
            if output.tag == STATS:
                size = _STATS_BYTES * (1 + len(output.value.checksums))
            else:
                size = len(output.value.json_lines)
            if not self._output.fits(size):
                raise InputError(
                    'the lines that cannot be used are more than a worker may send; check the '
                    'files and the columns, or give more --parallelism'
                )
            self._output.add(size)
            yield output


@dataclass(frozen=True)
class TableOrPath:
    """A packed table, or the path of a file that contains it."""

    packed: bytes
    path: str = ''

    def to_bytes(self) -> bytes:
        """Returns the packed table, or the path after a mark."""
        return self.packed or _PATH_MARK + self.path.encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> 'TableOrPath':
        """Returns the value whose `to_bytes` these are."""
        if data.startswith(_PATH_MARK):
            return cls(b'', data[len(_PATH_MARK) :].decode())
        return cls(data)


def pack_or_spill(packed: bytes, output: BundleOutput, folder: str | None) -> TableOrPath:
    """Returns a packed table, or writes it to a file in the folder if it would exceed the bundle's bound.

    The size of the result is added to the bundle's output so far.

    Raises:
        OversizedBundleError: the table exceeds the bound, and there is no folder.
    """
    if output.fits(len(packed), _TABLE_SHARE):
        output.add(len(packed))
        return TableOrPath(packed)
    if folder is None:
        raise OversizedBundleError(
            'a bundle has more distinct tokens than it may put out; give CountTokens a spill_folder'
        )
    path = os.path.join(folder, f'table-{uuid.uuid4().hex}')
    filesystem.write_bytes(path, packed)
    output.add(len(path))
    return TableOrPath(b'', path)


class _TableAccumulator:
    """The sum of the tables that arrived as such, and the paths of the spilled ones.

    A single table stays packed: mostly no other follows, and Beam packs and unpacks an accumulator
    three times on its way.
    """

    def __init__(self, packed: bytes = b'', paths: Sequence[str] = ()):
        self._packed = packed
        self._merger: TableMerger | None = None
        self.paths = list(paths)

    def add(self, packed: bytes) -> None:
        """Adds a packed table; does nothing for b''."""
        if not packed:
            return
        if self._merger is None and not self._packed:
            self._packed = packed
            return
        if self._merger is None:
            self._merger = TableMerger()
            self._merger.add(TokenTable.from_bytes(self._packed))
            self._packed = b''
        try:
            self._merger.add(TokenTable.from_bytes(packed))
        except OverflowError as error:
            raise InputError(
                'a token, or a part of tokens, occurs more than 2^63 - 1 times; make the counts smaller'
            ) from error

    def packed(self) -> bytes:
        """Returns the packed sum, or b'' if no table was added."""
        return self._packed if self._merger is None else self._merger.merged().to_bytes()

    def table(self) -> TokenTable:
        if self._merger is not None:
            return self._merger.merged()
        return TokenTable.from_bytes(self._packed) if self._packed else TokenTable.from_items(())

    def to_bytes(self) -> bytes:
        """Returns the length of the joined paths (8 bytes), the paths, and the packed sum."""
        paths = '\n'.join(self.paths).encode()
        return len(paths).to_bytes(8, 'little') + paths + self.packed()

    @classmethod
    def from_bytes(cls, data: bytes) -> '_TableAccumulator':
        """Returns the accumulator whose `to_bytes` these are."""
        end = 8 + int.from_bytes(data[:8], 'little')
        return cls(data[end:], data[8:end].decode().split('\n') if end > 8 else [])


class MergeTablesFn(beam.CombineFn):
    """Adds up packed tables as they arrive, so that memory grows with the distinct tokens alone.

    Spilled files are read in `extract_output`, after the shuffle: a combiner before the shuffle
    would send their contents through it.
    """

    def create_accumulator(self) -> _TableAccumulator:
        return _TableAccumulator()

    def add_input(
        self, mutable_accumulator: _TableAccumulator, element: TableOrPath
    ) -> _TableAccumulator:
        if element.path:
            mutable_accumulator.paths.append(element.path)
        mutable_accumulator.add(element.packed)
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[_TableAccumulator]) -> _TableAccumulator:
        merged = self.create_accumulator()
        for accumulator in accumulators:
            merged.add(accumulator.packed())
            merged.paths += accumulator.paths
        return merged

    def extract_output(self, accumulator: _TableAccumulator) -> TokenTable:
        for path in accumulator.paths:
            accumulator.add(filesystem.read_bytes(path))
        accumulator.paths = []
        return accumulator.table()

    def get_accumulator_coder(self) -> beam.coders.Coder:
        return PackedCoder(_TableAccumulator)


@dataclass(eq=False)
class CountTokensByElement(beam.PTransform):
    """Counts tokens as the textbook does, one (token, 1) for each: the reference for `CountTokens`.

    Returns a PCollection of (token, count).

    Attributes:
        sides: the sides that are counted together.
        splits: the corpus; errors name its files.
        scheme: splits rows into tokens; or its name.
        sample: the rows that are counted; None: all of them.

    Examples:
        >>> corpus = pipelines.ReadCorpus('train.en')
        >>> with beam.Pipeline(runner='FnApiRunner') as pipeline:
        ...     counts = pipeline | corpus | pipelines.CountTokensByElement((0,), corpus.splits, 'word')
        ...     _ = counts | beam.Filter(lambda each: each[0] == 'the') | beam.Map(print)
        ('the', 298)
    """

    sides: tuple[int, ...]
    splits: Sequence[Split]
    scheme: str | Scheme = DEFAULT_SCHEME
    sample: RowSample | None = None

    def __post_init__(self):
        self.scheme = find_scheme(self.scheme)

    def expand(self, blocks: beam.PCollection) -> beam.PCollection:
        splits = splits_of(blocks, self.splits, 'CountTokensByElement')
        check_sides(self.sides, splits, 'CountTokensByElement')
        return (
            blocks
            | 'Tokenize' >> beam.FlatMap(_tokens, self)  # (token, 1)
            | 'Sum' >> beam.CombinePerKey(sum)  # (token, count)
        )


def _tokens(block: Block, counting: CountTokensByElement) -> Iterator[tuple[str, int]]:
    scheme, sides = find_scheme(counting.scheme), counting.sides
    counted = rows_to_count(
        block, counting.splits, scheme.counting_normalizer, frozenset(sides), counting.sample
    )
    if counted.rows.rejects:
        [first, *_] = counted.rows.rejects
        raise reject_error(first, block, counting.splits, filesystem.open_binary)
    for index in sides:
        side = counted.sides[index]
        for start, end in zip(side.starts, side.ends, strict=True):
            for token in scheme.tokens(side.text[start:end].tobytes().decode()):
                yield token, 1


@dataclass(frozen=True)
class WrittenCounts(WrittenFile):
    """One file of a count table; `rows` are its distinct tokens, `tokens` the sum of its counts."""

    tokens: int = 0
    group: int = 0


@dataclass(eq=False)
class WriteCounts(beam.PTransform):
    """Writes the table of each key, sorted by the tokens' bytes, as one Parquet file.

    Takes (key, `TokenTable`) as `CountTokens` returns them; returns a `WrittenCounts` for each.

    Attributes:
        folders: for each group the folder of its files.
        workers: threads of a worker process.
        scheme: each file records the rules of its tokens; or its name.

    Examples:
        >>> with beam.Pipeline(runner='FnApiRunner') as pipeline:
        ...     counted = pipeline | pipelines.ReadCorpus('train.en') | pipelines.CountTokens('word')
        ...     _ = counted['tables'] | pipelines.WriteCounts(['counts'], scheme='word')
        >>> len(os.listdir('counts'))
        32
    """

    folders: Sequence[str]
    workers: int = 1
    scheme: str | Scheme = DEFAULT_SCHEME

    def __post_init__(self):
        if isinstance(self.folders, (str, os.PathLike)):
            raise TypeError(
                f'WriteCounts: folders is {str(self.folders)!r}; give a list, with a folder for each '
                'group'
            )
        self.folders = [checked_output(folder, str, 'WriteCounts') for folder in self.folders]
        self.scheme = find_scheme(self.scheme)

    def expand(self, key_to_table: beam.PCollection) -> beam.PCollection:
        groups = getattr(key_to_table, 'groups', ())
        if len(self.folders) < len(groups):
            raise InputError(
                f'CountTokens counts {len(groups)} groups, and WriteCounts has folders for '
                f'{len(self.folders)}; give one for each group'
            )
        rules = find_scheme(self.scheme).rules
        write = functools.partial(_write_partition, tuple(self.folders), rules)
        return key_to_table | 'Write' >> ThreadedMap(write, self.workers)  # WrittenCounts


def _write_partition(
    folders: Sequence[str], rules: TokenRules, key_and_table: tuple[int, TokenTable]
) -> WrittenCounts:
    key, table = key_and_table
    group, partition = divmod(key, COUNT_PARTITIONS)
    written = write_counts_file(folders[group], partition, table, rules)
    return dataclasses.replace(written, group=group)


def write_counts_file(
    folder: str, partition: int, table: TokenTable, rules: TokenRules
) -> WrittenCounts:
    """Writes one file of a count table, with the rules of its tokens in the schema's metadata."""
    sink = pa.BufferOutputStream()
    metadata = {UNICODE_KEY: UNICODE_VERSION, **rules.metadata()}
    if table.last_word is not None:
        metadata[LAST_WORD_KEY] = table.last_word.decode()
    rows = table.sorted().to_arrow().replace_schema_metadata(metadata)
    # Each token occurs once, so Parquet would give a dictionary of them up half way.
    parquet.write_table(rows, sink, compression='zstd', use_dictionary=['count'])
    data = sink.getvalue().to_pybytes()
    name = counts_name(partition)
    filesystem.write_bytes(os.path.join(folder, name), data)
    return WrittenCounts(name, len(data), google_crc32c.value(data), len(table), tokens=table.total)


def counts_name(partition: int) -> str:
    """Returns the name of a partition's file: `counts-00003-of-00032.parquet`."""
    return f'counts-{partition:05d}-of-{COUNT_PARTITIONS:05d}.parquet'


beam.coders.registry.register_coder(TokenTable, PackedCoder)
beam.coders.registry.register_coder(TableOrPath, PackedCoder)
