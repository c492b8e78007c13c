"""Long tokens cut into subtokens a window at a time.

The kernel that segments tokens spells them out, at up to a hundred bytes for a byte. But no cut
looks farther ahead than the longest subtoken is: so a token may come in windows that overlap by so
much, and the cuts are the same.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tokcore.encoding.model import MissedTokens
from tokcore.subword.segmenting_tokens import MAX_GROWTH, SubwordState, escape_to_code_points
from tokcore.subword.subtoken_trie import TrieWalk, probe_bigrams, segment_longest_match
from tokcore.text.pre_tokenizer import ScannedTokens

WINDOW_BYTES = 64 << 10
"""At up to a hundred times as much memory it still fits a processor's cache mostly; half would wait
for the interpreter twice as often."""

_SHOWN = 60  # characters of what cannot be cut
_CODE_POINT = np.dtype('<u4')


class WindowSegmenter:
    """Cuts tokens into the longest subtokens of a vocabulary, in windows."""

    def __init__(self, state: SubwordState, subtokens: Sequence[str]):
        self._state = state
        self._lengths = np.array([len(subtoken) for subtoken in subtokens], np.int64)
        self._longest = int(self._lengths.max(initial=0))

    def segment(self, text: np.ndarray, start: int, end: int) -> Iterator[np.ndarray]:
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
        start_at, end_at, number = (np.array([each], np.uint64) for each in (start, end, 0))
        token = ScannedTokens(text, start_at, end_at, np.empty(0, np.int64))
        bounds = np.empty(2, np.uint64)
        missed = MissedTokens(number, 1, end - start)
        escape_to_code_points(token, missed, self._state.alphabet, codes, bounds)
        # The kernel ends a token each time.
        return codes[: int(bounds[1]) - (not is_last)]

    def _cut_codes(
        self, codes: np.ndarray, surely: int, token_bytes: int
    ) -> tuple[np.ndarray, int]:
        """The ids of the cuts that begin before a place, and where the next one begins."""
        if surely <= 0:
            return np.empty(0, np.int32), 0
        size = len(codes)
        matches, deeper = np.empty(size, np.uint64), np.empty(size, np.uint64)
        ids, id_bounds = np.empty(size, np.int32), np.empty(2, np.uint64)
        codes, bounds = np.append(codes, np.uint32(0)), np.array([0, size], np.uint64)
        walk = TrieWalk(codes, bounds, matches, deeper, ids, id_bounds)
        probe_bigrams(walk, size, self._state.trie)
        end, left = size, size
        while left:
            bounds[1] = end
            _, left = segment_longest_match(walk, 1, self._state.trie)
            end -= left
            if left and end < surely:
                rest = codes[end : min(size, end + _SHOWN)].astype(_CODE_POINT).tobytes()
                shown = rest.decode('utf-32-le', 'surrogatepass')
                raise ValueError(
                    f'no subtoken of the vocabulary begins {shown!r}, in a token of {token_bytes} '
                    'bytes; the vocabulary lacks characters of its own alphabet, so learn another '
                    'one'
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
