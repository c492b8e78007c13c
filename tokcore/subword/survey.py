"""A survey of all tokens: their alphabet, sums over them, and a sample of their suffixes.

The sample has the tokens whose hash ends in a number of zero bits, and a smaller sample within it
those with two more. The growth of the distinct suffixes from the smaller to the larger sample
predicts the size of the table of all suffixes.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tokcore.kernels.bytes import pick_ranges
from tokcore.kernels.jit import read_only
from tokcore.subword.segmenting import escaped_batches, pack_all_suffixes, survey_tokens
from tokcore.subword.suffix_tables import (
    PrefixPartitions,
    SuffixTable,
    SuffixTableMerger,
)
from tokcore.text.unicode import CODE_POINTS

_ONE_GROUP = PrefixPartitions(())
_NESTED_BITS = 2

# In characters. Longer suffixes would not improve the borders, and a few huge tokens would fill a
# worker's memory.
_SAMPLED_LENGTH = 256


@dataclass(frozen=True)
class TokenSurvey:
    """The survey of some tokens; surveys of parts can be added."""

    alphabet: str  # every character, ascending
    tokens: int
    characters: int  # of all escaped tokens
    weight: int  # sum of count times escaped length
    largest_count: int  # sum of count times bytes: an upper bound of the count of any substring
    sample: SuffixTable
    smaller_sample: SuffixTable

    def predicted_bytes(self, bits: int) -> int:
        """Returns the bytes of a table of all suffixes, by Heaps' law through both samples."""
        if bits == 0 or not self.smaller_sample.rows:
            return self.sample.nbytes << bits
        growth = math.log2(self.sample.nbytes / self.smaller_sample.nbytes) / _NESTED_BITS
        return math.ceil(self.sample.nbytes * 2 ** (bits * min(max(growth, 0.3), 1.0)))


class Surveyor:
    """Surveys batches of tokens, one after another.

    Args:
      bits: one token in 2^bits is sampled.
      longest: of the suffixes counted, in characters.
    """

    def __init__(self, bits: int, longest: int):
        self._bits = bits
        self._longest = min(longest, _SAMPLED_LENGTH)
        self._seen = np.zeros(CODE_POINTS, np.uint8)
        self._tokens = self._characters = self._weight = self._largest_count = 0
        self._samples = (SuffixTableMerger(), SuffixTableMerger())

    def add(self, data: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> None:
        """Adds tokens of valid UTF-8: `data[offsets[i]:offsets[i + 1]]` with counts[i]."""
        lengths = np.empty(len(counts), np.int64)
        self._tokens += len(counts)
        for merger, bits in zip(self._samples, (self._bits, self._bits + _NESTED_BITS)):
            picked = np.zeros(len(counts), np.bool_)
            mask = np.uint64((1 << bits) - 1)
            survey_tokens(data, offsets, counts, mask, self._seen, lengths, picked)
            self._sample(merger, data, offsets, counts, picked)
        self._characters += int(lengths.sum())
        self._weight += _exact_dot(counts, lengths)
        self._largest_count += _exact_dot(counts, np.diff(offsets) + 1)

    def _sample(
        self,
        merger: SuffixTableMerger,
        data: np.ndarray,
        offsets: np.ndarray,
        counts: np.ndarray,
        picked: np.ndarray,
    ) -> None:
        indices = np.flatnonzero(picked)
        if not len(indices) or self._longest < 1:
            return
        starts, ends = read_only(offsets[indices]), read_only(offsets[indices + 1])
        tokens, token_offsets = map(read_only, pick_ranges(data, starts, ends))
        batches = escaped_batches(tokens, token_offsets, read_only(counts[indices]), self._longest)
        for batch in batches:
            for _, table in pack_all_suffixes(batch, self._longest, _ONE_GROUP, (0, 1)):
                merger.add(table)

    def result(self) -> TokenSurvey:
        points = np.flatnonzero(self._seen).tolist()
        sample, smaller = (merger.merged() for merger in self._samples)
        return TokenSurvey(
            ''.join(map(chr, points)),
            self._tokens,
            self._characters,
            self._weight,
            self._largest_count,
            sample,
            smaller,
        )


def add_surveys(surveys: Iterable[TokenSurvey]) -> TokenSurvey:
    """Returns the survey of all parts."""
    surveys = list(surveys)
    samples, smaller = SuffixTableMerger(), SuffixTableMerger()
    for survey in surveys:
        samples.add(survey.sample)
        smaller.add(survey.smaller_sample)
    return TokenSurvey(
        ''.join(sorted(set().union(*(survey.alphabet for survey in surveys)))),
        sum(survey.tokens for survey in surveys),
        sum(survey.characters for survey in surveys),
        sum(survey.weight for survey in surveys),
        sum(survey.largest_count for survey in surveys),
        samples.merged(),
        smaller.merged(),
    )


def _exact_dot(counts: np.ndarray, factors: np.ndarray) -> int:
    """Returns the sum of products of int64, which may exceed 2^63."""
    low, high = counts & 0xFFFFFFFF, counts >> 32
    return (int(np.dot(high, factors)) << 32) + int(np.dot(low, factors))
