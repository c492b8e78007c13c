"""Kernels that begin a tree: its first nodes are the characters, and what repeats one character.

Rules and borders of tables are tokens too, hundreds of one character; followed down character by
character they would be a third of the work.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_in_place
from tokcore.learning.bigram_nodes import slot_of_pair

LARGEST_NEXT = 2**15 - 1
"""The weight that stopped a suffix is remembered up to here; a larger one counts as this.

What is above, in 16 bits, marks the suffixes that go on."""


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
def start_suffixes(
    ranks, starts, counts, end_rank, begins, longest, weights, pair_of, width, pair_sums,
    pair_names, names, depths, places, node_of, next_weights,
):  # fmt: skip
    """Puts each suffix at its run or at its pair, or as far as these are heavy enough."""
    for token in range(len(counts)):
        count = counts[token]
        for place in range(starts[token], starts[token + 1]):
            rank = ranks[place]
            length = np.int64(next_weights[place])
            node = rank if count == 0 else names[begins[rank] + length - 1]
            weight = np.int64(0)
            if count and rank != end_rank and depths[node] < longest:
                if length == 1:
                    after = ranks[place + 1]
                    slot = slot_of_pair(rank, after, pair_of, width, len(pair_sums))
                    weight = pair_sums[slot]
                    if slot < len(pair_names) and pair_names[slot]:
                        node = pair_names[slot]
                        places[node] = place
                        if after == end_rank or depths[node] == longest:
                            weight = np.int64(0)
                else:
                    weight = weights[begins[rank] + min(length - 1, np.int64(depths[node]))]
            node_of[place] = node
            next_weights[place] = min(weight, LARGEST_NEXT)
