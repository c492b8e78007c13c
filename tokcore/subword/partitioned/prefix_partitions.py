"""Groups of strings by their beginnings: ranges between borders, each border a short prefix.

Borders come from a sample of the suffixes, at equal shares of its bytes, so a hot first character
is cut finer than a rare one, and characters that the sample lacks fall into some range all the
same.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import kernel, read_only
from tokcore.subword.partitioned.front_coding import read_row_head
from tokcore.subword.partitioned.suffix_table import SuffixTable

# Each character of a border is a string that the driver decides on; where strings are alike for
# more than this the next one makes as good a border.
_LONGEST_BORDER = 64

# A row's head and weight, in the shares of the sample.
_ROW_BYTES = 3


@dataclass(frozen=True)
class PrefixPartitions:
    """Group i holds the strings from borders[i - 1] on and below borders[i]."""

    borders: tuple[bytes, ...]  # ascending, each of whole UTF-8 characters

    def __post_init__(self):
        if list(self.borders) != sorted(set(self.borders)) or b'' in self.borders:
            raise ValueError('the borders of groups must ascend and not be empty')

    def __len__(self) -> int:
        return len(self.borders) + 1

    def bounds(self, group: int) -> tuple[bytes, bytes]:
        """Returns a group's lower and upper border, empty where it has none."""
        lower = self.borders[group - 1] if group > 0 else b''
        upper = self.borders[group] if group < len(self.borders) else b''
        return lower, upper


def proper_prefixes(string: bytes) -> list[bytes]:
    """Returns what properly begins a string, in whole characters, from short to long."""
    return [string[:i] for i in range(1, len(string)) if string[i] & 0xC0 != 0x80]


def choose_groups(sample: SuffixTable, groups: int) -> PrefixPartitions:
    """Returns about so many groups, at most, with equal shares of the sample's bytes."""
    total = sample.added + _ROW_BYTES * sample.rows
    share = max(1, math.ceil(total / max(1, groups)))
    borders = np.empty(_LONGEST_BORDER * (groups + 1), np.uint8)
    ends = np.empty(groups + 1, np.int64)
    found = _find_borders(
        read_only(sample.data), sample.longest, share, _LONGEST_BORDER, borders, ends
    )
    starts = [0, *ends[:found].tolist()]
    joined = borders.tobytes()
    strings = [joined[start:end] for start, end in zip(starts, starts[1:])]
    return PrefixPartitions(tuple(reversed(strings)))


def pass_ranges(group_bytes: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Cuts the groups into ranges [first, last) of at most so many bytes, or of one group."""
    first, held = 0, 0
    for group, size in enumerate(group_bytes):
        if group > first and held + size > most:
            yield first, group
            first, held = group, 0
        held += size
    if first < len(group_bytes):
        yield first, len(group_bytes)


@kernel
def _find_borders(data, longest, share, longest_border, borders, ends):
    """Writes a border wherever a share is full: the least prefix of a row above the next row."""
    row = np.empty(longest + 1, np.uint8)
    place, held, found, written, size = 0, 0, 0, 0, 0
    while place < len(data):
        common, more, _, place = read_row_head(data, place)
        if held >= share and common < size and found < len(ends):
            length = common + 1
            while length < size and row[length] & 0xC0 == 0x80:
                length += 1
            if length <= longest_border:
                for i in range(length):
                    borders[written + i] = row[i]
                written += length
                ends[found] = written
                found += 1
                held = 0
        for i in range(more):
            row[common + i] = data[place + i]
        place += more
        size = common + more
        held += more + 3
    return found
