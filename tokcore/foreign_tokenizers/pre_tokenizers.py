"""The pre-tokenizers of a tokenizer.json: what they do to texts first, and how they cut them.

Patterns that have a name are cut by their kernels, others by the package `regex`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import regex

from tokcore.bpe.vocabulary import expression_tree, flattened, part_type, refuse
from tokcore.foreign_tokenizers.normalizers import prepended, starting_with
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import byte_range_mask, popcount, put_places
from tokcore.text.alignment import AlignedText
from tokcore.text.expression_trees import Tree, spelled
from tokcore.text.expressions import fancy_regex, oniguruma
from tokcore.text.patterns import DIGITS, PUNCTUATION, WHITE_SPACE, named_pattern, pattern_trees
from tokcore.text.pre_tokenizer import (
    CHUNK_TOKENS,
    PreTokenizer,
    RowTokens,
    TextRows,
    scan_tokens,
    slice_parts,
)
from tokcore.text.regex_splits import (
    BEHAVIORS,
    Behavior,
    ByteSplitPreTokenizer,
    Split,
    SplitPreTokenizer,
)
from tokcore.text.rows import Side
from tokcore.text.split_sequence import pre_tokenizer_of
from tokcore.text.unicode import next_character

MARK = '▁'
"""U+2581, which stands for a space in the pieces of SentencePiece."""

Prefixed = Literal['always', 'first', 'never']

_SPACE = r'\s'
_WHITESPACE_SPLIT = Split(_SPACE, 'Removed')
_0, _1 = np.uint64(0), np.uint64(1)
_STRIDE = np.uint64(61)


@dataclass(frozen=True)
class Cutting:
    """What a file's pre-tokenizers do.

    Attributes:
        prefix: what texts begin with afterwards, unless they do already; '' for nothing.
        prefixed: which texts: all of them, or only one at the start of a row.
        spaces: what replaces U+0020 in texts.
        words: whether texts are first cut at white space, and the prefix is that of the words.
        keeps_spaces: whether U+0020 stands for `MARK` in the texts, which the model takes for it.
        pre_tokenizer: cuts the texts.
        byte_level: whether the model has bytes for symbols.
    """

    prefix: str = ''
    prefixed: Prefixed = 'never'
    spaces: str = ' '
    pre_tokenizer: PreTokenizer = RowTokens()
    byte_level: bool = False
    words: bool = False
    keeps_spaces: bool = False

    @property
    def leaves_texts(self) -> bool:
        """Whether `texts` returns all texts as they are."""
        return not self.words and self.spaces == ' ' and self.prefixed == 'never'

    def texts(self, side: Side, is_first: np.ndarray, replace: Callable[[Side], Side]) -> Side:
        """Returns the texts as the pre-tokenizer cuts them.

        Args:
            side: the texts.
            is_first: bool[texts]: which begin a row.
            replace: replaces spaces in texts.
        """
        if self.words:
            return marked_words(side, self.prefix)
        if self.spaces != ' ':
            side = replace(side)
        if self.prefixed == 'never':
            return side
        wanted = ~starting_with(side, self.prefix)
        if self.keeps_spaces:
            wanted &= ~starting_with(side, MARK)
        if self.prefixed == 'first':
            wanted &= is_first
        return prepended(side, self.prefix, wanted)

    def align(self, text: AlignedText, is_first: bool) -> AlignedText:
        """Does with one text what `texts` does; spaces become marks even if they are kept there."""
        if self.words:
            return aligned_words(text, self.prefix)
        spaces = MARK if self.keeps_spaces else self.spaces
        text = text._replace(text=text.text.replace(' ', spaces))
        prefix = self.prefix.replace(' ', spaces)
        is_prefixed = self.prefixed == 'always' or (self.prefixed == 'first' and is_first)
        return text.prepended(prefix) if is_prefixed and text.text[:1] != prefix else text


def parse_cutting(part: Any, path: str, place: str) -> Cutting:
    """Returns what the pre-tokenizers of a file do.

    Raises:
        InputError: one of them is not supported, or not in this order.
    """
    splits: list[Split] = []
    trees: list[Tree | None] = []
    byte_splits: list[Split] = []
    prefix, spaces, byte_level, words = '', ' ', False, False
    prefixed: Prefixed = 'never'
    for number, (member, where) in enumerate(flattened(part, 'pretokenizers', path, place)):
        kind = part_type(member, path, where)
        if kind == 'ByteLevel':
            if byte_level:
                refuse(path, where, 'ByteLevel after ByteLevel')
            byte_level = True
            if member.get('add_prefix_space', True):
                if number:
                    refuse(path, where, 'ByteLevel with a prefix after another pre-tokenizer')
                prefix, prefixed = ' ', 'always'
            if member.get('use_regex', True):
                trees += pattern_trees('gpt2')
                splits += [Split(spelled(tree)) for tree in pattern_trees('gpt2')]
        elif kind == 'Metaspace':
            words = splits == [_WHITESPACE_SPLIT]
            if number and not (words and number == 1):
                refuse(path, where, 'Metaspace after another pre-tokenizer')
            spaces = prefix = member.get('replacement', MARK)
            if not isinstance(prefix, str) or len(prefix) != 1 or '\ud800' <= prefix <= '\udfff':
                refuse(path, f'{where}.replacement', f'{prefix!r:.80} for a character')
            prefixed = _prepend_scheme(member, path, where)
            if words and (prefixed != 'always' or not member.get('split', True)):
                refuse(path, where, 'this Metaspace after WhitespaceSplit')
            if words:
                splits.clear()
            if member.get('split', True):
                trees.append(None)
                splits.append(Split(regex.escape(prefix), 'MergedWithNext'))
        else:
            split, tree = _split(member, kind, path, where)
            if byte_level:
                byte_splits += split
                continue
            splits += split
            trees.append(tree)
    kernel = pre_tokenizer_of(trees)
    if not splits:
        cutter: PreTokenizer = RowTokens()
    elif kernel is not None:
        cutter = kernel
    elif splits == [Split(regex.escape(MARK), 'MergedWithNext')]:
        cutter = MarkPreTokenizer()
    else:
        cutter = SplitPreTokenizer(tuple(splits))
    if byte_splits:
        cutter = ByteSplitPreTokenizer(cutter, tuple(byte_splits))
    return Cutting(prefix, prefixed, spaces, cutter, byte_level, words)


def _prepend_scheme(part: Mapping[str, Any], path: str, where: str) -> Prefixed:
    scheme = part.get('prepend_scheme')
    if scheme is None:
        return 'always' if part.get('add_prefix_space', True) else 'never'
    if scheme not in ('always', 'first', 'never'):
        refuse(path, f'{where}.prepend_scheme', f'the scheme {scheme!r:.40}')
    return scheme


def _split(
    part: Mapping[str, Any], kind: str, path: str, where: str
) -> tuple[list[Split], Tree | None]:
    """Returns the splits of one pre-tokenizer, and its expression, if it is one that isolates matches."""
    match kind:
        case 'Split':
            behavior = _behavior(part, '')
            inverts = bool(part.get('invert', False))
            if behavior is None:
                refuse(path, f'{where}.behavior', f'the behavior {part.get("behavior")!r:.40}')
            match part.get('pattern'):
                case {'String': str(text)}:
                    # The empty text is between all characters.
                    return [Split(regex.escape(text), behavior, inverts)], None
                case {'Regex': str(expression)}:
                    is_isolated = (behavior, inverts) == ('Isolated', False)
                    is_removed = (behavior, inverts) == ('Removed', True)
                    tree = expression_tree(expression, path, f'{where}.pattern')
                    # Patterns of one expression match every character, so both mean the same.
                    if named_pattern([tree]) is not None and (is_isolated or is_removed):
                        return [Split(spelled(tree))], tree
                    splits = [Split(spelled(tree), behavior, inverts)]
                    return splits, tree if is_isolated else None
            refuse(path, f'{where}.pattern', f'the pattern {part.get("pattern")!r:.80}')
        case 'Digits':
            expression = DIGITS[bool(part.get('individual_digits', False))]
            return [Split(expression)], oniguruma(expression)
        case 'Punctuation':
            match _behavior(part, 'Isolated'):
                case 'Isolated':
                    return [Split(PUNCTUATION)], oniguruma(PUNCTUATION)
                case 'Contiguous':
                    return [Split(f'{PUNCTUATION}+')], oniguruma(f'{PUNCTUATION}+')
                case str(behavior):
                    return [Split(PUNCTUATION, behavior)], None
        case 'Whitespace':
            words = fancy_regex(r'\w+|[^\w\s]+')  # which Rust's `regex` matches there
            return [Split(spelled(words), 'Removed', True)], None
        case 'WhitespaceSplit':
            return [_WHITESPACE_SPLIT], None
        case 'BertPreTokenizer':
            return [Split(_SPACE, 'Removed'), Split(PUNCTUATION)], None
        case 'CharDelimiterSplit' if isinstance(part.get('delimiter'), str):
            return [Split(regex.escape(part['delimiter']), 'Removed')], None
    refuse(path, where, f'the pre-tokenizer {kind}')


def _behavior(part: Mapping[str, Any], default: str) -> Behavior | None:
    """Returns the behavior of a pre-tokenizer; None if it is not a known one."""
    name = part.get('behavior', default)
    return next((behavior for behavior in BEHAVIORS if behavior == name), None)


class _Marks(NamedTuple):
    """The state."""

    stride: np.uint64  # bytes of a chunk of 64 that are decided: the rest shows what they begin


@dataclass(frozen=True)
class MarkPreTokenizer:
    """A `PreTokenizer` whose tokens begin at marks, U+2581."""

    name = 'marks'
    options: ClassVar[Mapping[str, object]] = {}

    def prepare(self, rows: TextRows) -> tuple[_Marks, np.ndarray]:
        return _Marks(_STRIDE), rows.text

    row_parts = slice_parts


@scan_tokens.register(_Marks)
@kernel_without_allocation
def _scan_marks(rows, row, position, pre_tokenizer, tokens):
    """As `scan_tokens` says; every byte of a row is in a token."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    text = rows.text
    ended = _0
    while row < len(rows.starts):
        start = np.uint64(rows.starts[row] if position < 0 else position)
        row_end = np.uint64(rows.ends[row])
        place = tokens.starts[ended] = start
        first = _1
        while place < row_end:
            if ended > room:
                return row, np.int64(tokens.starts[ended]), np.int64(ended)
            left = row_end - place
            size = min(left, pre_tokenizer.stride)
            borders = (
                byte_range_mask(text, place, 0xE2, 0xE2)
                & byte_range_mask(text, place + _1, 0x96, 0x96)
                & byte_range_mask(text, place + np.uint64(2), 0x81, 0x81)
                & ((_1 << size) - _1)
                & ~first
            )
            first = _0
            count = popcount(borders)
            if count:
                put_places(borders, place, tokens.ends, ended)
                put_places(borders, place, tokens.starts, ended + _1)
                ended += count
            place += size
        if start < row_end:
            tokens.ends[ended] = row_end
            ended += _1
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, np.int64(position), np.int64(ended)


def marked_words(side: Side, mark: str) -> Side:
    """Returns the texts without white space, each word after a mark, a character, unless it begins with one."""
    data = np.frombuffer(mark.encode(), np.uint8)
    size = int((side.ends - side.starts).sum())
    most_words = (size + len(side)) // 2  # white space is between two of them
    out = np.empty(size + most_words * len(data), np.uint8)
    ends = np.zeros(len(side) + 1, np.int64)
    _mark_words(*side.arrays(), _spaces(), ord(mark), read_only(data), out, ends)
    return Side(read_only(out[: ends[-1]]), read_only(ends[:-1]), read_only(ends[1:]))


def aligned_words(text: AlignedText, mark: str) -> AlignedText:
    """Does what `marked_words` does with one text that knows where its characters come from."""
    words, spans, is_start = '', [], True
    for character, span in zip(text.text, text.spans, strict=True):
        if character not in WHITE_SPACE:
            added = mark if is_start and character != mark else ''
            words += added + character
            spans += [span] * (len(added) + 1)
        is_start = character in WHITE_SPACE
    return text._replace(text=words, spans=spans)


@functools.cache
def _spaces() -> np.ndarray:
    """Returns uint8[…]: 1 for white space, by code point; characters beyond are not white space."""
    spaces = np.zeros(ord(max(WHITE_SPACE)) + 1, np.uint8)
    spaces[[*map(ord, WHITE_SPACE)]] = 1
    return read_only(spaces)


@kernel_without_allocation
def _mark_words(text, starts, ends, spaces, mark, mark_bytes, out, out_ends):
    """Writes the words of row r, each with its mark, to out[out_ends[r]:out_ends[r + 1]]."""
    used = np.uint64(0)
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        is_start = True
        while position < end:
            character, after = next_character(text, position)
            if character < len(spaces) and spaces[character]:
                is_start = True
            else:
                if is_start and character != mark:
                    for byte in mark_bytes:
                        out[used] = byte
                        used += np.uint64(1)
                is_start = False
                for place in range(np.uint64(position), np.uint64(after)):
                    out[used] = text[place]
                    used += np.uint64(1)
            position = after
        out_ends[row + 1] = np.int64(used)
