"""Writes counts of any number of distinct generated tokens: `python -m tests.benchmarks.generated_counts N DIR`.

Tokens have 2 to 12 letters, 8.8 as drawn; some letters are frequent, and the shorter tokens occur more
often, by Zipf's law. So there are frequent pairs, and a long tail of rare ones. Memory: some 25 bytes
a token.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

from tokcore.counts.token_table import TokenTable

_LETTERS = np.frombuffer(b'etaoinsrhldcumfpgwybvkxjqz', np.uint8)
_LONGEST = 12
_BITS = 5  # of a letter's number + 1
_AT_ONCE = 1 << 22
_FILE_TOKENS = 1 << 22
_ROW_GROUP = 1 << 20


def write_counts(tokens: int, folder: Path) -> list[Path]:
    """Writes Parquet files of a token and a count in each row; returns their paths."""
    folder.mkdir(parents=True)
    keys = _distinct(tokens)
    dice = np.random.default_rng(tokens + 1)
    # Tokens of equal length have their ranks in any order, the shorter ones have the smaller ranks.
    order = np.argsort(_lengths(keys) + dice.random(tokens, np.float32), kind='stable')
    paths = []
    for start in range(0, tokens, _FILE_TOKENS):
        chosen = order[start : start + _FILE_TOKENS]
        ranks = np.arange(start, start + len(chosen))
        table = _table(keys[chosen], 1 + 20 * tokens // (3 + ranks)).sorted()
        paths.append(folder / f'counts-{len(paths):05d}.parquet')
        parquet.write_table(table.to_arrow(), paths[-1], row_group_size=_ROW_GROUP)
    return paths


def _distinct(tokens: int) -> np.ndarray:
    """Returns uint64[tokens], a token each: its letters from the lowest bits on, 0 after the end."""
    dice = np.random.default_rng(tokens)
    thresholds = np.cumsum(0.12 * 0.88 ** np.arange(len(_LETTERS)))
    by_byte = np.searchsorted(thresholds / thresholds[-1], np.arange(256) / 256, side='right')
    number = by_byte.astype(np.uint64) + np.uint64(1)
    keys = np.empty(0, np.uint64)
    while len(keys) < tokens:
        drawn = [keys]
        for _ in range(0, tokens, _AT_ONCE):
            lengths = np.clip(np.rint(dice.normal(8.8, 2.2, _AT_ONCE)), 2, _LONGEST)
            letters = dice.integers(0, 256, (_LONGEST, _AT_ONCE), np.uint8)
            key = np.zeros(_AT_ONCE, np.uint64)
            for place in range(_LONGEST):
                letter = np.where(place < lengths, number[letters[place]], np.uint64(0))
                key |= letter << np.uint64(_BITS * place)
            drawn.append(np.unique(key))
        keys = np.unique(np.concatenate(drawn))
    dice.shuffle(keys)
    return keys[:tokens]


def _lengths(keys: np.ndarray) -> np.ndarray:
    lengths = np.zeros(len(keys), np.float32)
    for place in range(_LONGEST):
        lengths += (keys >> np.uint64(_BITS * place)) > 0
    return lengths


def _table(keys: np.ndarray, counts: np.ndarray) -> TokenTable:
    shifts = np.uint64(_BITS) * np.arange(_LONGEST, dtype=np.uint64)
    numbers = (keys[:, None] >> shifts).astype(np.uint8) & np.uint8(31)
    is_letter = numbers > 0
    offsets = np.concatenate([[0], np.cumsum(is_letter.sum(1))])
    return TokenTable(_LETTERS[numbers[is_letter] - 1], offsets, counts)


if __name__ == '__main__':
    write_counts(int(sys.argv[1]), Path(sys.argv[2]))
