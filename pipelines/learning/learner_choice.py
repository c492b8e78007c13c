"""Which learner takes a table of token counts, by the memory that each would need."""

from dataclasses import dataclass

import numpy as np

from pipelines.artifacts.count_files import CountedSize
from pipelines.machine.process_memory import available_bytes
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError

LEARNERS = ('auto', 'memory', 'beam')

_SHARE = 0.7
"""Of the memory at hand that the learner in memory may be predicted to take: texts differ from those
measured, and other processes come and go."""

_BYTES_OF_PROCESS = 350 << 20
"""A driver with Beam, pyarrow and compiled kernels in it."""

_BYTES_PER_TOKEN = 40
"""The table itself, beside the learner."""


@dataclass(frozen=True)
class LearnerChoice:
    """A learner and why it was taken."""

    learner: str  # 'memory' or 'beam'
    reason: str
    memory_bytes: int  # what the learner in memory is predicted to take


def choose_learner(
    wanted: str, size: CountedSize, per_character: int, available: int | None = None
) -> LearnerChoice:
    """Returns the learner wanted, or for `auto` the one in memory if it is sure to fit.

    Args:
        wanted: one of LEARNERS.
        size: what is to be learned from.
        per_character: what the learner in memory takes for each byte of distinct tokens.
        available: bytes of memory at hand; None asks the machine.
    """
    if wanted not in LEARNERS:
        raise InputError(f'no learner {wanted!r}; there are {", ".join(LEARNERS)}')
    need = predicted_bytes(size, per_character)
    at_hand = available_bytes() if available is None else available
    compared = (
        f'{size.tokens} tokens need some {_megabytes(need)} in memory, '
        f'{_megabytes(at_hand)} are at hand'
    )
    if wanted != 'auto':
        return LearnerChoice(wanted, f'as asked for; {compared}', need)
    learner = 'memory' if need <= _SHARE * at_hand else 'beam'
    return LearnerChoice(learner, compared, need)


def predicted_bytes(size: CountedSize, per_character: int) -> int:
    """Returns the peak of a process that learns in memory; `per_character` as of `choose_learner`."""
    # Of a token's text a character is a byte or more; its end is a character too.
    characters = size.bytes + size.tokens
    return (
        _BYTES_OF_PROCESS + per_character * characters + _BYTES_PER_TOKEN * size.tokens
    )


def fitting_min_count(table: TokenTable, per_character: int, available: int) -> int | None:
    """Returns the smallest count such that the tokens that occur so often fit; None if none do."""
    order = np.argsort(-table.counts, kind='stable')
    counts = table.counts[order]
    ends = np.cumsum(np.diff(table.offsets)[order])
    need = _BYTES_OF_PROCESS + per_character * (ends + np.arange(1, len(ends) + 1))
    need += _BYTES_PER_TOKEN * np.arange(1, len(ends) + 1)
    fitting = int(np.searchsorted(need, available, side='right'))
    if fitting == len(counts):
        return 1
    # All tokens of one count go together.
    least = int(counts[fitting]) + 1
    return least if fitting and counts[0] >= least else None


def _megabytes(size: int) -> str:
    return f'{size >> 20} MB'
