"""Lists of rows that are left out of a dataset, each by its address in the corpus.

    corpus.en:1047        the row of the line that begins at byte 1047 of the (source) file
    part-0.parquet:17     row 17 of the file, where rows are not lines
    web.jsonl:93:2        where filters may make several rows of one: row 2 of those made of that line

A file is named as in the manifest, or by its path; of several files with one name, the n-th is `NAME#n`. A list
is stored with each row once, by the name of its file, in the order of names and numbers.
"""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.corpus import Split
from tokcore.corpus.order_keys import OFFSET_BITS, is_among
from tokcore.errors import InputError
from tokcore.filters.registry import makes_several
from tokcore.filters.user_function import PIECES
from tokcore.options import shown

_NUMBERED = re.compile(r'(.+):([0-9]{1,14})', re.DOTALL)
_ENCODING = ('utf-8', 'surrogateescape')  # of names of files

Address = tuple[str, int, int, int]
"""Split and number of a file, the row's byte or number in it, and its number among those made of one."""


@dataclass(frozen=True)
class _File:
    label: str
    path: str
    index: int
    splits: tuple[Split, ...]  # that have rows of it: several, where shares are cut off

    @functools.cached_property
    def makes_several(self) -> bool:
        return any(makes_several(split.filters) for split in self.splits)

    def places(self, number: int, piece: int) -> Iterator[tuple[str, int]]:
        """Yields each split that a row may be in, and its place there."""
        for split in self.splits:
            several = makes_several(split.filters)
            step = PIECES if several and split.format.identity == 'row' else 1
            identity = number * step + piece
            if (
                (several or not piece)
                and identity < 1 << OFFSET_BITS
                and (step == 1 or piece < step)
            ):
                yield split.name, self.index << OFFSET_BITS | identity


class AddressedFiles:
    """The files of a corpus, of which pairs have the source alone, by their names in lists."""

    def __init__(self, splits: Sequence[Split]):
        cut = [split for split in splits if split.key_range and split.name != 'train']
        numbered = [
            (split, index, files[0])
            for split in splits
            if split not in cut
            for index, files in zip(split.file_indexes, split.files, strict=True)
        ]
        counts = collections.Counter(file.name for _, _, file in numbered)
        seen: collections.Counter[str] = collections.Counter()
        self._files: dict[tuple[str, int], _File] = {}
        self._named: dict[str, list[_File]] = {}
        for split, index, file in numbered:
            seen[file.name] += 1
            label = f'{file.name}#{seen[file.name]}' if counts[file.name] > 1 else file.name
            sharing = [each for each in cut if split.key_range and index in each.file_indexes]
            own = _File(label, file.path, index, (split, *sharing))
            self._files[split.name, index] = own
            for name in {label, file.path} - {''}:
                self._named.setdefault(name, []).append(own)

    def read(self, data: bytes, source: str) -> set[Address]:
        """Returns the addresses of a list; `source` is its path, for errors.

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
            own, at, of_line = file.splits[0], int(number), int(piece or 0)
            if own.format.identity == 'offset':  # rows of a line have the offsets from its own on
                at, of_line = at + of_line, 0
            yield own.name, file.index, at, of_line

    def list_of(self, addresses: Iterable[Address]) -> bytes:
        """Returns the list of these addresses as it is stored."""
        lines = [
            (self._files[split, index].label, number, piece, self._files[split, index])
            for split, index, number, piece in addresses
        ]
        lines.sort(key=lambda line: line[:3])
        text = ''.join(
            f'{label}:{number}:{piece}\n' if file.makes_several else f'{label}:{number}\n'
            for label, number, piece, file in lines
        )
        return text.encode(*_ENCODING)

    def places(self, addresses: Iterable[Address]) -> dict[str, np.ndarray]:
        """Returns by split the places that rows may have, uint64 in ascending order."""
        by_split: dict[str, list[int]] = {}
        for split, index, number, piece in addresses:
            for name, place in self._files[split, index].places(number, piece):
                by_split.setdefault(name, []).append(place)
        return {name: np.sort(np.array(places, '<u8')) for name, places in by_split.items()}

    def without_row(self, data: bytes, found: Mapping[str, np.ndarray]) -> list[str]:
        """Returns the lines of a stored list whose rows are not among those found, by split in order."""
        missing = []
        for line in data.decode(*_ENCODING).split('\n')[:-1]:
            [(split, index, number, piece)] = self.read(line.encode(*_ENCODING), '')
            places = self._files[split, index].places(number, piece)
            if not any(
                is_among(np.array([p], '<u8'), found[s])[0] for s, p in places if s in found
            ):
                missing.append(line)
        return missing


def refuse_missing(data: bytes, splits: Sequence[Split], found: Mapping[str, np.ndarray]) -> None:
    """Raises InputError if rows of a stored list are not among those found, places by split in order."""
    if missing := AddressedFiles(splits).without_row(data, found):
        more = f' and {len(missing) - 3:,} more' if len(missing) > 3 else ''
        raise InputError(
            f'{", ".join(missing[:3])}{more} of the rows to leave out are not rows of the dataset; take these '
            'lines out of the list'
        )
