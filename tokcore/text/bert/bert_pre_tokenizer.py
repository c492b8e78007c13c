"""BERT's pre-tokenizer: words cleaned, lowered and without accents, cut at punctuation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.text.bert.bert_chunks import CHUNK
from tokcore.text.bert.bert_neighbours import find_out_of_order
from tokcore.text.bert.bert_scanning import SOFT_BYTES, BertText, KnownRows
from tokcore.text.bert.bert_tables import BertTables, bert_tables
from tokcore.text.bert.plain_bert_tokens import Kind, bert_tokens
from tokcore.text.bert.row_cutting import RowCuts
from tokcore.text.bert.special_places import SpecialSearch, special_search
from tokcore.text.padded_text import READABLE, TextRows, one_row, with_margin
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, ScannedTokens, scan_tokens

_TOKENS_AT_ONCE = 1 << 13
_NOTHING = read_only(np.empty(0, np.int64))
_NO_PLACES = read_only(np.empty(0, np.uint64))
_NO_ROWS = KnownRows(_NOTHING, _NOTHING, with_margin(np.empty(0, np.uint8)), _NOTHING)


@dataclass(frozen=True)
class BertPreTokenizer:
    """A `PreTokenizer` whose tokens are those of `bert_tokens`.

    Attributes:
        kind: whose rules: those of transformers, or of google-research.
        lower_case: whether words are lowered.
        strip_accents: whether marks are taken off; None if words are lowered.
        split_cjk: whether Chinese characters are words by themselves.
        special_tokens: are cut out first, and stay as they are.
    """

    kind: Kind = 'bert'
    lower_case: bool = True
    strip_accents: bool | None = None
    split_cjk: bool = True
    special_tokens: tuple[str, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, 'special_tokens', tuple(self.special_tokens))
        if '' in self.special_tokens:
            raise ValueError('a special token is empty, and would stand everywhere; leave it out')

    @property
    def name(self) -> str:
        return self.kind

    @property
    def options(self) -> Mapping[str, object]:
        return {
            'lower_case': self.lower_case,
            'split_cjk': self.split_cjk,
            'strip_accents': self._strips,
        }

    @property
    def _strips(self) -> bool:
        return self.lower_case if self.strip_accents is None else self.strip_accents

    @property
    def _tables(self) -> BertTables:
        return bert_tables(self.kind, self.lower_case, self._strips, self.split_cjk)

    @property
    def _search(self) -> SpecialSearch:
        return special_search(self.special_tokens, self.kind, self.lower_case, self._strips)

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text, in plain Python."""
        return bert_tokens(
            text,
            self.kind,
            self.lower_case,
            self.strip_accents,
            self.split_cjk,
            self.special_tokens,
        )

    def prepare(self, rows: TextRows) -> tuple[BertText, np.ndarray]:
        tables = self._tables
        leaving = np.zeros(len(rows.starts), np.uint8)
        special = _NO_PLACES, _NO_PLACES
        if tables.asking.any():
            find_out_of_order(rows.text, rows.starts, rows.ends, tables, leaving)
        if self.special_tokens:
            special = self._search.places(rows, leaving)
        known = self._known(rows, np.flatnonzero(leaving))
        longest = tables.growth * int((rows.ends - rows.starts).max(initial=0))
        longest = max(longest, int(np.diff(known.offsets).max(initial=0)))
        # The last of a chunk's characters may end behind it, and whole words are written.
        margin = (CHUNK + 4) * tables.growth + READABLE
        buffer = np.empty(SOFT_BYTES + longest + margin, np.uint8)
        lowering = np.uint8(0x20 if self.lower_case else 0)
        return BertText(tables, lowering, buffer, known, *map(read_only, special)), buffer

    def _known(self, rows: TextRows, leaving: np.ndarray) -> KnownRows:
        """The tokens of the rows whose numbers are given, by the plain form."""
        if not len(leaving):
            return _NO_ROWS
        tokens: list[bytes] = []
        row_tokens = [0]
        for row in leaving.tolist():
            text = rows.text[rows.starts[row] : rows.ends[row]].tobytes()
            found = self.tokens(text.decode('utf-8', 'surrogatepass'))
            tokens += [each.encode('utf-8', 'surrogatepass') for each in found]
            row_tokens.append(len(tokens))
        numbers = np.full(len(rows.starts), -1, np.int64)
        numbers[leaving] = np.arange(len(leaving))
        return KnownRows(
            read_only(numbers),
            read_only(np.array(row_tokens, np.int64)),
            with_margin(np.frombuffer(b''.join(tokens), np.uint8)),
            read_only(row_offsets([len(each) for each in tokens])),
        )

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        special = None
        if self.special_tokens:
            special = self._search.places(rows.part(row, row + 1), np.zeros(1, np.uint8))
        cuts = RowCuts(rows.text, self.split_cjk, special)
        while start < end:
            stop = cuts.next(start, end)
            yield from self._parts(rows.text, start, stop, longest, cuts)
            start = stop

    def _parts(
        self, text: np.ndarray, start: int, end: int, longest: int, cuts: RowCuts
    ) -> Iterator[RowPart]:
        part = one_row(text, start, end)
        if all(most <= longest for _, _, _, most in self._scanned(part)):
            yield RowPart(text, start, end, False)
            return
        # Halved while it is not much longer than its longest token: all others are parts as well.
        places = cuts.between(start, end) if end - start > 4 * longest else _NOTHING
        if len(places):
            middle = int(places[np.abs(places - (start + end) // 2).argmin()])
            yield from self._parts(text, start, middle, longest, cuts)
            yield from self._parts(text, middle, end, longest, cuts)
            return
        for buffer, starts, ends, _ in self._scanned(part):
            used = with_margin(buffer[: ends.max(initial=0)])
            for begin, behind in zip(starts.tolist(), ends.tolist(), strict=True):
                yield RowPart(used, begin, behind, True)

    def _scanned(
        self, row: TextRows
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
        """Yields tokens of one row, some thousands at once: text, starts, ends, most bytes."""
        state, buffer = self.prepare(row)
        starts = np.empty(_TOKENS_AT_ONCE + CHUNK_TOKENS, np.uint64)
        tokens = ScannedTokens(buffer, starts, np.empty_like(starts), np.zeros(2, np.int64))
        done, position = 0, -1
        while not done:
            done, position, count = scan_tokens(row, done, position, state, tokens)
            found = tokens.starts[:count], tokens.ends[:count]
            yield buffer, *found, int((found[1] - found[0]).max(initial=0))
