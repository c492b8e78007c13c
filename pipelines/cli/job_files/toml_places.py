"""TOML as it was read, and the lines in which its keys stand."""

import re
import sys
from dataclasses import dataclass

from pipelines.files import filesystem
from tokcore.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_HEADER = re.compile(r'\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$')
_KEY = re.compile(r'\s*(?:"([^"]*)"|\'([^\']*)\'|([A-Za-z0-9_-]+))\s*[=.]')


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
    [found] = filesystem.find(path)
    data = filesystem.read_bytes(found.path)
    try:
        text = data.decode()
        return TomlFile(path, text, tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise InputError(
            f'{path} is no job file: byte {error.start} is no UTF-8; write it as UTF-8'
        ) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f'{path} is no TOML: {error}; mend the file') from error
