"""Kernels that begin a trie: its first nodes are the characters, and the repeats of one character.

Rulers and borders of tables are tokens too, hundreds of one character; expanded character by
character they would be a third of the work.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.learning.bigram_nodes import bigram_slot

LARGEST_NEXT = 2**15 - 1
"""Bounds of next weights are kept up to here; a larger one counts as this.

Values above it, in 16 bits, mark active suffixes."""


@kernel_without_allocation
def measure_repeats(ranks, starts, longest, repeats, most):
    """Writes how often each suffix repeats its first character, and the most for each character."""
    for token in range(len(starts) - 1):
        repeat, last = 0, -1
        for position in range(starts[token + 1] - 1, starts[token] - 1, -1):
            rank = ranks[position]
            repeat = min(repeat + 1, longest) if rank == last else 1
            last = rank
            repeats[position] = repeat
            if repeat > most[rank]:
                most[rank] = repeat


@kernel_without_allocation
def weigh_repeats(ranks, starts, counts, begins, repeats, weights, positions):
    """Sums up the weights of the suffixes by character and repetition, and notes a position of each."""
    for token in range(len(counts)):
        count = counts[token]
        if count == 0:
            continue
        for position in range(starts[token], starts[token + 1]):
            repeat = begins[ranks[position]] + repeats[position] - 1
            weights[repeat] += count
            positions[repeat] = position


@kernel_without_allocation
def add_repeat_nodes(
    begins, most, weights, repeat_positions, min_weight, names, parents, depths, positions, totals
):  # fmt: skip
    """Makes nodes of all characters, and of the repetitions that branch or end and weigh enough.

    Turns each repeat's weight into that of all that begin with it. Returns the nodes.
    """
    nodes = len(begins)
    for letter in range(len(begins)):
        begin = begins[letter]
        for repeat in range(begin + most[letter] - 2, begin - 1, -1):
            weights[repeat] += weights[repeat + 1]
        names[begin] = letter
        parents[letter] = letter
        depths[letter] = 1
        positions[letter] = repeat_positions[begin]
        totals[letter] = weights[begin]
        end = begin + most[letter]
        for repeat in range(begin + 1, end):
            names[repeat] = names[repeat - 1]
            longer = weights[repeat + 1] if repeat + 1 < end else 0
            if weights[repeat] >= min_weight and weights[repeat] > longer:
                parents[nodes] = names[repeat]
                depths[nodes] = repeat - begin + 1
                positions[nodes] = repeat_positions[repeat]
                totals[nodes] = weights[repeat]
                names[repeat] = nodes
                nodes += 1
    return nodes


@kernel_without_allocation
def start_suffixes(
    ranks, starts, counts, end_rank, begins, longest, weights, pair_of, width, pair_sums,
    pair_names, names, depths, positions, node_of, next_weight_bounds,
):  # fmt: skip
    """Starts each suffix at its repeat or its bigram, or as far as these are heavy enough."""
    for token in range(len(counts)):
        count = counts[token]
        for position in range(starts[token], starts[token + 1]):
            rank = ranks[position]
            length = np.int64(next_weight_bounds[position])
            node = rank if count == 0 else names[begins[rank] + length - 1]
            weight = np.int64(0)
            if count and rank != end_rank and depths[node] < longest:
                if length == 1:
                    after = ranks[position + 1]
                    slot = bigram_slot(rank, after, pair_of, width, len(pair_sums))
                    weight = pair_sums[slot]
                    if slot < len(pair_names) and pair_names[slot]:
                        node = pair_names[slot]
                        positions[node] = position
                        if after == end_rank or depths[node] == longest:
                            weight = np.int64(0)
                else:
                    weight = weights[begins[rank] + min(length - 1, np.int64(depths[node]))]
            node_of[position] = node
            next_weight_bounds[position] = min(weight, LARGEST_NEXT)
