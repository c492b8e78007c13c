"""Command lines of the revision that is compared with, as this checkout spells them.

Whoever begins with another revision, which spells its options as this checkout does, empties the tables.
"""

from collections.abc import Sequence

_NAMES = {
    '--item-size': '@item-size',
    '--shuffle': '@shuffle',
    '--merge': '--counts',
    '--sgm-source': '--source',
    '--sgm-target': '--target',
    '--labelled-text': '--text',
    '--special-token': '--special-tokens',
    '--dev-sgm-source': '--dev-source',
    '--dev-sgm-target': '--dev-target',
    **{f'--dev-{role}': '--dev' for role in ('text', 'tsv', 'jsonl', 'parquet', 'tmx')},
}
"""By options of that revision: what they are called now."""

_LEFT_OUT = {'--header', '--raw'}
"""Options without a value that this checkout does not have."""


def spelled_now(words: Sequence[object]) -> list[object]:
    """Returns the words of a command line as this checkout spells them."""
    return [_NAMES.get(str(word), word) for word in words if str(word) not in _LEFT_OUT]
