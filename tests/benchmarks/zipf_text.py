"""Generated text in place of the corpora: words by Zipf's law, from a seed alone."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

_WORDS = 400_000
_PIECE_WORDS = 200_000  # written at once, so that memory stays small
_SYLLABLES = [consonant + vowel for consonant in 'bcdfghjklmnprstvwz' for vowel in 'aeiou']
_HAN = [chr(0x4E00 + 7 * rank) for rank in range(2900)]


def write_english(path: Path, size: int, seed: int = 1) -> None:
    """Writes lines of words with spaces, capitals and punctuation, at least `size` bytes."""
    _write(path, size, seed, _SYLLABLES, ' ', '. ')


def write_chinese(path: Path, size: int, seed: int = 2) -> None:
    """Writes lines of Han characters without spaces, at least `size` bytes."""
    _write(path, size, seed, _HAN, '', '，')


def write_pairs(path: Path, size: int, seed: int = 3) -> None:
    """Writes lines of English TAB Chinese, at least `size` bytes."""
    halves = [path.with_name(f'{path.name}.{side}') for side in ('en', 'zh')]
    write_english(halves[0], size, seed)
    write_chinese(halves[1], size, seed + 1)
    written = 0
    with open(halves[0], 'rb') as source, open(halves[1], 'rb') as target:
        with open(path, 'wb') as pairs:
            for left, right in zip(source, target):
                written += pairs.write(left.rstrip(b'\n') + b'\t' + right)
                if written >= size:
                    break
    for half in halves:
        half.unlink()


def _write(
    path: Path, size: int, seed: int, syllables: Sequence[str], space: str, pause: str
) -> None:
    dice = np.random.default_rng(seed)
    words = np.array([spelled(rank, syllables) for rank in range(_WORDS)], object)
    cumulative = np.cumsum(1 / (np.arange(_WORDS) + 2.7))
    written = 0
    with open(path, 'wb') as text:
        while written < size:
            ranks = np.searchsorted(cumulative, dice.random(_PIECE_WORDS) * cumulative[-1])
            drawn = words[ranks].tolist()
            cuts = np.cumsum(dice.geometric(0.06, _PIECE_WORDS // 10)).tolist()
            start, lines = 0, []
            for end in cuts:
                if end > _PIECE_WORDS or written >= size:
                    break
                middle = (start + end) // 2
                line = space.join(drawn[start:middle]) + pause + space.join(drawn[middle:end])
                lines.append(line.strip().capitalize() + ('.' if space else '。'))
                written += len(lines[-1].encode()) + 1
                start = end
            text.write(('\n'.join(lines) + '\n').encode())


def spelled(rank: int, syllables: Sequence[str]) -> str:
    """Returns a word that no other rank has: its number in the base of the syllables."""
    word = ''
    rank += 1
    while rank:
        rank, digit = divmod(rank, len(syllables))
        word += syllables[digit]
    return word
