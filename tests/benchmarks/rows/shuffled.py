"""Rows of the bytes that two learners on Beam shuffle; their ratios are of bytes, not of times."""

from collections.abc import Iterator

from ..contenders import Row, one_core_row
from ..corpora import MIXED
from ..scale import Scale

_PLAIN = 'plain counting'
_MOST_PLAIN_TOKENS = 10_000  # plain counting takes minutes for 20,000, and 15 minutes for 100,000


def shuffled_rows(scale: Scale) -> Iterator[Row]:
    """Yields one row for each size of the table."""
    for tokens, vocabulary_size in scale.shuffled_tokens:
        yield one_core_row(
            f'shuffled/{tokens}',
            f'whole search of {vocabulary_size:,} entries on Beam, {tokens:,} distinct tokens',
            MIXED,
            (
                'stages.substrings:search_on_beam',
                lambda inputs, tokens=tokens, size=vocabulary_size: {
                    'form': 'packed', 'tokens': tokens, 'vocabulary_size': size,
                },
            ),
            {_PLAIN: ('stages.substrings:search_on_beam', 4, {'form': 'plain'})},
            runs=1,
            patience='once',
            ratio_of='shuffled_bytes',
            is_extra=tokens > _MOST_PLAIN_TOKENS,
        )  # fmt: skip
