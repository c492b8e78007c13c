r"""Sequences of splits as a kernel: runs of characters first, then a pattern within what they leave.

DeepSeek's is one: `\p{N}{1,3}`, then kana and ideographs, then a pattern of its own. The runs cut a
row into pieces, which are found when it is prepared; each piece is then a text for the pattern, which
sees nothing beyond it. Where words are punctuated, the pattern finds numbers itself, many bytes at once:
they end the text before them as a piece does.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import byte_range_mask, trailing_zeros
from tokcore.text.byte_level_scan import (
    CharacterClasses,
    PatternPreTokenizer,
    PatternText,
    last_tokens,
    next_class,
    pattern_text,
    scan_text,
    stored_classes,
)
from tokcore.text.expression_trees import Tree, spelled
from tokcore.text.expressions import oniguruma
from tokcore.text.patterns import (
    DEFINITIONS,
    ONCE_PUNCTUATION,
    RunRules,
    expressions_of,
    named_pattern,
    sequence_rules,
    split_by,
)
from tokcore.text.pre_tokenizer import (
    CHUNK_TOKENS,
    PreTokenizer,
    RowPart,
    TextRows,
    scan_tokens,
    slice_parts,
)
from tokcore.text.regex_splits import Split, SplitPreTokenizer
from tokcore.text.unicode import CODE_POINTS, age_table, category_table

_0, _1 = np.uint64(0), np.uint64(1)


def pattern_pre_tokenizer(*patterns: str) -> PreTokenizer:
    """Returns the pre-tokenizer of patterns (`expressions_of`): a kernel, or regular expressions.

    Raises:
        ExpressionError: an expression has something that Oniguruma's grammar lacks.
    """
    expressions = expressions_of(patterns)
    trees = [*map(oniguruma, expressions)]
    if kernel := pre_tokenizer_of(trees):
        return kernel
    splits = tuple(Split(spelled(tree)) for tree in trees)
    return SplitPreTokenizer(splits, named_pattern(trees) or expressions)


def pre_tokenizer_of(trees: Sequence[Tree | None]) -> PreTokenizer | None:
    """Returns the kernel for expressions of which each cuts the tokens of the one before, or None.

    An expression that does something else is None.
    """
    name = named_pattern(trees)
    if sequence_rules(trees) is not None:
        return SequencePreTokenizer(tuple(tree for tree in trees if tree is not None))
    if name is not None and DEFINITIONS[name].rules is not None:
        return PatternPreTokenizer(name)
    return None


class RunClasses(NamedTuple):
    """Which runs cut rows; arrays are read-only."""

    classes: CharacterClasses  # 1 + the number of the split that finds the character, 0 for none
    most: np.ndarray  # uint64[classes]: characters of a piece, 0 for any number
    passes_ascii: bool  # whether no run has characters of ASCII


class PieceText(NamedTuple):
    """The state: the pieces of all rows, and the pattern; arrays are read-only."""

    piece_ends: np.ndarray  # uint64[pieces]; a piece begins where the one before ends
    row_pieces: np.ndarray  # int64[rows + 1]
    pattern: PatternText


@dataclass(frozen=True)
class SequencePreTokenizer:
    """A `PreTokenizer` whose tokens are those of `patterns.split_by`, where `sequence_rules` has rules.

    Attributes:
        trees: of expressions, each of which cuts the tokens of the one before.
    """

    name = 'pattern'

    trees: tuple[Tree, ...]

    def __post_init__(self):
        if sequence_rules(self.trees) is None:
            raise ValueError(f'{self._spelled()} have no kernel; use SplitPreTokenizer')

    def _spelled(self) -> list[str]:
        return [spelled(tree) for tree in self.trees]

    @property
    def options(self) -> Mapping[str, object]:
        return {'pattern': named_pattern(self.trees) or self._spelled()}

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text, in plain Python."""
        return split_by(text, self.trees)

    def prepare(self, rows: TextRows) -> tuple[PieceText, np.ndarray]:
        rules = sequence_rules(self.trees)
        assert rules is not None  # __post_init__ saw to it
        runs, pattern = rules.runs, rules.pattern
        if pattern is not None and pattern.words == 'punctuated':
            # No other run has numbers, so it does not matter which of them is found first.
            for run in runs:
                if run.characters == 'numbers' and run.most:
                    pattern = pattern._replace(most_digits=run.most)
                    runs = tuple(other for other in runs if other != run)
        classes = _run_classes(runs)
        row_pieces = np.zeros(len(rows.starts) + 1, np.int64)
        room = len(rows.starts) + int((rows.ends - rows.starts).sum()) // 8
        while True:
            piece_ends = np.empty(room, np.uint64)
            count = int(_find_pieces(*rows, classes, piece_ends, row_pieces))
            if count <= room:
                break
            room = count
        pieces = read_only(piece_ends[:count]), read_only(row_pieces)
        return PieceText(*pieces, pattern_text(pattern)), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        # A part begins and ends with tokens, so its pieces are these, or what is left of them.
        return slice_parts(self, rows.part(row, row + 1), 0, longest, last_tokens)


@functools.cache
def _run_classes(runs: tuple[RunRules, ...]) -> RunClasses:
    table = np.zeros(CODE_POINTS, np.uint8)
    for number, rules in enumerate(runs, 1):
        table[_characters(rules)] = number
    most = np.array([0, *(rules.most for rules in runs)], np.uint64)
    return RunClasses(stored_classes(table), read_only(most), not table[:0x80].any())


def _characters(rules: RunRules) -> np.ndarray:
    """Returns bool[0x110000]: the characters that a run is of."""
    codes, majors = np.arange(CODE_POINTS), category_table()[:, 0]
    match rules.characters:
        case 'numbers':
            return majors == ord('N')
        case 'punctuation':
            is_symbol = (codes < 0x80) & (majors == ord('S'))
            was_punctuation = np.isin(codes, [*map(ord, ONCE_PUNCTUATION)])
            return (majors == ord('P')) & (age_table() <= 8) | is_symbol | was_punctuation
        case 'kana and ideographs':
            is_kana = (codes >= 0x3040) & (codes <= 0x30FF)
            return is_kana | (codes >= 0x4E00) & (codes <= 0x9FA5)


@kernel_without_allocation
def _find_pieces(text, starts, ends, runs, piece_ends, row_pieces):
    """Fills in the ends of pieces; returns how many there are, also beyond the room for them."""
    count = 0
    for row in range(len(starts)):
        place, end = np.uint64(starts[row]), np.uint64(ends[row])
        while place < end:
            kind, after = next_class(text, place, end, runs.classes)
            size = _0
            following = kind
            while following == kind:
                size += _1
                place = after
                if size == runs.most[kind]:
                    break
                if kind == 0:
                    place += min(_plain_bytes(text, place, runs), end - place)
                following, after = next_class(text, place, end, runs.classes)
            if count < len(piece_ends):
                piece_ends[count] = place
            count += 1
        row_pieces[row + 1] = count
    return count


@kernel_without_allocation
def _plain_bytes(text, place, runs):
    """Returns how many characters of ASCII that are in no run are at a place, 64 at most; not all of them."""
    if runs.passes_ascii:
        return trailing_zeros(byte_range_mask(text, place, 0x80, 0xFF))
    return trailing_zeros(
        ~(
            byte_range_mask(text, place, 0x61, 0x7A)
            | byte_range_mask(text, place, 0x20, 0x20)
            | byte_range_mask(text, place, 0x41, 0x5A)
        )
    )


@scan_tokens.register(PieceText)
@kernel_without_allocation
def _scan_pieces(rows, row, position, pre_tokenizer, tokens):
    """As `scan_tokens` says; every byte of a row is in a token."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    text, piece_ends, row_pieces = rows.text, pre_tokenizer.piece_ends, pre_tokenizer.row_pieces
    count = _0
    while row < len(rows.starts):
        place = np.uint64(rows.starts[row] if position < 0 else position)
        piece = _first_after(place, piece_ends, row_pieces[row], row_pieces[row + 1])
        while piece < row_pieces[row + 1]:
            end = piece_ends[np.uint64(piece)]
            place, count = scan_text(text, place, end, pre_tokenizer.pattern, tokens, count, room)
            if place < end:
                return row, np.int64(place), np.int64(count)
            piece += 1
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(count)
    return row, np.int64(position), np.int64(count)


@kernel_without_allocation
def _first_after(place, ends, first, last):
    """Returns the first of ends[first:last], which ascend, that is after a place."""
    while first < last:
        middle = (first + last) >> 1
        if ends[np.uint64(middle)] > place:
            last = middle
        else:
            first = middle + 1
    return first
