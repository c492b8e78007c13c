"""What one worker reads after one another, because it is in one archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tokcore.corpus.dataset import CorpusFile, MemberFile

T = TypeVar('T')


def in_passes(
    elements: Sequence[T], files_of: Callable[[T], tuple[CorpusFile, ...]], pass_bytes: int
) -> list[tuple[T, ...]]:
    """Puts elements together that one worker is to read in one pass, in this order.

    An element without members of archives is a pass of its own. Those of the same archives come in
    the order in which the (first) archive has them, all in one pass where it can only be entered at
    its beginning. Else passes of about `pass_bytes` begin where the archives can be entered. A pass
    stands where the first of its elements did.

    Args:
        elements: to be read.
        files_of: tells what is read of an element, side by side.
        pass_bytes: of the members' own sizes.
    """
    together: dict[tuple[object, ...], list[int]] = {}
    for number, element in enumerate(elements):
        archives = [
            file.archive.path if isinstance(file, MemberFile) else None for file in files_of(element)
        ]
        key = tuple(archives) if any(archives) else (number,)
        together.setdefault(key, []).append(number)
    passes: list[list[int]] = []
    for numbers in together.values():
        passes += _cut(numbers, [_members(files_of(elements[each])) for each in numbers], pass_bytes)
    passes.sort(key=min)
    return [tuple(elements[number] for number in each) for each in passes]


def _members(files: tuple[CorpusFile, ...]) -> list[MemberFile]:
    return [file for file in files if isinstance(file, MemberFile)]


def _cut(
    numbers: Sequence[int], members: Sequence[list[MemberFile]], pass_bytes: int
) -> list[list[int]]:
    order = sorted(
        zip(numbers, members, strict=True), key=lambda each: [file.start for file in each[1]]
    )
    passes: list[list[int]] = []
    size = 0
    before: list[int] = []
    for number, files in order:
        entries = [file.entry for file in files]
        may_begin = all(entry not in (0, last) for entry, last in zip(entries, before))
        if not passes or (size >= pass_bytes and may_begin):
            passes.append([])
            size = 0
        passes[-1].append(number)
        size += sum(file.size for file in files)
        before = entries
    return passes
