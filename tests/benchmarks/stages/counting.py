"""Text to token counts, and on to a vocabulary."""

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable
from tokcore.learning.size_search import SearchResult, search_vocabulary
from tokcore.subword.learner import MemoryLearner
from tokcore.subword.text_encoder import dump_vocabulary
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.t2t import T2TPreTokenizer

from ..generated_counts import generated_table
from ..outcome import Outcome, Ready, second_time, timed
from .blocks import TextBlock, add_tokens, get_ready, map_blocks, text_blocks

_Part = TypeVar('_Part')

MAX_SUBTOKEN_LENGTH = 200
MIN_COUNTS = (1, 1000)
"""Tensor2Tensor's problems learn with these."""

_GENERATED_MIN_COUNT = 50
_WARM_UP = b'warm 1, cold 2.\n' * 3


def count_blocks(blocks: Sequence[TextBlock], threads: int) -> TokenTable:
    """Returns the counts of all blocks."""
    return count_shares(blocks, threads, _add_blocks)


def count_shares(
    parts: Sequence[_Part], threads: int, add: Callable[[TokenAccumulator, Sequence[_Part]], None]
) -> TokenTable:
    """Returns the counts of all parts: each thread counts a share, into one table, as in a worker."""
    first = TokenAccumulator()
    others = [TokenAccumulator(first.index) for _ in range(threads - 1)]
    shares = [(sums, parts[number::threads]) for number, sums in enumerate([first, *others])]
    for _ in map_blocks(lambda share: add(*share), shares, threads):
        pass
    return TokenTable(*first.finish(others))


def _add_blocks(sums: TokenAccumulator, blocks: Sequence[TextBlock]) -> None:
    add_tokens(sums, blocks, T2T_LINES, T2TPreTokenizer())


def counts_facts(table: TokenTable) -> dict[str, object]:
    """Returns how many tokens there are, and a digest of their counts that ignores their order."""
    digest = hashlib.sha256(table.sorted().to_bytes()).hexdigest()[:16]
    return {'digest': digest, 'tokens': table.total, 'distinct': len(table)}


def count(ready: Ready, *, text: str, threads: int) -> Outcome:
    """Counts a text in memory."""
    get_ready()
    blocks = text_blocks(Path(text).read_bytes())
    table, first, seconds = second_time(ready, lambda: count_blocks(blocks, threads))
    return Outcome(seconds, {**counts_facts(table), 'first_seconds': first})


def learn(ready: Ready, *, text: str, vocabulary_size: int, threads: int) -> Outcome:
    """Reads and counts a text file and learns a vocabulary."""
    get_ready()
    search(count_blocks(text_blocks(_WARM_UP), 1), 1)
    ready()
    started = time.perf_counter()
    table = count_blocks(text_blocks(Path(text).read_bytes()), threads)
    counted = time.perf_counter() - started
    subtokens = search(table, vocabulary_size).subtokens
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'counting_seconds': counted, 'size': len(subtokens)})


def search(table: TokenTable, size: int) -> SearchResult:
    """Returns the vocabulary that the original's search finds, within its range of min-counts."""
    learner = MemoryLearner(table, max_subtoken_length=MAX_SUBTOKEN_LENGTH)
    return search_vocabulary(
        learner.build,
        size,
        min_count_range=MIN_COUNTS,
        smallest_size=learner.smallest_size,
        largest_count=learner.largest_count,
    )


def search_counts(ready: Ready, *, counts: str, vocabulary_size: int) -> Outcome:
    """Searches a vocabulary of a size, from a table in memory."""
    table = TokenTable.from_bytes(Path(counts).read_bytes())
    search(count_blocks(text_blocks(_WARM_UP), 1), 1)
    result, seconds = timed(ready, lambda: search(table, vocabulary_size))
    stored = dump_vocabulary(result.subtokens)
    facts = {
        'digest': hashlib.sha256(stored).hexdigest()[:16],
        'size': len(result.subtokens),
        'tried': len(result.tried),
        'distinct': len(table),
    }
    return Outcome(seconds, facts)


def build_generated(ready: Ready, *, tokens: int) -> Outcome:
    """Builds a vocabulary from a generated table, which can be larger than those of the corpora."""
    table = generated_table(tokens)
    search(count_blocks(text_blocks(_WARM_UP), 1), 1)

    def build() -> int:
        learner = MemoryLearner(table, max_subtoken_length=MAX_SUBTOKEN_LENGTH)
        return len(learner.build(_GENERATED_MIN_COUNT))

    size, seconds = timed(ready, build)
    return Outcome(seconds, {'size': size})
