"""Token counting: a hash table that threads share, tables of counts, and their hash partitions.

The arrays of the kernels:

    TextRows ─ scan_tokens ─▶ ScannedTokens (see `tokcore.text`), some thousands at a time
                                 │ the same positions
    Tokens      text, starts, ends  token i is text[starts[i]:ends[i]]
                hashes              written by `hash_tokens`, overwritten by `add_tokens`
                weights             added to the tokens' counts
                                 │ add_tokens
    HashTable   slots    [ 0 | tag 3 | 0 | tag 1 | tag 2 | 0 ... ]   tag above, index + 1 below
                data     the cat,                  one token after another
                offsets  0 3 6 7                   token i is data[offsets[i]:offsets[i + 1]]
                state    lock, number of tokens    shared by threads
    counts      one array a thread, indexed by token
    PROGRESS    row, position, token, tokens: where `count_rows` stopped when the table was full

A full table stays as it is; `counting` makes a larger one.
"""
