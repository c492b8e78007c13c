"""The words of sentences, counted for a Unigram model as SentencePiece's trainer reads them.

A sentence is normalized, the names of meta pieces in it become U+001F, and a word begins at each U+2581.
The learner must know which words end sentences, so the token of a word ends with the beginning of what follows
it: U+2581 of the next word, or U+0000.

    'to be to' ─▶ '▁to▁be▁to' ─▶ '▁to▁' '▁be▁' '▁to\\0'

A sentence of which nothing is left is U+0000 alone. The trainer puts the last sentence in its place, so
the number of empty sentences decides which sentence is the last.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import lzma
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.counts.sampling import RowsToCount
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.encoder import side_of_rows, side_of_text
from tokcore.encoding.last_word import SENTENCE_END as END
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.pre_tokenizers import MARK
from tokcore.foreign_tokenizers.sentencepiece import (
    TextNormalizer,
    normalized_rows,
    text_normalizer,
)
from tokcore.kernels.bytes import with_margin
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.normalizers import find_damages
from tokcore.text.pre_tokenizer import ListedTokens, RowPart, TextRows
from tokcore.text.rewriting import replace_rows
from tokcore.text.rows import NormalizedRows, Side
from tokcore.text.unicode import check_rows
from tokcore.unigram.words import META_NAME, RARE

TOO_LONG, HAS_RARE = 'longer_than_max_sentence_length', 'has_u_2585'
"""The reasons under which sentences are counted that the trainer leaves out."""


@functools.cache
def charsmap_data(rule: str) -> bytes:
    """Returns the `precompiled_charsmap` of a normalization: `nmt_nfkc` or `identity`.

    `nmt_nfkc.xz` has SentencePiece's rules for Unicode 17, whatever Unicode this Python has.
    """
    if rule == 'identity':
        return b''
    return lzma.decompress(
        importlib.resources.files(__package__).joinpath(f'{rule}.xz').read_bytes()
    )


@functools.cache
def trainer_normalizer(rule: str) -> TextNormalizer:
    """Returns the normalizer of sentences, for which no symbol is special."""
    return text_normalizer((), {}, {2: charsmap_data(rule)}, rule, MARK)


def normalized_sentence(text: str, rule: str) -> str:
    """Returns a normalized sentence."""
    return normalized_rows(side_of_text(text), trainer_normalizer(rule)).row(0)


class SentenceLines:
    """A `Normalizer` that changes no text; a row of white space is a sentence, not an empty row."""

    name = 'sentences'
    options: Mapping[str, object] = {}

    def apply(self, rows: Side) -> NormalizedRows:
        text, starts, ends = rows.arrays()
        damaged = np.zeros(len(rows), np.uint8)
        check_rows(text, starts, ends, damaged)
        damages = find_damages(text, starts, ends, damaged)
        return NormalizedRows(Side(text, starts, np.where(damaged, starts, ends)), damages)


@dataclass(frozen=True)
class SentenceWords:
    """A `PreTokenizer` of words with what follows them.

    Attributes:
        normalization_rule_name: `nmt_nfkc` or `identity`.
        max_sentence_length: in bytes, before normalization; longer sentences have no tokens.
        meta_names: of the meta pieces.
    """

    name = 'sentence-words'

    normalization_rule_name: str
    max_sentence_length: int
    meta_names: tuple[str, ...]

    @property
    def options(self) -> Mapping[str, object]:
        return {**dataclasses.asdict(self), 'meta_names': list(self.meta_names)}

    @functools.cached_property
    def _names(self) -> re.Pattern[bytes]:
        """Finds the longest name of a meta piece."""
        names = sorted((name.encode() for name in self.meta_names), key=len, reverse=True)
        return re.compile(b'|'.join(map(re.escape, names)))

    def prepare(self, rows: TextRows) -> tuple[ListedTokens, np.ndarray]:
        side = Side(*rows)
        too_long, has_rare = self.left_out(side)
        is_sentence = ~(too_long | has_rare) & (side.ends > side.starts)
        sentences = normalized_rows(
            side.take(is_sentence), trainer_normalizer(self.normalization_rule_name)
        )
        spaced = self._without_names(sentences).with_prefix(END)
        text = with_margin(spaced.text)  # with a zero after each row
        most = len(text) // len(MARK.encode()) + len(side)
        starts, ends = np.empty(most, np.uint64), np.empty(most, np.uint64)
        row_tokens = np.zeros(len(side) + 1, np.int64)
        bounds = read_only(spaced.starts + len(END)), read_only(spaced.ends)
        tokens = _cut_words(text, *bounds, read_only(is_sentence), starts, ends, row_tokens)
        return ListedTokens(*map(read_only, (starts[:tokens], ends[:tokens], row_tokens))), text

    def left_out(self, side: Side) -> tuple[np.ndarray, np.ndarray]:
        """Returns which rows are too long, and which of the others have U+2585: bool[rows] each."""
        too_long = side.ends - side.starts > self.max_sentence_length
        has_rare = np.zeros(len(side), bool)
        for row in _rows_with(re.compile(RARE.encode()), side):
            has_rare[row] = not too_long[row]
        return too_long, has_rare

    def _without_names(self, sentences: Side) -> Side:
        rows = sorted(set(_rows_with(self._names, sentences)))
        if not rows:
            return sentences
        new = [self._names.sub(META_NAME.encode(), _row(sentences, row)) for row in rows]
        return replace_rows(sentences, np.array(rows), side_of_rows(new))

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        yield RowPart(rows.text, int(rows.starts[row]), int(rows.ends[row]), False)

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text."""
        state, tokens = self.prepare(TextRows(*side_of_text(text).arrays()))
        bounds = zip(state.starts.tolist(), state.ends.tolist(), strict=True)
        return [tokens[start:end].tobytes().decode() for start, end in bounds]

    def last_tokens(self, side: Side, most: int) -> list[bytes]:
        """Returns the tokens that end the last sentences of some rows, in their order."""
        rows = most
        while True:
            state, text = self.prepare(TextRows(*side.take(slice(-rows, None)).arrays()))
            ends = state.row_tokens[1:]
            last = ends[np.diff(state.row_tokens) > 0][-most:] - 1
            if len(last) == most or rows >= len(side):
                break
            rows *= 4
        bounds = zip(state.starts[last].tolist(), state.ends[last].tolist(), strict=True)
        return [text[start:end].tobytes() for start, end in bounds]

    def reject_rows(self, counted: RowsToCount, sides: Iterable[int]) -> RowsToCount:
        """Returns the rows without those that have no tokens, which it counts by the reason."""
        rows = counted.rows
        if counted.sides is not rows.sides:
            return counted
        masks = [self.left_out(rows.sides[number]) for number in sides]
        too_long, has_rare = (np.any(of_sides, axis=0) for of_sides in zip(*masks, strict=True))
        left_out = too_long | has_rare
        if not left_out.any():
            return counted
        counts = {TOO_LONG: int(too_long.sum()), HAS_RARE: int((left_out & ~too_long).sum())}
        kept = dataclasses.replace(rows.select(~left_out), filtered={**rows.filtered, **counts})
        return RowsToCount(kept, kept.sides)


def _rows_with(pattern: re.Pattern[bytes], side: Side) -> Iterator[int]:
    """Yields the rows with a match, maybe repeatedly."""
    if (side.starts[1:] < side.ends[:-1]).any():
        side = side.joined()
    for match in pattern.finditer(side.text.tobytes()):
        first = int(np.searchsorted(side.ends, match.start(), side='right'))
        end = int(np.searchsorted(side.starts, match.end()))
        yield from (row for row in range(first, end) if pattern.search(_row(side, row)))


def _row(side: Side, row: int) -> bytes:
    return side.text[side.starts[row] : side.ends[row]].tobytes()


@kernel_without_allocation
def _cut_words(text, row_starts, row_ends, is_sentence, starts, ends, row_tokens):
    """Fills in the tokens of the sentences, as `ListedTokens` has them; returns how many there are."""
    count = sentence = 0
    for row in range(len(is_sentence)):
        if is_sentence[row]:
            place, end = np.uint64(row_starts[sentence]), np.uint64(row_ends[sentence])
            sentence += 1
            starts[count] = place
            place += np.uint64(1)
            while place < end:
                # In UTF-8 these three bytes are always U+2581.
                is_mark = text[place] == 0xE2 and text[place + np.uint64(1)] == 0x96
                if is_mark and text[place + np.uint64(2)] == 0x81:
                    ends[count] = place + np.uint64(3)
                    count += 1
                    starts[count] = place
                place += np.uint64(1)
            ends[count] = end + np.uint64(1)
            count += 1
        row_tokens[row + 1] = count
    return count


def check_words(table: TokenTable) -> None:
    """Raises InputError if a token is not such a token, or nobody knows the last word."""
    if table.last_word is None:
        raise InputError(
            'these counts do not say which word is the last of their corpus, which --scheme unigram '
            'depends on; give a whole folder that `tokbeam count --scheme unigram` has made'
        )
    ends, ends_sentence = table.offsets[1:], table.data[table.offsets[1:] - 1] == 0
    sizes = np.where(ends_sentence, len(END), len(MARK.encode()))
    is_odd = np.diff(table.offsets) < sizes
    for number, byte in enumerate(MARK.encode(), -3):
        is_odd |= ~ends_sentence & (table.data[np.maximum(ends + number, 0)] != byte)
    if is_odd.any():
        token = table.pick(np.flatnonzero(is_odd)[:1]).data.tobytes().decode()
        raise InputError(
            f'the token {token!r:.80} is not of --scheme unigram, whose tokens end with U+2581 or U+0000; '
            'count the text with it'
        )
