"""Tokens counted: hashed, added up by threads, dealt to partitions, written and read.

What kernels of this room share:

    TextRows ─ scan_tokens ─▶ ScannedTokens (see `tokcore.text`), some thousands a pass
                                 │ the same places
    Tokens      text, starts, ends  token i is text[starts[i]:ends[i]]
                hashes              filled by `hash_tokens`, used up by `add_tokens`
                weights             what each adds to its count
                                 │ add_tokens
    HashTable   slots    [ 0 | tag 3 | 0 | tag 1 | tag 2 | 0 ... ]   tag above, index + 1 below
                data     the cat,                  one token after another
                offsets  0 3 6 7                   token i is data[offsets[i]:offsets[i + 1]]
                state    lock, number of tokens    which threads share
    counts      of each thread, by a token's number
    PROGRESS    row, position, token, tokens: where `count_rows` stopped for want of room

The table that is full stays as it is; `counting` makes the larger one.
"""
