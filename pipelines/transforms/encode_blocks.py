"""Blocks to framed examples, keyed by the bucket of the shuffle that they belong to."""

import dataclasses
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.utils.shared import Shared

from pipelines.engines.pool import OrderedPool, in_global_window, with_output_types
from pipelines.files import filesystem
from pipelines.transforms.count_tokens import REJECTED, STATS, tagged_stats
from pipelines.transforms.stats import RejectionBudget
from tokcore.corpus.corpus import Block, Split
from tokcore.encoding.scheme import EncodingOptions, Scheme
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.records.examples import (
    BucketBuffer,
    EncodedBlock,
    Feature,
    FeatureEncoder,
    encode_block,
)
from tokcore.schemes import find_scheme
from tokcore.text.unicode import UNICODE_VERSION, check_unicode

RECORDS = 'records'


@dataclass(frozen=True)
class EncodedFeature:
    """A feature of the examples and the vocabulary file that encodes it.

    Of a scheme that has no vocabulary files the path is empty.
    """

    feature: Feature
    vocabulary: str


@dataclass(frozen=True)
class SplitShards:
    """How the examples of one split are spread: shards, each cut into as many buckets.

    Both are contiguous ranges of order keys, so a shard is its buckets one after another and the
    number of buckets changes no byte of it.
    """

    split: str
    shards: int
    buckets_per_shard: int

    @property
    def buckets(self) -> int:
        return self.shards * self.buckets_per_shard


@dataclass(eq=False)
class EncodeBlocks(beam.PTransform):
    """Encodes blocks as framed TFRecords; gives `records` by bucket, `stats`, `rejected`.

    `records` is ((split number, bucket), bytes of `FramedRows`); the others as in `CountTokens`.

    Attributes:
        features: what an example holds.
        splits: the corpus, in the order of the split numbers.
        layout: for each split its shards and buckets.
        seed: of the order keys.
        workers: blocks in flight in a worker.
        buffer_bytes: what a worker holds before it sends its fullest buckets on.
        on_error: 'stop' or 'skip' where a line cannot be used.
        scheme: how rows become ids.
        options: what is asked of its encoder; None for what it does by itself.
        budget: of lines that may be left out; None: any number.
    """

    features: Sequence[EncodedFeature]
    splits: Sequence[Split]
    layout: Sequence[SplitShards]
    seed: int
    workers: int = 1
    buffer_bytes: int = 256 << 20
    on_error: str = 'stop'
    scheme: Scheme = dataclasses.field(default_factory=find_scheme)
    options: EncodingOptions | None = None
    budget: RejectionBudget | None = None

    def expand(self, blocks: beam.PCollection):
        encoded = blocks | 'EncodeBlocks' >> beam.ParDo(_EncodeBlocksFn(self)).with_outputs(
            STATS, REJECTED, main=RECORDS
        )
        return {
            RECORDS: encoded[RECORDS] | with_output_types(tuple[tuple[int, int], bytes]),
            STATS: encoded[STATS],
            REJECTED: encoded[REJECTED],
        }


@dataclass(eq=False)
class BlockEncoder:
    """What is encoded and how, as it goes to workers; each of them loads it.

    Attributes:
        features: what an example holds.
        splits: the corpus, in the order of the split numbers.
        seed: of the order keys.
        on_error: 'stop' or 'skip' where a line cannot be used.
        scheme: how rows become ids.
        options: what is asked of its encoder; None for what it does by itself.
    """

    features: Sequence[EncodedFeature]
    splits: Sequence[Split]
    seed: int
    on_error: str
    scheme: Scheme
    options: EncodingOptions | None = None

    def __post_init__(self):
        self._unicode = UNICODE_VERSION
        # One handle for each vocabulary file: with it, a process loads the file once.
        self._handles = {each.vocabulary: Shared() for each in self.features}

    def load(self) -> 'LoadedBlockEncoder':
        """Returns what encodes blocks in this process, in which each vocabulary is loaded once."""
        check_unicode(self._unicode, 'the driver', 'this worker')
        return LoadedBlockEncoder(
            self,
            {
                path: handle.acquire(lambda path=path: self._load(path), tag=path)
                for path, handle in self._handles.items()
            },
        )

    def _load(self, path: str) -> Vocabulary:
        if self.scheme.fixed is not None:
            return self.scheme.fixed
        return self.scheme.parse(filesystem.read_bytes(path), path, filesystem.read_if_there)


class LoadedBlockEncoder:
    """Encodes blocks in any thread of a process; it is never pickled."""

    def __init__(self, encoder: BlockEncoder, vocabularies: Mapping[str, Vocabulary]):
        self._encoder = encoder
        self._vocabularies = vocabularies
        self._of_thread = threading.local()

    def encode(self, block: Block) -> EncodedBlock:
        """Returns a block's framed examples and stats; raises InputError as `encode_block`."""
        if not hasattr(self._of_thread, 'features'):
            self._of_thread.features = self._feature_encoders()
        given = self._encoder
        return encode_block(
            block,
            self._of_thread.features,
            given.seed,
            given.splits,
            given.scheme.normalizer,
            given.on_error,
        )

    def _feature_encoders(self) -> list[FeatureEncoder]:
        # The memo is a thread's own; the vocabulary's arrays are the process's.
        scheme, features = self._encoder.scheme, self._encoder.features
        options = self._encoder.options or scheme.encoding()
        encoders = {
            path: scheme.encoder(vocabulary, options)
            for path, vocabulary in self._vocabularies.items()
        }
        return [
            FeatureEncoder(
                each.feature,
                encoders[each.vocabulary],
                scheme.template(self._vocabularies[each.vocabulary], options.template),
                self._vocabularies[each.vocabulary].special_ids.unknown,
            )
            for each in features
        ]


class _EncodeBlocksFn(beam.DoFn):
    def __init__(self, transform: EncodeBlocks):
        self._encoder = BlockEncoder(
            tuple(transform.features),
            tuple(transform.splits),
            transform.seed,
            transform.on_error,
            transform.scheme,
            transform.options,
        )
        self._layout = tuple(transform.layout)
        self._workers = transform.workers
        self._budget = transform.budget
        self._buffer_bytes = transform.buffer_bytes

    def setup(self) -> None:
        self._loaded = self._encoder.load()
        self._calls: OrderedPool[tuple[str, EncodedBlock]] = OrderedPool(self._workers)

    def start_bundle(self) -> None:
        # The limit is for all splits together; a block's split has its own ranges of keys.
        self._buffers = [BucketBuffer(each.buckets, self._buffer_bytes) for each in self._layout]

    def process(self, element: Block) -> Iterator:
        for split, encoded in self._calls.submit(self._encode, element):
            yield from self._take(split, encoded)

    def finish_bundle(self) -> Iterator:
        for split, encoded in self._calls.drain():
            for output in self._take(split, encoded):
                yield in_global_window(output)
        for number, buffer in enumerate(self._buffers):
            for bucket, rows in buffer.flush_all():
                yield in_global_window(((number, bucket), rows.to_bytes()))

    def teardown(self) -> None:
        self._calls.close()

    def _encode(self, block: Block) -> tuple[str, EncodedBlock]:
        return block.split, self._loaded.encode(block)

    def _take(self, split: str, encoded: EncodedBlock) -> Iterator:
        if self._budget is not None:
            self._budget.spend(encoded.stats)
        yield from tagged_stats(encoded.stats)
        number = next(n for n, each in enumerate(self._layout) if each.split == split)
        for bucket, rows in self._buffers[number].add(encoded.rows):
            yield (number, bucket), rows.to_bytes()
