"""Lists of rows that are left out of a dataset, each by its address in the corpus.

    corpus.en:1047        the row of the line that begins at byte 1047 of the (source) file
    part-0.parquet:17     row 17 of the file, where rows are not lines
    web.jsonl:93:2        where filters may make several rows of one: row 2 of those made of that line

A file is named as in the manifest, or by its path; of several files with one name, the n-th is `NAME#n`. A list
is stored with each row once, by the name of its file, in the order of names and numbers.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

import numpy as np

from tokcore.corpus.corpus import Split
from tokcore.corpus.order_keys import OFFSET_BITS
from tokcore.errors import InputError
from tokcore.filters.registry import makes_several
from tokcore.filters.user_function import PIECES
from tokcore.options import shown

_NUMBERED = re.compile(r'(.+):([0-9]{1,14})', re.DOTALL)
_ENCODING = ('utf-8', 'surrogateescape')  # of names of files

Place = tuple[str, int]
"""A split, and where a row is in it, as `row_places` has it."""


class _File(NamedTuple):
    label: str  # its name in stored lists
    key: tuple[str, int]  # its split and its number
    splits: tuple[tuple[str, bool], ...]  # that may have its rows, and whether filters make several
    by_row: bool  # whether rows have numbers

    @property
    def makes_several(self) -> bool:
        return any(is_several for _, is_several in self.splits)


class Address(NamedTuple):
    """A row of a list: its file, its byte or number there, and its number among those made of one.

    They are sorted as lists are stored.
    """

    file: _File
    number: int
    piece: int

    @property
    def line(self) -> str:
        """The row as a line of a list."""
        piece = f':{self.piece}' if self.file.makes_several else ''
        return f'{self.file.label}:{self.number}{piece}'

    @property
    def places(self) -> Iterator[Place]:
        """Where it may be: in several splits, where shares are cut off; nowhere, if it is too far."""
        for split, is_several in self.file.splits:
            step = PIECES if is_several and self.file.by_row else 1
            identity = self.number * step + self.piece
            if self.piece < step and identity < 1 << OFFSET_BITS:
                yield split, self.file.key[1] << OFFSET_BITS | identity


class AddressedFiles:
    """The files of a corpus, of which pairs have the source alone, by their names in lists."""

    def __init__(self, splits: Sequence[Split]):
        cut = [split for split in splits if split.key_range and split.name != 'train']
        numbered = [
            (files[0], index, split)
            for split in splits
            if split not in cut
            for index, files in zip(split.file_indexes, split.files, strict=True)
        ]
        counts = collections.Counter(file.name for file, _, _ in numbered)
        seen: collections.Counter[str] = collections.Counter()
        self._files: dict[tuple[str, int], _File] = {}
        self._named: dict[str, list[_File]] = {}
        for file, index, split in numbered:
            seen[file.name] += 1
            label = f'{file.name}#{seen[file.name]}' if counts[file.name] > 1 else file.name
            sharing = [each for each in cut if split.key_range and index in each.file_indexes]
            several = tuple((each.name, makes_several(each.filters)) for each in (split, *sharing))
            own = _File(label, (split.name, index), several, split.format.identity == 'row')
            self._files[own.key] = own
            for name in {label, file.path} - {''}:
                self._named.setdefault(name, []).append(own)

    def read(self, data: bytes, source: str) -> set[Address]:
        """Returns the rows of a list; `source` is its path, for errors.

        Raises:
            InputError: a line is not an address of this corpus.
        """
        return {
            address
            for number, line in enumerate(data.decode(*_ENCODING).split('\n'), 1)
            if line
            for address in self._addresses(line, f'{source}, line {number}')
        }

    def _addresses(self, line: str, where: str) -> Iterator[Address]:
        # Names may have colons and digits: that of a file decides what the numbers are.
        match = _NUMBERED.fullmatch(line)
        if match is None:
            raise InputError(
                f'{where}: {shown(line)} is not FILE:BYTE, as corpus.en:1047; `tokbeam where --json` '
                'gives both'
            )
        name, number, piece = match[1], match[2], ''
        if name not in self._named and (two := _NUMBERED.fullmatch(name)) and two[1] in self._named:
            name, number, piece = two[1], two[2], number
        if name not in self._named:
            raise InputError(
                f'{where}: the corpus has no file {shown(name)}, or several; give its path, or the name that the '
                'manifest has, with #1 for the first of several'
            )
        for file in self._named[name]:
            if file.makes_several and not piece:
                raise InputError(
                    f'{where}: filters may make several rows of a line of {shown(name)}; give '
                    'FILE:BYTE:PIECE, with the number of the row among them, from 0'
                )
            at, of_line = int(number), int(piece or 0)
            # Rows of a line have the offsets from its own on.
            yield Address(file, at, of_line) if file.by_row else Address(file, at + of_line, 0)

    def relabelled(self, addresses: Iterable[Address]) -> set[Address]:
        """Returns rows of the first files of this corpus, which had other names where there were fewer files."""
        return {each._replace(file=self._files[each.file.key]) for each in addresses}

    @staticmethod
    def places(addresses: Iterable[Address]) -> dict[str, np.ndarray]:
        """Returns by split the places that rows may have, uint64 in ascending order."""
        by_split = collections.defaultdict[str, list[int]](list)
        for name, place in (place for address in addresses for place in address.places):
            by_split[name].append(place)
        return {name: np.sort(np.array(places, '<u8')) for name, places in by_split.items()}


def list_of(addresses: Iterable[Address]) -> bytes:
    """Returns the list of rows as it is stored."""
    return ''.join(f'{address.line}\n' for address in sorted(addresses)).encode(*_ENCODING)


def refuse_missing(addresses: Iterable[Address], found: Set[Place]) -> None:
    """Raises InputError if rows of a list are not among those found."""
    missing = [each.line for each in sorted(addresses) if not found & {*each.places}]
    if missing:
        more = f' and {len(missing) - 3:,} more' if len(missing) > 3 else ''
        raise InputError(
            f'{", ".join(missing[:3])}{more} of the rows to leave out are not rows of the dataset; take these '
            'lines out of the list'
        )
