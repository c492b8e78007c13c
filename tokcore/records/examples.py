"""A block of rows to framed TFRecords with their order keys, collected by bucket.

Blocks are cut finely, so one block has little for one bucket. Waiting for several blocks makes
fewer and larger pieces; when the memory limit is reached the fullest bucket is sent first.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.corpus import Block, OnError, Rows, Split, split_of
from tokcore.corpus.filters.applying import select_rows
from tokcore.corpus.order_keys import order_keys
from tokcore.corpus.stats import MOST_UNKNOWN_WORDS, BlockStats, LineTally, block_stats, commonest
from tokcore.encoding.encoder import EncodedSide, RowEncoder, unknown_tokens, unspelled_row
from tokcore.encoding.vocabulary import Template
from tokcore.errors import InputError
from tokcore.records.tfrecord import (
    FramedRows,
    feature_messages,
    frame_examples,
    join_rows,
    split_by_bucket,
)
from tokcore.text.rows import Normalizer

# Some thirty blocks of 8 MiB: with 1,000 buckets a piece is 256 KiB, large against the cost of an
# element. Half makes pieces half as large; twice matters where each worker thread has a buffer.
DEFAULT_BYTE_LIMIT = 256 << 20

PART_OVERHEAD = 512
"""Bytes that the objects around a part's three arrays take, most of it with many buckets."""


class BucketBuffer:
    """Rows waiting by bucket, `(key * buckets) >> 64`, in the order in which they were added.

    Raises ValueError if the number of buckets is not within 1 to 2^32, or the limit is negative.
    """

    def __init__(self, buckets: int, byte_limit: int = DEFAULT_BYTE_LIMIT):
        if byte_limit < 0:
            raise ValueError(f'a limit of {byte_limit} bytes is negative')
        if not 1 <= buckets <= 1 << 32:
            raise ValueError(f'{buckets} buckets are not within 1 to 2^32')
        self._buckets = buckets
        self._byte_limit = byte_limit
        self._parts: dict[int, list[FramedRows]] = {}
        self._sizes: dict[int, int] = {}
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the waiting rows take."""
        return self._nbytes

    def add(self, rows: FramedRows) -> list[tuple[int, FramedRows]]:
        """Takes rows and returns what must go: the fullest buckets, until the rest fits the limit.

        The fullest comes first, of equal ones the lower number.
        """
        for bucket, part in split_by_bucket(rows, self._buckets):
            self._parts.setdefault(bucket, []).append(part)
            size = part.nbytes + PART_OVERHEAD
            self._sizes[bucket] = self._sizes.get(bucket, 0) + size
            self._nbytes += size
        if self._nbytes <= self._byte_limit:
            return []
        flushed = []
        for bucket in sorted(self._sizes, key=lambda bucket: (-self._sizes[bucket], bucket)):
            flushed.append(self._flush(bucket))
            if self._nbytes <= self._byte_limit:
                break
        return flushed

    def flush_all(self) -> list[tuple[int, FramedRows]]:
        """Returns all that waits, by bucket number; the buffer is empty afterwards."""
        return [self._flush(bucket) for bucket in sorted(self._sizes)]

    def _flush(self, bucket: int) -> tuple[int, FramedRows]:
        self._nbytes -= self._sizes.pop(bucket)
        return bucket, join_rows(self._parts.pop(bucket))


@dataclass(frozen=True)
class Feature:
    """One feature of the examples: which side's text, under which name, after which prefix."""

    name: str
    side: int
    prefix: str = ''


@dataclass(frozen=True)
class FeatureEncoder:
    """What makes a feature's ids, for one thread.

    Attributes:
        feature: which text it is.
        encoder: gives the ids of its rows.
        template: what surrounds each row.
        unknown: the id that stands for unknown tokens, if there is one.
    """

    feature: Feature
    encoder: RowEncoder
    template: Template
    unknown: int | None = None

    def encode(self, rows: Rows, prefix: str) -> EncodedSide:
        """Raises ValueError with the model's sentence about a token that it cannot spell."""
        return self.encoder.encode_side(rows.sides[self.feature.side], prefix, *self.template)

    def prefix_in(self, split: Split | None) -> str:
        """Returns what is put before this feature's texts of a dataset."""
        own = split.prefixes[self.feature.side] if split and split.prefixes else None
        return self.feature.prefix if own is None else own

    def told(self, tally: LineTally, rows: Rows, encoded: EncodedSide) -> LineTally:
        """Returns a block's tally with what became of this feature's text."""
        count = len(encoded.offsets) - 1
        no_token = int(np.count_nonzero(np.diff(encoded.offsets) == self.template.size))
        tally = dataclasses.replace(tally, no_token=tally.no_token + no_token)
        if self.unknown is None:
            return tally
        around = (*self.template.before, *self.template.after).count(self.unknown) * count
        unknown = int(np.count_nonzero(encoded.ids == self.unknown)) - around
        words = tally.unknown_words
        if unknown:
            side = rows.sides[self.feature.side]
            found = unknown_tokens(
                side, encoded, *self.encoder.parts, self.unknown, MOST_UNKNOWN_WORDS
            )
            words = commonest([words, found])
        return dataclasses.replace(
            tally,
            ids=(tally.ids or 0) + len(encoded.ids) - self.template.size * count,
            unknown=(tally.unknown or 0) + unknown,
            unknown_words=words,
        )


@dataclass(frozen=True)
class EncodedBlock:
    rows: FramedRows
    stats: BlockStats


def encode_block(
    block: Block,
    features: Sequence[FeatureEncoder],
    seed: int,
    splits: Sequence[Split],
    normalizer: Normalizer,
    on_error: OnError = 'stop',
) -> EncodedBlock:
    """Encodes a block's kept rows as framed `tf.train.Example`s.

    Args:
        block: whole lines.
        features: what an example holds.
        seed: of the order keys.
        splits: the corpus, for the names in errors.
        normalizer: what makes text of rows.
        on_error: what to do where a line cannot be used.

    Raises:
        InputError: a line is not UTF-8 or lacks a column, and `on_error` is 'stop'; or a
            vocabulary cannot encode its text.
    """
    rows = select_rows(block, splits, normalizer)
    stats = block_stats(block, rows, splits, on_error)
    split = split_of(splits, block.split, block.file_index)
    try:
        encoded = [each.encode(rows, each.prefix_in(split)) for each in features]
    except ValueError as error:
        place = _unspelled_line(block, rows, features, splits)
        raise InputError(f'{place}{error}') from error
    tally = stats.tally
    for each, ids in zip(features, encoded, strict=True):
        tally = each.told(tally, rows, ids)
    keys = order_keys(block.file_index, rows.identities, seed)
    named = [(each.feature.name, ids) for each, ids in zip(features, encoded, strict=True)]
    named += [(each.name, feature_messages(each)) for each in rows.extra_features]
    return EncodedBlock(frame_examples(named, keys), dataclasses.replace(stats, tally=tally))


def _unspelled_line(
    block: Block,
    rows: Rows,
    features: Sequence[FeatureEncoder],
    splits: Sequence[Split],
) -> str:
    """Returns what begins a sentence about the line that a vocabulary does not spell."""
    split = split_of(splits, block.split, block.file_index)
    files = split.files_at(block.file_index)
    source = files[0].path
    for each in features:
        feature = each.feature
        found = unspelled_row(each.encoder, rows.sides[feature.side], each.prefix_in(split))
        if found is not None:
            line = f'the line at byte {rows.offsets[found[0]]}'
            if feature.side and len(files) > 1:
                return f'{files[feature.side].path}: the pair of {line} of {source}: '
            return f'{source}: {line}: '
    return ''
