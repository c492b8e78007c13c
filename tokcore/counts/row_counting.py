"""The kernel that counts rows: tokens are found, hashed and added some thousands at a time.

One call a block, so that the interpreter lock (GIL) is taken once a block: a thread that waits for
it sleeps, and waking costs as much as counting some hundred tokens.
"""

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.counts.hash_table_kernels import add_tokens, hash_tokens
from tokcore.text.t2t_scanning import scan_tokens

_ROW, _POSITION, _TOKEN, _TOKENS = range(4)


@kernel_without_allocation
def count_rows(starts, ends, classes, progress, tokens, row_tokens, table, counts):
    """Counts the tokens of the rows `tokens.text[starts[i]:ends[i]]`, found into `tokens`.

    Returns (done, overflow), the latter as `add_tokens`. `progress` (int64[4], at first 0, -1, 0,
    0) is where it goes on: the row and the place in it, as `scan_tokens` has them, and which of how
    many tokens already found is to be added next.
    """
    while True:
        if progress[_TOKEN] == progress[_TOKENS]:
            if progress[_ROW] == len(starts):
                return True, False
            row, position, found = scan_tokens(
                tokens.text, starts, ends, progress[_ROW], progress[_POSITION], classes,
                tokens.starts, tokens.ends, row_tokens,
            )  # fmt: skip
            hash_tokens(tokens, found)
            progress[_ROW], progress[_POSITION] = row, position
            progress[_TOKEN], progress[_TOKENS] = 0, found
        token, overflow = add_tokens(tokens, progress[_TOKEN], progress[_TOKENS], table, counts)
        progress[_TOKEN] = token
        if token < progress[_TOKENS]:
            return False, overflow
