"""Which modules of the project name something: what is built on it must not be known to it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def modules_naming(pattern: str, fields: tuple[str, ...]) -> list[str]:
    """Returns the modules of `tokcore` and `pipelines` in which a name, or a whole string, matches.

    Args:
        pattern: a regular expression for the whole of it, in small letters.
        fields: of the nodes of Python's syntax, which hold names: `id`, `arg` and so on.
    """
    return [
        path.relative_to(ROOT).as_posix()
        for room in ('tokcore', 'pipelines')
        for path in (ROOT / room).rglob('*.py')
        if any(re.fullmatch(pattern, each) for each in _names(path.read_text(), pattern, fields))
    ]


def _names(code: str, pattern: str, fields: tuple[str, ...]) -> Iterator[str]:
    if not re.search(pattern, code, re.IGNORECASE):
        return  # to parse all modules takes seconds
    for node in ast.walk(ast.parse(code)):
        found = (getattr(node, field, None) for field in fields)
        yield from (each.lower() for each in found if isinstance(each, str))
