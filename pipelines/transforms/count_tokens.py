"""Blocks to token counts: packed tables by hash partition, and the textbook form beside it.

Tables are added up within a bundle, so its output grows with the number of distinct tokens. What
exceeds the bound of a bundle goes to files, and only their paths cross the shuffle.
"""

import dataclasses
import functools
import queue
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
from pipelines.transforms.stats import RejectionBudget
from tokcore.corpus.corpus import Block, Split
from tokcore.corpus.sampling import RowSample, counted_rows
from tokcore.corpus.stats import BlockStats, reject_error
from tokcore.counts.tables import (
    COUNT_PARTITIONS,
    BlockCounter,
    SideGroups,
    TableMerger,
    UnstorableTokens,
    concatenate_tables,
    partition_table,
)
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Scheme, TokenRules
from tokcore.errors import InputError
from tokcore.schemes import find_scheme
from tokcore.text.unicode import UNICODE_VERSION, check_unicode

TABLES = 'tables'
STATS = 'stats'
REJECTED = 'rejected'

UNICODE_KEY = 'tokbeam.unicode'
"""Where a count file's Parquet schema records the Unicode version that cut its tokens."""

_FLUSH_BYTES = 256 << 20
"""What a worker's tables may hold before they are sent on: more costs memory for each worker, and
half would send the frequent tokens twice as often."""

METRICS = 'tokbeam.count'

_STATS_BYTES = 100
"""Of a tally or a checksum: a name and some numbers."""

_TABLE_SHARE = 0.75
"""Of what a bundle may put out. The rest is for paths, stats and rejected lines."""

_MARK = b'@'
"""Begins a path among packed tables, which begin with their own mark."""


@dataclass(eq=False)
class CountTokens(beam.PTransform):
    """Counts the tokens of blocks; gives `tables`, merged, one for each key, and `stats`.

    A key is group * COUNT_PARTITIONS + partition. Stats are what `WriteStats` takes: `LineTally`
    and `RangeChecksum`. `rejected` has the `RejectedLines`.

    Attributes:
        groups: which sides are counted together.
        splits: the corpus, for the names in errors.
        workers: blocks in flight in a worker.
        on_error: 'stop' or 'skip' where a line cannot be used.
        overflow: the folder that tables are left in where a bundle would put out too much; workers
            must reach it. Without one that is an `OversizedBundleError`.
        most_bundle_bytes: what a bundle may put out.
        scheme: how lines become tokens.
        budget: of lines that may be left out; None: any number.
        sample: what lines must be in to be counted; None: any.
    """

    groups: SideGroups
    splits: Sequence[Split]
    workers: int = 1
    on_error: str = 'stop'
    overflow: str | None = None
    most_bundle_bytes: int = MOST_BUNDLE_BYTES
    scheme: Scheme = dataclasses.field(default_factory=find_scheme)
    budget: RejectionBudget | None = None
    sample: RowSample | None = None

    def expand(self, blocks: beam.PCollection):
        counting = beam.ParDo(_CountBlocksFn(self))
        counted = blocks | 'CountBlocks' >> counting.with_outputs(STATS, REJECTED, main=TABLES)
        key_to_table = (
            counted[TABLES]
            | with_output_types(tuple[int, TableMessage])
            | 'MergeTables' >> beam.CombinePerKey(MergeTablesFn())  # (key, table)
        )
        return {TABLES: key_to_table, STATS: counted[STATS], REJECTED: counted[REJECTED]}


def tagged_stats(stats: BlockStats) -> Iterator[beam.pvalue.TaggedOutput]:
    """Yields a block's stats as the tagged outputs of a DoFn."""
    for each in (stats.tally, *stats.checksums):
        yield beam.pvalue.TaggedOutput(STATS, each)
    for lines in stats.rejected:
        yield beam.pvalue.TaggedOutput(REJECTED, lines)


@dataclass(frozen=True)
class WrittenCounts:
    """One file of a count table; `tokens` is the sum of its counts."""

    name: str
    bytes: int
    crc32c: int
    rows: int
    tokens: int
    group: int = 0


@dataclass(eq=False)
class WriteCounts(beam.PTransform):
    """Writes each partition's table, sorted by the tokens' bytes, as one Parquet file.

    Gives a `WrittenCounts` for each.

    Attributes:
        folders: for each group the folder its files go to.
        workers: files in the making in a worker.
        scheme: whose rules found the tokens, which each file records.
    """

    folders: Sequence[str]
    workers: int = 1
    scheme: Scheme = dataclasses.field(default_factory=find_scheme)

    def expand(self, key_to_table: beam.PCollection) -> beam.PCollection:
        writing = functools.partial(_write_partition, tuple(self.folders), self.scheme.rules)
        return key_to_table | 'Write' >> ThreadedMap(writing, self.workers)


def counts_name(partition: int) -> str:
    return f'counts-{partition:05d}-of-{COUNT_PARTITIONS:05d}.parquet'


def write_counts_file(
    folder: str, partition: int, table: TokenTable, rules: TokenRules
) -> WrittenCounts:
    """Writes one file of a count table, which records the rules that found its tokens."""
    sink = pa.BufferOutputStream()
    metadata = {UNICODE_KEY: UNICODE_VERSION, **rules.metadata()}
    rows = table.sorted().to_arrow().replace_schema_metadata(metadata)
    # No token stands there twice, so a dictionary of them would only be given up half way.
    parquet.write_table(rows, sink, compression='zstd', use_dictionary=['count'])
    data = sink.getvalue().to_pybytes()
    name = counts_name(partition)
    filesystem.write_bytes(filesystem.join(folder, name), data)
    return WrittenCounts(name, len(data), google_crc32c.value(data), len(table), table.total)


class _CountBlocksFn(beam.DoFn):
    """Counts blocks, all threads into the same tables, and sends these on when they are full."""

    def __init__(self, counting: CountTokens):
        self._groups, self._splits = counting.groups, counting.splits
        self._workers, self._on_error = counting.workers, counting.on_error
        self._overflow = counting.overflow
        self._scheme, self._budget = counting.scheme, counting.budget
        self._sample = counting.sample
        self._output = BundleOutput(METRICS, counting.most_bundle_bytes)
        self._unicode = UNICODE_VERSION

    def setup(self) -> None:
        check_unicode(self._unicode, 'the driver', 'this worker')
        self._calls: OrderedPool = OrderedPool(self._workers)

    def start_bundle(self) -> None:
        self._output.begin()
        self._begin_tables()

    def process(self, element: Block) -> Iterator:
        for stats in self._calls.submit(self._count, element):
            yield from self._stats_outputs(stats)
        if self._counters[0].nbytes(self._counters[1:]) >= _FLUSH_BYTES:
            yield from self._end_tables()
            self._begin_tables()

    def finish_bundle(self) -> Iterator:
        yield from map(in_global_window, self._end_tables())
        # Beam keeps this object for other bundles, while the tables are merged and written.
        del self._counters, self._idle
        self._output.end()

    def teardown(self) -> None:
        self._calls.close()

    def _begin_tables(self) -> None:
        scheme = self._scheme
        unstorable = None
        if scheme.unstorable and scheme.rows_have_unstorable:
            unstorable = UnstorableTokens(scheme.unstorable, scheme.tokens)
        first = BlockCounter(
            self._groups, scheme.normalizer, scheme.pre_tokenizer, None, self._sample, unstorable
        )
        self._counters = [first, *(first.for_another_thread() for _ in range(self._workers - 1))]
        self._idle: queue.SimpleQueue[BlockCounter] = queue.SimpleQueue()
        for counter in self._counters:
            self._idle.put(counter)

    def _count(self, block: Block) -> BlockStats:
        counter = self._idle.get()
        try:
            return counter.add(block, self._splits, self._on_error)
        finally:
            self._idle.put(counter)

    def _end_tables(self) -> Iterator:
        """Yields what is left to be put out of all blocks so far."""
        for stats in self._calls.drain():
            yield from self._stats_outputs(stats)
        for group, table in enumerate(self._counters[0].finish(self._counters[1:])):
            for partition, packed in self._packed_partitions(table):
                sent = pack_or_spill(packed, self._output, self._overflow)
                yield group * COUNT_PARTITIONS + partition, sent

    def _packed_partitions(self, table: TokenTable) -> Iterator[tuple[int, bytes]]:
        """Deals a table's tokens to partitions, and packs those, by all threads."""
        cuts = [len(table) * share // self._workers for share in range(self._workers + 1)]
        parts: dict[int, list[TokenTable]] = {}
        shares = ((table, first, last) for first, last in zip(cuts, cuts[1:]))
        for dealt in self._calls.each(_partition_share, shares):
            for partition, part in dealt:
                parts.setdefault(partition, []).append(part)
        partitions = sorted(parts)
        packed = self._calls.each(_packed, ((parts.pop(each),) for each in partitions))
        return zip(partitions, packed, strict=True)

    def _stats_outputs(self, stats: BlockStats) -> Iterator[beam.pvalue.TaggedOutput]:
        if self._budget is not None:
            self._budget.spend(stats)
        for output in tagged_stats(stats):
            size = _STATS_BYTES if output.tag == STATS else len(output.value.json_lines)
            if not self._output.fits(size):
                raise InputError(
                    'the lines that cannot be used are more than a worker may send; check the '
                    'files and the columns, or give more --parallelism'
                )
            self._output.add(size)
            yield output


def _partition_share(table: TokenTable, first: int, last: int) -> list[tuple[int, TokenTable]]:
    return partition_table(table.part(first, last), COUNT_PARTITIONS)


def _packed(parts: Sequence[TokenTable]) -> bytes:
    return concatenate_tables(parts).to_bytes()


@dataclass(eq=False)
class CountTokensByElement(beam.PTransform):
    """The textbook form, one (token, 1) for each token: the reference that `CountTokens` equals.

    Gives (token, count) over the sides named, as strings and numbers.
    """

    sides: tuple[int, ...]
    splits: Sequence[Split]
    scheme: Scheme = dataclasses.field(default_factory=find_scheme)
    sample: RowSample | None = None

    def expand(self, blocks: beam.PCollection) -> beam.PCollection:
        asked = (self.sides, self.splits, self.scheme, self.sample)
        return (
            blocks
            | 'Tokenize' >> beam.FlatMap(_tokens, *asked)  # (token, 1)
            | 'Sum' >> beam.CombinePerKey(sum)
        )


def _tokens(
    block: Block,
    sides: tuple[int, ...],
    splits: Sequence[Split],
    scheme: Scheme,
    sample: RowSample | None,
) -> Iterator[tuple[str, int]]:
    counted = counted_rows(block, splits, scheme.normalizer, frozenset(sides), sample)
    if counted.rows.rejects:
        raise reject_error(counted.rows.rejects[0], block, splits)
    for side in (counted.sides[index] for index in sides):
        for start, end in zip(side.starts, side.ends, strict=True):
            for token in scheme.tokens(side.text[start:end].tobytes().decode()):
                yield token, 1


def _write_partition(
    folders: Sequence[str], rules: TokenRules, element: tuple[int, TokenTable]
) -> WrittenCounts:
    key, table = element
    group, partition = divmod(key, COUNT_PARTITIONS)
    written = write_counts_file(folders[group], partition, table, rules)
    return dataclasses.replace(written, group=group)


@dataclass(frozen=True)
class TableMessage:
    """A packed table, or where it was left."""

    packed: bytes
    path: str = ''

    def to_bytes(self) -> bytes:
        """Returns the table's own bytes, or the path behind a mark."""
        return self.packed or _MARK + self.path.encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> 'TableMessage':
        """Returns what `to_bytes` gave."""
        if data.startswith(_MARK):
            return cls(b'', data[len(_MARK) :].decode())
        return cls(data)


def pack_or_spill(packed: bytes, output: BundleOutput, folder: str | None) -> TableMessage:
    """Returns a packed table as it may be put out, and counts it as put out.

    Args:
        packed: the table's bytes.
        output: what the bundle has put out.
        folder: gets a file where the table would be too much; None if there is no such folder.

    Raises:
        OversizedBundleError: it is too much, and there is no folder.
    """
    if output.fits(len(packed), _TABLE_SHARE):
        output.add(len(packed))
        return TableMessage(packed)
    if folder is None:
        raise OversizedBundleError(
            'a bundle has counted more distinct tokens than it may put out; give CountTokens a '
            'folder for its overflow'
        )
    path = filesystem.join(folder, f'table-{uuid.uuid4().hex}')
    filesystem.write_bytes(path, packed)
    output.add(len(path))
    return TableMessage(b'', path)


class _TableAccumulator:
    """The tables that came as such, added up, and the paths of the others.

    As long as there is one table only it stays packed: mostly no other comes, and Beam packs and
    unpacks a sum three times on its way.
    """

    def __init__(self, packed: bytes = b'', paths: Sequence[str] = ()):
        self._packed = packed
        self._merger: TableMerger | None = None
        self.paths = list(paths)

    def add(self, packed: bytes) -> None:
        """Adds a packed table, or nothing."""
        if not packed:
            return
        if self._merger is None and not self._packed:
            self._packed = packed
            return
        if self._merger is None:
            self._merger = TableMerger()
            self._merger.add(TokenTable.from_bytes(self._packed))
            self._packed = b''
        self._merger.add(TokenTable.from_bytes(packed))

    def packed(self) -> bytes:
        """Returns the sum, or nothing if there was none."""
        return self._packed if self._merger is None else self._merger.merged().to_bytes()

    def to_bytes(self) -> bytes:
        """Returns the length of the paths, the paths, and the sum."""
        paths = '\n'.join(self.paths).encode()
        return len(paths).to_bytes(8, 'little') + paths + self.packed()

    @classmethod
    def from_bytes(cls, data: bytes) -> '_TableAccumulator':
        """Returns what `to_bytes` gave."""
        end = 8 + int.from_bytes(data[:8], 'little')
        return cls(data[end:], data[8:end].decode().split('\n') if end > 8 else [])

    def table(self) -> TokenTable:
        if self._merger is not None:
            return self._merger.merged()
        return TokenTable.from_bytes(self._packed) if self._packed else TokenTable.from_items(())


class MergeTablesFn(beam.CombineFn):
    """Adds up packed tables as they come: memory follows the distinct tokens alone.

    Files are read at the end, where the sum stays: combiners in front of a shuffle must not.
    """

    def create_accumulator(self) -> _TableAccumulator:
        return _TableAccumulator()

    def add_input(
        self, mutable_accumulator: _TableAccumulator, element: TableMessage
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


beam.coders.registry.register_coder(TokenTable, PackedCoder)
beam.coders.registry.register_coder(TableMessage, PackedCoder)
