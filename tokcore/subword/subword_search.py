"""The search for subwords of a size: vocabularies of one min-count after another."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned
from tokcore.learning.size_search import Report, search_vocabulary
from tokcore.subword.text_encoder import SubwordTextEncoder


class SubwordLearner(Protocol):
    """Learns the vocabularies of one token table, for any number of min-counts."""

    @property
    def smallest_size(self) -> int:
        """The size that no min-count gets below."""

    def build(self, min_count: int) -> Sequence[str]:
        """Returns the subtokens by id."""


class SearchOptions(Protocol):
    """What is asked of a search, as `search_vocabulary` takes it."""

    vocab_size: int
    search: str
    min_count_range: tuple[int, int] | None


def search_subwords(
    learner: SubwordLearner, largest_count: int, options: SearchOptions, report: Report
) -> Learned:
    """Searches min-counts for the size that is asked for.

    Args:
        learner: builds the vocabulary of a min-count.
        largest_count: no string is counted more often, or the learner tells none.
        options: the size, and which min-counts are tried.
        report: is told of each vocabulary that was built.

    Raises:
        InputError: a size below the alphabet, or a range that is empty.
    """
    found = search_vocabulary(
        learner.build,
        options.vocab_size,
        strategy=options.search,
        min_count_range=options.min_count_range,
        smallest_size=learner.smallest_size,
        largest_count=largest_count,
        report=report,
    )
    return Learned(
        SubwordTextEncoder(found.subtokens),
        found.min_count,
        found.tried,
        found.reachable,
        learner.smallest_size,
    )


def largest_count(table: TokenTable) -> int:
    """Returns what no substring is counted more often than: there are as many characters."""
    return int(np.dot(table.counts.astype(np.float64), np.diff(table.offsets) + 1))
