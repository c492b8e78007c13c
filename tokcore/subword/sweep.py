"""Selects the strings of one group while its packed suffix table is read.

Rows come in descending order, children before their parents, so only the path to the root is in
memory: a node is selected or not when it is closed. A node is *shared* if its string is a proper
prefix of one of the group's two borders. Other groups may have suffixes below it, so its sums are
returned, and `merge_selections` decides.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.subword.suffix_tables import (
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
    """The selection of one group, or of several, at a min-count."""

    strings: SuffixTable
    """The selected strings with their counts, and all single characters that are not shared."""
    shared: tuple[tuple[bytes, int, int], ...]
    """(string, weight, selected part of it) of each shared string, summed up over this group."""


class _Partition(NamedTuple):
    """The input of a sweep."""

    data: np.ndarray  # uint8: the rows
    lower: np.ndarray  # uint8: a border
    upper: np.ndarray  # uint8
    min_count: int
    min_weight: int


_NODE = np.dtype([(name, np.int64) for name in ('depth', 'weight', 'selected', 'tail')], align=True)
"""An open node: its depth, the weight below it, how much of that is in selected strings, and the
weight that is not below any frequent descendant."""

_CURSOR = np.dtype(
    [
        ('position', np.int64),  # of the next row
        ('size', np.int64),  # of the path
        ('first', np.int64),  # bytes of its first character
        ('top', np.int64),  # index of the deepest open node
        ('in_lower', np.int64),  # the path's common prefix with the lower border
        ('in_upper', np.int64),  # the same with the upper border
        ('lower_shared', np.int64),  # depth of the deepest node that the lower border shares
        ('shared', np.int64),  # the same of either border
    ],
    align=True,
)


class _Sweep(NamedTuple):
    """The state of a sweep."""

    path: np.ndarray  # uint8: the last string read
    nodes: np.ndarray  # _NODE: the open nodes on the path, from the first to the deepest
    cursor: np.ndarray  # _CURSOR[1]
    lower_sums: np.ndarray  # int64[lower, 2]: weight and selected weight of shared nodes, by depth
    upper_sums: np.ndarray  # int64[upper, 2]: of those that the lower border does not share


def select_partition(
    table: SuffixTable, lower: bytes, upper: bytes, min_count: int, min_weight: int = 0
) -> tuple[PartitionSelection, SuffixTable]:
    """Selects the strings of a group with a remaining weight of `min_count`, as `suffix_trie` does.

    Args:
      table: the weights of the suffixes from `lower` on and below `upper`.
      lower, upper: the group's borders; empty where it has none.
      min_weight: if above 0, the second table returned has the frequent suffixes: each is cut to
        its longest prefix that weighs `min_weight`, is a single character, or is shared. If 0, that
        table is empty.
    """
    partition = _Partition(
        read_only(table.data),
        np.frombuffer(lower, np.uint8),
        np.frombuffer(upper, np.uint8),
        min_count,
        min_weight,
    )
    sweep = _Sweep(
        path=np.empty(table.longest + 1, np.uint8),
        nodes=np.empty(table.longest + 4, _NODE),
        cursor=np.zeros(1, _CURSOR),
        lower_sums=np.zeros((max(len(lower), 1), 2), np.int64),
        upper_sums=np.zeros((max(len(upper), 1), 2), np.int64),
    )
    sweep.cursor[0]['top'] = -1
    strings, frequent = RowWriter.with_capacity(_CAPACITY), RowWriter.with_capacity(_CAPACITY)
    while room := _sweep_rows(partition, sweep, strings, frequent):
        strings, frequent = strings.with_room(room), frequent.with_room(room)
    shared = [
        (border[:length], int(sums[length, 0]), int(sums[length, 1]))
        for border, sums in ((lower, sweep.lower_sums), (upper, sweep.upper_sums))
        for length in np.flatnonzero(sums.any(axis=1)).tolist()
    ]
    selected = PartitionSelection(SuffixTable.written(strings, table.longest), tuple(shared))
    return selected, SuffixTable.written(frequent, table.longest)


def merge_selections(
    selections: Iterable[PartitionSelection],
    borders: Sequence[bytes],
    alphabet: str,
    min_count: int,
) -> SuffixTable:
    """Selects among the shared strings; returns all selected strings and the alphabet, with counts.

    Args:
      selections: of all groups.
      borders: of the groups.
      alphabet: all characters; they are selected whatever they weigh.
    """
    tables = [SuffixTable.from_items((letter.encode(), 0) for letter in alphabet)]
    sums = {prefix: [0, 0] for border in borders for prefix in proper_prefixes(border)}
    for selection in selections:
        tables.append(selection.strings)
        for prefix, weight, selected in selection.shared:
            sums[prefix][0] += weight
            sums[prefix][1] += selected
    shared = []
    for prefix in sorted(sums, key=len, reverse=True):
        weight, selected = sums[prefix]
        shorter = proper_prefixes(prefix)
        if not shorter:
            shared.append((prefix, weight - selected))
            continue
        if weight - selected >= min_count:
            shared.append((prefix, weight - selected))
            selected = weight
        sums[shorter[-1]][0] += weight
        sums[shorter[-1]][1] += selected
    return merge_suffix_tables([*tables, SuffixTable.from_items(shared)])


def order_subtokens(vocabulary: SuffixTable) -> tuple[str, ...]:
    """Returns a vocabulary's strings by count and string, both descending."""
    by_count = sorted(vocabulary.items(), key=lambda item: -item[1])  # stable
    return tuple(string.decode() for string, _ in by_count)


@kernel_without_allocation
def _shared_length(path, size, common, border):
    """Returns the length of the path's longest proper prefix of the border, in whole characters."""
    length = min(common, np.int64(len(border)) - 1)
    while 0 < length < size and path[length] & 0xC0 == 0x80:
        length -= 1
    return max(length, np.int64(0))


@kernel_without_allocation
def _common_with_border(path, size, common, known, border):
    """Returns the common prefix of the path and a border.

    Args:
      common: of the path and the row before.
      known: of the row before and the border. If they differ, the lesser is the result.
    """
    if common != known:
        return min(common, known)
    while known < size and known < len(border) and path[known] == border[known]:
        known += 1
    return known


@kernel_without_allocation
def _follow_borders(partition, sweep, common, size):
    """Updates the cursor's common prefixes of the path with the borders."""
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
def _branching_depth(path, common, more, data, position):
    """Returns the depth at which the next row branches from the path, in whole characters."""
    if more > 0 and data[position] & 0xC0 == 0x80:
        common -= 1
        while path[np.uint64(common)] & 0xC0 == 0x80:
            common -= 1
    return common


@kernel_without_allocation
def _add_to_node(nodes, top, depth, weight, selected, tail):
    """Adds to the top node if it has this depth, else opens one; returns the top."""
    if top < 0 or nodes[top]['depth'] != depth:
        top += 1
        node = nodes[top]
        node['depth'], node['weight'] = depth, weight
        node['selected'], node['tail'] = selected, tail
        return top
    node = nodes[top]
    node['weight'] += weight
    node['selected'] += selected
    node['tail'] += tail
    return top


@kernel_without_allocation
def _end_nodes(partition, sweep, branch, strings, frequent):
    """Closes the nodes below the branching depth, from the deepest up: selects them or not.

    The sums of each are added to its parent, which is opened if the path branches there.
    """
    cursor, nodes = sweep.cursor[0], sweep.nodes
    top, first, shared = cursor['top'], cursor['first'], cursor['shared']
    highest = max(branch, first, shared)
    while top >= 0 and nodes[top]['depth'] > branch:
        node = nodes[top]
        depth, weight = node['depth'], node['weight']
        selected, tail = node['selected'], node['tail']
        top -= 1
        is_always_frequent = depth <= shared or depth == first
        if partition.min_weight > 0 and (weight >= partition.min_weight or is_always_frequent):
            if tail > 0:
                append_row(frequent, sweep.path, depth, tail)
            tail = np.int64(0)
        if depth <= shared:
            sums = sweep.lower_sums if depth <= cursor['lower_shared'] else sweep.upper_sums
            sums[depth, 0] += weight
            sums[depth, 1] += selected
            continue
        if depth == first or weight - selected >= partition.min_count:
            append_row(strings, sweep.path, depth, weight - selected)
            selected = weight
        if depth != first:
            parent = max(highest, nodes[top]['depth']) if top >= 0 else highest
            top = _add_to_node(nodes, top, parent, weight, selected, tail)
    cursor['top'] = top


@kernel_without_allocation
def _sweep_rows(partition, sweep, strings, frequent):
    """Sweeps all rows and returns 0; or returns how much room both writers need to continue."""
    data, path, cursor = partition.data, sweep.path, sweep.cursor[0]
    while True:
        # Of the nodes closed together, only the deepest adds bytes of the string.
        room = cursor['size'] + (cursor['top'] + 4) * MAX_ROW_OVERHEAD
        strings_left = len(strings.out) - strings.state[0]['used']
        frequent_left = len(frequent.out) - frequent.state[0]['used']
        if min(strings_left, frequent_left) < room:
            return room
        position = cursor['position']
        if position >= len(data):
            _end_nodes(partition, sweep, np.int64(0), strings, frequent)
            return 0
        common, more, weight, position = read_row_head(data, position)
        branch = _branching_depth(path, common, more, data, position)
        _end_nodes(partition, sweep, branch, strings, frequent)
        keep_common(strings, common)
        keep_common(frequent, common)
        for i in range(more):
            path[np.uint64(common + i)] = data[np.uint64(position + i)]
        size = common + more
        _follow_borders(partition, sweep, common, size)
        _, cursor['first'] = next_character(path, np.int64(0))
        cursor['top'] = _add_to_node(sweep.nodes, cursor['top'], size, weight, 0, weight)
        cursor['position'], cursor['size'] = position + more, size
