"""A user's function as a filter, `module:function`, called for each row.

The user's code may raise anything, including `SystemExit` and `KeyboardInterrupt`: a message shows
in one line what it raised or returned. Ctrl-C is not the code's mistake and ends the job.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import os
import pathlib
import signal
import sys
import threading
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tokcore.corpus.corpus import (
    FILTER_NO_ROW,
    FILTER_TOO_LONG,
    Filtered,
    RowFilter,
    RowLimits,
    UnfitRow,
)
from tokcore.errors import InputError
from tokcore.text.unicode import character_name

if typing.TYPE_CHECKING:
    from tokcore.text.rows import Side

Texts = tuple[str, ...]

PIECES = 1 << 12
"""The most rows that may be made from one. Identities that are row numbers are multiplied by it; for
those that are offsets, a line has room for as many rows as it has bytes."""

_MOST_GROWTH = 4
"""The most bytes made from a block, as a multiple of its size plus the limit of a row: a worker holds
them all. At a fourth of this, overlapping windows, and few but long rows, would be refused."""

_MOST_SHOWN = 200
"""Characters shown of what a user's code raised or returned."""


class RowError(InputError):
    """A filter fails at a row; the caller knows the row's place in a file.

    Attributes:
        row: its number among the rows that the filter got.
    """

    def __init__(self, what: str, row: int):
        super().__init__(what)
        self.row = row


@dataclass(frozen=True)
class UserFunction(RowFilter):
    """Calls a function for each row.

    Attributes:
        name: `package.module:function`.
        function: takes a text, or the two texts of a pair.
        limits: of the rows that it returns.
    """

    makes_several = True

    name: str
    function: Callable[..., object] = field(compare=False)
    limits: RowLimits = RowLimits()

    @classmethod
    def load(cls, name: str, hint: str) -> UserFunction:
        """Imports a function.

        Args:
            name: `package.module:function`.
            hint: the end of the message for a module that does not exist, or empty.

        Raises:
            InputError: the module or function does not exist, or importing it fails.
        """
        module, _, function = name.partition(':')
        with _watch_ctrl_c() as was_interrupted:
            try:
                imported = getattr(importlib.import_module(module), function, None)
            except BaseException as error:
                if was_interrupted():
                    raise
                raise InputError(
                    f'the filter {name}: {_import_failure(error, module, hint)}'
                ) from error
        if not callable(imported):
            what = f'has no function {function}'
            if imported is not None:
                what = f'has {function}, which is not a function'
            raise InputError(f'the filter {name}: {module} {what}; mend the name')
        return cls(name, imported)

    @property
    def stamp(self) -> str:
        """A digest of the source of the function's module, without what the module imports."""
        module = sys.modules.get(self.name.partition(':')[0])
        path = vars(module).get('__file__') if isinstance(module, types.ModuleType) else None
        if not isinstance(path, str) or not os.path.isfile(path):
            return ''
        return f'source {hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:16]}'

    def with_limits(self, limits: RowLimits) -> UserFunction:
        return dataclasses.replace(self, limits=limits)

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises `RowError` where the function fails, or returns too much."""
        from tokcore.text.rewriting import RowBuilder

        builder = RowBuilder(sides)
        text_bytes = sum(int((side.ends - side.starts).sum()) for side in sides)
        room = _MOST_GROWTH * (text_bytes + self.limits.most_bytes)
        unfit: list[UnfitRow] = []
        texts = [map(side.row, range(len(side))) for side in sides]
        with _watch_ctrl_c() as was_interrupted:
            for row, before in enumerate(zip(*texts, strict=True)):
                try:
                    returned = _plain_rows(self.function(*before), len(sides))
                except BaseException as error:
                    if was_interrupted():
                        raise
                    raise RowError(
                        f'the filter {self.name} fails with {_error_line(error)}; mend the function',
                        row,
                    ) from error
                if len(returned) > PIECES:
                    raise RowError(
                        f'the filter {self.name} made {len(returned)} rows of it, and there can be '
                        f'{PIECES} at most; let it make fewer', row,
                    )  # fmt: skip
                try:
                    rows, size = self._checked_rows(before, returned)
                except _UnfitError as error:
                    unfit.append(UnfitRow(row, error.reason, f'the filter {self.name} {error}'))
                    continue
                room -= size
                if room < 0:
                    raise RowError(
                        f'the filter {self.name} makes so much of this row and of those before it '
                        'that a worker cannot hold it; let it make less, or give a larger '
                        '--max-line-size', row,
                    )  # fmt: skip
                for after in rows:
                    builder.add(row, before, after)
        return Filtered(*builder.build(), unfit=tuple(unfit))

    def _checked_rows(
        self, before: Texts, returned: Sequence[tuple[Texts | None, object]]
    ) -> tuple[list[Texts], int]:
        """Returns the rows made from one, and their bytes; raises `_UnfitError`."""
        rows: list[Texts] = []
        sizes = [0] * len(before)
        for texts, value in returned:
            if texts is None:
                expected = 'a str' if len(before) == 1 else f'a tuple of {len(before)} str'
                raise _UnfitError(
                    FILTER_NO_ROW,
                    f'returned {_shown_value(value)}, and a row is {expected}, None drops it, and a '
                    'list holds several; mend the function',
                )
            for side, (new, old) in enumerate(zip(texts, before, strict=True)):
                if new == old and len(returned) == 1:
                    continue  # an unchanged text is within the limit
                sizes[side] += self._checked_size(new)
                if sizes[side] > self.limits.most_bytes:
                    raise _UnfitError(
                        FILTER_TOO_LONG,
                        f'made more than {self.limits.most_bytes} bytes of it, which --max-line-size '
                        'allows; let it make less, give a larger --max-line-size, or leave such rows '
                        'out with --on-error=skip',
                    )
            rows.append(texts)
        return rows, sum(sizes)

    def _checked_size(self, text: str) -> int:
        if len(text) > self.limits.most_bytes:
            return len(text)  # at least as many bytes; no need to encode it
        for character in self.limits.forbidden_characters:
            if character in text:
                raise _UnfitError(
                    FILTER_NO_ROW,
                    f'returned text with {character_name(character)}, which no row of this format '
                    'has; let it return a list of several rows, or a space in its place',
                )
        try:
            return len(text.encode())
        except UnicodeEncodeError as error:
            raise _UnfitError(
                FILTER_NO_ROW,
                f'returned text that UTF-8 cannot hold ({error.reason}); mend the function',
            ) from error


class _UnfitError(Exception):
    """What a function returned for a row cannot be a row."""

    def __init__(self, reason: str, what: str):
        super().__init__(what)
        self.reason = reason


def _import_failure(error: BaseException, module: str, hint: str) -> str:
    """Returns why a module cannot be imported, and what to do."""
    if isinstance(error, ModuleNotFoundError):
        if error.name is None or not f'{module}.'.startswith(f'{error.name}.'):
            return f'{_error_line(error)}; install it'
        return (
            f'there is no module {error.name} here; put its folder on PYTHONPATH, of all workers '
            f'too{hint}'
        )
    remedy = 'mend it'
    if isinstance(error, SystemExit):
        remedy = "let it do so only if __name__ == '__main__'"
    return f'importing {module} fails with {_error_line(error)}; {remedy}'


def _plain_rows(returned: object, sides: int) -> list[tuple[Texts | None, object]]:
    """Returns each value that a function returned, after it as a row of plain `str`; None: it is not one.

    Subclasses of `list`, `tuple` and `str` may have methods that run a user's code.
    """
    if returned is None:
        return []
    rows = [*list.__iter__(returned)] if isinstance(returned, list) else [returned]
    return [(_plain_row(row, sides), row) for row in rows]


def _plain_row(returned: object, sides: int) -> Texts | None:
    texts = (returned,) if isinstance(returned, str) else returned
    if not isinstance(texts, tuple):
        return None
    texts = tuple(tuple.__iter__(texts))
    if len(texts) != sides or not all(isinstance(text, str) for text in texts):
        return None
    return tuple(map(str.__str__, texts))


@contextlib.contextmanager
def _watch_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Yields a function that returns whether SIGINT came while the block runs a user's code.

    If it did, the exception is not a mistake of the code. Python interrupts the main thread only, and only
    if SIGINT has a Python handler.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield lambda: False
        return
    interrupted = threading.Event()

    def note(number: int, frame: types.FrameType | None) -> None:
        interrupted.set()
        handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupted.is_set
    finally:
        # A handler that the code installed stays.
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, handler)


def _error_line(error: BaseException) -> str:
    """Returns an error's name and the first line of its message, as `ValueError: no number`."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ('builtins', '__main__'):
        name = f'{kind.__module__}.{name}'
    try:
        text = str(error).strip()
    except BaseException:  # whatever its `__str__` does
        text = ''
    return _cut(f'{name}: {text.splitlines()[0]}' if text else name)


def _shown_value(value: object) -> str:
    """Returns the start of a value's repr, or its type if that fails."""
    try:
        return _cut(repr(value))
    except BaseException:  # whatever its `__repr__` does
        return f'an object of the type {_cut(type(value).__qualname__)}'


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f'{text[:_MOST_SHOWN]}…'
