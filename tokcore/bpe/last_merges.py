"""The last merge of each entry, and ranks as a tokenizer.json has them.

An entry is always the result of the same merge, the last one in its own bytes: as long as no merge has
crossed the ends of these bytes in a text, the merges within them are those made in them alone. So no two
merges of equal result compete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokcore.bpe.vocabulary import (
    BpeVocabulary,
    EntriesWithAddedTokens,
    ModelRules,
    TokenizerParts,
)
from tokcore.text.byte_level import CHARACTER_TO_BYTE
from tokcore.text.expressions import fancy_regex
from tokcore.text.patterns import PATTERNS, named_pattern

_NEVER = 1 << 31
"""Above all ranks."""


def last_merge(
    symbols: Sequence[str], rank_of: Callable[[str, str], int | None]
) -> tuple[str, str] | None:
    """Returns the two parts that the last merge joins into one; None if merges end before.

    Args:
        symbols: before any merge.
        rank_of: returns the rank of the merge of two neighbors, None if there is none.

    Examples:
        >>> ranks = {('a', 'b'): 0, ('b', 'c'): 1, ('ab', 'c'): 2}
        >>> last_merge('abc', lambda left, right: ranks.get((left, right)))
        ('ab', 'c')
        >>> last_merge('bb', lambda left, right: ranks.get((left, right)))
    """
    parts = [*symbols]
    while len(parts) > 1:
        ranks = [
            _NEVER if (rank := rank_of(*pair)) is None else rank for pair in zip(parts, parts[1:])
        ]
        rank = min(ranks)
        if rank == _NEVER:
            return None
        if len(parts) == 2:
            return parts[0], parts[1]
        first = ranks.index(rank)
        parts[first : first + 2] = [parts[first] + parts[first + 1]]
    return None


def merges_of_ranks(ranks: EntriesWithAddedTokens, pattern: str) -> BpeVocabulary:
    """Returns ranks with a merge for each token, in the order of ranks.

    Args:
        ranks: byte-level entries.
        pattern: the name of a pattern, or an expression of fancy-regex that has a name.

    Raises:
        ValueError: they cannot be in a tokenizer.json; the message says why.
    """
    name = pattern if pattern in PATTERNS else named_pattern([fancy_regex(pattern)])
    if name is None:
        raise ValueError(f'{pattern!r:.80} is written for another engine of expressions')
    if {token.content for token in ranks.added} & ranks.entries.keys():
        raise ValueError('a special token is spelled as the bytes of another token')
    ids = ranks.entries
    tokens = [
        token for token in sorted(ids, key=ids.__getitem__) if CHARACTER_TO_BYTE.keys() >= {*token}
    ]
    pairs = (last_merge(token, lambda left, right: ids.get(left + right)) for token in tokens)
    entries = {**{token.content: token.id for token in ranks.added}, **ids}
    merges = tuple(filter(None, pairs))
    rules = ModelRules(ignore_merges=True)
    return BpeVocabulary(entries, merges, ranks.added, TokenizerParts.of((name,)), rules)
