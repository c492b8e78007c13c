"""The block engine: rows of text to rows of ids, by any pre-tokenizer and any model.

One call of `kernels.encode_rows` encodes the rows of a block, some thousand tokens a pass:

    TextRows ─ scan_tokens ─▶ ScannedTokens          by the type of the pre-tokenizer's state
                                │ look_up             found: 1, 4, 5 …   missed: 0, 2, 3 …
    TokenCache  slots  [token | ids, count][token | ids, count]  a row of two entries
                long_slots  [token | ids]                    a token of 16 to 31 bytes a row
                found  the ids of each token of the pass, or where they are in the workspace
                                │ MissedTokens
                segment_tokens ─▶ workspace: ids, id_bounds, and what else the model needs
                                │                     by the type of the model's state
                                │ insert_ids          into found and slots
    IdRows      ids      before ··· after before ··· after      Surround, around each row
                offsets  0                 9                18

`encoder.RowEncoder` holds all of it for one thread. It takes rows of megabytes apart, whose
long tokens the model gets by themselves (`Model.segment_long_token`). `encode_text` is for single texts,
and keeps the arrays that it needs from one call to the next, and the compiled code, which small sides share.

A scheme's pre-tokenizer and model are classes with a state each, a `NamedTuple`; they register their
kernels for its type: `scan_tokens`, `segment_tokens`, `larger_workspace`. `scheme.py` has the rest.

Dispatch by type (`kernel_family` of `kernels/jit.py`) was chosen against one call from
Python a pass. Measured on one thread, MB/s of English and of Chinese: one call a block 263 and 128;
calls for each pass of 1,104 tokens 131 and 102, of 4,176 209 and 119, of 16,464 252 and 112. Those
would also take the interpreter lock at each pass.
"""
