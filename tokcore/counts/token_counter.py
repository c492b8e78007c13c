"""A growing multiset of tokens: what counting and merging have in common."""

from collections.abc import Iterable

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.counts.hash_table_kernels import HashTable, Tokens, add_tokens, hash_tokens
from tokcore.counts.row_counting import PROGRESS, count_rows
from tokcore.counts.token_index import TokenIndex, ensure_capacity
from tokcore.text.padded_text import TextRows, readable_parts, with_margin
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, PreTokenizer, ScannedTokens

# 16,384 places and hashes are 400 KB, which stay in a core's cache between the passes; with a
# quarter of it the calls begin to show.
_TOKENS_AT_ONCE = 1 << 14

_FIRST_COUNTS = 1 << 10


class TokenAccumulator:
    """Tokens with their counts, added row by row or table by table; memory follows distinct tokens.

    Not for use from several threads at once, but each thread may have one over the same index.
    """

    def __init__(self, index: TokenIndex | None = None):
        self.index = TokenIndex() if index is None else index
        self._counts = np.zeros(_FIRST_COUNTS, np.int64)

    @property
    def nbytes(self) -> int:
        """The memory held by the counts, without the index."""
        return self._counts.itemsize * min(len(self.index), len(self._counts))

    def add_rows(
        self, text: np.ndarray, starts: np.ndarray, ends: np.ndarray, pre_tokenizer: PreTokenizer
    ) -> None:
        """Counts the tokens of rows: row i is `text[starts[i]:ends[i]]`, valid UTF-8."""
        for part in readable_parts(text, starts, ends):
            self._add_rows(part, pre_tokenizer)

    def _add_rows(self, rows: TextRows, pre_tokenizer: PreTokenizer) -> None:
        state, text = pre_tokenizer.prepare(rows)
        places = [np.empty(_TOKENS_AT_ONCE + CHUNK_TOKENS, np.uint64) for _ in range(3)]
        tokens = Tokens(text, *places, read_only(np.ones(len(places[0]), np.int64)))
        scanned = ScannedTokens(text, *places[:2], np.empty(len(rows.starts) + 1, np.int64))
        progress = np.array([(0, -1, 0, 0)], PROGRESS)
        while True:
            table = self._table()
            done, overflow = count_rows(
                rows, state, scanned, progress, tokens, table, self._counts
            )
            if done:
                return
            self._make_room(table, tokens, progress['token'][0], overflow)

    def add_tokens(self, data: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> None:
        """Adds tokens `data[offsets[i]:offsets[i + 1]]` with their counts; repeats are added up.

        Raises OverflowError if a token's sum would exceed 2^63 - 1; the tokens before it are added.
        """
        hashes = np.empty(min(len(counts), _TOKENS_AT_ONCE), np.uint64)
        for first in range(0, len(counts), _TOKENS_AT_ONCE):
            borders = offsets[first : first + _TOKENS_AT_ONCE + 1]
            text = with_margin(data[borders[0] : borders[-1]])
            borders = (borders - borders[0]).astype(np.uint64)
            weights = np.ascontiguousarray(counts[first : first + _TOKENS_AT_ONCE], np.int64)
            tokens = Tokens(text, borders[:-1], borders[1:], hashes, read_only(weights))
            hash_tokens(tokens, len(weights))
            token = 0
            while token < len(weights):
                table = self._table()
                token, overflow = add_tokens(tokens, token, len(weights), table, self._counts)
                if token < len(weights):
                    self._make_room(table, tokens, token, overflow)

    def _table(self) -> HashTable:
        """Returns the index's table, with counts for as many tokens as it has room for."""
        table = self.index.table
        self._counts = ensure_capacity(self._counts, len(self._counts), table.capacity)
        return table

    def _make_room(self, table: HashTable, tokens: Tokens, token: int, overflow: bool) -> None:
        """Makes room for the token at which a kernel stopped, if it was for want of room."""
        data = tokens.text[tokens.starts[token] : tokens.ends[token]]
        if overflow:
            raise _overflow(data)
        self.index.grow(table, len(data))

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns (data, offsets, counts) of the distinct tokens, in the order first met.

        They do not change when more is added.
        """
        data, offsets, counts = self.finish()
        return data, offsets, counts.copy()

    def finish(
        self, others: Iterable['TokenAccumulator'] = ()
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the arrays with those of others over the same index added up.

        Nothing may be added to any of them afterwards. Raises OverflowError if a sum exceeds
        2^63 - 1.
        """
        data, offsets = self.index.tokens()
        size = len(offsets) - 1
        counts = self._counts = ensure_capacity(self._counts, len(self._counts), size)
        for other in others:
            known = min(size, len(other._counts))
            counts[:known] += other._counts[:known]
            if known and counts[:known].min() < 0:
                token = int(counts[:known].argmin())
                raise _overflow(data[offsets[token] : offsets[token + 1]])
        return data, offsets, counts[:size]


def _overflow(token: np.ndarray) -> OverflowError:
    shown = token[:100].tobytes().decode(errors='replace')
    return OverflowError(f'the counts of the token {shown!r} exceed 2^63 - 1 in sum')
