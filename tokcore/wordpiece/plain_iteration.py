"""The WordPiece learner in the plain form, on strings: begin here.

Count every substring of every word that starts where a piece may start; select the frequent ones,
from long to short, subtracting their counts from those of their prefixes; segment the words by the
selected pieces, and count again from where pieces start. A piece that does not start a word has a
joiner before it. `learner` counts words and endings of words only, with equal results.
"""

from collections.abc import Collection, Iterable, Mapping


def learn_plainly(
    words: Mapping[str, int],
    min_count: int,
    *,
    iterations: int = 4,
    joiner: str = '##',
    special_tokens: Iterable[str] = (),
) -> tuple[str, ...]:
    """Returns the pieces by id, learned from words and their counts.

    >>> pieces = learn_plainly({'walking': 10, 'walked': 10, 'talking': 9}, 15)
    >>> [piece for piece in pieces if len(piece.removeprefix('##')) > 1]
    ['##alking']
    """
    characters = sorted({character for word in words for character in word})
    pieces: dict[str, int] = {}
    for iteration in range(iterations):
        counts: dict[tuple[bool, str], int] = {}
        for word, count in words.items():
            starts = segment(word, pieces, joiner) if iteration else range(len(word))
            for start in starts:
                for end in range(start + 1, len(word) + 1):
                    key = (start > 0, word[start:end])
                    counts[key] = counts.get(key, 0) + count
        pieces = select(counts, min_count, joiner)
        for character in characters:
            pieces.setdefault(character, 1)
            pieces.setdefault(joiner + character, 1)
    ranked = sorted(pieces, key=lambda piece: (-pieces[piece], piece))
    return tuple(dict.fromkeys([*special_tokens, *characters, *ranked]))


def select(counts: Mapping[tuple[bool, str], int], min_count: int, joiner: str) -> dict[str, int]:
    """Returns the pieces with their counts, of (whether a joiner comes first, substring).

    All substrings subtract their counts from those of their prefixes, as in TensorFlow Text's code:
    a count is then how often a word ends with the substring. By the rule that its documentation
    describes, only selected substrings would subtract, and stems would be selected too.

    >>> select({(False, 'ab'): 3, (False, 'a'): 5}, 3, '##')
    {'ab': 3}
    """
    left = dict(counts)
    selected = {}
    for continues, substring in sorted(left, key=lambda key: -len(key[1])):
        count = left[continues, substring]
        if count >= min_count:
            selected[continues, substring] = count
        for end in range(1, len(substring)):
            left[continues, substring[:end]] -= count
    # A word may be spelled like a joiner and a substring; the latter's count is used.
    return {
        (joiner if continues else '') + substring: count
        for (continues, substring), count in sorted(selected.items())
    }


def segment(word: str, pieces: Collection[str], joiner: str) -> list[int]:
    """Returns where the longest pieces start, from the left; every character must be a piece.

    >>> segment('walking', {'walk': 1, '##ing': 1, '##i': 1}, '##')
    [0, 4]
    """
    starts = []
    start = 0
    while start < len(word):
        starts.append(start)
        prefix = joiner if start else ''
        start = max(
            end for end in range(start + 1, len(word) + 1) if prefix + word[start:end] in pieces
        )
    return starts
