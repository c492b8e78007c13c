"""One iteration of Tensor2Tensor's subword learner, on strings: read this first.

Segment each token by the vocabulary so far, at first its characters; count every substring that
begins at a segment; select frequent substrings from long to short, and subtract the count of each
from its prefixes. Four such iterations learn a vocabulary. The cost is quadratic in the length of a
token. But segments and candidates depend on one token only and the selection on sums, so workers
can share the work; and it is the reference for the faster forms.
"""

from collections.abc import Collection, Iterator, Mapping


class PlainSegmenter:
    """Segments escaped tokens into the longest subtokens of a vocabulary, from the left."""

    def __init__(self, vocabulary: Collection[str]):
        self._vocabulary = frozenset(vocabulary)
        self._longest = max(map(len, vocabulary))

    def segment_starts(self, escaped: str) -> Iterator[int]:
        """Yields where each segment starts; every character must be in the vocabulary.

        >>> list(PlainSegmenter(['t', 'h', 'e', '_', 'th', 'the_']).segment_starts('the_'))
        [0]
        """
        start = 0
        while start < len(escaped):
            yield start
            end = min(len(escaped), start + self._longest)
            while escaped[start:end] not in self._vocabulary:
                end -= 1
                if end == start:
                    raise ValueError(f'the character {escaped[start]!r} is not in the vocabulary')
            start = end


def candidate_substrings(escaped: str, segmenter: PlainSegmenter, longest: int) -> Iterator[str]:
    """Yields every substring of up to `longest` characters that starts at a segment; may repeat."""
    for start in segmenter.segment_starts(escaped):
        for end in range(start + 1, min(start + longest, len(escaped)) + 1):
            yield escaped[start:end]


def select_substrings(
    counts: Mapping[str, int], min_count: int, alphabet: Collection[str]
) -> list[str]:
    """Returns the selected substrings and the alphabet, by count and string, both descending.

    From long to short, a substring is selected if `min_count` remains of its count, and its count
    is subtracted from that of its prefixes. `counts` may lack substrings of two characters or more
    below `min_count`.
    """
    remaining = dict(counts)
    selected = []
    for substring in sorted(counts, key=len, reverse=True):
        count = remaining[substring]
        if len(substring) > 1 and count >= min_count:
            selected.append((count, substring))
            for length in range(1, len(substring)):
                remaining[substring[:length]] -= count
    selected.extend((remaining.get(character, 0), character) for character in alphabet)
    return [substring for _, substring in sorted(selected, reverse=True)]
