"""BERT's tokens: text cleaned, lowered and stripped of accents, cut at white space and punctuation.

`plain_bert_tokens` says what they are, in plain Python. The kernels look characters up:

    rows ─ `bert_neighbours` ─▶ those whose characters act on each other: by `plain_bert_tokens`
         ├ `special_places` ─▶ where tokens stand that are cut out first
         └ `bert_scanning` ─▶ row by row, `bert_chunks` ─▶ 64 bytes at a time
                              by `bert_tables`: code point ─ index ─▶ block of 256 ─ actions ─▶
                              nothing, a border, itself, an expansion; a token by itself or not
    tokens are slices of a buffer, which the words are written to one after another
"""
