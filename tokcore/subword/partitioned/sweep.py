"""The tree of one group's suffixes, made and swept as its packed table streams by.

Rows come in descending order, children before their parents, so only the path to the root is held:
a node is decided when it ends. A node is *shared* if its string properly begins one of the group's
two borders: other groups may hold suffixes below it, so its sums are handed up, for the few levels
above all groups.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.subword.partitioned.suffix_tables import (
    MAX_ROW_OVERHEAD,
    RowWriter,
    SuffixTable,
    append_row,
    keep_common,
    merge_suffix_tables,
    proper_prefixes,
    read_row_head,
)
from tokcore.text.unicode import next_character

# Bytes; doubled where rows need more.
_CAPACITY = 1 << 12


@dataclass(frozen=True)
class PartitionSelection:
    """What one group, or several, keep at a min-count."""

    kept: SuffixTable
    """Strings kept with their counts, and the single characters that are not shared."""
    shared: tuple[tuple[bytes, int, int], ...]
    """For each shared string (its weight, what selected strings have taken of it) in this group."""


class _Partition(NamedTuple):
    """What is swept, and by what."""

    data: np.ndarray  # uint8: the rows
    lower: np.ndarray  # uint8, as is the next: a border
    upper: np.ndarray
    min_count: int
    min_weight: int


_NODE = np.dtype([(name, np.int64) for name in ('depth', 'weight', 'taken', 'rest')], align=True)
"""A node begun: its depth, the weight below it, what selected strings have taken of that, and the
weight that no frequent node below it holds."""

_CURSOR = np.dtype(
    [
        ('place', np.int64),  # of the next row
        ('size', np.int64),  # of the path
        ('first', np.int64),  # the bytes of its first character
        ('top', np.int64),  # the deepest node begun
        ('in_lower', np.int64),  # the path's common prefix with a border, as is the next
        ('in_upper', np.int64),
        ('lower_shared', np.int64),  # what of that are whole characters, not all of the border
        ('shared', np.int64),  # the same for the better of the two borders
    ],
    align=True,
)


class _Sweep(NamedTuple):
    """How far the sweep has come."""

    path: np.ndarray  # uint8: the last string read
    nodes: np.ndarray  # _NODE: those begun on the path, from the first to the deepest
    cursor: np.ndarray  # _CURSOR[1]
    lower_sums: np.ndarray  # int64[lower, 2]: weight and taken of the shared nodes, by depth
    upper_sums: np.ndarray  # int64[upper, 2]: those that the lower border has not


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
    partition = _Partition(
        read_only(table.data), *(np.frombuffer(border, np.uint8) for border in (lower, upper)),
        min_count, min_weight,
    )  # fmt: skip
    sweep = _Sweep(
        path=np.empty(table.longest + 1, np.uint8),
        nodes=np.empty(table.longest + 4, _NODE),
        cursor=np.zeros(1, _CURSOR),
        lower_sums=np.zeros((max(len(lower), 1), 2), np.int64),
        upper_sums=np.zeros((max(len(upper), 1), 2), np.int64),
    )
    sweep.cursor[0]['top'] = -1
    kept, cut = RowWriter.with_capacity(_CAPACITY), RowWriter.with_capacity(_CAPACITY)
    while room := _sweep_rows(partition, sweep, kept, cut):
        kept, cut = kept.with_room(room), cut.with_room(room)
    shared = [
        (border[:length], int(sums[length, 0]), int(sums[length, 1]))
        for border, sums in ((lower, sweep.lower_sums), (upper, sweep.upper_sums))
        for length in np.flatnonzero(sums.any(axis=1)).tolist()
    ]
    selected = PartitionSelection(SuffixTable.written(kept, table.longest), tuple(shared))
    return selected, SuffixTable.written(cut, table.longest)


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


@kernel_without_allocation
def _shared_length(path, size, common, border):
    """How much of the path properly begins the border, in whole characters."""
    length = min(common, np.int64(len(border)) - 1)
    while 0 < length < size and path[length] & 0xC0 == 0x80:
        length -= 1
    return max(length, np.int64(0))


@kernel_without_allocation
def _common_with_border(path, size, common, known, border):
    """What a row has in common with a border, by what the row before had: but for one case."""
    if common != known:
        return min(common, known)
    while known < size and known < len(border) and path[known] == border[known]:
        known += 1
    return known


@kernel_without_allocation
def _follow_borders(partition, sweep, common, size):
    """Notes how much of a new path properly begins the borders."""
    cursor = sweep.cursor[0]
    lower, upper = partition.lower, partition.upper
    in_lower = _common_with_border(sweep.path, size, common, cursor['in_lower'], lower)
    in_upper = _common_with_border(sweep.path, size, common, cursor['in_upper'], upper)
    lower_shared = shared = np.int64(0)
    if in_lower > 0:
        lower_shared = shared = _shared_length(sweep.path, size, in_lower, lower)
    if in_upper > 0:
        shared = max(shared, _shared_length(sweep.path, size, in_upper, upper))
    cursor['in_lower'], cursor['in_upper'] = in_lower, in_upper
    cursor['lower_shared'], cursor['shared'] = lower_shared, shared


@kernel_without_allocation
def _branching_depth(path, common, more, data, place):
    """What a row leaves of the path, in whole characters."""
    if more > 0 and data[place] & 0xC0 == 0x80:
        common -= 1
        while path[np.uint64(common)] & 0xC0 == 0x80:
            common -= 1
    return common


@kernel_without_allocation
def _add_to_node(nodes, top, depth, weight, taken, rest):
    """Adds to the node of a depth, the top one or one begun there; returns the top."""
    if top < 0 or nodes[top]['depth'] != depth:
        top += 1
        node = nodes[top]
        node['depth'], node['weight'], node['taken'], node['rest'] = depth, weight, taken, rest
        return top
    node = nodes[top]
    node['weight'] += weight
    node['taken'] += taken
    node['rest'] += rest
    return top


@kernel_without_allocation
def _end_nodes(partition, sweep, branch, kept, cut):
    """Decides on the nodes that are deeper than what is left of the path, from the deepest up.

    What each has is handed to its parent, which is begun where the path branches.
    """
    cursor, nodes = sweep.cursor[0], sweep.nodes
    top, first, shared = cursor['top'], cursor['first'], cursor['shared']
    highest = max(branch, first, shared)
    while top >= 0 and nodes[top]['depth'] > branch:
        node = nodes[top]
        depth, weight, taken, rest = node['depth'], node['weight'], node['taken'], node['rest']
        top -= 1
        stays = depth <= shared or depth == first
        if partition.min_weight > 0 and (weight >= partition.min_weight or stays):
            if rest > 0:
                append_row(cut, sweep.path, depth, rest)
            rest = np.int64(0)
        if depth <= shared:
            sums = sweep.lower_sums if depth <= cursor['lower_shared'] else sweep.upper_sums
            sums[depth, 0] += weight
            sums[depth, 1] += taken
            continue
        if depth == first or weight - taken >= partition.min_count:
            append_row(kept, sweep.path, depth, weight - taken)
            taken = weight
        if depth != first:
            parent = max(highest, nodes[top]['depth']) if top >= 0 else highest
            top = _add_to_node(nodes, top, parent, weight, taken, rest)
    cursor['top'] = top


@kernel_without_allocation
def _sweep_rows(partition, sweep, kept, cut):
    """Sweeps rows to the last, and returns 0; or how much room both outputs need to go on."""
    data, path, cursor = partition.data, sweep.path, sweep.cursor[0]
    while True:
        # Of the nodes ended at once only the deepest adds bytes to the rows before.
        room = cursor['size'] + (cursor['top'] + 4) * MAX_ROW_OVERHEAD
        if min(len(kept.out) - kept.state[0]['used'], len(cut.out) - cut.state[0]['used']) < room:
            return room
        place = cursor['place']
        if place >= len(data):
            _end_nodes(partition, sweep, np.int64(0), kept, cut)
            return 0
        common, more, weight, place = read_row_head(data, place)
        branch = _branching_depth(path, common, more, data, place)
        _end_nodes(partition, sweep, branch, kept, cut)
        keep_common(kept, common)
        keep_common(cut, common)
        for i in range(more):
            path[np.uint64(common + i)] = data[np.uint64(place + i)]
        size = common + more
        _follow_borders(partition, sweep, common, size)
        _, cursor['first'] = next_character(path, np.int64(0))
        cursor['top'] = _add_to_node(sweep.nodes, cursor['top'], size, weight, 0, weight)
        cursor['place'], cursor['size'] = place + more, size
