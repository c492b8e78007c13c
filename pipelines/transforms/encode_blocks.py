"""Encodes blocks as framed examples, keyed by the bucket of the shuffle that they belong to."""

import dataclasses
import functools
import itertools
import logging
import os
import re
import threading
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.utils.shared import Shared

from pipelines.engines.pool import OrderedPool, in_global_window, with_output_types
from pipelines.files import filesystem
from pipelines.files.vocabulary_files import find_vocabulary
from pipelines.transforms.read import Path, check_sides, splits_of
from pipelines.transforms.stats import REJECTED, STATS, RejectionBudget, tagged_stats
from tokcore.corpus.block_batches import Batch, BlockBatches
from tokcore.corpus.corpus import Block, OnError, Split
from tokcore.corpus.storage import likely_text_bytes
from tokcore.encoding.encoder import PrefixEncoder
from tokcore.encoding.scheme import EncodingOptions, Scheme, refuse_different
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError
from tokcore.keywords import keyword_fields, split_keywords
from tokcore.records.examples import (
    BucketBuffer,
    EncodedBlock,
    Feature,
    FeatureEncoder,
    encode_batch,
)
from tokcore.schemes import DEFAULT_SCHEME, find_scheme
from tokcore.text.unicode import UNICODE_VERSION, check_unicode

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from tokcore.keyword_types import EncodeKeywords

_LOGGER = logging.getLogger(__name__)

RECORDS = 'records'

_BUCKET_BYTES = 16 << 20
"""Planned size of a bucket: sorting it takes a few times as much, and a shard of usual size is a
handful. Half would double the elements of the shuffle, twice the memory of every writer."""

_BUFFER_BYTES = 256 << 20
"""What a worker holds before it sends its fullest buckets on: some thirty blocks of 8 MiB. With 1,000
buckets an element of Beam has 256 KiB, large against its cost. With half of it elements are half as large;
twice is much where each thread has a buffer."""


@dataclass(frozen=True)
class EncodedFeature:
    """A feature of the examples, and the path of the vocabulary that encodes it.

    The path is empty for a scheme that has no vocabulary files.

    Examples:
        >>> pipelines.EncodedFeature(tokcore.Feature('targets', 0), 'vocab/tokenizer.json')
        EncodedFeature(feature=Feature(name='targets', side=0, prefix=''), vocabulary='vocab/tokenizer.json')
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

    Examples:
        >>> pipelines.SplitShards.of_size('train', shards=2, text_bytes=1 << 30)
        SplitShards(split='train', shards=2, buckets_per_shard=32)
    """

    split: str
    shards: int
    buckets_per_shard: int

    def __post_init__(self):
        if min(self.shards, self.buckets_per_shard) < 1:
            raise ValueError(f'{self} has a number below 1')

    @classmethod
    def of_size(cls, split: str, shards: int, text_bytes: int) -> 'SplitShards':
        """Returns shards of this many bytes of text, each in buckets of a size that can be sorted."""
        return cls(split, shards, max(1, -(-text_bytes // shards // _BUCKET_BYTES)))

    @property
    def buckets(self) -> int:
        return self.shards * self.buckets_per_shard


class EncodeBlocks(beam.PTransform):
    """Encodes blocks as framed TFRecords.

    Returns a dictionary of PCollections: `records` has ((split number, bucket), bytes of
    `FramedRows`); `stats` and `rejected` are as those of `CountTokens`. `WriteShards` takes it.

    Examples:
        >>> with beam.Pipeline(runner='FnApiRunner') as pipeline:
        ...     blocks = pipeline | pipelines.ReadCorpus('train.en')
        ...     encoded = blocks | pipelines.EncodeBlocks(scheme='byte', shards=2)
        ...     _ = encoded['stats'] | beam.Map(lambda stats: print(stats.tally.examples))
        400
    """

    def __init__(
        self,
        vocabulary: Path | beam.PCollection | Mapping[str, Path] | None = None,
        scheme: str | Scheme = DEFAULT_SCHEME,
        *,
        shards: int = 10,
        seed: int = 0,
        features: Sequence[EncodedFeature] | None = None,
        splits: Sequence[Split] | None = None,
        layout: Sequence[SplitShards] | None = None,
        workers: int = 1,
        buffer_bytes: int = _BUFFER_BYTES,
        on_error: OnError = 'stop',
        budget: RejectionBudget | None = None,
        encoding: EncodingOptions | None = None,
        **options: 'Unpack[EncodeKeywords]',
    ):
        """Takes a vocabulary and its scheme.

        Args:
            vocabulary: the path of the file for all sides, or by side, as {'inputs': …, 'targets':
                …}; or of a folder as hubs have it, whose files may state options of the scheme; or
                the output of `LearnVocabulary`, for which the workers then wait. None for a scheme
                without vocabulary files, or if there are `features`.
            scheme: its name, or the scheme itself.
            shards: of each split.
            seed: of the order keys.
            features: what an example has, in place of `vocabulary`; None: each side by its name.
            splits: the corpus, in the order of the split numbers; None: that of the `ReadCorpus` to
                whose output this is applied.
            layout: for each split number its shards and buckets; None: `shards`, and the buckets
                that the size of the files needs.
            workers: threads of a worker process.
            buffer_bytes: how much a worker holds before it sends its fullest buckets on.
            on_error: whether a line that cannot be used stops the job or is rejected.
            budget: how many lines may be rejected; None: any number.
            encoding: options of the scheme's encoder, in place of those among `options`.
            options: of the scheme and of its encoder, as the command has them: `template`, ...

        Raises:
            InputError: an unknown scheme, a vocabulary that cannot be read or is of another scheme,
                or a value that an option cannot have.
            TypeError: the scheme has no such option, or it has a value of another type.
        """
        super().__init__()
        stated: dict[str, Mapping[str, object]] = {}
        if isinstance(vocabulary, (str, os.PathLike, Mapping)):
            vocabulary, stated = _files_of(vocabulary, scheme)
        self.scheme, self.encoding = _encoding_of(scheme, options, stated)
        if encoding is not None:
            self.encoding = encoding
        if workers < 1:
            raise ValueError(f'{workers} workers; give at least 1')
        if shards < 1:
            raise ValueError(f'{shards} shards; give at least 1')
        if on_error not in ('stop', 'skip'):
            raise ValueError(f"on_error is {on_error!r}; give 'stop' or 'skip'")
        self.features = features
        self._paths: dict[str, str] = {}
        self._learned: beam.PCollection | None = None
        if features is None:
            self._take_vocabulary(vocabulary)
        elif vocabulary is not None:
            raise TypeError('features name their vocabularies; leave vocabulary out')
        self.shards, self.seed, self.splits, self.layout = shards, seed, splits, layout
        self.workers, self.buffer_bytes = workers, buffer_bytes
        self.on_error, self.budget = on_error, budget

    def _take_vocabulary(
        self, vocabulary: Path | beam.PCollection | Mapping[str, Path] | None
    ) -> None:
        if isinstance(vocabulary, beam.PCollection):
            learned = getattr(vocabulary, 'vocabulary', None)
            if learned is None:
                raise TypeError('vocabulary is a PCollection, and not that of LearnVocabulary')
            path, scheme = learned
            if scheme.rules != self.scheme.rules:
                raise InputError(
                    f'the vocabulary is learned for {scheme.rules}, and EncodeBlocks has '
                    f'{self.scheme.rules}; give both transforms the same scheme and its options'
                )
            self._paths, self._learned = {'': path}, vocabulary
            return
        if self.scheme.fixed is not None:
            if vocabulary is not None:
                raise InputError(
                    f'the scheme {self.scheme.name} has no vocabulary files; leave vocabulary out'
                )
            self._paths = {'': ''}
            return
        if vocabulary is None:
            raise TypeError(f'vocabulary is missing: the scheme {self.scheme.name} has a file')
        by_side = vocabulary if isinstance(vocabulary, Mapping) else {'': vocabulary}
        self._paths = {side: filesystem.absolute(os.fspath(path)) for side, path in by_side.items()}
        for path in set(self._paths.values()):
            if not filesystem.exists(path):
                raise InputError(f'{path} does not exist; give the path of a vocabulary file')
            data = filesystem.read_bytes(path)
            read = self.scheme.parse(data, path, filesystem.read_if_there)
            self.scheme.encoder(read, self.encoding)
            self.scheme.template(read, self.encoding.template)
            missing = self.scheme.missing_tokens(read.id_of, self.encoding, path)
            if missing is not None:
                _LOGGER.warning('%s', missing)

    def expand(self, blocks: beam.PCollection):  # Beam warns of a hint that is a dictionary
        splits = splits_of(blocks, self.splits, 'EncodeBlocks')
        layout = self.layout or planned_layout(splits, self.shards)
        features = tuple(self.features or self._features_of(splits[0].format.sides))
        check_sides([encoded.feature.side for encoded in features], splits, 'EncodeBlocks')
        missing = {split.name for split in splits} - {shards.split for shards in layout}
        if missing:
            raise InputError(
                f'the layout of EncodeBlocks has no {min(missing)}, which is a split of the corpus; give '
                'SplitShards for each'
            )
        encoder = BlockEncoder(
            features,
            tuple(splits),
            self.seed,
            self.on_error,
            self.scheme,
            self.encoding,
        )
        waited_for = [] if self._learned is None else [beam.pvalue.AsIter(self._learned)]
        return encode_blocks(
            blocks, encoder, layout, self.workers, self.budget, self.buffer_bytes, waited_for
        )

    def _features_of(self, sides: Sequence[str]) -> list[EncodedFeature]:
        """Returns a feature for each side of the rows, by its name."""
        unknown = set(self._paths) - {'', *sides}
        if unknown or ('' not in self._paths and len(self._paths) < len(sides)):
            raise InputError(
                f'the rows have the sides {" and ".join(sides)}, and there are vocabularies for '
                f'{" and ".join(self._paths)}; give one for each, or a single path for all'
            )
        return [
            EncodedFeature(Feature(side, number), self._paths.get(side, self._paths.get('', '')))
            for number, side in enumerate(sides)
        ]


def encode_blocks(
    blocks: beam.PCollection,
    encoder: 'BlockEncoder',
    layout: Sequence[SplitShards],
    workers: int,
    budget: RejectionBudget | None = None,
    buffer_bytes: int = _BUFFER_BYTES,
    waited_for: Sequence[beam.pvalue.AsIter] = (),
) -> dict[str, beam.PCollection]:
    """Returns what `EncodeBlocks` does, by an encoder; its blocks wait for the side inputs."""
    encoding = beam.ParDo(
        _EncodeBlocksFn(encoder, layout, workers, budget, buffer_bytes), *waited_for
    )
    outputs = blocks | 'EncodeBlocks' >> encoding.with_outputs(STATS, REJECTED, main=RECORDS)
    bucket_to_rows = outputs[RECORDS] | with_output_types(tuple[tuple[int, int], bytes])
    bucket_to_rows.layout, bucket_to_rows.seed = layout, encoder.seed  # for `WriteShards`
    bucket_to_rows.split_names = {split.name for split in encoder.splits}
    return {RECORDS: bucket_to_rows, STATS: outputs[STATS], REJECTED: outputs[REJECTED]}


def _files_of(
    vocabulary: Path | Mapping[str, Path], scheme: str | Scheme
) -> tuple[dict[str, Path], dict[str, Mapping[str, object]]]:
    """Returns the files of vocabularies by side, and by file what those of folders state of the scheme."""
    by_side = vocabulary if isinstance(vocabulary, Mapping) else {'': vocabulary}
    files: dict[str, Path] = {}
    stated: dict[str, Mapping[str, object]] = {}
    for side, path in by_side.items():
        file, _, record = find_vocabulary(os.fspath(path), side)
        if record is not None:
            stated[file] = record.scheme_options or {}
        elif file != filesystem.absolute(os.fspath(path)):
            stated[file] = find_scheme(scheme).options_from_file(
                filesystem.read_bytes(file), file, filesystem.read_if_there
            )
        files[side] = file
    return files, {file: options for file, options in stated.items() if options}


def _encoding_of(
    scheme: str | Scheme,
    options: Mapping[str, object],
    stated: Mapping[str, Mapping[str, object]],
) -> tuple[Scheme, EncodingOptions]:
    """Returns a scheme and the options of its encoder from keyword arguments, else as files state them."""
    resolved = find_scheme(scheme)
    name = f'EncodeBlocks with the scheme {resolved.name}'
    of_scheme, of_encoder = split_keywords([type(resolved), resolved.encoding], options, name)
    schemes = {
        file: find_scheme(resolved, **typing.cast(Any, {**each, **of_scheme}))
        for file, each in (stated or {'': {}}).items()
    }
    refuse_different(schemes)
    *_, resolved = schemes.values()
    return resolved, resolved.encoding(**keyword_fields(resolved.encoding, of_encoder, name))


def planned_layout(splits: Sequence[Split], shards: int) -> list[SplitShards]:
    """Returns the layout of splits that have this many shards each, with buckets by their size."""
    sizes: dict[str, int] = {}
    for split in splits:
        size = likely_text_bytes(itertools.chain(*split.files))
        sizes[split.name] = sizes.get(split.name, 0) + size
    return [SplitShards.of_size(name, shards, size) for name, size in sizes.items()]


class _EncodeBlocksFn(beam.DoFn):
    """Encodes blocks in several threads, and collects the examples of each bucket."""

    def __init__(
        self,
        encoder: 'BlockEncoder',
        layout: Sequence[SplitShards],
        workers: int,
        budget: RejectionBudget | None,
        buffer_bytes: int,
    ):
        self._encoder = encoder
        self._layout = tuple(layout)
        self._split_to_number = {shards.split: n for n, shards in enumerate(self._layout)}
        self._workers = workers
        self._budget = budget
        self._buffer_bytes = buffer_bytes
        self._loaded: LoadedBlockEncoder | None = None

    def setup(self) -> None:
        self._pool: OrderedPool[tuple[str, EncodedBlock]] = OrderedPool(self._workers)

    def start_bundle(self) -> None:
        # The limit is for all splits together; a block's split has ranges of keys of its own.
        self._buffers = [
            BucketBuffer(shards.buckets, self._buffer_bytes) for shards in self._layout
        ]
        self._batches = BlockBatches(self._encoder.splits)

    def process(self, element: Block, waited_for: object = None) -> Iterator:
        if self._loaded is None:  # here, and not before what it waits for is there
            self._loaded = self._encoder.load()
        yield from self._encode_batches(self._batches.add(element))

    def finish_bundle(self) -> Iterator:
        yield from map(in_global_window, self._encode_batches(self._batches.rest()))
        for split, encoded in self._pool.drain():
            for output in self._outputs(split, encoded):
                yield in_global_window(output)
        for number, buffer in enumerate(self._buffers):
            for bucket, rows in buffer.flush_all():
                yield in_global_window(((number, bucket), rows.to_bytes()))

    def teardown(self) -> None:
        self._pool.close()

    def _encode_batches(self, batches: Sequence[Batch]) -> Iterator:
        for batch in batches:
            for split, encoded in self._pool.submit(self._encode, batch):
                yield from self._outputs(split, encoded)

    def _encode(self, batch: Batch) -> tuple[str, EncodedBlock]:
        assert self._loaded is not None
        return batch[0].split, self._loaded.encode(*batch)

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

    Attributes are as those of `EncodeBlocks`; `options` are of the scheme's encoder.
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

    def __init__(
        self,
        encoder: BlockEncoder,
        path_to_vocabulary: Mapping[str, Vocabulary],
        listed_rows: int | None = None,
    ):
        self._encoder, self._listed_rows = encoder, listed_rows
        self.splits = encoder.splits
        self._path_to_vocabulary = path_to_vocabulary
        self._path_to_dropped = {
            path: encoder.scheme.dropped(vocabulary)
            for path, vocabulary in path_to_vocabulary.items()
        }
        is_sample = listed_rows is not None
        self._path_to_special = {
            path: _any_of(encoder.scheme.special_tokens_of(vocabulary) if is_sample else ())
            for path, vocabulary in path_to_vocabulary.items()
        }
        self._thread = threading.local()

    def for_samples(self, listed_rows: int) -> 'LoadedBlockEncoder':
        """Returns one with the same vocabularies that leaves out the lines that cannot be used.

        It lists the unknown tokens of so many rows of a block, and counts rows with special tokens as text.
        """
        encoder = dataclasses.replace(self._encoder, on_error='skip')
        return LoadedBlockEncoder(encoder, self._path_to_vocabulary, listed_rows)

    def encode(self, *blocks: Block) -> EncodedBlock:
        """Returns the framed examples of a batch and its stats; raises InputError as `encode_block`."""
        encoder = self._encoder
        return encode_batch(
            blocks,
            self.features(),
            encoder.seed,
            encoder.splits,
            encoder.scheme.normalizer,
            encoder.on_error,
            filesystem.open_binary,
        )

    def vocabulary(self, path: str) -> Vocabulary:
        """Returns a vocabulary by its path."""
        return self._path_to_vocabulary[path]

    def features(self) -> list[FeatureEncoder]:
        """Returns the encoders of the features: each thread has a memo of its own."""
        if not hasattr(self._thread, 'features'):
            scheme = self._encoder.scheme
            options = self._encoder.options or scheme.encoding()
            path_to_encoder = {
                path: PrefixEncoder(
                    scheme.encoder(vocabulary, options),
                    functools.partial(scheme.special_tokens_in, vocabulary),
                )
                for path, vocabulary in self._path_to_vocabulary.items()
            }
            self._thread.features = [
                FeatureEncoder(
                    encoded.feature,
                    path_to_encoder[encoded.vocabulary],
                    scheme.template(self.vocabulary(encoded.vocabulary), options.template),
                    self.vocabulary(encoded.vocabulary).special_ids.unknown,
                    self._path_to_dropped[encoded.vocabulary],
                    self._listed_rows,
                    self._path_to_special[encoded.vocabulary],
                )
                for encoded in self._encoder.features
            ]
        return self._thread.features


def _any_of(tokens: Sequence[str]) -> re.Pattern[bytes] | None:
    """Returns an expression of texts that prefers longer ones; None without any."""
    longest_first = sorted(filter(None, tokens), key=len, reverse=True)
    words = [re.escape(token.encode('utf-8', 'surrogatepass')) for token in longest_first]
    return re.compile(b'|'.join(words)) if words else None
