"""One iteration of the published algorithm in the plain form, on strings: begin here.

Segment each token by the vocabulary so far, at first its characters; count every substring that begins
at a segment; select those that are frequent, from long to short, each taking its count from its
prefixes. Four such iterations make a vocabulary. Quadratic in the length of a token, but segmenting and counting look at one
token at a time and selecting sees only sums: so it can be spread over workers, and is the reference
for faster forms.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PlainSegmenter:
    """Cuts escaped tokens into the longest subtokens of a vocabulary, from the left."""

    vocabulary: frozenset[str]
    longest: int

    @classmethod
    def of(cls, vocabulary: Collection[str]) -> 'PlainSegmenter':
        return cls(frozenset(vocabulary), max(map(len, vocabulary)))

    def cuts(self, escaped: str) -> Iterator[int]:
        """Yields where each subtoken starts; every character must be in the vocabulary.

        >>> list(PlainSegmenter.of(['t', 'h', 'e', '_', 'th', 'the_']).cuts('the_'))
        [0]
        """
        start = 0
        while start < len(escaped):
            yield start
            end = min(len(escaped), start + self.longest)
            while escaped[start:end] not in self.vocabulary:
                end -= 1
                if end == start:
                    raise ValueError(f'the character {escaped[start]!r} is not in the vocabulary')
            start = end


def candidate_substrings(escaped: str, segmenter: PlainSegmenter, longest: int) -> Iterator[str]:
    """Yields every substring of up to `longest` characters that starts at a cut, with repeats."""
    for start in segmenter.cuts(escaped):
        for end in range(start + 1, min(start + longest, len(escaped)) + 1):
            yield escaped[start:end]


def keep_substrings(
    counts: Mapping[str, int], min_count: int, alphabet: Collection[str]
) -> list[str]:
    """Returns the substrings kept and the alphabet, by count and string, both descending.

    From long to short, a substring that has `min_count` left is kept and takes what it has from all
    of its prefixes. `counts` may lack substrings of two
    characters or more below `min_count`.
    """
    left = dict(counts)
    kept = []
    for substring in sorted(counts, key=len, reverse=True):
        count = left[substring]
        if len(substring) > 1 and count >= min_count:
            kept.append((count, substring))
            for length in range(1, len(substring)):
                left[substring[:length]] -= count
    kept.extend((left.get(character, 0), character) for character in alphabet)
    return [substring for _, substring in sorted(kept, reverse=True)]
