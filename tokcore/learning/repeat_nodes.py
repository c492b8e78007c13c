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
def measure_repeats(text, longest, repeats, most):
    """Writes how often each suffix repeats its first character, and the most for each character."""
    for token in range(len(text.counts)):
        repeat, last = 0, -1
        for position in range(text.starts[token + 1] - 1, text.starts[token] - 1, -1):
            rank = text.ranks[position]
            repeat = min(repeat + 1, longest) if rank == last else 1
            last = rank
            repeats[position] = repeat
            if repeat > most[rank]:
                most[rank] = repeat


@kernel_without_allocation
def weigh_repeats(text, repeat_of, repeats):
    """Sums up the weights of the suffixes by character and repetition, and notes positions.

    Args:
      repeat_of: uint16[characters], as `measure_repeats` writes it.
    """
    for token in range(len(text.counts)):
        count = text.counts[token]
        if count == 0:
            continue
        for position in range(text.starts[token], text.starts[token + 1]):
            repeat = repeats.begins[text.ranks[position]] + repeat_of[position] - 1
            repeats.weights[repeat] += count
            repeats.positions[repeat] = position


@kernel_without_allocation
def add_repeat_nodes(repeats, min_weight, trie):
    """Makes nodes of all characters, and of the repetitions that branch or end and weigh enough.

    Turns each repeat's weight into that of all that begin with it.
    """
    weights, names = repeats.weights, repeats.names
    nodes = len(repeats.begins)
    for letter in range(len(repeats.begins)):
        begin = repeats.begins[letter]
        for repeat in range(begin + repeats.most[letter] - 2, begin - 1, -1):
            weights[repeat] += weights[repeat + 1]
        names[begin] = letter
        trie.parents[letter] = letter
        trie.depths[letter] = 1
        trie.positions[letter] = repeats.positions[begin]
        trie.totals[letter] = weights[begin]
        end = begin + repeats.most[letter]
        for repeat in range(begin + 1, end):
            names[repeat] = names[repeat - 1]
            longer = weights[repeat + 1] if repeat + 1 < end else 0
            if weights[repeat] >= min_weight and weights[repeat] > longer:
                trie.parents[nodes] = names[repeat]
                trie.depths[nodes] = repeat - begin + 1
                trie.positions[nodes] = repeats.positions[repeat]
                trie.totals[nodes] = weights[repeat]
                names[repeat] = nodes
                nodes += 1
    trie.cursor[0]['nodes'] = nodes


@kernel_without_allocation
def start_suffixes(text, repeats, bigrams, longest, trie, ends):
    """Starts each suffix at its repeat or its bigram, or as far as these are heavy enough.

    The bounds of next weights hold how often each suffix repeats its first character before.
    """
    for token in range(len(text.counts)):
        count = text.counts[token]
        for position in range(text.starts[token], text.starts[token + 1]):
            rank = text.ranks[position]
            length = np.int64(ends.next_weight_bounds[position])
            node = rank if count == 0 else repeats.names[repeats.begins[rank] + length - 1]
            weight = np.int64(0)
            if count and rank != text.end_rank and trie.depths[node] < longest:
                if length == 1:
                    after = text.ranks[position + 1]
                    slot = bigram_slot(rank, after, bigrams)
                    weight = bigrams.weights[slot]
                    if slot < len(bigrams.names) and bigrams.names[slot]:
                        node = bigrams.names[slot]
                        trie.positions[node] = position
                        if after == text.end_rank or trie.depths[node] == longest:
                            weight = np.int64(0)
                else:
                    longer = min(length - 1, np.int64(trie.depths[node]))
                    weight = repeats.weights[repeats.begins[rank] + longer]
            ends.node_of[position] = node
            ends.next_weight_bounds[position] = min(weight, LARGEST_NEXT)
