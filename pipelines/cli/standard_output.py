"""Standard output: what cannot be written there is the user's mistake, but for a reader that left."""

import io
import os
import sys
from collections.abc import Iterable
from typing import BinaryIO, NoReturn

from pipelines.cli.printable import escaped, printable
from pipelines.files.system_errors import system_error
from tokcore.errors import InputError


class StandardOutput:
    """Takes bytes for standard output while the block runs.

    Raises:
        InputError: it is closed, or they cannot be written.
        BrokenPipeError: nobody reads them any more.
    """

    def __init__(self):
        if sys.stdout is None:
            raise InputError('standard output is closed; give a place to write the lines to')
        self._stream: BinaryIO = sys.stdout.buffer
        self._at_once = isinstance(self._stream, io.RawIOBase)  # python -u
        if self._at_once:
            # Unbuffered, a write may stop half way without an error.
            self._stream = open(self._stream.fileno(), 'wb', closefd=False)

    def __enter__(self) -> 'StandardOutput':
        return self

    def write(self, data: bytes) -> None:
        try:
            self._stream.write(data)
            if self._at_once:
                self._stream.flush()
        except OSError as error:
            _give_up(error)

    def __exit__(self, kind: type[BaseException] | None, *_) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            if kind is None:
                _give_up(error)
            _forget()


def print_lines(lines: Iterable[str]) -> None:
    """Writes lines; raises as `StandardOutput`, but where it is closed nothing is written."""
    _print(''.join(f'{printable(line, sys.stdout)}\n' for line in lines))


def print_toml(text: str) -> None:
    r"""Writes TOML, as `print_lines`; in its strings `\u00FC` stands for what cannot be shown."""
    # Only strings hold such characters, and all of them are in double quotes.
    lines = text.split('\n')
    _print('\n'.join(escaped(line, sys.stdout, _toml_escape) for line in lines))


def _toml_escape(character: str) -> str:
    return f'\\U{ord(character):08X}' if character > '\uffff' else f'\\u{ord(character):04X}'


def _print(text: str) -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.write(text)
    except OSError as error:
        _give_up(error)


def flush_printed() -> None:
    """Writes what was printed, which the interpreter would do last; raises as `StandardOutput`."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _give_up(error)


def _give_up(error: OSError) -> NoReturn:
    _forget()
    if isinstance(error, BrokenPipeError):
        raise error
    raise system_error(error, 'write to standard output') from error


def _forget() -> None:
    # The interpreter would write what still waits once more, and complain of its own.
    with open(os.devnull, 'wb') as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
