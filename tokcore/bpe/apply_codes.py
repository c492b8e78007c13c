"""Text into pieces by codes, as subword-nmt's apply-bpe: with glossaries, split pieces, and dropout.

A glossary keeps its matches whole, and the text around them is segmented as separate words. A piece
that is not in the vocabulary is split into the two that it was merged from, and so on. Dropout skips
each possible merge by chance (Provilkov et al. 2020, https://arxiv.org/abs/1910.13267). Its random
numbers depend only on the seed and the words of the row, so every run gives a row the same pieces.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.bpe.codes import (
    BLANK,
    END_OF_WORD,
    SEPARATOR,
    CodesVocabulary,
    NmtVocabulary,
    TextbookVocabulary,
)
from tokcore.bpe.model import LongestPieceModel, MergeModel
from tokcore.encoding.encoder import EncodedSide, RowEncoder, side_of_rows
from tokcore.errors import InputError
from tokcore.kernels.bytes import GOLDEN_RATIO, row_offsets
from tokcore.kernels.hash_tables import NO_PAIR, find_pair
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.text.pre_tokenizer import PreTokenizer
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS
from tokcore.text.whitespace import SpacePreTokenizer

_MOST_WORDS = 1 << 20
"""The words whose pieces are cached, some 200 MB; then the cache is cleared."""

_11, _27, _30, _31 = (np.uint64(number) for number in (11, 27, 30, 31))
_SYMBOL = np.uint64(0xFFFF_FFFF)
_GAMMA = np.uint64(GOLDEN_RATIO)
_MULTIPLIER_1, _MULTIPLIER_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


@dataclass(frozen=True)
class NmtRules:
    """How words are segmented, in addition to merging.

    Attributes:
        glossary: regular expressions.
        split_unknown: whether pieces that have no id are split.
        dropout: the chance, from 0 to 1, that a possible merge is skipped.
        seed: of dropout.
    """

    glossary: tuple[str, ...] = ()
    split_unknown: bool = False
    dropout: float = 0.0
    seed: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether words are only merged."""
        return not (self.glossary or self.split_unknown or self.dropout)

    def check(self, is_nmt: bool, path: str) -> None:
        """Raises InputError, naming a vocabulary's file, if it is not of subword-nmt and needs to be."""
        if not is_nmt and not self.is_plain:
            raise InputError(
                f'{path}: --glossary, --split-unknown and --dropout are for codes of subword-nmt; '
                'leave them out'
            )

    def segments(self, word: str) -> list[str]:
        """Returns the parts that are segmented separately: `12`, `low` of `12low` for `[0-9]+`."""
        segments = [word]
        for glossary in self.glossary:
            segments = [part for segment in segments for part in _cut(segment, glossary)]
        return segments

    def stays_whole(self, segment: str) -> bool:
        """Whether a segment is not segmented: one character, or a match of a glossary."""
        if len(segment) == 1:
            return True
        return bool(self.glossary) and bool(re.match(f'^({"|".join(self.glossary)})$', segment))


def _cut(segment: str, glossary: str) -> list[str]:
    if re.match(f'^{glossary}$', segment) or not re.search(glossary, segment):
        return [segment]
    # subword-nmt strips what follows the last match.
    *parts, end = re.split(f'({glossary})', segment)
    return [part for part in (*parts, end.strip(BLANK)) if part]


class CodesSegmenter:
    """Segments lines of text into lines of pieces, as subword-nmt's `apply-bpe`; for one thread."""

    def __init__(self, vocabulary: CodesVocabulary, rules: NmtRules = NmtRules()):
        """Takes codes, with or without ids, and what is done in addition to merging.

        Raises:
            InputError: pieces without ids are to be split, and the codes have no ids; or there are
                rules, and the codes are the textbook's.
        """
        rules.check(isinstance(vocabulary, NmtVocabulary), vocabulary.path)
        self._vocabulary, self._rules = vocabulary, rules
        self._known = frozenset(vocabulary.text_ids()) if rules.split_unknown else frozenset()
        self._suffix = '_' if isinstance(vocabulary, TextbookVocabulary) else ''
        self._encoder = RowEncoder(SpacePreTokenizer('space'), vocabulary.piece_model, 0)
        self._cache: dict[str, list[str]] = {}

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Returns the pieces of each line, separated by spaces; line breaks are kept."""
        segmented = []
        for line, pieces in zip(lines, self.rows([*map(_words, lines)]), strict=True):
            rest = line.lstrip(BLANK)
            before, after = line[: len(line) - len(rest)], rest[len(rest.rstrip(BLANK)) :]
            segmented.append(before + ' '.join(pieces) + after)
        return segmented

    def rows(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Returns the pieces of each row of words; those inside words end with `@@`."""
        by_word = self.pieces_by_word(rows)
        return [[piece for pieces in of_row for piece in pieces] for of_row in by_word]

    def pieces_by_word(self, rows: Sequence[Sequence[str]]) -> list[list[list[str]]]:
        """Returns the pieces of each word of each row; those inside words end with `@@`."""
        if self._rules.dropout:
            return [self._with_dropout(words) for words in rows]
        self._segment(word for words in rows for word in words)
        return [[self._cache[word] for word in words] for words in rows]

    def text(self, line: str) -> str:
        """Returns the text of a line of pieces, with or without ids."""
        return self._vocabulary.joined(line.split(' '))

    def pieces(self, text: str) -> list[str]:
        """Returns the pieces of a text."""
        [pieces] = self.rows([_words(text)])
        return pieces

    def _segment(self, words: Iterable[str]) -> None:
        """Adds the pieces of words to the cache."""
        if len(self._cache) > _MOST_WORDS:
            self._cache.clear()
        new = [word for word in dict.fromkeys(words) if word not in self._cache]
        if not new:
            return
        if self._rules.is_plain:
            self._cache |= self._pieces_by_merging(new)
            return
        segments = {word: self._rules.segments(word) for word in new}
        distinct = {segment for of_word in segments.values() for segment in of_word}
        whole = {segment for segment in distinct if self._rules.stays_whole(segment)}
        merged = self._pieces_by_merging([*distinct - whole]) if distinct - whole else {}
        pieces_of = {segment: self._split(pieces) for segment, pieces in merged.items()}
        for word, of_word in segments.items():
            pieces = [piece for part in of_word for piece in pieces_of.get(part, [part])]
            self._cache[word] = _with_separators(pieces)

    def _with_dropout(self, words: Sequence[str]) -> list[list[str]]:
        """Returns the pieces of each word of a row, some merges left out.

        It draws a number for each two neighbors, each time that a pair is to be merged: the time
        grows with the square of a word's length.
        """
        assert isinstance(self._vocabulary, NmtVocabulary)  # the constructor saw to it
        pairs, chance = self._vocabulary.piece_model.state.pairs, self._rules.dropout
        state = random_state(self._rules.seed, words)
        out: list[list[str]] = []
        for word in words:
            pieces: list[str] = []
            for segment in self._rules.segments(word):
                if self._rules.stays_whole(segment):
                    pieces.append(segment)
                    continue
                points = np.frombuffer(segment.encode('utf-32-le', 'surrogatepass'), '<u4')
                symbols = points.astype(np.uint64)
                symbols[-1] += np.uint64(CODE_POINTS)
                size = _merge_some(symbols, np.empty_like(symbols), pairs, chance, state)
                pieces += self._split(self._vocabulary.pieces_of_symbols(symbols[:size].tolist()))
            out.append(_with_separators(pieces))
        return out

    def _split(self, pieces: Sequence[str]) -> list[str]:
        """Returns pieces without separators; with `split_unknown`, unknown ones are split.

        A piece is split into the two that were merged to it, as long as that leads to known pieces.
        """
        bare = [piece.removesuffix(SEPARATOR) for piece in pieces[:-1]] + [*pieces[-1:]]
        if not self._known:
            return bare
        out: list[str] = []
        waiting = [(piece, number == 0) for number, piece in enumerate(reversed(bare))]
        while waiting:
            piece, is_last = waiting.pop()
            pair = None
            if (piece if is_last else piece + SEPARATOR) not in self._known:
                pair = self._halves.get(piece + END_OF_WORD if is_last else piece)
            if pair is None:
                out.append(piece)
                continue
            left, right = pair
            waiting.append((right[: -len(END_OF_WORD)] if is_last else right, is_last))
            waiting.append((left, False))
        return out

    @functools.cached_property
    def _halves(self) -> dict[str, tuple[str, str]]:
        # If two merges give one string, the first is undone.
        return {left + right: (left, right) for left, right in reversed(self._vocabulary.merges)}

    def _pieces_by_merging(self, new: Sequence[str]) -> dict[str, list[str]]:
        """Returns the pieces of words, with separators."""
        utf8 = [(word + self._suffix).encode('utf-8', 'surrogatepass') for word in new]
        offsets = row_offsets([len(word) for word in utf8])
        text = np.frombuffer(b''.join(utf8), np.uint8)
        encoded = self._encoder.encode_side(Side(text, offsets[:-1], offsets[1:]))
        symbols, bounds = encoded.ids.tolist(), encoded.offsets.tolist()
        return {
            word: self._vocabulary.pieces_of_symbols(symbols[start:end])
            for word, start, end in zip(new, bounds, bounds[1:])
        }


def _words(line: str) -> list[str]:
    """Returns the words between spaces; other white space is part of words."""
    return [word for word in line.strip(BLANK).split(' ') if word]


def _with_separators(pieces: Sequence[str]) -> list[str]:
    return [*(piece + SEPARATOR for piece in pieces[:-1]), *pieces[-1:]]


class CodesEncoder:
    """An `Encoder` with the rules of a `CodesSegmenter`, for one thread: in Python, word by word."""

    def __init__(
        self,
        vocabulary: CodesVocabulary,
        rules: NmtRules,
        words: Callable[[str], Iterable[str]],
        pre_tokenizer: PreTokenizer,
    ):
        """Takes codes with ids, the rules, and what cuts rows into words, in Python and as a kernel."""
        self._segmenter = CodesSegmenter(vocabulary, rules)
        self._vocabulary, self._words, self._pre_tokenizer = vocabulary, words, pre_tokenizer
        self._ids = vocabulary.text_ids()

    @property
    def parts(self) -> tuple[PreTokenizer, MergeModel | LongestPieceModel]:
        return self._pre_tokenizer, self._vocabulary.model

    def encode_side(
        self,
        side: Side,
        prefix: str = '',
        before: Sequence[int] = (),
        after: Sequence[int] = (),
    ) -> EncodedSide:
        """Returns the ids of each row, as `RowEncoder.encode_side` does."""
        side = side.with_prefix(prefix)
        data = side.text.tobytes()
        words = [
            [*self._words(data[start:end].decode('utf-8', 'surrogatepass'))]
            for start, end in zip(side.starts.tolist(), side.ends.tolist(), strict=True)
        ]
        ids, bounds = [], [0]
        for pieces in self._segmenter.rows(words):
            ids += [*before, *map(self._id, pieces), *after]
            bounds.append(len(ids))
        return EncodedSide(np.array(ids, np.int32), np.array(bounds, np.int64))

    def encode_text(
        self, text: bytes, before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> np.ndarray:
        """See `RowEncoder.encode_text`."""
        return self.encode_side(side_of_rows([text]), '', before, after).ids

    def _id(self, piece: str) -> int:
        id_ = self._ids.get(piece, self._vocabulary.special_ids.unknown)
        if id_ is None:
            raise ValueError(
                f'the piece {piece[:60]!r} is not in the .vocab file beside {self._vocabulary.path}, '
                'which has no <unk>; count the pieces again, or add <unk>'
            )
        return id_


def random_state(seed: int, words: Sequence[str]) -> np.ndarray:
    """Returns the state (uint64[1]) of a row's random numbers, by SplitMix64 (Steele et al. 2014)."""
    text = ' '.join(words).encode('utf-8', 'surrogatepass')
    digest = hashlib.blake2b(text, digest_size=8, key=seed.to_bytes(8, 'little')).digest()
    return np.frombuffer(digest, '<u8').astype(np.uint64)


@kernel_without_allocation
def _draw(state):
    """Returns the next number, from 0 and below 1, and changes the state, uint64[1]."""
    state[0] += _GAMMA
    x = state[0]
    x = (x ^ (x >> _30)) * _MULTIPLIER_1
    x = (x ^ (x >> _27)) * _MULTIPLIER_2
    return np.float64((x ^ (x >> _31)) >> _11) * _UNIT


@kernel_without_allocation
def _merge_some(symbols, values, pairs, dropout, state):
    """Merges symbols in place while a pair is there that is not skipped; returns how many stay."""
    size = len(symbols)
    while size > 1:
        lowest = NO_PAIR
        for index in range(size - 1):
            values[index] = NO_PAIR
            if _draw(state) > dropout:
                values[index] = find_pair(symbols[index], symbols[index + 1], pairs)
                lowest = min(lowest, values[index])
        if lowest == NO_PAIR:
            break
        values[size - 1] = NO_PAIR
        index = kept = 0
        while index < size:
            is_pair = values[index] == lowest
            symbols[kept] = lowest & _SYMBOL if is_pair else symbols[index]
            index += 2 if is_pair else 1
            kept += 1
        size = kept
    return size
