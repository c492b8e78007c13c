"""Rows of megabytes in parts: long tokens are cut a window at a time, what is between them as ever.

The kernel that encodes rows spells out some thousand tokens at once, at up to a hundred bytes for a
byte. But no cut looks farther ahead than the longest subtoken is: so a token may come in windows
that overlap by so much, and the cuts are the same.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.encoding.encoding_kernels import MAX_GROWTH, escape_to_code_points
from tokcore.encoding.subtoken_trie import probe_bigrams, segment_longest_match
from tokcore.encoding.vocabulary_arrays import VocabularyArrays
from tokcore.text.t2t_scanning import CHUNK_TOKENS, alphanumeric_bits, scan_tokens

LONG_TOKEN_BYTES = 1 << 10
"""Beyond this a token comes in windows: a thousand tokens of it, which are spelled out at once,
take no more than some windows do, and to cut one by itself takes as long as to cut ten of them."""

WINDOW_BYTES = 64 << 10
"""At up to a hundred times as much memory it still fits a processor's cache mostly; half would wait
for the interpreter twice as often."""

_TOKENS_AT_ONCE = 1 << 14
_SHOWN = 60  # characters of what cannot be cut
_CODE_POINT = np.dtype('<u4')


def row_parts(text: np.ndarray, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yields (start, end, whether it is one long token) of the parts of the row text[start:end].

    The tokens of the parts are those of the row. `text` is as in `readable_parts`.
    """
    row_starts, row_ends = (read_only(np.array([place], np.int64)) for place in (start, end))
    starts = np.empty(_TOKENS_AT_ONCE + CHUNK_TOKENS, np.uint64)
    ends = np.empty_like(starts)
    row_tokens = np.zeros(2, np.int64)
    row, position = 0, -1
    while row < 1:
        row, position, tokens = scan_tokens(
            text, row_starts, row_ends, row, position, alphanumeric_bits(), starts, ends, row_tokens
        )
        sizes = ends[:tokens] - starts[:tokens]
        first = 0
        for token in [*np.flatnonzero(sizes > LONG_TOKEN_BYTES).tolist(), tokens]:
            # A part goes from a token to a token: a space between two of them may be none.
            if first < token:
                yield int(starts[first]), int(ends[token - 1]), False
            if token < tokens:
                yield int(starts[token]), int(ends[token]), True
            first = token + 1


class WindowSegmenter:
    """Cuts tokens into the longest subtokens of a vocabulary, in windows."""

    def __init__(self, arrays: VocabularyArrays, subtokens: Sequence[str]):
        self._arrays = arrays
        self._lengths = np.array([len(subtoken) for subtoken in subtokens], np.int64)
        self._longest = int(self._lengths.max(initial=0))

    def cut(self, text: np.ndarray, start: int, end: int) -> Iterator[np.ndarray]:
        """Yields the ids, int32[...], of the token text[start:end], as many as come at once.

        Raises ValueError naming the rest of the token if no subtoken begins it.
        """
        codes = np.empty(0, np.uint32)  # spelled and not yet cut
        stop = start
        while stop < end:
            begin, stop = stop, _character_start(text, min(stop + self._window_bytes, end), end)
            codes = np.concatenate([codes, self._spelled(text, begin, stop, stop == end)])
            # What is near the end may be cut otherwise with what follows.
            surely = len(codes) - (0 if stop == end else self._longest)
            ids, done = self._cut_codes(codes, surely, end - start)
            yield ids
            codes = codes[done:]

    @property
    def _window_bytes(self) -> int:
        return max(WINDOW_BYTES, self._longest)

    def _spelled(self, text: np.ndarray, start: int, end: int, is_last: bool) -> np.ndarray:
        codes = np.empty(MAX_GROWTH * (end - start) + 1, np.uint32)
        places = [np.array([place], np.uint64) for place in (start, end, 0)]
        bounds = np.empty(2, np.uint64)
        escape_to_code_points(text, *places, 1, self._arrays.alphabet, codes, bounds)
        # The kernel ends a token each time.
        return codes[: int(bounds[1]) - (not is_last)]

    def _cut_codes(
        self, codes: np.ndarray, surely: int, token_bytes: int
    ) -> tuple[np.ndarray, int]:
        """The ids of the cuts that begin before a place, and where the next one begins."""
        if surely <= 0:
            return np.empty(0, np.int32), 0
        arrays, size = self._arrays, len(codes)
        codes = np.append(codes, np.uint32(0))
        matches, deeper = np.empty(size, np.uint64), np.empty(size, np.uint64)
        probe_bigrams(codes, size, arrays.edges, arrays.edge_ids, matches, deeper)
        ids, id_bounds = np.empty(size, np.int32), np.empty(2, np.uint64)
        end, missed = size, size
        while missed:
            bounds = np.array([0, end], np.uint64)
            _, missed = segment_longest_match(
                codes, bounds, 1, arrays.edges, arrays.edge_ids, matches, deeper, ids, id_bounds
            )
            end -= missed
            if missed and end < surely:
                rest = codes[end : min(size, end + _SHOWN)].astype(_CODE_POINT).tobytes()
                shown = rest.decode('utf-32-le', 'surrogatepass')
                raise ValueError(
                    f'no subtoken of the vocabulary begins {shown!r}, in a token of {token_bytes} '
                    'bytes'
                )
        ids = ids[: int(id_bounds[1])]
        ends = np.cumsum(self._lengths[ids])
        kept = min(len(ids), int(np.searchsorted(ends, surely)) + 1)
        return ids[:kept], int(ends[kept - 1])


def _character_start(text: np.ndarray, place: int, end: int) -> int:
    """The place, or where the character begins that goes on there; `end` is where one ends."""
    while place < end and text[place] & 0xC0 == 0x80:
        place -= 1
    return place
