"""A block of lines to framed TFRecords with their order keys."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.block_stats import (
    MOST_UNKNOWN_WORDS,
    BlockStats,
    LineTally,
    commonest,
    stats_of,
)
from tokcore.corpus.dataset import Block, OnError, Split, split_of
from tokcore.corpus.filters.taken_rows import taken_rows
from tokcore.corpus.rows import Rows
from tokcore.encoding.encoded_rows import EncodedSide
from tokcore.encoding.row_encoder import RowEncoder, unspelled_row
from tokcore.encoding.templates import Template
from tokcore.encoding.unknown_tokens import unknown_tokens
from tokcore.errors import InputError
from tokcore.records.framing import FramedRows, frame_examples
from tokcore.records.kept_features import feature_messages
from tokcore.records.order_keys import order_keys
from tokcore.text.normalizer import Normalizer


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
    facts: BlockStats


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
    rows = taken_rows(block, splits, normalizer)
    facts = stats_of(block, rows, splits, on_error)
    split = split_of(splits, block.split, block.place)
    try:
        encoded = [each.encode(rows, each.prefix_in(split)) for each in features]
    except ValueError as error:
        place = _unspelled_line(block, rows, features, splits)
        raise InputError(f'{place}{error}') from error
    tally = facts.tally
    for each, ids in zip(features, encoded, strict=True):
        tally = each.told(tally, rows, ids)
    keys = order_keys(block.place, rows.identities, seed)
    named = [(each.feature.name, ids) for each, ids in zip(features, encoded, strict=True)]
    named += [(each.name, feature_messages(each)) for each in rows.kept]
    return EncodedBlock(
        frame_examples(named, keys), dataclasses.replace(facts, tally=tally)
    )


def _unspelled_line(
    block: Block,
    rows: Rows,
    features: Sequence[FeatureEncoder],
    splits: Sequence[Split],
) -> str:
    """Returns what begins a sentence about the line that a vocabulary does not spell."""
    split = split_of(splits, block.split, block.place)
    files = split.files_at(block.place)
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
