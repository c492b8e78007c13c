"""Encodes blocks as framed examples, keyed by the bucket of the shuffle that they belong to."""

import dataclasses
import functools
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.utils.shared import Shared

from pipelines.engines.pool import OrderedPool, in_global_window, with_output_types
from pipelines.files import filesystem
from pipelines.transforms.stats import REJECTED, STATS, RejectionBudget, tagged_stats
from tokcore.corpus.corpus import Block, OnError, Split
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
    """A feature of the examples, and the path of the vocabulary that encodes it.

    The path is empty for a scheme that has no vocabulary files.
    """

    feature: Feature
    vocabulary: str


@dataclass(frozen=True)
class SplitShards:
    """The shards of one split, and the buckets that each of them is sorted in.

    Shards and buckets are contiguous ranges of order keys. So a shard is the concatenation of its
    buckets, and the number of buckets does not change its bytes.

    Raises:
        ValueError: a number below 1.
    """

    split: str
    shards: int
    buckets_per_shard: int

    def __post_init__(self):
        if min(self.shards, self.buckets_per_shard) < 1:
            raise ValueError(f'{self} has a number below 1')

    @property
    def buckets(self) -> int:
        return self.shards * self.buckets_per_shard


@dataclass(eq=False)
class EncodeBlocks(beam.PTransform):
    """Encodes blocks as framed TFRecords.

    Returns a dictionary of PCollections: `records` has ((split number, bucket), bytes of
    `FramedRows`); `stats` and `rejected` are as those of `CountTokens`.

    Attributes:
        features: the features of an example.
        splits: the corpus, in the order of the split numbers.
        layout: for each split number its shards and buckets.
        seed: of the order keys.
        workers: threads of a worker process.
        buffer_bytes: how much a worker holds before it sends its fullest buckets on.
        on_error: whether a line that cannot be used stops the job or is rejected.
        scheme: turns rows into ids.
        options: of the scheme's encoder; None for its defaults.
        budget: how many lines may be rejected; None: any number.
    """

    features: Sequence[EncodedFeature]
    splits: Sequence[Split]
    layout: Sequence[SplitShards]
    seed: int
    workers: int = 1
    buffer_bytes: int = 256 << 20
    on_error: OnError = 'stop'
    scheme: Scheme = dataclasses.field(default_factory=find_scheme)
    options: EncodingOptions | None = None
    budget: RejectionBudget | None = None

    def __post_init__(self):
        if self.workers < 1:
            raise ValueError(f'{self.workers} workers; give at least 1')
        if self.on_error not in ('stop', 'skip'):
            raise ValueError(f"on_error is {self.on_error!r}; give 'stop' or 'skip'")

    def expand(self, blocks: beam.PCollection):  # Beam warns of a hint that is a dictionary
        encoding = beam.ParDo(_EncodeBlocksFn(self))
        outputs = blocks | 'EncodeBlocks' >> encoding.with_outputs(STATS, REJECTED, main=RECORDS)
        bucket_to_rows = outputs[RECORDS] | with_output_types(tuple[tuple[int, int], bytes])
        return {RECORDS: bucket_to_rows, STATS: outputs[STATS], REJECTED: outputs[REJECTED]}


class _EncodeBlocksFn(beam.DoFn):
    """Encodes blocks in several threads, and collects the examples of each bucket."""

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
        self._split_to_number = {shards.split: n for n, shards in enumerate(self._layout)}
        self._workers = transform.workers
        self._budget = transform.budget
        self._buffer_bytes = transform.buffer_bytes

    def setup(self) -> None:
        self._loaded = self._encoder.load()
        self._pool: OrderedPool[tuple[str, EncodedBlock]] = OrderedPool(self._workers)

    def start_bundle(self) -> None:
        # The limit is for all splits together; a block's split has ranges of keys of its own.
        self._buffers = [
            BucketBuffer(shards.buckets, self._buffer_bytes) for shards in self._layout
        ]

    def process(self, element: Block) -> Iterator:
        for split, encoded in self._pool.submit(self._encode, element):
            yield from self._outputs(split, encoded)

    def finish_bundle(self) -> Iterator:
        for split, encoded in self._pool.drain():
            for output in self._outputs(split, encoded):
                yield in_global_window(output)
        for number, buffer in enumerate(self._buffers):
            for bucket, rows in buffer.flush_all():
                yield in_global_window(((number, bucket), rows.to_bytes()))

    def teardown(self) -> None:
        self._pool.close()

    def _encode(self, block: Block) -> tuple[str, EncodedBlock]:
        return block.split, self._loaded.encode(block)

    def _outputs(self, split: str, encoded: EncodedBlock) -> Iterator:
        if self._budget is not None:
            self._budget.spend(encoded.stats)
        yield from tagged_stats(encoded.stats)
        number = self._split_to_number[split]
        for bucket, rows in self._buffers[number].add(encoded.rows):
            yield (number, bucket), rows.to_bytes()


@dataclass(eq=False)
class BlockEncoder:
    """Encodes blocks in workers: this is pickled and sent to them, and each of them loads it.

    Attributes:
        features: the features of an example.
        splits: the corpus, in the order of the split numbers.
        seed: of the order keys.
        on_error: whether a line that cannot be used stops the job or is rejected.
        scheme: turns rows into ids.
        options: of the scheme's encoder; None for its defaults.
    """

    features: Sequence[EncodedFeature]
    splits: Sequence[Split]
    seed: int
    on_error: OnError
    scheme: Scheme
    options: EncodingOptions | None = None

    def __post_init__(self):
        self._unicode = UNICODE_VERSION
        # With one handle for each path, a process loads each vocabulary once.
        self._handles = {feature.vocabulary: Shared() for feature in self.features}

    def load(self) -> 'LoadedBlockEncoder':
        """Returns the encoder of this process, with its vocabularies loaded."""
        check_unicode(self._unicode, 'the driver', 'this worker')
        return LoadedBlockEncoder(
            self,
            {
                path: handle.acquire(functools.partial(self._load, path), tag=path)
                for path, handle in self._handles.items()
            },
        )

    def _load(self, path: str) -> Vocabulary:
        if self.scheme.fixed is not None:
            return self.scheme.fixed
        return self.scheme.parse(filesystem.read_bytes(path), path, filesystem.read_if_there)


class LoadedBlockEncoder:
    """Encodes blocks in any thread of a process; it is never pickled."""

    def __init__(self, encoder: BlockEncoder, path_to_vocabulary: Mapping[str, Vocabulary]):
        self._encoder = encoder
        self._path_to_vocabulary = path_to_vocabulary
        self._thread = threading.local()

    def encode(self, block: Block) -> EncodedBlock:
        """Returns a block's framed examples and its stats; raises InputError as `encode_block`."""
        if not hasattr(self._thread, 'features'):
            self._thread.features = self._feature_encoders()
        encoder = self._encoder
        return encode_block(
            block,
            self._thread.features,
            encoder.seed,
            encoder.splits,
            encoder.scheme.normalizer,
            encoder.on_error,
        )

    def _feature_encoders(self) -> list[FeatureEncoder]:
        # Each thread has a memo of its own; the vocabularies' arrays belong to the process.
        scheme, features = self._encoder.scheme, self._encoder.features
        options = self._encoder.options or scheme.encoding()
        path_to_encoder = {
            path: scheme.encoder(vocabulary, options)
            for path, vocabulary in self._path_to_vocabulary.items()
        }
        encoders = []
        for encoded in features:
            vocabulary = self._path_to_vocabulary[encoded.vocabulary]
            encoders.append(
                FeatureEncoder(
                    encoded.feature,
                    path_to_encoder[encoded.vocabulary],
                    scheme.template(vocabulary, options.template),
                    vocabulary.special_ids.unknown,
                )
            )
        return encoders
