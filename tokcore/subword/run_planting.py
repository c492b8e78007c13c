"""Kernels that begin a tree: its first nodes are the characters, and what repeats one character.

Rules and borders of tables are tokens too, hundreds of one character; followed down character by
character they would be a third of the work.
"""

import numpy as np

from tokcore.compilation import kernel_in_place

# 2^64 divided by the golden ratio.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)

LARGEST_NEXT = 2**16 - 1
"""The weight that stopped a suffix is remembered up to here; a larger one counts as this."""


@kernel_in_place
def measure_runs(ranks, starts, longest, runs, most):
    """Writes how often each suffix repeats its first character, and the most for each character."""
    for token in range(len(starts) - 1):
        run, last = 0, -1
        for place in range(starts[token + 1] - 1, starts[token] - 1, -1):
            rank = ranks[place]
            run = min(run + 1, longest) if rank == last else 1
            last = rank
            runs[place] = run
            if run > most[rank]:
                most[rank] = run


@kernel_in_place
def weigh_runs(ranks, starts, counts, begins, runs, weights, places):
    """Sums up the weights of the suffixes by character and repetition, and notes a place of each."""
    for token in range(len(counts)):
        count = counts[token]
        if count == 0:
            continue
        for place in range(starts[token], starts[token + 1]):
            run = begins[ranks[place]] + runs[place] - 1
            weights[run] += count
            places[run] = place


@kernel_in_place
def plant_runs(
    begins, most, weights, run_places, least, names, parents, depths, places, totals
):  # fmt: skip
    """Makes nodes of all characters, and of the repetitions that branch or end and weigh enough.

    Turns each run's weight into that of all that begin with it. Returns the nodes.
    """
    nodes = len(begins)
    for letter in range(len(begins)):
        begin = begins[letter]
        for run in range(begin + most[letter] - 2, begin - 1, -1):
            weights[run] += weights[run + 1]
        names[begin] = letter
        parents[letter] = letter
        depths[letter] = 1
        places[letter] = run_places[begin]
        totals[letter] = weights[begin]
        end = begin + most[letter]
        for run in range(begin + 1, end):
            names[run] = names[run - 1]
            longer = weights[run + 1] if run + 1 < end else 0
            if weights[run] >= least and weights[run] > longer:
                parents[nodes] = names[run]
                depths[nodes] = run - begin + 1
                places[nodes] = run_places[run]
                totals[nodes] = weights[run]
                names[run] = nodes
                nodes += 1
    return nodes


@kernel_in_place
def _slot_of_pair(first, second, slots):
    """Returns the slot of a pair of characters, which others may share; slots are a power of two."""
    pair = (np.uint64(first) << np.uint64(32)) | np.uint64(second)
    return np.uintp(((pair * _SPREAD) >> np.uint64(32)) & np.uint64(slots - 1))


@kernel_in_place
def weigh_pairs(ranks, starts, counts, end_rank, runs, sums):
    """Sums up the weights of the suffixes that begin with two different characters, by these."""
    for token in range(len(counts)):
        count = counts[token]
        for place in range(starts[token], starts[token + 1]):
            if runs[place] == 1 and ranks[place] != end_rank:
                sums[_slot_of_pair(ranks[place], ranks[place + 1], len(sums))] += count


@kernel_in_place
def start_at_runs(
    ranks, starts, counts, end_rank, begins, longest, weights, sums, names, depths, node_of,
    next_weights,
):  # fmt: skip
    """Puts each suffix at its run, or as far as that is heavy enough."""
    for token in range(len(counts)):
        count = counts[token]
        for place in range(starts[token], starts[token + 1]):
            rank = ranks[place]
            length = np.int64(next_weights[place])
            node = rank if count == 0 else names[begins[rank] + length - 1]
            node_of[place] = node
            weight = np.int64(0)
            if count and rank != end_rank and depths[node] < longest:
                if length == 1:
                    weight = sums[_slot_of_pair(rank, ranks[place + 1], len(sums))]
                else:
                    weight = weights[begins[rank] + min(length - 1, np.int64(depths[node]))]
            next_weights[place] = min(weight, LARGEST_NEXT)
