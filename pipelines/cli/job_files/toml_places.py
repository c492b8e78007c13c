"""TOML as it was read, and the lines in which its keys stand."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.files import filesystem
from tokcore.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_HEADER = re.compile(r'\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$')
_KEY = re.compile(r'\s*(?:"([^"]*)"|\'([^\']*)\'|([A-Za-z0-9_-]+))\s*[=.]')

_MOST_BYTES = 8 << 20
"""Fifty thousand paths; what is made of a file takes up to a hundred times as much memory."""

_MOST_PARTS = 16
"""Of a key, as `a.b.c`. Job files have two; time and memory are as the square of them."""

_STRING_OR_COMMENT = re.compile(
    r"""\"{3}(?:[^\\]|\\.)*?(?:\"{3}|\Z) | '{3}.*?(?:'{3}|\Z)
    | "(?:[^"\\\n]|\\.)*"? | '[^'\n]*'? | \#[^\n]*""",
    re.VERBOSE | re.DOTALL,
)
_PART = r'[A-Za-z0-9_-]+'
_LONG_KEY = re.compile(rf'(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{_MOST_PARTS}}}')

_LARGEST = (1 << 63) - 1
"""As TOML has it. Python reads larger numbers, but of some thousand digits makes no text again."""


@dataclass(frozen=True)
class TomlFile:
    """A file of TOML.

    Attributes:
        path: for sentences about it.
        text: as it is.
        tables: what it holds.
    """

    path: str
    text: str
    tables: dict[str, object]

    def error(self, what: str, table: str, number: int = 0, key: str | None = None) -> InputError:
        """Returns an error about a key of the so-manieth table of a name, or about the table."""
        line = self._line(table, number, key)
        place = self.path if line is None else f'{self.path}, line {line}'
        return InputError(f'{place}: {what}')

    def _line(self, table: str, number: int, key: str | None) -> int | None:
        """Where a key is written; a guess, good enough to be looked at, in strings of many lines."""
        now, seen = '', dict.fromkeys([table], -1)
        begins = None
        for place, line in enumerate(self.text.splitlines(), 1):
            if header := _HEADER.match(line):
                now = header[2].strip('"\'')
                seen[now] = seen.get(now, -1) + 1
                if (now, seen[now]) == (table, number):
                    begins = place
                    if key is None:
                        return place
            elif found := _KEY.match(line):
                name = next(each for each in found.groups() if each is not None)
                inside = now == table and seen[now] == number
                if (inside and name == key) or (not now and key is None and name == table):
                    return place
        return begins


def read_toml(path: str) -> TomlFile:
    """Reads a file of TOML.

    Raises:
        InputError: it cannot be read, or is no TOML.
    """
    found, *others = filesystem.find(path)
    if others:
        raise InputError(f'{path} names {len(others) + 1} files, and a job is one; give its file')
    if found.size > _MOST_BYTES:
        raise InputError(
            f'{path} has {found.size:,} bytes, and a job file has at most {_MOST_BYTES:,}; name files '
            'by patterns, as "texts/*.gz"'
        )
    data = filesystem.read_bytes(found.path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f'{path} is no job file: byte {error.start} is no UTF-8; write it as UTF-8'
        ) from error
    _check_keys(path, text)
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f'{path} is no TOML: {error}; mend the file') from error
    except ValueError as error:
        raise InputError(_too_large(path)) from error
    if any(abs(each) > _LARGEST for each in _whole_numbers(tables)):
        raise InputError(_too_large(path))
    return TomlFile(path, text, tables)


def _too_large(path: str) -> str:
    return f'{path} is no TOML: a whole number has more than 64 bits; mend the file'


def _whole_numbers(tables: object) -> Iterator[int]:
    waiting = [tables]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, int):
            yield each


def _check_keys(path: str, text: str) -> None:
    """Raises InputError for a key of so many parts that it would take long to read."""
    # Strings stand for parts too, and what is in them for nothing; line feeds stay.
    plain = _STRING_OR_COMMENT.sub(lambda found: 's' + '\n' * found[0].count('\n'), text)
    if found := _LONG_KEY.search(plain):
        line = plain.count('\n', 0, found.start()) + 1
        raise InputError(
            f'{path}, line {line}: a key has more than {_MOST_PARTS} parts; mend the file'
        )
