"""What learners share: suffix tries of ranked text, and the search for a size.

Kernels that expand a trie take their arrays in tuples (`pruned_trie_kernels`), never one by one. Here with
the tokens `no` and `noon`, all suffixes in lists by their nodes, of which `n` and `o` were made:

    RankedText     ranks      n  o  _  n  o  o  n  _       starts 0 3 8, counts 1 1
    SuffixEnds     node_of    n  o  _  n  o  o  n  _       where each suffix is followed down to,
                                                           and what the next string may weigh
    Trie           parents, depths, positions, totals      by nodes: first the characters, then as
                                                           they are made; `cursor` counts them
    Repeats, Bigrams                                       weights by `oo`, `ooo` and by `no`, `on`:
                                                           where suffixes begin, not at characters

    NodeLists      ends       │ n: 3     │ o: 6     │      from the node `first` on
    Frontier       positions  │ 0  3  6  │ 1  4  5  │      an entry for each suffix: its position,
                   weights    │ 1  1  1  │ 1  1  1  │      its weight, and the characters that
                   words      │ o_ oo _  │ _  on n_ │      follow, packed; later where it stops
    Continuations  weights    │ o 2, _ 1 │                 of one list, by the next character

`split_frontier` takes a list (`SuffixList`) from the frontier's stack, sums it up in
`Continuations`, makes nodes of what the `Limits` allow (here `no`), and scatters the list's
`Entries` to the other of two buffers: into lists that go on the stack, or behind those where they
stop. `Regions` of the text order what is then written back to `SuffixEnds`.
"""
