"""Writes counts of any number of distinct generated tokens: `python -m tests.benchmarks.generated_counts N DIR`.

Token `i` is 37 bits of a permutation of all numbers of 37 bits, read as a prefix code of letters: so no
two tokens are the same, some letters are frequent, and tokens have 9 letters on average. Counts follow
Zipf's law. So there are frequent pairs, and a long tail of rare ones.
"""

import heapq
import sys
from pathlib import Path

import numba
import numpy as np
import pyarrow.parquet as parquet

from tokcore.counts.token_table import TokenTable

_LETTERS = b'etaoinsrhldcumfpgwybvkxjqz'
_SHARE = 0.88
"""How often each letter occurs, compared with the one before it in the list."""

_BITS = 37
_MULTIPLIER = 0x9E3779B97F4A7C15 % (1 << _BITS) | 1
"""An odd number, so that multiples of it modulo 2^37 are a permutation."""

_LONGEST_CODE = 8
_MOST_LETTERS = 20  # the shortest code has two bits
_FILE_TOKENS = 1 << 22
_ROW_GROUP = 1 << 20


def write_counts(tokens: int, folder: Path) -> list[Path]:
    """Writes Parquet files of a token and a count in each row; returns their paths."""
    folder.mkdir(parents=True)
    paths = []
    for start in range(0, tokens, _FILE_TOKENS):
        table = generated_table(tokens, start, min(start + _FILE_TOKENS, tokens))
        paths.append(folder / f'counts-{len(paths):05d}.parquet')
        parquet.write_table(table.to_arrow(), paths[-1], row_group_size=_ROW_GROUP)
    return paths


def generated_table(tokens: int, start: int = 0, end: int | None = None) -> TokenTable:
    """Returns so many tokens, or those from one number to before another."""
    ranks = np.arange(start, tokens if end is None else end)
    data = np.empty(_MOST_LETTERS * len(ranks), np.uint8)
    offsets = np.zeros(len(ranks) + 1, np.int64)
    _write_tokens(start, *_decoding_tables(), data, offsets)
    return TokenTable(data[: offsets[-1]], offsets, 1 + 20 * tokens // (3 + ranks))


def _decoding_tables() -> tuple[np.ndarray, np.ndarray]:
    """Returns for each 8 bits the letter whose code they begin with, and the length of that code."""
    # Huffman's codes: the two rarest groups of letters become one, again and again.
    groups = [(_SHARE**place, [(letter, '')]) for place, letter in enumerate(_LETTERS)]
    heapq.heapify(groups)
    while len(groups) > 1:
        pair = [heapq.heappop(groups) for _ in '01']
        joined = [
            (letter, bit + code) for bit, (_, codes) in zip('01', pair) for letter, code in codes
        ]
        heapq.heappush(groups, (pair[0][0] + pair[1][0], joined))
    letters, lengths = np.zeros(256, np.uint8), np.zeros(256, np.int64)
    for letter, code in groups[0][1]:
        first = int(code.ljust(_LONGEST_CODE, '0'), 2)
        beginning = slice(first, first + (1 << (_LONGEST_CODE - len(code))))
        letters[beginning], lengths[beginning] = letter, len(code)
    return letters, lengths


@numba.njit
def _write_tokens(start, letters, lengths, data, offsets):
    used = 0
    for token in range(len(offsets) - 1):
        bits = (start + token) * _MULTIPLIER % (1 << _BITS)
        left = _BITS
        while left > 0:
            shift = left - _LONGEST_CODE
            code = (bits >> shift if shift >= 0 else bits << -shift) & 0xFF
            data[used] = letters[code]
            used += 1
            left -= lengths[code]
        offsets[token + 1] = used


if __name__ == '__main__':
    write_counts(int(sys.argv[1]), Path(sys.argv[2]))
