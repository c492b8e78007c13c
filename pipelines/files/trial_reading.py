"""Parquet files that others wrote are read by a process of their own first.

Arrow ends the whole process over some damaged files, and a few bytes can declare gigabytes. So a
child with bounded memory and time reads each file once as it will be read later, and knows nothing
but pyarrow; whatever ends it is one sentence here.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from pipelines.files.system_errors import system_error
from tokcore.errors import InputError

_ROWS_AT_ONCE = 1 << 16

_BASE_BYTES = 512 << 20
"""Of memory, for any file: pyarrow takes 140 MB, and a page of Parquet has a megabyte; with half,
files of writers with large pages would be refused."""

_BYTES_PER_BYTE = 8
"""Of memory for each byte stored: a row group is held as stored, and unpacked batch by batch."""

_UNPACKED_PER_BYTE = 64
"""Tokens and counts, sorted and packed by the best, take a tenth of their size in memory. What
takes a hundredth of it is one row repeated, or damaged."""

_BASE_SECONDS = 20
"""To start a process and import pyarrow on a machine with other work takes a few."""

_BYTES_PER_SECOND = 4 << 20
"""An old disk alone reads ten times that."""

_ENVIRONMENT = {
    # Threads take memory each, on a large machine more than the file.
    'ARROW_DEFAULT_MEMORY_POOL': 'system',
    'ARROW_IO_THREADS': '1',
    'OMP_NUM_THREADS': '1',
    'OPENBLAS_NUM_THREADS': '1',
}

_TOLD = 2
"""The status of a child that says what is wrong."""


def read_on_trial(files: Sequence[tuple[str, int]]) -> None:
    """Has files of this machine read by a process of their own.

    Args:
        files: (path, bytes) of Parquet files.

    Raises:
        InputError: one cannot be read, or only with far more memory or time than a file of its size takes.
    """
    if not files:
        return
    seconds = sum(_BASE_SECONDS + size // _BYTES_PER_SECOND for _, size in files)
    try:
        ended = subprocess.run(
            [sys.executable, '-m', __name__, str(seconds)],
            input=json.dumps(files).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            cwd=Path(__file__).parents[2],  # `-m` would take modules from any other folder as well
            env={**os.environ, **_ENVIRONMENT},
        )
        status, said = ended.returncode, ended.stdout
    except OSError as error:
        raise system_error(error, 'start a process that reads count files') from error
    except subprocess.TimeoutExpired as late:
        status, said = None, late.stdout or b''
    if status == 0:
        return
    if not said:
        raise InputError(
            f'a process that was to read {files[0][0]} on trial ended at once ({_ending(status)}); '
            'make memory and processes free for it, or give a folder of `tokbeam count`'
        )
    # It names each file by its number before it reads it, and at last what was wrong.
    number, reason = json.loads(said.splitlines()[-1])
    path, size = files[number]
    if status == _TOLD:
        raise no_counts(path, reason)
    if status is None or status == -getattr(signal, 'SIGXCPU', 0):
        what = f'takes more than {seconds} s to read, with its {size} bytes'
    else:
        what = f'is damaged in a way that ends the process which reads it ({_ending(status)})'
    raise InputError(f'{path} {what}; count again, or copy it anew')


def no_counts(path: str, reason: object) -> InputError:
    """Returns what to say of a file that is not a sound Parquet file of token counts."""
    return InputError(
        f'{path} is not a Parquet file of token counts ({shown(reason)}); it needs a string '
        'column "token" and an integer column "count", undamaged'
    )


def shown(reason: object) -> str:
    """Returns what an exception says, short, on one line and without control characters."""
    text = ''.join(character if character.isprintable() else ' ' for character in str(reason))
    text = ' '.join(text.split()) or type(reason).__name__
    return text if len(text) <= 300 else f'{text[:300]}…'


def _ending(status: int | None) -> str:
    if status is None:
        return 'it took too long'
    if status >= 0:
        return f'status {status}'
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f'signal {-status}'


def _main() -> int:
    import pyarrow.parquet  # noqa: F401  (what is wrong up to here is not the file's)

    seconds = int(sys.argv[1])
    for number, (path, size) in enumerate(json.load(sys.stdin)):
        _say(number, '')
        most = _BASE_BYTES + _BYTES_PER_BYTE * size
        try:
            _limit(most, seconds)
            with open(path, 'rb') as stream:
                for unpacked in itertools.accumulate(_read(stream)):
                    if unpacked > _BASE_BYTES + _UNPACKED_PER_BYTE * size:
                        raise MemoryError
        except MemoryError:
            _say(number, f'its {size} bytes take more than {most >> 20} MiB of memory')
            return _TOLD
        except Exception as error:  # whatever pyarrow finds wrong with the file
            _say(number, shown(error))
            return _TOLD
    return 0


def _say(number: int, reason: str) -> None:
    print(json.dumps([number, reason]), flush=True)


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    for kind, limit in [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_CPU, seconds),  # also if nobody waits any more
    ]:
        _, most = resource.getrlimit(kind)
        if most == resource.RLIM_INFINITY or limit < most:
            resource.setrlimit(kind, (limit, most))


def _read(stream: BinaryIO) -> Iterator[int]:
    """Reads all that is read of a file later; gives the bytes of each batch."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    file = parquet.ParquetFile(stream)
    column_names(file)
    for batch in file.iter_batches(_ROWS_AT_ONCE, columns=['token', 'count']):
        batch.validate(full=True)
        for column in batch.columns:
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            yield column.nbytes


def column_names(file) -> list[str]:
    """Returns all names of columns in a Parquet file's footer; a ValueError if one is not UTF-8."""
    columns = range(file.metadata.num_columns)
    names = [*file.schema_arrow.names, *(file.schema.column(column).path for column in columns)]
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        names += [group.column(column).path_in_schema for column in columns]
    return names


if __name__ == '__main__':
    raise SystemExit(_main())
