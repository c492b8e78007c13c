"""The tokens that a kernel finds in rows of text, in as many calls as it is given room for."""

from collections.abc import Sequence

import numpy as np

from tokcore.kernels.bytes import READABLE
from tokcore.kernels.jit import read_only
from tokcore.text.pre_tokenizer import (
    CHUNK_TOKENS,
    PreTokenizer,
    ScannedTokens,
    TextRows,
    scan_tokens,
)


def laid_out(rows: Sequence[str], between: bytes = b'\n') -> TextRows:
    """Returns rows with these bytes after each, and text of nobody's in the margin."""
    encoded = [row.encode() for row in rows]
    lengths = np.array([len(each) for each in encoded], np.int64)
    ends = np.cumsum(lengths + len(between)) - len(between)
    data = b''.join(each + between for each in encoded)
    text = read_only(np.frombuffer(data + b'a1 ' * READABLE, np.uint8))
    return TextRows(text, read_only(ends - lengths), read_only(ends))


def scanned(rows: TextRows, pre_tokenizer: PreTokenizer, room: int = 1_000) -> list[list[str]]:
    """Returns the tokens of each row, found by calls with room for this many beyond a chunk's."""
    state, text = pre_tokenizer.prepare(rows)
    places = [np.empty(CHUNK_TOKENS + room, np.uint64) for _ in range(2)]
    tokens = ScannedTokens(text, *places, np.zeros(len(rows.starts) + 1, np.int64))
    found: list[list[str]] = [[] for _ in rows.starts]
    row, position = 0, -1
    while row < len(found):
        first = row
        row, position, count = scan_tokens(rows, row, position, state, tokens)
        assert count <= CHUNK_TOKENS + room
        starts, ends = (each[:count].tolist() for each in places)
        assert max(ends, default=0) + READABLE <= len(text)
        words = [
            text[start:end].tobytes().decode('utf-8', 'surrogatepass')
            for start, end in zip(starts, ends, strict=True)
        ]
        bounds = [0, *tokens.row_tokens[first + 1 : row + 1].tolist(), count]
        for done, start, end in zip(range(first, len(found)), bounds, bounds[1:], strict=False):
            found[done] += words[start:end]
    return found
