"""The kernel that counts rows: tokens are found, hashed and added some thousands at a time.

One call a block, so that the interpreter lock (GIL) is taken once a block: a thread that waits for
it sleeps, and waking costs as much as counting some hundred tokens.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.counts.hash_table_kernels import add_tokens, hash_tokens
from tokcore.text.pre_tokenizer import scan_tokens

PROGRESS = np.dtype(
    [('row', np.int64), ('position', np.int64), ('token', np.int64), ('tokens', np.int64)],
    align=True,
)
"""Where `count_rows` goes on: the row and the place in it, as `scan_tokens` has them, and which of
how many tokens already found is to be added next."""


@kernel_without_allocation
def count_rows(rows, pre_tokenizer, scanned, progress, tokens, table, counts):
    """Counts the tokens of `TextRows`; returns (done, overflow), the latter as `add_tokens`.

    `scanned` (`ScannedTokens`) and `tokens` are of the same text and places. `progress`
    (`PROGRESS`[1], at first 0, -1, 0, 0) is where it began and where it stopped.
    """
    at = progress[0]
    while True:
        if at['token'] == at['tokens']:
            if at['row'] == len(rows.starts):
                return True, False
            row, position, found = scan_tokens(
                rows, at['row'], at['position'], pre_tokenizer, scanned
            )
            hash_tokens(tokens, found)
            at['row'], at['position'] = row, position
            at['token'], at['tokens'] = 0, found
        token, overflow = add_tokens(tokens, at['token'], at['tokens'], table, counts)
        at['token'] = token
        if token < at['tokens']:
            return False, overflow
