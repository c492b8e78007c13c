"""BERT's tokens: text cleaned, lowered and stripped of accents, cut at white space and punctuation.

`plain_bert_tokens` says what they are, in plain Python. The kernel looks each character up:

    row ─ `find_leaving` ─▶ rows whose characters act on each other: by `plain_bert_tokens`
                        └▶ others: 64 bytes of ASCII at a time, else by `BertTables`
                           code point ─ index ─▶ block of 256 ─ actions ─▶ keep, drop, space, solo,
                                                                           expand: ─▶ expansions
    tokens are slices of a buffer, which the words are written to one after another
"""
