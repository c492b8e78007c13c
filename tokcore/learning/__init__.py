"""What learners share: suffix tries of ranked text, and the search for a size.

Kernels take their arrays in tuples (`kernel_state`), here with what they hold for the tokens `no` and
`noo`, followed down to strings that weigh 1:

    RankedText     ranks          n o _ n o o _         starts 0 3 7     counts 1 1
    SuffixEnds     node_of        │ │ │ │ │ └─────────┐ of each suffix: the node where it stops,
                                  │ │ ...             │ and a bound of what goes on beyond it
    Trie           the nodes      _ n o │ oo no │ ... ▼ parents, depths, positions, totals;
                   characters ────┘     │       │       `cursor` says how many there are
                   Repeats, Bigrams ────┘       │       the nodes that suffixes start at
                   split off the Frontier ──────┘

    Frontier       NodeLists   │ list of no      │ list of oo │   one entry for each suffix: its
                   positions   │ 0        3      │ 4          │   position, its weight, and the
                   weights     │ 1        1      │ 1          │   characters that follow, packed
                   words       │ _        o_     │ _          │   (in the end: where it stops)

`split_frontier` takes a list from the `stack`, sums it up by the character that follows
(`Continuations`), makes nodes of what the `Limits` allow, and scatters the list's `Entries` from one
buffer of the frontier to the other: into lists that go on the stack, or behind them where they stop.
`Regions` of the text order what is then written back to `SuffixEnds`.
"""
