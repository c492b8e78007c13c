"""Merges learned from a token table: the pair of most counts joined, over and over.

    TokenTable ─ word_layout ─▶ Words      text   \0 l o w \0 l o w e r \0     all words in a row
                                           cells  (symbol, word) of each byte, see `word_cells`
    Words ─ pair_counting ─▶ counts of all pairs ─▶ those of a threshold on, with their places
    Pairs ─ pair_queue ─▶ the best ─ merging ─▶ cells, counts and places around each place

A pair's count only falls once there is one: a string is built by the same merges wherever it becomes
one symbol. So a heap may hold counts that are too high, as long as what comes to its top is looked
at again; and pairs below a threshold need no places until all above are merged. Then all is counted
anew, for a lower threshold. That takes a few scans in all, and spares most of the work: most pairs
are rare, and are never merged.
"""
