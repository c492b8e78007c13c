"""Reading count files batch by batch, as arrays: what workers do with Parquet."""

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from pipelines.files import filesystem
from pipelines.files.trial_reading import no_counts
from tokcore.counts.token_table import token_arrays
from tokcore.errors import InputError
from tokcore.text.character_names import character_name

ROWS_AT_ONCE = 1 << 18
"""Some 2.5 MB of tokens, whose suffixes take 100 MB while they are sorted; a quarter would repeat
each group's frequent suffixes four times as often."""

_BYTES_AT_ONCE = 16 << 20

COUNT_COLUMNS = ['token', 'count']

TokenArrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def read_batches(path: str) -> Iterator[TokenArrays]:
    """Yields (data uint8, offsets int64[n + 1], counts int64[n]) of a Parquet file of counts.

    The file was once read by `read_new_batches`.

    Raises:
        InputError: it is no such file.
    """
    with _opened(path) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=COUNT_COLUMNS):
            yield token_arrays(*map(batch.column, COUNT_COLUMNS))


def read_new_batches(path: str, unstorable: str) -> Iterator[TokenArrays]:
    """Yields the same of any file.

    Raises:
        InputError: also for tokens that are not UTF-8, or have one of the characters `unstorable`.
    """
    with _opened(path) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=COUNT_COLUMNS):
            batch.column('token').validate(full=True)
            arrays = token_arrays(*map(batch.column, COUNT_COLUMNS))
            refuse_unstorable(path, *arrays[:2], unstorable)
            yield arrays


def stored_rows(paths: Sequence[str]) -> int:
    """Returns the rows of Parquet files, by their footers. Raises InputError if one has none."""
    rows = 0
    for path in paths:
        with _opened(path) as file:
            rows += file.metadata.num_rows
    return rows


@contextlib.contextmanager
def _opened(path: str) -> Iterator[parquet.ParquetFile]:
    with refusing_no_counts(path), filesystem.open_binary(path) as stream:
        yield parquet.ParquetFile(stream)


@contextlib.contextmanager
def refusing_no_counts(path: str) -> Iterator[None]:
    """Around what reads a Parquet file: raises InputError if that is none of token counts."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise no_counts(path, error) from error


def refuse_unstorable(
    path: str, data: np.ndarray, offsets: np.ndarray, unstorable: str
) -> None:
    """Refuses tokens that the vocabulary file to be learned cannot hold.

    Args:
        path: the file that the tokens are from.
        data: uint8, the tokens' text.
        offsets: int64[n + 1], where they stand in it.
        unstorable: characters of ASCII that no token may have; see `Scheme.unstorable`.

    Raises:
        InputError: there is one.
    """
    if not unstorable:
        return
    for start in range(int(offsets[0]), int(offsets[-1]), _BYTES_AT_ONCE):
        text = data[start : min(start + _BYTES_AT_ONCE, int(offsets[-1]))]
        places = np.flatnonzero(np.isin(text, np.frombuffer(unstorable.encode(), np.uint8)))
        if len(places):
            token = int(np.searchsorted(offsets, start + places[0], side='right')) - 1
            found = data[offsets[token] : offsets[token + 1]][:100].tobytes()
            what = character_name(chr(data[start + places[0]]))
            raise InputError(
                f'{path} has the token {found.decode(errors="replace")!r}, and a token with {what} '
                'cannot be stored in a vocabulary file of this scheme; leave it out, or count the '
                'text again with this version of tokbeam'
            )
