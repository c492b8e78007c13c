"""Which tokens a vocabulary did not know, where their number alone does not help."""

from collections.abc import Iterator

import numpy as np

from tokcore.counts.token_counter import TokenAccumulator
from tokcore.encoding.encoded_rows import EncodedSide
from tokcore.encoding.model import NO_ROOM, MissedTokens, Model, larger_workspace, segment_tokens
from tokcore.text.padded_text import with_margin
from tokcore.text.pre_tokenizer import PreTokenizer, ScannedTokens
from tokcore.text.sides import Side

_AT_ONCE = 256
_LONGEST = 1 << 10
"""Bytes of a token that is looked at; longer ones are not among the commonest."""


def unknown_tokens(
    side: Side,
    encoded: EncodedSide,
    pre_tokenizer: PreTokenizer,
    model: Model,
    unknown: int,
    most: int,
) -> dict[str, int]:
    """Returns the commonest tokens of rows that have the unknown id alone, with their counts.

    Args:
        side: the rows.
        encoded: their ids.
        pre_tokenizer: what cut them into tokens.
        model: what gave the ids.
        unknown: the id that stands for unknown tokens.
        most: so many at most; of equal counts those that are first by their bytes.
    """
    places = np.flatnonzero(encoded.ids == unknown)
    rows = np.unique(np.searchsorted(encoded.offsets, places, 'right') - 1)
    counted = TokenAccumulator()
    counted.add_rows(side.text, side.starts[rows], side.ends[rows], pre_tokenizer)
    data, offsets, counts = counted.finish()
    tokens = [
        (data[offsets[each] : offsets[each + 1]].tobytes(), int(counts[each]))
        for each in np.flatnonzero(np.diff(offsets) <= _LONGEST).tolist()
    ]
    tokens.sort(key=lambda token: (-token[1], token[0]))
    found: dict[str, int] = {}
    for first in range(0, len(tokens), _AT_ONCE):
        for token, count in _unknown(tokens[first : first + _AT_ONCE], model, unknown):
            found[token.decode('utf-8', 'replace')] = count
            if len(found) == most:
                return found
    return found


def _unknown(
    tokens: list[tuple[bytes, int]], model: Model, unknown: int
) -> Iterator[tuple[bytes, int]]:
    ends = np.cumsum([len(token) for token, _ in tokens]).astype(np.uint64)
    starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
    text = with_margin(np.frombuffer(b''.join(token for token, _ in tokens), np.uint8))
    scanned = ScannedTokens(text, starts, ends, np.zeros(1, np.int64))
    missed = MissedTokens(np.arange(len(tokens), dtype=np.uint64), len(tokens), int(ends[-1]))
    work = model.workspace(len(tokens))
    left = segment_tokens(scanned, missed, model.state, work)[1]
    if left == NO_ROOM:
        work = larger_workspace(missed, model.state, work)
        segment_tokens(scanned, missed, model.state, work)
    for number, token in enumerate(tokens):
        ids = work.ids[work.id_bounds[number] : work.id_bounds[number + 1]]
        if len(ids) == 1 and ids[0] == unknown:
            yield token
