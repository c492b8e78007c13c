"""Codes: merges as lines of two symbols, as subword-nmt 0.2 writes them, and the textbook's.

    #version: 0.2            #version: tokbeam textbook
    e s                      _aeflrst
    es t</w>                 t a

The second line of the textbook's lists the characters of the tokens that it was learned from.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokcore.errors import InputError

NMT_VERSION = '#version: 0.2'
TEXTBOOK_VERSION = '#version: tokbeam textbook'

_BLANK = '\r\n '

Merges = tuple[tuple[str, str], ...]


def is_codes_file(data: bytes) -> bool:
    """Whether a file says in its first line that it holds codes."""
    first = data.split(b'\n', 1)[0].rstrip(b'\r ')
    return first in (NMT_VERSION.encode(), TEXTBOOK_VERSION.encode())


def is_textbook_file(data: bytes) -> bool:
    """Whether a file of codes is the textbook's."""
    return data.split(b'\n', 1)[0].rstrip(b'\r ') == TEXTBOOK_VERSION.encode()


def parse_nmt_codes(data: bytes, path: str) -> Merges:
    """Returns the merges of subword-nmt's codes; of equal ones only the first.

    Raises:
        InputError: another version, or a line that is no pair.
    """
    first, *lines = _lines(data, path)
    if not first.startswith('#version:'):
        raise InputError(
            f'{path} does not begin with {NMT_VERSION!r}: its codes are of version 0.1, whose '
            'words end otherwise; learn them again'
        )
    if first.rstrip() != NMT_VERSION:
        raise InputError(
            f'{path} begins with {first[:40]!r}, not with {NMT_VERSION!r}; learn the codes again'
        )
    merges = tuple(_pairs(lines, path, 2))
    if not merges:
        raise InputError(f'{path} has no merges; learn codes from more text')
    return tuple(dict.fromkeys(merges))


def parse_textbook_codes(data: bytes, path: str) -> tuple[str, Merges]:
    """Returns the characters and the merges.

    Raises:
        InputError: this is no such file.
    """
    first, *lines = _lines(data, path)
    if first.rstrip() != TEXTBOOK_VERSION or not lines:
        raise InputError(
            f'{path} does not begin with {TEXTBOOK_VERSION!r} and the characters that there were; '
            'learn the codes again'
        )
    return lines[0].removesuffix('\r'), tuple(_pairs(lines[1:], path, 3))


def dump_nmt_codes(merges: Iterable[tuple[str, str]]) -> bytes:
    """Returns the file that subword-nmt 0.3.8 writes."""
    return '\n'.join([NMT_VERSION, *map(' '.join, merges), '']).encode()


def dump_textbook_codes(characters: str, merges: Iterable[tuple[str, str]]) -> bytes:
    """Returns the textbook's file."""
    return '\n'.join([TEXTBOOK_VERSION, characters, *map(' '.join, merges), '']).encode()


def _lines(data: bytes, path: str) -> list[str]:
    try:
        return data.decode('utf-8').rstrip('\n').split('\n')
    except UnicodeDecodeError as error:
        raise InputError(f'{path} is not UTF-8 ({error.reason}); give a file of codes') from None


def _pairs(lines: list[str], path: str, first: int) -> Iterable[tuple[str, str]]:
    for number, line in enumerate(lines, first):
        pair = line.strip(_BLANK).split(' ')
        if len(pair) != 2:
            raise InputError(f'{path}, line {number}: {line[:80]!r} is no pair; give whole codes')
        yield pair[0], pair[1]
