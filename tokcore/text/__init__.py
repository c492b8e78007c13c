"""Unicode, normalizers, and pre-tokenizers, which cut rows into tokens.

A pre-tokenizer (`pre_tokenizer.PreTokenizer`) finds the tokens of rows in kernels:

    TextRows        text  ··[the cat, sat]··[字典]·······   starts, ends: the bounds of the rows
       │ scan_tokens, with the pre-tokenizer's state, a `NamedTuple` whose type selects the body
       ▼
    ScannedTokens   text    the text of the rows, or a buffer that the body writes
                    starts  the cat ,_ sat | 字典            token i is text[starts[i]:ends[i]]
                    ends
                    row_tokens  0, 4, 5                      row r has row_tokens[r:r + 2]
"""
