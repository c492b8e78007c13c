"""Which learner takes a table of token counts, by the memory that each would need."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.parquet as parquet

from pipelines.engines.process_memory import available_bytes
from pipelines.files import filesystem
from tokcore.errors import InputError

LEARNERS = ('auto', 'memory', 'beam')

_SHARE = 0.7
"""Of the memory at hand that the learner in memory may be predicted to take: texts differ from those
measured, and other processes come and go."""

_BYTES_OF_PROCESS = 350 << 20
"""A driver with Beam, pyarrow and compiled kernels in it."""

_BYTES_PER_CHARACTER = 50
"""Of all escaped tokens, if a search goes down to min-count 1: places, and a tree of every string.
On 10 million tokens of 13 characters 50 were measured, and 24 down to min-count 50."""

_BYTES_PER_TOKEN = 40
"""The table itself, beside the learner."""

_LENGTH_BYTES = 4
"""Of each string in an uncompressed Parquet column."""


@dataclass(frozen=True)
class CountedSize:
    """What count files hold, as their sizes tell."""

    tokens: int
    bytes: int  # of the tokens' text
    all_parquet: bool


@dataclass(frozen=True)
class LearnerChoice:
    """A learner and why it was taken."""

    learner: str  # 'memory' or 'beam'
    reason: str
    memory_bytes: int  # what the learner in memory is predicted to take


def counted_size(paths: Sequence[str]) -> CountedSize:
    """Returns how much count files hold, without reading them: from Parquet's footers.

    Of text files a token and its count are taken for 12 bytes.
    """
    tokens = size = 0
    all_parquet = True
    for path in paths:
        with filesystem.open_binary(path) as stream:
            if stream.read(4) != b'PAR1':
                all_parquet = False
                stored = filesystem.stored_size(path) or 0
                tokens += stored // 12
                size += stored
                continue
            stream.seek(0)
            metadata = parquet.ParquetFile(stream).metadata
        tokens += metadata.num_rows
        for group in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                column = metadata.row_group(group).column(number)
                if column.path_in_schema.split('.')[0] == 'token':
                    lengths = _LENGTH_BYTES * column.num_values
                    size += max(0, column.total_uncompressed_size - lengths)
    return CountedSize(tokens, size, all_parquet)


def choose_learner(wanted: str, size: CountedSize, available: int | None = None) -> LearnerChoice:
    """Returns the learner wanted, or for `auto` the one in memory if it is sure to fit.

    Args:
        wanted: one of LEARNERS.
        size: what is to be learned from.
        available: bytes of memory at hand; None asks the machine.
    """
    if wanted not in LEARNERS:
        raise InputError(f'no learner {wanted!r}; there are {", ".join(LEARNERS)}')
    need = predicted_bytes(size)
    at_hand = available_bytes() if available is None else available
    compared = (
        f'{size.tokens} tokens need some {_megabytes(need)} in memory, '
        f'{_megabytes(at_hand)} are at hand'
    )
    if wanted != 'auto':
        return LearnerChoice(wanted, f'as asked for; {compared}', need)
    learner = 'memory' if need <= _SHARE * at_hand else 'beam'
    return LearnerChoice(learner, compared, need)


def predicted_bytes(size: CountedSize) -> int:
    """Returns the peak of a process that learns in memory."""
    # Of a token's text a character is a byte or more; its end is a character too.
    characters = size.bytes + size.tokens
    return (
        _BYTES_OF_PROCESS + _BYTES_PER_CHARACTER * characters + _BYTES_PER_TOKEN * size.tokens
    )


def _megabytes(size: int) -> str:
    return f'{size >> 20} MB'
