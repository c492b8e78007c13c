"""The tree of one group's suffixes, made and swept as its packed table streams by.

Rows come in descending order, children before their parents, so only the path to the root is held:
a node is decided when it ends. A node is *shared* if its string properly begins one of the group's
two borders: other groups may hold suffixes below it, so its sums are handed up, for the few levels
above all groups.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation, read_only
from tokcore.subword.partitioned.front_coding import (
    MAX_ROW_OVERHEAD,
    read_row_head,
    with_capacity,
    write_row,
)
from tokcore.subword.partitioned.prefix_partitions import proper_prefixes
from tokcore.subword.partitioned.suffix_table import SuffixTable, merge_suffix_tables
from tokcore.text.utf8 import next_character


@dataclass(frozen=True)
class PartitionSelection:
    """What one group, or several, keep at a min-count."""

    kept: SuffixTable
    """Strings kept with their counts, and the single characters that are not shared."""
    shared: tuple[tuple[bytes, int, int], ...]
    """For each shared string (its weight, what selected strings have taken of it) in this group."""


def select_partition(
    table: SuffixTable, lower: bytes, upper: bytes, min_count: int, min_weight: int = 0
) -> tuple[PartitionSelection, SuffixTable]:
    """Keeps what has `min_count` left after the strings that it begins, as in memory.

    Args:
      table: the weights of the suffixes from `lower` on and below `upper`.
      lower, upper: the group's borders; empty where it has none.
      min_weight: if above 0, the second table returned holds the suffixes without their infrequent tails:
        each cut to the longest string that weighs `min_weight`, or is a single character or shared.
        Where it is 0 that table is empty.
    """
    lower_sums = np.zeros((max(len(lower), 1), 2), np.int64)
    upper_sums = np.zeros((max(len(upper), 1), 2), np.int64)
    kept, kept_numbers, cut, cut_numbers = _sweep_group(
        read_only(table.data), table.longest, np.frombuffer(lower, np.uint8),
        np.frombuffer(upper, np.uint8), min_count, min_weight, lower_sums, upper_sums,
    )  # fmt: skip
    shared = [
        (border[:length], int(sums[length, 0]), int(sums[length, 1]))
        for border, sums in ((lower, lower_sums), (upper, upper_sums))
        for length in np.flatnonzero(sums.any(axis=1)).tolist()
    ]
    selected = PartitionSelection(_as_table(kept, kept_numbers, table.longest), tuple(shared))
    return selected, _as_table(cut, cut_numbers, table.longest)


def merge_selections(
    selected: Iterable[PartitionSelection], borders: Sequence[bytes], alphabet: str, min_count: int
) -> SuffixTable:
    """Decides on the levels above the groups; returns all that is kept, with each character.

    Args:
      selected: those of all groups.
      borders: the strings where one group ends and the next begins.
      alphabet: every character, each a string that stays whatever it weighs.
    """
    tables = [SuffixTable.from_items((letter.encode(), 0) for letter in alphabet)]
    sums = {prefix: [0, 0] for border in borders for prefix in proper_prefixes(border)}
    for each in selected:
        tables.append(each.kept)
        for prefix, weight, taken in each.shared:
            sums[prefix][0] += weight
            sums[prefix][1] += taken
    above = []
    for prefix in sorted(sums, key=len, reverse=True):
        weight, taken = sums[prefix]
        shorter = proper_prefixes(prefix)
        if not shorter:
            above.append((prefix, weight - taken))
            continue
        if weight - taken >= min_count:
            above.append((prefix, weight - taken))
            taken = weight
        sums[shorter[-1]][0] += weight
        sums[shorter[-1]][1] += taken
    return merge_suffix_tables([*tables, SuffixTable.from_items(above)])


def order_subtokens(vocabulary: SuffixTable) -> tuple[str, ...]:
    """Returns a vocabulary's strings by count and string, both descending."""
    strings, ends, counts = vocabulary.arrays()
    order = np.argsort(-counts, kind='stable')
    starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
    joined = strings.tobytes()
    ranges = zip(starts[order].tolist(), ends[order].tolist())
    return tuple(joined[start:end].decode() for start, end in ranges)


def _as_table(data: np.ndarray, numbers: tuple[int, int], longest: int) -> SuffixTable:
    rows, added = numbers
    return SuffixTable(read_only(data), rows, longest, added)


@kernel_without_allocation
def _shared_length(path, size, common, border):
    """How much of the path properly begins the border, in whole characters."""
    length = min(common, np.int64(len(border)) - 1)
    while 0 < length < size and path[length] & 0xC0 == 0x80:
        length -= 1
    return max(length, np.int64(0))


@kernel
def _sweep_group(data, longest, lower, upper, min_count, min_weight, lower_sums, upper_sums):
    """Sweeps the rows once; returns (kept rows, (rows, added), cut rows, (rows, added)).

    A node begun has its depth, the weight below it, what selected strings have taken of that, and
    the weight that no frequent node below it holds.
    """
    path = np.empty(longest + 1, np.uint8)
    depths, weights = np.empty(longest + 4, np.int64), np.empty(longest + 4, np.int64)
    claimed, own = np.empty(longest + 4, np.int64), np.empty(longest + 4, np.int64)
    kept, cut = np.empty(1 << 12, np.uint8), np.empty(1 << 12, np.uint8)
    kept_used, kept_rows, kept_added, kept_common, kept_length = 0, 0, 0, 0, 0
    cut_used, cut_rows, cut_added, cut_common, cut_length = 0, 0, 0, 0, 0
    place, top, size = 0, -1, np.int64(0)
    in_lower, in_upper = np.int64(0), np.int64(0)  # common prefix of the path and a border
    lower_shared, shared, first = np.int64(0), np.int64(0), np.int64(0)
    while True:
        ended = place >= len(data)
        common, more, row_weight = np.int64(0), np.int64(0), np.int64(0)
        if not ended:
            common, more, row_weight, place = read_row_head(data, place)
        branch = common  # in whole characters
        if more > 0 and data[place] & 0xC0 == 0x80:
            branch -= 1
            while path[np.uint64(branch)] & 0xC0 == 0x80:
                branch -= 1

        while top >= 0 and depths[top] > branch:
            depth, weight = depths[top], weights[top]
            taken, rest = claimed[top], own[top]
            top -= 1
            is_shared = depth <= shared
            if min_weight > 0 and (weight >= min_weight or is_shared or depth == first):
                if rest > 0:
                    cut_common = min(cut_common, depth, cut_length)
                    cut = with_capacity(cut, cut_used, depth - cut_common + MAX_ROW_OVERHEAD)
                    cut_used = write_row(cut, cut_used, cut_common, path, depth, rest)
                    cut_rows += 1
                    cut_added += depth - cut_common
                    cut_common = cut_length = depth
                rest = np.int64(0)
            if is_shared:
                if depth <= lower_shared:
                    lower_sums[depth, 0] += weight
                    lower_sums[depth, 1] += taken
                else:
                    upper_sums[depth, 0] += weight
                    upper_sums[depth, 1] += taken
                continue
            if depth == first or weight - taken >= min_count:
                kept_common = min(kept_common, depth, kept_length)
                kept = with_capacity(kept, kept_used, depth - kept_common + MAX_ROW_OVERHEAD)
                kept_used = write_row(kept, kept_used, kept_common, path, depth, weight - taken)
                kept_rows += 1
                kept_added += depth - kept_common
                kept_common = kept_length = depth
                taken = weight
            if depth == first:
                continue
            parent = max(branch, first, shared)
            if top >= 0:
                parent = max(parent, depths[top])
            if top < 0 or depths[top] != parent:
                top += 1
                depths[top], weights[top], claimed[top], own[top] = parent, 0, 0, 0
            weights[top] += weight
            claimed[top] += taken
            own[top] += rest
        if ended:
            break

        kept_common = min(kept_common, common)
        cut_common = min(cut_common, common)
        for i in range(more):
            path[np.uint64(common + i)] = data[np.uint64(place + i)]
        place += more
        size = common + more
        # What the row has in common with a border follows from the row before, but for one case.
        if common < in_lower:
            in_lower = common
        elif common == in_lower:
            while in_lower < size and in_lower < len(lower) and path[in_lower] == lower[in_lower]:
                in_lower += 1
        if common < in_upper:
            in_upper = common
        elif common == in_upper:
            while in_upper < size and in_upper < len(upper) and path[in_upper] == upper[in_upper]:
                in_upper += 1
        lower_shared = np.int64(0)
        shared = np.int64(0)
        if in_lower > 0:
            lower_shared = _shared_length(path, size, in_lower, lower)
            shared = lower_shared
        if in_upper > 0:
            shared = max(shared, _shared_length(path, size, in_upper, upper))
        _, first = next_character(path, np.int64(0))
        if top < 0 or depths[top] != size:
            top += 1
            depths[top], weights[top], claimed[top], own[top] = size, 0, 0, 0
        weights[top] += row_weight
        own[top] += row_weight
    kept_part, cut_part = kept[:kept_used].copy(), cut[:cut_used].copy()
    return kept_part, (kept_rows, kept_added), cut_part, (cut_rows, cut_added)
