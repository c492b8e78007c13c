"""Reading count files batch by batch, as arrays: what workers do with Parquet."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from pipelines import filesystem
from tokcore.errors import InputError
from tokcore.subword.cutting import token_arrays

ROWS_AT_ONCE = 1 << 18
"""Some 2.5 MB of tokens, whose suffixes take 100 MB while they are sorted; a quarter would repeat
each group's frequent suffixes four times as often."""

TokenArrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def read_batches(path: str, is_checked: bool = True) -> Iterator[TokenArrays]:
    """Yields (data uint8, offsets int64[n + 1], counts int64[n]) of a Parquet file of counts.

    Args:
        path: the file.
        is_checked: whether it was once read before; if not, its tokens are checked to be UTF-8.

    Raises:
        InputError: it is no such file.
    """
    try:
        with filesystem.open_binary(path) as stream:
            file = parquet.ParquetFile(stream)
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=['token', 'count']):
                tokens, counts = batch.column('token'), batch.column('count')
                if not is_checked:
                    tokens.validate(full=True)
                yield token_arrays(tokens, counts)
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise InputError(
            f'{path} is not a Parquet file of token counts ({error}); it needs a string '
            'column "token" and an integer column "count"'
        ) from error


def stored_rows(paths: Sequence[str]) -> int:
    """Returns the rows of Parquet files, by their footers."""
    rows = 0
    for path in paths:
        with filesystem.open_binary(path) as stream:
            rows += parquet.ParquetFile(stream).metadata.num_rows
    return rows
