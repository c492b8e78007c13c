"""Encodes a block of lines to TFRecords with their order keys, and collects them by bucket.

A block has little for one bucket, so `BucketBuffer` holds the rows of several blocks, and sends
the fullest bucket when its memory limit is reached.
"""

import collections
import contextlib
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tokcore.corpus.block_batches import Batch, add_stats, batch_rows, batch_stats
from tokcore.corpus.corpus import Block, OnError, OpenBinary, Rows, Split, split_of
from tokcore.corpus.order_keys import order_keys
from tokcore.corpus.stats import MOST_UNKNOWN_WORDS, BlockStats, LineTally, block_stats, commonest
from tokcore.encoding.encoder import (
    DroppedCharacters,
    EncodedSide,
    Encoder,
    UnmatchedText,
    first_row_without_ids,
    unknown_tokens,
)
from tokcore.encoding.vocabulary import Template
from tokcore.errors import InputError
from tokcore.filters.applying import select_rows
from tokcore.records.tfrecord import (
    FeatureMessages,
    FramedRows,
    feature_messages,
    frame_examples,
    join_rows,
    split_by_bucket,
)
from tokcore.text.rows import Normalizer

PART_OVERHEAD = 512
"""Bytes of the Python objects around a part's three arrays, which matter with many buckets."""


class BucketBuffer:
    """Holds rows by bucket, `(key * buckets) >> 64`, in the order in which they were added.

    Raises ValueError if the number of buckets is not within 1 to 2^32, or the limit is negative.
    """

    def __init__(self, buckets: int, byte_limit: int):
        if byte_limit < 0:
            raise ValueError(f'a limit of {byte_limit} bytes is negative')
        if not 1 <= buckets <= 1 << 32:
            raise ValueError(f'{buckets} buckets are not within 1 to 2^32')
        self._buckets = buckets
        self._byte_limit = byte_limit
        self._parts: dict[int, list[FramedRows]] = {}
        self._sizes: dict[int, int] = {}
        self.nbytes = 0  # of memory of the rows

    def add(self, rows: FramedRows) -> list[tuple[int, FramedRows]]:
        """Adds rows; returns and removes the fullest buckets until the others fit the limit.

        The fullest comes first; of equal ones, that of the lower number.
        """
        for bucket, part in split_by_bucket(rows, self._buckets):
            self._parts.setdefault(bucket, []).append(part)
            size = part.nbytes + PART_OVERHEAD
            self._sizes[bucket] = self._sizes.get(bucket, 0) + size
            self.nbytes += size
        if self.nbytes <= self._byte_limit:
            return []
        flushed = []
        for bucket in sorted(self._sizes, key=lambda bucket: (-self._sizes[bucket], bucket)):
            flushed.append(self._flush(bucket))
            if self.nbytes <= self._byte_limit:
                break
        return flushed

    def flush_all(self) -> list[tuple[int, FramedRows]]:
        """Returns and removes all rows, by bucket number."""
        return [self._flush(bucket) for bucket in sorted(self._sizes)]

    def _flush(self, bucket: int) -> tuple[int, FramedRows]:
        self.nbytes -= self._sizes.pop(bucket)
        return bucket, join_rows(self._parts.pop(bucket))


@dataclass(frozen=True)
class Feature:
    """A feature of the examples: its name, the side whose text it has, and the prefix of each text.

    Examples:
        >>> tokcore.Feature('inputs', 0, prefix='translate: ')
        Feature(name='inputs', side=0, prefix='translate: ')
    """

    name: str
    side: int
    prefix: str = ''


def prefix_in(split: Split | None, feature: Feature) -> str:
    """Returns the prefix of a feature's texts in a dataset."""
    prefix = split.prefixes[feature.side] if split and split.prefixes else None
    return feature.prefix if prefix is None else prefix


@dataclass(frozen=True)
class IdTally:
    """Counts of a feature's ids.

    Attributes:
        ids: of the rows' text.
        no_token: rows whose text has no token.
        unknown: the ids that stand for an unknown token; None if no id does.
        dropped_bytes: bytes of the text for which there is no id.
        words: the commonest unknown tokens and characters without an id, with their counts.
        special: in a sample, how many rows have each special token as text.
    """

    ids: int = 0
    no_token: int = 0
    unknown: int | None = None
    dropped_bytes: int = 0
    words: Mapping[str, int] = field(default_factory=dict)
    special: Mapping[bytes, int] = field(default_factory=dict)

    def add_to(self, tally: LineTally) -> LineTally:
        """Returns the tally of a block with these counts."""
        if self.unknown is not None:
            tally = dataclasses.replace(
                tally,
                ids=(tally.ids or 0) + self.ids,
                unknown=(tally.unknown or 0) + self.unknown,
            )
        return dataclasses.replace(
            tally,
            no_token=tally.no_token + self.no_token,
            dropped_bytes=tally.dropped_bytes + self.dropped_bytes,
            unknown_words=commonest([tally.unknown_words, self.words]),
        )


def add_id_tallies(tallies: Iterable[IdTally]) -> IdTally:
    """Returns the sum of tallies of one feature."""
    tallies = list(tallies)
    unknown = [tally.unknown for tally in tallies if tally.unknown is not None]
    return IdTally(
        sum(tally.ids for tally in tallies),
        sum(tally.no_token for tally in tallies),
        sum(unknown) if unknown else None,
        sum(tally.dropped_bytes for tally in tallies),
        commonest(tally.words for tally in tallies),
        sum((collections.Counter(tally.special) for tally in tallies), collections.Counter()),
    )


@dataclass(frozen=True)
class FeatureEncoder:
    """Makes the ids of a feature, for one thread.

    Attributes:
        feature: the feature.
        encoder: encodes its text.
        template: the ids around each row.
        unknown: the id of unknown tokens, if there is one.
        dropped: counts the text that becomes no id, if there may be such.
        listed_rows: of a block, so many rows have their unknown tokens listed; None: all.
        special_tokens: matches the special tokens whose rows are counted; None: they are not.
    """

    feature: Feature
    encoder: Encoder
    template: Template
    unknown: int | None = None
    dropped: DroppedCharacters | UnmatchedText | None = None
    listed_rows: int | None = None
    special_tokens: re.Pattern[bytes] | None = None

    def encode(self, rows: Rows, prefix: str) -> EncodedSide:
        """Returns the ids of rows; raises ValueError as `RowEncoder.encode_side`."""
        return self.encoder.encode_side(rows.sides[self.feature.side], prefix, *self.template)

    def tally(self, rows: Rows, encoded: EncodedSide) -> IdTally:
        """Returns the counts of this feature's ids."""
        count = len(encoded.offsets) - 1
        ids = len(encoded.ids) - self.template.size * count
        no_token = int(np.count_nonzero(np.diff(encoded.offsets) == self.template.size))
        side = rows.sides[self.feature.side]
        unknown, dropped_bytes, words = None, 0, {}
        if self.unknown is not None:
            around = (*self.template.before, *self.template.after).count(self.unknown) * count
            unknown = int(np.count_nonzero(encoded.ids == self.unknown)) - around
            if unknown:
                words = unknown_tokens(
                    side, encoded, *self.encoder.parts, self.unknown, MOST_UNKNOWN_WORDS,
                    self.listed_rows,
                )  # fmt: skip
        if self.dropped is not None:
            dropped_bytes, characters = self.dropped.count(side, MOST_UNKNOWN_WORDS)
            words = commonest([words, characters])
        special = collections.Counter[bytes]()
        if self.special_tokens is not None and self.special_tokens.search(side.text.data):
            for start, end in zip(side.starts, side.ends, strict=True):
                special.update({*self.special_tokens.findall(side.text[start:end].data)})
        return IdTally(ids, no_token, unknown, dropped_bytes, words, special)


@dataclass(frozen=True)
class EncodedBlock:
    """The TFRecords of a block, its statistics, and the counts of the ids of each feature."""

    rows: FramedRows
    stats: BlockStats
    ids: tuple[IdTally, ...] = ()


def encode_block(
    block: Block,
    features: Sequence[FeatureEncoder],
    seed: int,
    splits: Sequence[Split],
    normalizer: Normalizer,
    on_error: OnError = 'stop',
    open_binary: OpenBinary | None = None,
) -> EncodedBlock:
    """Encodes the rows of a block as tf.train.Examples in TFRecords; `seed` is that of the order keys.

    Raises:
        InputError: a line is not UTF-8 or lacks a column, and `on_error` is 'stop'; or a
            vocabulary cannot encode its text.
    """
    rows = select_rows(block, splits, normalizer)
    stats = block_stats(block, rows, splits, on_error, open_binary)
    encoded = _encode_sides(block, rows, features, splits)
    return _encoded_block(block, rows, stats, features, encoded, seed)


def encode_batch(
    blocks: Batch,
    features: Sequence[FeatureEncoder],
    seed: int,
    splits: Sequence[Split],
    normalizer: Normalizer,
    on_error: OnError = 'stop',
    open_binary: OpenBinary | None = None,
) -> EncodedBlock:
    """Encodes blocks as `encode_block` does, with a call for all of them where it can."""
    rows = batch_rows(blocks, splits, normalizer)
    if rows is not None:
        split = split_of(splits, blocks[0].split, blocks[0].file_index)
        # Block by block, the error names the line without ids.
        with contextlib.suppress(ValueError):
            encoded = [
                encoder.encode(rows, prefix_in(split, encoder.feature)) for encoder in features
            ]
            stats = batch_stats(blocks, rows, splits)
            return _encoded_block(blocks[0], rows, stats, features, encoded, seed)
    one_by_one = [
        encode_block(block, features, seed, splits, normalizer, on_error, open_binary)
        for block in blocks
    ]
    return EncodedBlock(
        join_rows([block.rows for block in one_by_one]),
        add_stats([block.stats for block in one_by_one]),
        tuple(map(add_id_tallies, zip(*(block.ids for block in one_by_one), strict=True))),
    )


def _encoded_block(
    block: Block,
    rows: Rows,
    stats: BlockStats,
    features: Sequence[FeatureEncoder],
    encoded: Sequence[EncodedSide],
    seed: int,
) -> EncodedBlock:
    ids = tuple(encoder.tally(rows, side) for encoder, side in zip(features, encoded, strict=True))
    tally = dataclasses.replace(stats.tally, text_bytes=rows.text_bytes)
    for of_feature in ids:
        tally = of_feature.add_to(tally)
    framed = _frame(block, rows, features, encoded, seed)
    return EncodedBlock(framed, dataclasses.replace(stats, tally=tally), ids)


def encode_rows(
    block: Block, rows: Rows, features: Sequence[FeatureEncoder], seed: int, splits: Sequence[Split]
) -> FramedRows:
    """Returns some of a block's rows, as `select_rows` returns them, as `encode_block` does.

    Raises:
        InputError: a vocabulary cannot encode their text.
    """
    encoded = _encode_sides(block, rows, features, splits)
    return _frame(block, rows, features, encoded, seed)


def _encode_sides(
    block: Block, rows: Rows, features: Sequence[FeatureEncoder], splits: Sequence[Split]
) -> list[EncodedSide]:
    split = split_of(splits, block.split, block.file_index)
    try:
        return [encoder.encode(rows, prefix_in(split, encoder.feature)) for encoder in features]
    except ValueError as error:
        assert split is not None  # its block has been encoded
        line = _line_without_ids(block, rows, features, split)
        raise InputError(f'{line}{error}') from error


def _frame(
    block: Block,
    rows: Rows,
    features: Sequence[FeatureEncoder],
    encoded: Sequence[EncodedSide],
    seed: int,
) -> FramedRows:
    indexes = block.file_index if rows.file_indexes is None else rows.file_indexes
    keys = order_keys(indexes, rows.identities, seed)
    columns: list[tuple[str, EncodedSide | FeatureMessages]] = [
        (encoder.feature.name, ids) for encoder, ids in zip(features, encoded, strict=True)
    ]
    columns += [(column.name, feature_messages(column)) for column in rows.extra_features]
    return frame_examples(columns, keys, rows.text_sizes)


def _line_without_ids(
    block: Block, rows: Rows, features: Sequence[FeatureEncoder], split: Split
) -> str:
    """Returns the beginning of the sentence about a line without ids: where it is."""
    files = split.files_at(block.file_index)
    source = files[0].path
    for encoder in features:
        feature = encoder.feature
        failed = first_row_without_ids(
            encoder.encoder, rows.sides[feature.side], prefix_in(split, feature)
        )
        if failed is not None:
            line = f'the line at byte {rows.offsets[failed[0]]}'
            if feature.side and len(files) > 1:
                return f'{files[feature.side].path}: the pair of {line} of {source}: '
            return f'{source}: {line}: '
    return ''
