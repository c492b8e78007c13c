"""A user's own filter: a function over strings, `package.module:function`.

    def without_titles(source: str, target: str):
        return None if source.isupper() else (source, target)

It is called with the texts of one row, `function(source, target)` or `function(text)`, and returns
None to drop the row; the texts that the row is to have, a tuple of two or a str; or a list of such,
for rows that come of it. It must depend on nothing else, for workers call it for rows in any order.
"""

from __future__ import annotations

import hashlib
import importlib
import pathlib
import sys
import traceback
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tokcore.corpus.filters.row_filter import Filtered, RowFilter
from tokcore.errors import InputError

if typing.TYPE_CHECKING:
    from tokcore.text.sides import Side

Texts = tuple[str, ...]

PIECES = 1 << 12
"""So many rows may come of one. Where rows are known by their numbers, these are so far apart;
where by offsets, a line has as many places for pieces as it has bytes."""

_MOST_SHOWN = 200
"""Characters of what a user's function raised or returned."""


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
    """

    makes_several = True

    name: str
    function: Callable[..., object] = field(compare=False)

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
        try:
            found = getattr(importlib.import_module(module), function, None)
        except ModuleNotFoundError as error:
            if error.name is None or not f'{module}.'.startswith(f'{error.name}.'):
                raise InputError(f'the filter {name}: {_last_line(error)}; install it') from error
            raise InputError(
                f'the filter {name}: there is no module {error.name} here; put its folder on '
                f'PYTHONPATH, of all workers too{hint}'
            ) from error
        except Exception as error:
            raise InputError(
                f'the filter {name}: importing {module} fails with {_last_line(error)}; mend it'
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
        path = getattr(module, '__file__', None)
        if path is None or not pathlib.Path(path).is_file():
            return ''
        return f'source {hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:16]}'

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises `RowError` where the function fails, or returns what is no row."""
        from tokcore.corpus.filters.texts.new_texts import NewTexts

        made = NewTexts(sides)
        for row, given in enumerate(zip(*(_texts(side) for side in sides), strict=True)):
            try:
                returned = self.function(*given)
            except Exception as error:
                raise RowError(
                    f'the filter {self.name} fails with {_last_line(error)}; mend the function', row
                ) from error
            if returned is None:
                continue
            several = returned if isinstance(returned, list) else [returned]
            if len(several) > PIECES:
                raise RowError(
                    f'the filter {self.name} made {len(several)} rows of it, and there can be '
                    f'{PIECES} at most; let it make fewer', row,
                )  # fmt: skip
            for each in several:
                texts = (each,) if isinstance(each, str) else each
                if not _is_row(texts, len(sides)):
                    raise RowError(self._no_row(each, len(sides)), row)
                try:
                    made.add(row, given, texts)
                except UnicodeEncodeError as error:
                    raise RowError(
                        f'the filter {self.name} returned text that UTF-8 cannot hold '
                        f'({error.reason}); mend the function', row,
                    ) from error  # fmt: skip
        return Filtered(*made.gathered())

    def _no_row(self, returned: object, sides: int) -> str:
        wanted = 'a str' if sides == 1 else f'a tuple of {sides} str'
        return (
            f'the filter {self.name} returned {_cut(repr(returned))}, and a row is {wanted}, None '
            'drops it, and a list holds several; mend the function'
        )


def _is_row(texts: object, sides: int) -> bool:
    return (
        isinstance(texts, tuple)
        and len(texts) == sides
        and all(isinstance(each, str) for each in texts)
    )


def _texts(side: Side) -> Iterator[str]:
    return map(side.row, range(len(side)))


def _last_line(error: Exception) -> str:
    return _cut(traceback.format_exception_only(error)[-1].strip().splitlines()[0])


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f'{text[:_MOST_SHOWN]}…'
