"""What learners share: suffix tries of ranked text, and the search for a size.

The kernels that expand a trie take their arrays in tuples (`pruned_trie_kernels`). Here are those
of the tokens `no` and `noon`, with the suffixes listed by the nodes `n` and `o`:

    RankedText     ranks      n  o  _  n  o  o  n  _       starts 0 3 8, counts 1 1
    SuffixEnds     node_of    n  o  _  n  o  o  n  _       the deepest node of each suffix so far,
                                                           and a bound of the next string's weight
    Trie           parents, depths, positions, totals      by node: first the characters, then in
                                                           order of creation; `cursor` counts them
    Repeats, Bigrams                                       weights of `oo`, `ooo` and of `no`, `on`:
                                                           the first nodes below the characters

    NodeLists      ends       │ n: 3     │ o: 6     │      of the node `first` and the next ones
    Frontier       positions  │ 0  3  6  │ 1  4  5  │      an entry for each suffix: its position,
                   weights    │ 1  1  1  │ 1  1  1  │      its weight, and the characters that
                   words      │ o_ oo _  │ _  on n_ │      follow, packed; later where it stops
    Continuations  weights    │ o 2, _ 1 │                 of one list, by the next character

`split_frontier` takes a list (`SuffixList`) from the frontier's stack, sums it up in
`Continuations`, creates the nodes that `ExpansionLimits` allow (here `no`), and scatters the list's
`Entries` to the other of two buffers: first the lists that go on the stack, then the suffixes that
stop. These are written back to `SuffixEnds`, one of the `Regions` of the text after the other.
"""
