"""Rows that are points of a plot: time and memory against the size of a text or a table."""

from collections.abc import Iterator

from ..contenders import OURS, Contender, Row, one_core_row
from ..corpora import LARGE
from ..scale import Scale
from .commands import above_start_up, count_arguments, encode_arguments


def size_rows(scale: Scale) -> Iterator[Row]:
    """Yields one row for each size of each curve."""
    for name, arguments, vocabulary in (
        ('count', count_arguments, None),
        ('encode', encode_arguments, scale.large_vocabulary),
    ):
        for size in scale.plotted_sizes:
            options = above_start_up(arguments(2), vocabulary, of_bytes=size)
            yield Row(
                f'sizes/{name}/{size / 1e6:g}MB',
                f'{name} {size / 1e6:g} MB above start-up, two workers',
                LARGE,
                Contender(OURS, 'stages.commands:run_above_start_up', options),
                runs=1,
                size=size / 1e6,
            )
    ends = (scale.plotted_tokens[0], scale.plotted_tokens[-1])
    for tokens in scale.plotted_tokens:
        yield one_core_row(
            f'sizes/build/{tokens / 1e6:g}M-tokens',
            f'tree and one vocabulary from {tokens / 1e6:g} million distinct tokens',
            LARGE,
            ('stages.counting:build_generated', lambda inputs, tokens=tokens: {'tokens': tokens}),
            {},
            runs=scale.long_runs if tokens in ends else 1,
            size=tokens / 1e6,
        )
