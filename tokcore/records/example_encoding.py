"""A block of lines to framed TFRecords with their order keys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokcore.corpus.block_stats import BlockStats, stats_of
from tokcore.corpus.dataset import Block, OnError, Split
from tokcore.corpus.formats.corpus_format import block_rows
from tokcore.corpus.rows import Rows
from tokcore.encoding.row_encoder import RowEncoder, unspelled_row
from tokcore.encoding.scheme import Template
from tokcore.errors import InputError
from tokcore.records.framing import FramedRows, frame_examples
from tokcore.records.order_keys import order_keys
from tokcore.text.normalizer import Normalizer


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
    encoders: Sequence[RowEncoder],
    templates: Sequence[Template],
    seed: int,
    splits: Sequence[Split],
    normalizer: Normalizer,
    on_error: OnError = 'stop',
) -> EncodedBlock:
    """Encodes a block's kept rows as framed `tf.train.Example`s.

    Args:
        block: whole lines.
        features: what an example holds.
        encoders: one for each feature.
        templates: for each feature what surrounds a row's ids.
        seed: of the order keys.
        splits: the corpus, for the names in errors.
        normalizer: what makes text of rows.
        on_error: what to do where a line cannot be used.

    Raises:
        InputError: a line is not UTF-8 or lacks a column, and `on_error` is 'stop'; or a
            vocabulary cannot encode its text.
    """
    rows = block_rows(block, normalizer)
    facts = stats_of(block, rows, splits, on_error)
    try:
        encoded = [
            (feature.name, encoder.encode_side(rows.sides[feature.side], feature.prefix, *template))
            for feature, encoder, template in zip(features, encoders, templates, strict=True)
        ]
    except ValueError as error:
        place = _unspelled_line(block, rows, zip(features, encoders), splits)
        raise InputError(
            f'{place}{error}; the vocabulary lacks characters of its own alphabet, so learn '
            'another one'
        ) from error
    keys = order_keys(block.place, rows.offsets, seed)
    return EncodedBlock(frame_examples(encoded, keys), facts)


def _unspelled_line(
    block: Block,
    rows: Rows,
    encoders: Iterable[tuple[Feature, RowEncoder]],
    splits: Sequence[Split],
) -> str:
    """Returns what begins a sentence about the line that a vocabulary does not spell."""
    split = next(split for split in splits if split.name == block.split)
    files = split.files[block.place]
    source = files[0].path
    for feature, encoder in encoders:
        found = unspelled_row(encoder, rows.sides[feature.side], feature.prefix)
        if found is not None:
            line = f'the line at byte {rows.offsets[found[0]]}'
            if feature.side and len(files) > 1:
                return f'{files[feature.side].path}: the pair of {line} of {source}: '
            return f'{source}: {line}: '
    return ''
