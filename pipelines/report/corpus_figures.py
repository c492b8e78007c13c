"""What only the corpus of a dataset shows: the text of all its rows, and where each of them stood.

One pipeline reads it as `count` and `encode` do. Of text a bundle sends on sums and a table of words, which
are added up as those of tokens are. Of a row it sends on the order key and the number in its block, which
are sorted in the row's bucket: so they are in the order of the shards, and give the rank in the corpus. A
worker holds distinct words and a bucket, never all rows.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np

from pipelines.engines.compiling import compile_ahead
from pipelines.engines.pool import BundleOutput, OrderedPool, in_global_window, with_output_types
from pipelines.engines.progress import stage_running
from pipelines.files import filesystem
from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.jobs.reading import ReadPlan, plan_reading
from pipelines.report.row_text import Group, TextSums, TextTally, word_sums
from pipelines.transforms.count_tokens import MergeTablesFn, TableOrPath, pack_or_spill
from pipelines.transforms.encode_blocks import BlockEncoder, SplitShards
from pipelines.transforms.stats import STATS, WriteStats, read_stats
from pipelines.trust.corpus_rows import features_of
from pipelines.trust.rerun import changed_inputs, refuse_other_job
from tokcore.corpus.corpus import Block, Split, split_of
from tokcore.corpus.order_keys import OFFSET_BITS, order_keys, places_of
from tokcore.corpus.stats import RangeChecksum, block_stats, line_at
from tokcore.counts.tables import COUNT_PARTITIONS, partition_table
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.filters.applying import select_rows
from tokcore.process_end import UndoneAtEnd
from tokcore.records.examples import BucketBuffer, prefix_in
from tokcore.records.manifest import Manifest
from tokcore.records.tfrecord import FramedRows, sort_rows

_ROWS = 'rows'
_WORDS = 'words'

_FLUSH_BYTES = 64 << 20
"""What the words of a worker may take before they are sent on: those of a gigabyte of text."""

_NUMBERED_BYTES = 64 << 20
"""Text that is read to find the number of a line: compressed, this takes half a second."""

_BUFFER_BYTES = 64 << 20
"""What a worker holds of rows before it sends its fullest buckets on: three million of them."""


@dataclass(frozen=True)
class _BlockRows:
    """How many rows a block has, and where the first of them stood."""

    split: str
    dataset: str
    file_index: int
    identity: int
    rows: int


@dataclass(frozen=True)
class CorpusOrder:
    """The rows of a split, as the shards have them, and where each stood in the corpus.

    Attributes:
        splits: the datasets of the split.
        names: of these.
    """

    splits: Sequence[Split]
    names: tuple[str, ...]
    _folder: str  # of the buckets; one without rows has no file
    _buckets: int  # of a shard
    _seed: int
    _starts: np.ndarray  # uint64[blocks], ascending: the places of their first rows
    _ranks: np.ndarray  # int64[blocks]: how many rows stood before
    _datasets: np.ndarray  # int64[blocks]: their numbers

    def buckets(self, shard: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yields the ranks in the corpus and the datasets' numbers of a shard's rows, int64[rows] each, and
        their places, uint64[rows]."""
        for bucket in range(shard * self._buckets, (shard + 1) * self._buckets):
            path = _bucket_path(self._folder, self.splits[0].name, bucket)
            if (data := filesystem.read_if_there(path)) is not None:
                rows = FramedRows.from_bytes(data)
                places = _places(*places_of(rows.keys, self._seed))
                blocks = np.searchsorted(self._starts, places, side='right') - 1
                ranks = self._ranks[blocks] + rows.records.view('<u4')
                yield ranks, self._datasets[blocks], places

    def position(self, place: int) -> dict[str, object]:
        """Returns where a row stood, by its place: `file`, and `row of the file`, or `byte` and `line`.

        Its line is None beyond the first `_NUMBERED_BYTES` of the file's text.
        """
        index, at = divmod(place, 1 << OFFSET_BITS)
        split = split_of(self.splits, self.splits[0].name, index)
        assert split is not None, 'a place is in a file of the corpus'
        file = split.files_at(index)[0]
        if split.format.identity == 'row':
            return {'file': file.name, 'row of the file': at}
        line = line_at(file, at, filesystem.open_binary) if at <= _NUMBERED_BYTES else None
        return {'file': file.name, 'byte': at, 'line': line}


def _places(files: np.ndarray, identities: np.ndarray) -> np.ndarray:
    """Numbers that are ordered as the rows of a corpus: uint64[rows]."""
    return files.astype(np.uint64) << np.uint64(OFFSET_BITS) | identities.astype(np.uint64)


@contextlib.contextmanager
def read_corpus(
    job: BuildJob | EncodeJob,
    manifest: Manifest,
    rows: Mapping[str, int],
    features: Collection[str],
    work: str | None = None,
) -> Iterator[tuple[Mapping[Group, TextSums], Mapping[str, CorpusOrder]]]:
    """Reads the corpus of a dataset once, by the engine of its job.

    Yields texts by their group, and the order of each split, which can be read within the block.

    Args:
        job: that made the dataset.
        manifest: of the dataset.
        rows: how many it has, by split.
        features: whose text is counted.
        work: a folder that all workers reach; None: that of the dataset, or on this machine one for
            temporary files.

    Raises:
        InputError: the job is another, its corpus cannot be read, or has changed.
    """
    refuse_other_job(job, manifest)
    engine = job.execution.engine
    compile_ahead(engine.scheme, ['encoding', 'records', 'characters'])
    with _work_folder(job, work) as folder:
        with stage_running('index'):
            plan = plan_reading(job.reading, job.execution, folder)
        own = [encoded for encoded in features_of(job) if encoded.feature.name in features]
        corpus, on_error = plan.reading.corpus, plan.reading.on_error
        encoder = BlockEncoder(own, corpus.splits, job.dataset.seed, on_error, plan.reading.scheme)
        reading = _Reading(plan, encoder, job.dataset.layout(corpus), folder)
        with stage_running('read'), plan.tracked('read'):
            engine.run(reading.build, folder)
        yield reading.figures(manifest, rows)


@contextlib.contextmanager
def _work_folder(job: BuildJob | EncodeJob, work: str | None) -> Iterator[str]:
    runner = job.execution.engine.runner
    if work is None and runner.is_local:
        with tempfile.TemporaryDirectory(prefix='tokbeam-') as folder:
            yield folder
        return
    runner.refuse_place('--work', work or job.output)
    folder = os.path.join(work or job.output, f'.tokbeam-report-{uuid.uuid4().hex}')

    def delete(made: list[str]) -> None:
        filesystem.delete_known(folder, lambda name: True)
        filesystem.delete_empty_folders(made)

    with UndoneAtEnd(lambda: filesystem.make_folders(folder), delete):
        yield folder


@dataclass(frozen=True)
class _Reading:
    """What is read, and what of it is counted.

    Attributes:
        plan: the work items.
        encoder: has the vocabularies of the features whose text is counted.
        layout: the buckets of each split.
        folder: for what workers find.
    """

    plan: ReadPlan
    encoder: BlockEncoder
    layout: Sequence[SplitShards]
    folder: str

    def build(self, pipeline: beam.Pipeline) -> None:
        """Adds the steps to a pipeline."""
        reading = beam.ParDo(_ReadTextFn(self))
        read = self.plan.read(pipeline) | 'ReadText' >> reading.with_outputs(
            STATS, _WORDS, main=_ROWS
        )
        read[STATS] | 'WriteStats' >> WriteStats(self._path('stats'))
        (
            read[_WORDS]  # ((the group and the partition), TableOrPath)
            | with_output_types(tuple[tuple[str, str, str, int], TableOrPath])
            | 'MergeTables' >> beam.CombinePerKey(MergeTablesFn())  # (…, TokenTable)
            | 'SumWords' >> beam.ParDo(_SumWordsFn(self.encoder))  # TextSums
            | 'WriteWords' >> WriteStats(self._path('words'))
        )
        (
            read[_ROWS]  # ((split, bucket), bytes of FramedRows)
            | 'RowTypes' >> with_output_types(tuple[tuple[str, int], bytes])
            | 'GroupByBucket' >> beam.GroupByKey()
            | 'WriteBuckets' >> beam.Map(_write_bucket, self.folder)
        )

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def figures(
        self, manifest: Manifest, rows: Mapping[str, int]
    ) -> tuple[Mapping[Group, TextSums], Mapping[str, CorpusOrder]]:
        """Returns what the pipeline has found, after it has run; raises as `read_corpus`."""
        read = list(read_stats(self._path('stats'), TextSums, RangeChecksum, _BlockRows))
        checksums = [record for record in read if isinstance(record, RangeChecksum)]
        for finding in changed_inputs(self.plan.reading.corpus, manifest, checksums):
            raise InputError(
                f'{finding.problem}; tokbeam verify --rerun names the rows that differ'
            )
        texts: dict[Group, TextSums] = {}
        words = read_stats(self._path('words'), TextSums)
        for sums in (*(record for record in read if isinstance(record, TextSums)), *words):
            group = tuple(sums.group)
            texts[group] = texts[group] + sums if group in texts else sums
        blocks = [record for record in read if isinstance(record, _BlockRows) and record.rows]
        orders = {each.split: self._order(each, blocks, rows[each.split]) for each in self.layout}
        return texts, orders

    def _order(self, layout: SplitShards, blocks: Iterable[_BlockRows], rows: int) -> CorpusOrder:
        splits = [own for own in self.plan.reading.corpus.splits if own.name == layout.split]
        names = tuple(dict.fromkeys(own.dataset for own in splits))
        ordered = sorted(
            (block.file_index, block.identity, block.rows, names.index(block.dataset))
            for block in blocks
            if block.split == layout.split
        )
        files, identities, sizes, datasets = np.array(ordered, np.int64).reshape(-1, 4).T
        if sizes.sum() != rows:
            raise InputError(
                f'the dataset has {rows:,} rows of {layout.split}, and its corpus gives {sizes.sum():,}; '
                'tokbeam verify --rerun names what differs'
            )
        return CorpusOrder(
            splits,
            names,
            self.folder,
            layout.buckets_per_shard,
            self.encoder.seed,
            _places(files, identities),
            np.cumsum(sizes) - sizes,
            datasets,
        )


class _ReadTextFn(beam.DoFn):
    """Reads blocks in several threads, which count text together."""

    def __init__(self, reading: _Reading):
        self._encoder, self._workers = reading.encoder, reading.plan.workers
        self._layout, self._folder = reading.layout, reading.folder
        self._output = BundleOutput('tokbeam.report')

    def setup(self) -> None:
        self._pool: OrderedPool = OrderedPool(self._workers)

    def start_bundle(self) -> None:
        self._output.begin()
        self._buffers = {
            layout.split: BucketBuffer(layout.buckets, _BUFFER_BYTES) for layout in self._layout
        }
        self._begin_texts()

    def process(self, block: Block) -> Iterator:
        for read in self._pool.submit(self._read, block):
            yield from self._outputs(*read)
        if sum(tally.nbytes for tally in self._texts.values()) >= _FLUSH_BYTES:
            yield from self._end_texts()
            self._begin_texts()

    def finish_bundle(self) -> Iterator:
        yield from map(in_global_window, self._end_texts())
        for split, buffer in self._buffers.items():
            for bucket, rows in buffer.flush_all():
                yield in_global_window(((split, bucket), rows.to_bytes()))
        self._output.end()

    def teardown(self) -> None:
        self._pool.close()

    def _begin_texts(self) -> None:
        splits = self._encoder.splits
        self._texts = {
            (split.name, _dataset_of(split, splits), encoded.feature.name): TextTally()
            for split in splits
            for encoded in self._encoder.features
        }

    def _read(self, block: Block) -> tuple[_BlockRows, Sequence[RangeChecksum], FramedRows]:
        encoder = self._encoder
        rows = select_rows(block, encoder.splits, encoder.scheme.normalizer)
        checksums = block_stats(block, rows, encoder.splits, encoder.on_error).checksums
        split = split_of(encoder.splits, block.split, block.file_index)
        assert split is not None, 'a block is of a file of the corpus'
        for feature in (encoded.feature for encoded in encoder.features):
            tally = self._texts[split.name, _dataset_of(split, encoder.splits), feature.name]
            tally.add(rows.sides[feature.side].with_prefix(prefix_in(split, feature)))
        keys = order_keys(block.file_index, rows.identities, encoder.seed)
        numbers = np.arange(len(rows), dtype='<u4')
        lengths, sizes = np.full(len(rows), numbers.itemsize), np.empty((len(rows), 0), np.uint32)
        framed = FramedRows(keys, lengths, numbers.view(np.uint8), sizes)
        first = int(rows.identities[0]) if len(rows) else 0
        block_rows = _BlockRows(split.name, split.dataset, block.file_index, first, len(rows))
        return block_rows, checksums, framed

    def _outputs(
        self, block_rows: _BlockRows, checksums: Sequence[RangeChecksum], rows: FramedRows
    ) -> Iterator:
        for record in (block_rows, *checksums):
            yield beam.pvalue.TaggedOutput(STATS, record)
        for bucket, part in self._buffers[block_rows.split].add(rows):
            yield (block_rows.split, bucket), part.to_bytes()

    def _end_texts(self) -> Iterator:
        """Yields what is left of the blocks in flight, and the texts of all blocks so far."""
        for read in self._pool.drain():
            yield from self._outputs(*read)
        for (split, dataset, feature), tally in self._texts.items():
            partitions = [
                (partition, table.to_bytes())
                for partition, table in partition_table(tally.words(), COUNT_PARTITIONS)
            ]
            for group in dict.fromkeys([(split, dataset, feature), (split, '', feature)]):
                yield beam.pvalue.TaggedOutput(STATS, tally.sums(group))
                for partition, packed in partitions:
                    message = pack_or_spill(packed, self._output, self._folder)
                    yield beam.pvalue.TaggedOutput(_WORDS, ((*group, partition), message))


def _dataset_of(split: Split, splits: Sequence[Split]) -> str:
    """Returns the name of a dataset; '' if its split has no other, so that it is the whole split."""
    names = {other.dataset for other in splits if other.name == split.name}
    return split.dataset if len(names) > 1 else ''


class _SumWordsFn(beam.DoFn):
    """Cuts the words of a table into pieces."""

    def __init__(self, encoder: BlockEncoder):
        self._encoder = encoder

    def setup(self) -> None:
        loaded, scheme = self._encoder.load(), self._encoder.scheme
        self._encoders = {
            encoded.feature.name: scheme.encoder(
                loaded.vocabulary(encoded.vocabulary), scheme.encoding()
            )
            for encoded in self._encoder.features
        }

    def process(self, element: tuple[tuple[str, str, str, int], TokenTable]) -> Iterator[TextSums]:
        (split, dataset, feature, _), table = element
        yield word_sums((split, dataset, feature), table, self._encoders[feature])


def _bucket_path(folder: str, split: str, bucket: int) -> str:
    return os.path.join(folder, f'rows-{split}-{bucket:08d}')


def _write_bucket(bucket_to_parts: tuple[tuple[str, int], Iterable[bytes]], folder: str) -> None:
    bucket, parts = bucket_to_parts
    rows = sort_rows(map(FramedRows.from_bytes, parts))
    filesystem.write_bytes(_bucket_path(folder, *bucket), rows.to_bytes())
