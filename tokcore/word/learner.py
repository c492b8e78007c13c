"""The words of a token table that have ids: the most frequent ones."""

from collections.abc import Collection

import numpy as np

from tokcore.counts.token_table import TokenTable


def frequent_words(
    table: TokenTable, min_count: int, most: int | None, left_out: Collection[str]
) -> tuple[list[str], int | None]:
    """Returns words by their counts, of equal ones by code point, and the smallest count among them.

    Args:
        table: distinct words with their counts.
        min_count: words counted less often are not taken.
        most: as many at most; None for all.
        left_out: words that are not taken.
    """
    most = len(table) if most is None else max(0, most)
    kept = np.flatnonzero(table.counts >= min_count)
    # Beyond the last count that can be among the most frequent, nothing need be sorted.
    wanted = most + len(left_out)
    if len(kept) > wanted:
        counts = table.counts[kept]
        least = np.partition(counts, len(kept) - wanted)[len(kept) - wanted] if wanted else None
        kept = kept[:0] if least is None else kept[counts >= least]
    chosen = table.pick(kept).sorted()
    order = np.argsort(-chosen.counts, kind='stable')
    words: list[str] = []
    rarest = None
    for word, count in chosen.pick(order).items():
        if len(words) == most:
            break
        if word not in left_out:
            words.append(word)
            rarest = count
    return words, rarest
