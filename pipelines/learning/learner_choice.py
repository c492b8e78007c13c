"""Which learner takes a table of token counts, by the memory that each would need."""

from dataclasses import dataclass

from pipelines.artifacts.count_files import CountedSize
from pipelines.machine.process_memory import available_bytes
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


def _megabytes(size: int) -> str:
    return f'{size >> 20} MB'
