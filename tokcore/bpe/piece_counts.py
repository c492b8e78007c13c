"""How often each piece of codes is in a text, by its tokens' counts: what gives pieces their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tokcore.bpe.marked_words import WholeRows
from tokcore.bpe.vocabulary.codes_vocabulary import CodesVocabulary
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.row_encoder import RowEncoder
from tokcore.text.sides import Side

SPECIAL_TOKENS = ('<pad>', '</s>', '<unk>')
"""What comes before pieces, unless others are asked for."""


def count_pieces(codes: CodesVocabulary, table: TokenTable) -> list[tuple[str, int]]:
    """Returns (piece, count) as `apply-bpe` writes pieces, by count descending, then by piece.

    subword-nmt's `get-vocab` leaves pieces that are met equally often in the order of the text,
    which a table does not know.

    Args:
        codes: which cut tokens into pieces.
        table: the tokens of a text, a word each.
    """
    encoder = RowEncoder(WholeRows(), codes.piece_model, 0)
    found = encoder.encode_side(Side(table.data, table.offsets[:-1], table.offsets[1:]))
    is_last = np.zeros(len(found.ids), np.int64)
    is_last[found.offsets[1:][np.diff(found.offsets) > 0] - 1] = 1
    keys, places = np.unique(2 * found.ids.astype(np.int64) + is_last, return_inverse=True)
    counts = np.repeat(table.counts, np.diff(found.offsets))
    # Sums beyond 2^63: each half of a count is added up for itself.
    halves = np.zeros((2, len(keys)), np.int64)
    np.add.at(halves[0], places, counts >> 32)
    np.add.at(halves[1], places, counts & 0xFFFFFFFF)
    totals: dict[str, int] = {}
    for key, high, low in zip(keys.tolist(), *halves.tolist(), strict=True):
        symbol, last = divmod(key, 2)
        piece = codes.written([symbol] if last else [symbol, symbol])[0]
        totals[piece] = totals.get(piece, 0) + (high << 32) + low
    return sorted(
        ((piece, count) for piece, count in totals.items() if count),
        key=lambda item: (-item[1], item[0]),
    )


def piece_table(pieces: Iterable[tuple[str, int]]) -> bytes:
    """Returns a line `piece count` of each, as `get-vocab` writes them."""
    return ''.join(f'{piece} {count}\n' for piece, count in pieces).encode()


def entries_file(
    pieces: Iterable[tuple[str, int]], special_tokens: Sequence[str] = SPECIAL_TOKENS
) -> bytes:
    """Returns a .vocab file: special tokens and then pieces, a line for each id."""
    entries = dict.fromkeys((*special_tokens, *(piece for piece, _ in pieces)))
    return ''.join(f'{entry}\n' for entry in entries).encode()
