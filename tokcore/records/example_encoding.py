"""A block of lines to framed TFRecords with their order keys."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokcore.corpus.block_stats import BlockStats, stats_of
from tokcore.corpus.dataset import Block, Split
from tokcore.corpus.formats.registry import block_rows
from tokcore.encoding.block_encoder import SubwordBlockEncoder
from tokcore.errors import InputError
from tokcore.records.framing import FramedRows, frame_examples
from tokcore.records.order_keys import order_keys


@dataclass(frozen=True)
class Feature:
    """One feature of the examples: which side's text, under which name, after which prefix."""

    name: str
    side: int
    prefix: str = ''


@dataclass(frozen=True)
class EncodedBlock:
    rows: FramedRows
    facts: BlockStats


def encode_block(
    block: Block,
    features: Sequence[Feature],
    encoders: Sequence[SubwordBlockEncoder],
    seed: int,
    splits: Sequence[Split],
    on_error: str = 'stop',
) -> EncodedBlock:
    """Encodes a block's kept rows as framed `tf.train.Example`s, each side ended by EOS.

    Args:
        block: whole lines.
        features: what an example holds.
        encoders: one for each feature.
        seed: of the order keys.
        splits: the corpus, for the names in errors.
        on_error: 'stop' or 'skip' where a line cannot be used.

    Raises:
        InputError: a line is not UTF-8 or lacks a column, and `on_error` is 'stop'; or a
            vocabulary cannot encode its text.
    """
    rows = block_rows(block)
    facts = stats_of(block, rows, splits, on_error)
    try:
        encoded = [
            (feature.name, encoder.encode_side(rows.sides[feature.side], feature.prefix, eos=True))
            for feature, encoder in zip(features, encoders, strict=True)
        ]
    except ValueError as error:
        raise InputError(
            f'{error}; the vocabulary lacks characters of its own alphabet, so learn another one'
        ) from error
    keys = order_keys(block.place, rows.offsets, seed)
    return EncodedBlock(frame_examples(encoded, keys), facts)
