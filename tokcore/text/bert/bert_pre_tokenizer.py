"""BERT's pre-tokenizer: words cleaned, lowered and without accents, cut at punctuation."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.text.bert.bert_scanning import CHUNK, BertText, find_leaving
from tokcore.text.bert.bert_tables import BertTables, bert_tables
from tokcore.text.bert.plain_bert_tokens import Kind, bert_tokens, is_cjk
from tokcore.text.padded_text import READABLE, TextRows, one_row, with_margin
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, ScannedTokens, scan_tokens

_LEAST_BUFFER = 64 << 10
"""Stays in a core's cache; a longer row has what it needs."""

_PART_BYTES = 64 << 10
"""Of a long row are looked at together."""

_TOKENS_AT_ONCE = 1 << 14
_NO_ROWS = read_only(np.empty(0, np.int64))
_NO_WORDS = with_margin(np.empty(0, np.uint8))
_SPACE = re.compile(rb'[\t\n\r ]')


@dataclass(frozen=True)
class BertPreTokenizer:
    """A `PreTokenizer` whose tokens are those of `bert_tokens`.

    Attributes:
        kind: whose rules: those of transformers, or of google-research.
        lower_case: whether words are lowered.
        strip_accents: whether marks are taken off; None if words are lowered.
        split_cjk: whether Chinese characters are words by themselves.
        special_tokens: are cut out first, and stay as they are. No white space is in them.
    """

    kind: Kind = 'bert'
    lower_case: bool = True
    strip_accents: bool | None = None
    split_cjk: bool = True
    special_tokens: Sequence[str] = ()

    def __post_init__(self):
        for token in self.special_tokens:
            if not token or token.split() != [token]:
                raise ValueError(f'{token!r} is no special token: it is empty or has white space')

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
        found = self._not_looked_up(rows, tables)
        rewritten, words, bounds = _NO_ROWS, _NO_WORDS, _NO_ROWS
        if len(found):
            texts = [
                ' '.join(self.tokens(_text_of(rows, row))).encode('utf-8', 'surrogatepass')
                for row in found.tolist()
            ]
            numbers = np.full(len(rows.starts), -1, np.int64)
            numbers[found] = np.arange(len(found))
            rewritten = read_only(numbers)
            words = with_margin(np.frombuffer(b''.join(texts), np.uint8))
            bounds = read_only(row_offsets([len(each) for each in texts]))
        longest = tables.growth * int((rows.ends - rows.starts).max(initial=0))
        longest = max(longest, int(np.diff(bounds).max(initial=0)), _LEAST_BUFFER)
        # What a chunk adds, with a character that begins in it and ends behind it.
        margin = (CHUNK + 4) * tables.growth + CHUNK
        buffer = np.empty(longest + margin + READABLE, np.uint8)
        lowering = np.uint8(0x20 if self.lower_case else 0)
        state = BertText(tables, lowering, buffer, longest, rewritten, words, bounds)
        return state, buffer

    def _not_looked_up(self, rows: TextRows, tables: BertTables) -> np.ndarray:
        """The rows, int64[...], that are not done by tables."""
        found = np.zeros(len(rows.starts), np.uint8)
        find_leaving(rows.text, rows.starts, rows.ends, tables, found)
        if self.special_tokens and len(rows.starts):
            first, end = int(rows.starts.min()), int(rows.ends.max())
            text = memoryview(rows.text)[first:end]
            sought = re.compile(b'|'.join(re.escape(each.encode()) for each in self.special_tokens))
            places = [first + match.start() for match in sought.finditer(text)]
            holding = np.searchsorted(rows.starts, places, 'right') - 1
            found[holding[holding >= 0]] = 1
        return np.flatnonzero(found)

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        while start < end:
            stop = self._border(rows.text, start, end)
            part = one_row(rows.text, start, stop)
            text, bounds = self._found(part)
            if all(behind - begin <= longest for begin, behind in bounds):
                yield RowPart(rows.text, start, stop, False)
            else:
                for begin, behind in bounds:
                    yield RowPart(text, begin, behind, True)
            start = stop

    def _border(self, text: np.ndarray, start: int, end: int) -> int:
        """A place behind `start` where no token and no rule goes across, `end` at most."""
        while end - start > _PART_BYTES:
            part = text[start : start + _PART_BYTES].tobytes()
            place = max(part.rfind(each) for each in (b' ', b'\t', b'\n', b'\r'))
            if place >= 0:
                return start + place + 1
            place = self._chinese_place(part)
            if place:
                return start + place
            found = _SPACE.search(memoryview(text)[start + _PART_BYTES : end])
            return end if found is None else start + _PART_BYTES + found.end()
        return end

    def _chinese_place(self, part: bytes) -> int:
        """Behind the first byte, where a Chinese character begins that is a word; 0 for nowhere."""
        if not self.split_cjk:
            return 0
        text = part.decode('utf-8', 'ignore')
        for place in range(len(text) - 1, 0, -1):
            if is_cjk(ord(text[place])):
                return len(text[:place].encode('utf-8', 'surrogatepass'))
        return 0

    def _found(self, row: TextRows) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """The text of one row's tokens, with `READABLE` bytes behind it, and their bounds."""
        state, buffer = self.prepare(row)
        starts = np.empty(_TOKENS_AT_ONCE + CHUNK_TOKENS, np.uint64)
        tokens = ScannedTokens(buffer, starts, np.empty_like(starts), np.zeros(2, np.int64))
        data: list[bytes] = []
        done, position = 0, -1
        while not done:
            done, position, count = scan_tokens(row, done, position, state, tokens)
            places = zip(tokens.starts[:count].tolist(), tokens.ends[:count].tolist())
            data += [buffer[begin:behind].tobytes() for begin, behind in places]
        bounds = row_offsets([len(each) for each in data]).tolist()
        text = with_margin(np.frombuffer(b''.join(data), np.uint8))
        return text, list(zip(bounds, bounds[1:]))


def _text_of(rows: TextRows, row: int) -> str:
    return rows.text[rows.starts[row] : rows.ends[row]].tobytes().decode('utf-8', 'surrogatepass')
