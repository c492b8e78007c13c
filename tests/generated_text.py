"""Text for tests: words whose counts fall like those of a language, from a seed alone.

Everything is drawn from `random.Random(seed)` in a fixed order, so a test sees the same lines in
every process.
"""

import itertools
import random

_SYLLABLES = 'ba con de er fi gra hu in jo ki lor men nu o pre qui ra sti tor u ver wi ex yp za'
_ENDINGS = ('', '', '', 's', 'ed', 'ing', 'ly', "'s")
_FIRST_HAN = 0x4E00
_HAN_CHARACTERS = 600
_WORDS = 900


def english_lines(count: int, seed: int) -> list[str]:
    """Returns sentences of Zipf-distributed words with capitals, numbers and punctuation."""
    dice = random.Random(seed)
    syllables = _SYLLABLES.split()
    words = [''.join(dice.choices(syllables, k=dice.randint(1, 4))) for _ in range(_WORDS)]
    weights = _zipf(_WORDS)
    lines = []
    for _ in range(count):
        line = [
            word + dice.choice(_ENDINGS)
            for word in dice.choices(words, cum_weights=weights, k=dice.randint(1, 16))
        ]
        line[0] = line[0].capitalize()
        if dice.random() < 0.2:
            line.insert(dice.randint(0, len(line)), str(dice.randint(0, 3000)))
        if dice.random() < 0.05:
            line.append(dice.choice(['<b>%s</b>', 'a_b\\c', '(x; y)', '100 %', 'naïve', '😀!']))
        lines.append(dice.choice([' ', ' ', ' ', ', ', '  ']).join(line) + dice.choice('.?!:'))
    return lines


def chinese_lines(count: int, seed: int) -> list[str]:
    """Returns lines without spaces between words, with Han characters drawn by Zipf's law."""
    dice = random.Random(seed)
    characters = [chr(_FIRST_HAN + 13 * rank) for rank in range(_HAN_CHARACTERS)]
    dice.shuffle(characters)
    words = [
        ''.join(dice.choices(characters, cum_weights=_zipf(_HAN_CHARACTERS), k=dice.randint(1, 3)))
        for _ in range(_WORDS)
    ]
    weights = _zipf(_WORDS)
    return [
        ''.join(
            word + ('，' if dice.random() < 0.1 else '')
            for word in dice.choices(words, cum_weights=weights, k=dice.randint(1, 14))
        )
        + dice.choice('。？！')
        for _ in range(count)
    ]


def distinct_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Returns pairs of which no two are the same, so each can be recognised in the output."""
    lines = zip(english_lines(2 * count, seed), chinese_lines(2 * count, seed + 1), strict=True)
    pairs = list(itertools.islice(dict.fromkeys(lines), count))
    if len(pairs) < count:
        raise ValueError(f'only {len(pairs)} of {count} pairs are distinct')
    return pairs


def pairs_with_gaps(count: int, seed: int) -> list[tuple[str, str]]:
    """Returns distinct pairs of which every 17th or so lacks the one side, the other, or both.

    Sides may have white space around them, which a corpus's reader strips.
    """
    dice = random.Random(seed)
    pairs = []
    for source, target in distinct_pairs(count, seed + 1):
        source, target = _padded(source, dice), _padded(target, dice)
        gap = dice.randrange(51)
        pairs.append(
            {0: ('', target), 1: (source, ' \u3000'), 2: ('', '')}.get(gap, (source, target))
        )
    return pairs


def as_lines(lines: list[str], line_end: str = '\n') -> bytes:
    """Returns the file of these lines."""
    return ''.join(line + line_end for line in lines).encode()


def as_tsv(pairs: list[tuple[str, str]], line_end: str = '\n') -> bytes:
    """Returns the pairs as a file with two columns."""
    return as_lines(['\t'.join(pair) for pair in pairs], line_end)


def as_bitext(pairs: list[tuple[str, str]], line_end: str = '\n') -> tuple[bytes, bytes]:
    """Returns the pairs as two aligned files."""
    sources, targets = zip(*pairs, strict=True)
    return as_lines(list(sources), line_end), as_lines(list(targets), line_end)


def kept_pairs(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns the pairs that a corpus's examples hold, in order: stripped, with both sides."""
    stripped = [(source.strip(), target.strip()) for source, target in pairs]
    return [pair for pair in stripped if all(pair)]


def _padded(text: str, dice: random.Random) -> str:
    return dice.choice(['', '', '', ' ', '\u3000']) + text + dice.choice(['', '', '', '  ', '\xa0'])


def _zipf(ranks: int) -> list[float]:
    return list(itertools.accumulate(1 / (2 + rank) for rank in range(ranks)))
