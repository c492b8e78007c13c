r"""All tokens of a table, escaped, as one array of character ranks.

Escaping is Tensor2Tensor's: a backslash becomes two, an underscore becomes backslash-u, a line feed
becomes `\10;`, and a closing underscore is appended. So an underscore is the last character of an
escaped token and occurs nowhere else, and no suffix is a proper prefix of another: the suffix sort
depends on both.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only, read_only_state
from tokcore.text.t2t import (
    BACKSLASH,
    ESCAPE_CHARACTERS,
    ESCAPED_LINE_FEED,
    LETTER_U,
    LINE_FEED,
    UNDERSCORE,
)
from tokcore.text.unicode import CODE_POINTS, next_character, utf8_length

# The end of a token is searched for so many characters before it is looked up by bisection.
_SCAN_LIMIT = 256
_LARGEST = np.iinfo(np.int64).max
# The ranks of this many letters fit in uint16.
_NARROW = 2**16


@dataclass(frozen=True)
class EscapedText:
    """The escaped tokens, one after another, each character as its rank in the alphabet.

    Ranks follow code points, so arrays of ranks compare as the strings do.
    """

    ranks: np.ndarray  # uint16[characters]; int32 if the alphabet has more than 65,536 letters
    starts: np.ndarray  # int64[tokens + 1]: where each escaped token begins
    alphabet: np.ndarray  # int32[letters]: code points, ascending
    end_rank: int  # the underscore's, which ends every token

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update({name: read_only_state(value) for name, value in state.items()})

    def rank_string(self, escaped: str) -> np.ndarray:
        """Returns the ranks of a string whose characters are all in the alphabet, int32."""
        code_points = np.frombuffer(escaped.encode('utf-32-le'), '<u4')
        return np.searchsorted(self.alphabet, code_points).astype(np.int32)


def escape_tokens(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, extra: Iterable[str]
) -> EscapedText:
    """Escapes the tokens of a table with the alphabet of a learner, which has all their characters.

    The alphabet consists of the characters of all tokens, those of the strings in `extra` (the
    reserved tokens) and those that escaping uses. A line feed is in it too, as in Tensor2Tensor,
    although no escaped token contains one.

    Args:
      data: uint8, the tokens' UTF-8 bytes, one after another.
      offsets: int64[tokens + 1].
      counts: int64[tokens].

    Raises:
      ValueError: a token is not UTF-8 or has a negative count.
      OverflowError: count times escaped length, summed over the tokens, exceeds 2^63 - 1.
    """
    data, offsets, counts = read_only(data), read_only(offsets), read_only(counts)
    seen = np.zeros(CODE_POINTS, np.uint8)
    starts = np.zeros(len(offsets), np.int64)
    invalid = _survey_tokens(data, offsets, seen, starts)
    if invalid >= 0:
        token = data[offsets[invalid] : offsets[invalid + 1]].tobytes()
        raise ValueError(f'token {invalid} of the table is not valid UTF-8: {token[:80]!r}')
    for string in extra:
        seen[[ord(character) for character in string]] = 1
    seen[[ord(character) for character in ESCAPE_CHARACTERS]] = 1
    if len(counts) and int(counts.min()) < 0:
        raise ValueError('the count of a token is negative')
    if _sum_exceeds(starts, counts, _LARGEST):
        raise OverflowError('count times length, summed over all tokens, exceeds 2^63 - 1')

    alphabet = np.flatnonzero(seen).astype(np.int32)
    rank_of = np.zeros(CODE_POINTS, np.int32)
    rank_of[alphabet] = np.arange(len(alphabet), dtype=np.int32)
    # Ranks are read from memory many times.
    narrow = len(alphabet) <= _NARROW
    ranks = np.empty(int(starts[-1]), np.uint16 if narrow else np.int32)
    _write_ranks(data, offsets, read_only(rank_of), ranks)
    return EscapedText(
        read_only(ranks), read_only(starts), read_only(alphabet), int(rank_of[UNDERSCORE])
    )


@kernel_without_allocation
def _survey_tokens(data, offsets, seen, starts):
    """Marks all characters and sums up escaped lengths; returns the first invalid token or -1."""
    total = 0
    for token in range(len(offsets) - 1):
        position, end = offsets[token], offsets[token + 1]
        total += 1
        while position < end:
            if data[position] >= 0x80 and utf8_length(data, position, end) == 0:
                return token
            point, position = next_character(data, position)
            seen[point] = 1
            total += escaped_length(point)
        starts[token + 1] = total
    return -1


@kernel_without_allocation
def escaped_length(point):
    """Returns how many characters a character becomes by escaping (bytes, if it is ASCII)."""
    if point == BACKSLASH or point == UNDERSCORE:
        return 2
    return len(ESCAPED_LINE_FEED) if point == LINE_FEED else 1


@kernel_without_allocation
def _sum_exceeds(starts, counts, largest):
    room = largest
    for token in range(len(counts)):
        length = starts[token + 1] - starts[token]
        if counts[token] > room // length:
            return True
        room -= counts[token] * length
    return False


@kernel_without_allocation
def _write_ranks(data, offsets, rank_of, ranks):
    written = 0
    for token in range(len(offsets) - 1):
        position, end = offsets[token], offsets[token + 1]
        while position < end:
            point, position = next_character(data, position)
            if point == LINE_FEED:
                for character in ESCAPED_LINE_FEED:
                    ranks[written] = rank_of[character]
                    written += 1
                continue
            if point == BACKSLASH or point == UNDERSCORE:
                ranks[written] = rank_of[BACKSLASH]
                written += 1
                if point == UNDERSCORE:
                    point = LETTER_U
            ranks[written] = rank_of[point]
            written += 1
        ranks[written] = rank_of[UNDERSCORE]
        written += 1


@kernel_without_allocation
def remaining_length(ranks, starts, end_rank, position):
    """Returns the number of characters from a position to the end of its token."""
    for length in range(_SCAN_LIMIT):
        if ranks[np.uintp(position + length)] == end_rank:
            return length + 1
    low, high = 0, len(starts) - 1
    while low < high:
        middle = (low + high) // 2
        if starts[middle] > position:
            high = middle
        else:
            low = middle + 1
    return starts[low] - position
