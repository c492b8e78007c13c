"""A user's own function as a filter, `module:function`, called for each row.

The user's code may raise anything, `sys.exit` and `KeyboardInterrupt` too: what it raised or
returned is told in one line. Ctrl-C is not its mistake and ends the job.
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

from tokcore.corpus.corpus import FILTER_NO_ROW, FILTER_TOO_LONG
from tokcore.corpus.filters.row_filter import Filtered, RowFilter, RowLimits, UnfitRow
from tokcore.errors import InputError
from tokcore.text.unicode import character_name

if typing.TYPE_CHECKING:
    from tokcore.text.rows import Side

Texts = tuple[str, ...]

PIECES = 1 << 12
"""So many rows may come of one. Where rows are known by their numbers, these are so far apart;
where by offsets, a line has as many places for pieces as it has bytes."""

_MOST_GROWTH = 4
"""So many times what a block has, and what one row may have, is made of a block at most: a worker
holds it all. A fourth would refuse windows that overlap, and rows that are long but few."""

_MOST_SHOWN = 200
"""Characters of what a user's code raised or returned."""


class RowError(InputError):
    """What a filter cannot do with a row; where the row stands, others know.

    Attributes:
        row: its number among those that the filter was given.
    """

    def __init__(self, what: str, row: int):
        super().__init__(what)
        self.row = row


@dataclass(frozen=True)
class UsersFunction(RowFilter):
    """Calls a function for each row.

    Attributes:
        name: `package.module:function`.
        function: what is called.
        limits: of the rows that it makes.
    """

    makes_several = True

    name: str
    function: Callable[..., object] = field(compare=False)
    limits: RowLimits = RowLimits()

    @classmethod
    def imported(cls, name: str, hint: str) -> UsersFunction:
        """Imports a function.

        Args:
            name: `package.module:function`.
            hint: the end of a sentence about a module that there is not, empty for none.

        Raises:
            InputError: there is no such module or function, or importing it fails.
        """
        module, _, function = name.partition(':')
        with noting_ctrl_c() as has_ctrl_c_come:
            try:
                found = getattr(importlib.import_module(module), function, None)
            except BaseException as error:
                if has_ctrl_c_come():
                    raise
                raise InputError(
                    f'the filter {name}: {_import_failure(error, module, hint)}'
                ) from error
        if not callable(found):
            what = f'has no function {function}'
            if found is not None:
                what = f'has {function}, which is no function'
            raise InputError(f'the filter {name}: {module} {what}; mend the name')
        return cls(name, found)

    @property
    def stamp(self) -> str:
        """A digest of the source of the function's module; what else that imports is not in it."""
        module = sys.modules.get(self.name.partition(':')[0])
        path = vars(module).get('__file__') if isinstance(module, types.ModuleType) else None
        if not isinstance(path, str) or not os.path.isfile(path):
            return ''
        return f'source {hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:16]}'

    def within(self, limits: RowLimits) -> UsersFunction:
        return dataclasses.replace(self, limits=limits)

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises `RowError` where the function fails, or makes too much of rows."""
        from tokcore.text.rewriting import NewTexts

        made = NewTexts(sides)
        room = _MOST_GROWTH * (sum(map(_text_bytes, sides)) + self.limits.most_bytes)
        unfit: list[UnfitRow] = []
        with noting_ctrl_c() as has_ctrl_c_come:
            for row, given in enumerate(zip(*(_texts(side) for side in sides), strict=True)):
                try:
                    made_of_it = _plain_rows(self.function(*given), len(sides))
                except BaseException as error:
                    if has_ctrl_c_come():
                        raise
                    raise RowError(
                        f'the filter {self.name} fails with {error_line(error)}; mend the function',
                        row,
                    ) from error
                if len(made_of_it) > PIECES:
                    raise RowError(
                        f'the filter {self.name} made {len(made_of_it)} rows of it, and there can be '
                        f'{PIECES} at most; let it make fewer', row,
                    )  # fmt: skip
                try:
                    room -= self._checked_bytes(given, made_of_it)
                except _UnfitError as error:
                    unfit.append(UnfitRow(row, error.reason, f'the filter {self.name} {error}'))
                    continue
                if room < 0:
                    raise RowError(
                        f'the filter {self.name} makes so much of this row and of those before it '
                        'that a worker cannot hold it; let it make less, or give a larger '
                        '--max-line-size', row,
                    )  # fmt: skip
                for texts in made_of_it:
                    made.add(row, given, texts)
        return Filtered(*made.gathered(), unfit=tuple(unfit))

    def _checked_bytes(self, given: Texts, rows: Sequence[Texts | _NoRow]) -> int:
        """Returns the bytes of all rows that were made of one; raises `_UnfitError`."""
        sizes = [0] * len(given)
        for texts in rows:
            if isinstance(texts, _NoRow):
                wanted = 'a str' if len(given) == 1 else f'a tuple of {len(given)} str'
                raise _UnfitError(
                    FILTER_NO_ROW,
                    f'returned {shown_value(texts.value)}, and a row is {wanted}, None drops it, and a '
                    'list holds several; mend the function',
                )
            for side, (text, before) in enumerate(zip(texts, given, strict=True)):
                if text == before and len(rows) == 1:
                    continue  # as long as it may be by itself
                sizes[side] += self._checked_size(text)
                if sizes[side] > self.limits.most_bytes:
                    raise _UnfitError(
                        FILTER_TOO_LONG,
                        f'made more than {self.limits.most_bytes} bytes of it, which --max-line-size '
                        'allows; let it make less, give a larger --max-line-size, or leave such rows '
                        'out with --on-error=skip',
                    )
        return sum(sizes)

    def _checked_size(self, text: str) -> int:
        if len(text) > self.limits.most_bytes:
            return len(text)  # as many bytes at least, which need not be made
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
    """What was made of a row cannot be a row."""

    def __init__(self, reason: str, what: str):
        super().__init__(what)
        self.reason = reason


def _import_failure(error: BaseException, module: str, hint: str) -> str:
    """Returns why a module cannot be imported, and what helps."""
    if isinstance(error, ModuleNotFoundError):
        if error.name is None or not f'{module}.'.startswith(f'{error.name}.'):
            return f'{error_line(error)}; install it'
        return (
            f'there is no module {error.name} here; put its folder on PYTHONPATH, of all workers '
            f'too{hint}'
        )
    helps = 'mend it'
    if isinstance(error, SystemExit):
        helps = "let it do so only if __name__ == '__main__'"
    return f'importing {module} fails with {error_line(error)}; {helps}'


@dataclass(frozen=True)
class _NoRow:
    """What was returned for a row, and is none."""

    value: object


def _plain_rows(returned: object, sides: int) -> list[Texts | _NoRow]:
    """Returns the rows that a function returned, of tuples and str that are of no class of its own."""
    if returned is None:
        return []
    several = [*list.__iter__(returned)] if isinstance(returned, list) else [returned]
    return [_plain_row(each, sides) for each in several]


def _plain_row(returned: object, sides: int) -> Texts | _NoRow:
    texts = (returned,) if isinstance(returned, str) else returned
    if not isinstance(texts, tuple):
        return _NoRow(returned)
    texts = tuple(tuple.__iter__(texts))
    if len(texts) != sides or not all(isinstance(each, str) for each in texts):
        return _NoRow(returned)
    return tuple(map(str.__str__, texts))


def _texts(side: Side) -> Iterator[str]:
    return map(side.row, range(len(side)))


def _text_bytes(side: Side) -> int:
    return int((side.ends - side.starts).sum())


@contextlib.contextmanager
def noting_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Around code of a user; gives what tells whether SIGINT has come since.

    If it has, what the code raised is not its own. Python interrupts its main thread alone, and that
    only where SIGINT has a handler of Python's.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield lambda: False
        return
    has_come = threading.Event()

    def note(number: int, frame: object) -> None:
        has_come.set()
        handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield has_come.is_set
    finally:
        # The code may have put another handler there, which then stays.
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, handler)


def error_line(error: BaseException) -> str:
    """Returns an error's name and the first line of its text, `ValueError: no number`."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ('builtins', '__main__'):
        name = f'{kind.__module__}.{name}'
    try:
        text = str(error).strip()
    except BaseException:  # whatever its `__str__` does
        text = ''
    return _cut(f'{name}: {text.splitlines()[0]}' if text else name)


def shown_value(value: object) -> str:
    """Returns a value as Python writes it, not all of it if it is long, or what type it is of."""
    try:
        return _cut(repr(value))
    except BaseException:  # whatever its `__repr__` does
        return f'an object of the type {_cut(type(value).__qualname__)}'


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f'{text[:_MOST_SHOWN]}…'
