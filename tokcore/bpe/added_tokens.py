"""Added tokens: each is found in text before the pre-tokenizer splits it, and has its own id.

As `tokenizers` does, those that are not `normalized` are found in the original text first, then the
others in the normalized text between them; always the leftmost, and the longest at one position.
The pre-tokenizer splits each text between them by itself.

A kernel finds added tokens by a trie of their bytes. A token that is a `single_word` must not touch
characters of words, and one with `lstrip` or `rstrip` takes the white space on that side with it.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary
from tokcore.encoding.encoder import DEFAULT_CACHE_BYTES, EncodedSide, RowEncoder, side_of_rows
from tokcore.encoding.kernels import Surround
from tokcore.errors import InputError
from tokcore.kernels.bytes import READABLE, with_margin
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import CHUNK, at_least_mask, trailing_zeros
from tokcore.text.expression_trees import compiled_expression
from tokcore.text.patterns import WHITE_SPACE
from tokcore.text.pre_tokenizer import (
    CHUNK_TOKENS,
    ListedTokens,
    PreTokenizer,
    RowPart,
    ScannedTokens,
    TextRows,
    scan_tokens,
)
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS, next_character, runs_of
from tokcore.wordpiece.model import WORD_ROOT, DoubleArrayTrie, double_array_trie, longest_piece

_WORD = r'[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]'
_TEXT = -1

_IS_TEXT, _IS_WORD, _STRIPS_LEFT, _STRIPS_RIGHT = 1, 2, 4, 8
"""Flags of tokens in the kernel; those that are text stay as they are, and hide others."""

_OF_WORDS, _WHITE = 1, 2
"""Kinds of characters."""

_MORE_PARTS = 256
"""Room for parts besides two of each text."""

_MOST_LEADS = 8
"""First bytes of tokens: up to so many are looked for in 64 bytes at once; with more, tokens are at each byte."""

_TOKENS_AT_ONCE = 1 << 14
_SPACE = 0x20
_CHUNK, _0, _1 = np.uint64(CHUNK), np.uint64(0), np.uint64(1)
_FLAGS = ('single_word', 'lstrip', 'rstrip')
_NO_KINDS = read_only(np.empty(0, np.uint8))

Part = tuple[int, int, int]
"""(start, end, id) of an added token, or of the text between two, with the id -1."""


Finders = tuple['AddedTokenFinder', 'AddedTokenFinder']
"""Finders of added tokens in original text, and in normalized text."""


def finders(vocabulary: BpeVocabulary, allow_special_tokens: bool) -> Finders:
    """Returns the finders of a vocabulary's added tokens.

    Raises:
        InputError: as `matched_tokens`.
    """
    matched_tokens(vocabulary, allow_special_tokens)  # it raises the error
    form = vocabulary.parts.form
    contents = functools.partial(unicodedata.normalize, form) if form else str
    return finders_of(vocabulary.added, allow_special_tokens, contents)


def finders_of(
    added: Sequence[AddedToken], allow_special_tokens: bool, contents: Callable[[str], str]
) -> Finders:
    """Returns the finders of added tokens, and takes what their contents become in normalized text."""
    original = [token for token in added if not token.normalized]
    normalized = [token for token in added if token.normalized]
    return (
        AddedTokenFinder(original, allow_special_tokens=allow_special_tokens),
        AddedTokenFinder(normalized, contents, allow_special_tokens),
    )


def matched_tokens(vocabulary: BpeVocabulary, allow_special_tokens: bool) -> list[AddedToken]:
    """Returns the added tokens to find in text.

    Raises:
        InputError: one of them has a flag that is not supported.
    """
    matched = [token for token in vocabulary.added if allow_special_tokens or not token.special]
    for token in matched:
        check_flags(
            token,
            'leave out --allow-special-tokens, and it is ordinary text'
            if token.special
            else 'encode with the tokenizers that the vocabulary was made for',
        )
    return matched


def check_flags(token: AddedToken, remedy: str) -> None:
    """Raises InputError if an added token has a flag that is not supported."""
    for flag in _FLAGS:
        if getattr(token, flag):
            raise InputError(
                f'the added token {token.content!r:.80} has {flag}, which is not supported; {remedy}'
            )


class _AddedTokenEncoder:
    """A `RowEncoder` that finds added tokens in rows; another one encodes the text between them."""

    def __init__(
        self, encoder: RowEncoder, finders: Sequence[AddedTokenFinder], add_prefix_space: bool
    ):
        """Takes the encoder of the text between added tokens, and the finders in their order."""
        self._encoder, self._finders = encoder, finders
        self._add_prefix_space = add_prefix_space

    @property
    def parts(self):
        """See `RowEncoder.parts`."""
        return self._encoder.parts

    def encode_side(
        self,
        side: Side,
        prefix: str = '',
        before: Sequence[int] = (),
        after: Sequence[int] = (),
    ) -> EncodedSide:
        """Returns the ids of each row, as `RowEncoder.encode_side` does."""
        parts = Parts.whole(side.with_prefix(prefix))
        for find in self._finders:
            parts = find.cut(parts)
        texts = with_space_before(parts.texts) if self._add_prefix_space else parts.texts
        if (parts.ids == _TEXT).all():
            return self._encoder.encode_side(texts, '', before, after)
        encoded = self._encoder.encode_side(texts)
        return join_parts(encoded, parts.rows, parts.ids, len(side), (before, after))

    def encode_text(
        self, text: bytes, before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> np.ndarray:
        """See `RowEncoder.encode_text`."""
        if any(find.may_be_in(text) for find in self._finders):
            return self.encode_side(side_of_rows([text]), '', before, after).ids
        if self._add_prefix_space and text[:1] not in (b'', b' '):
            text = b' ' + text
        return self._encoder.encode_text(text, before, after)


def with_space_before(side: Side) -> Side:
    """Returns rows with a space before each that has characters and does not begin with one."""
    has_one = side.ends == side.starts
    has_one[~has_one] = side.text[side.starts[~has_one]] == _SPACE
    spaced = side.with_prefix(' ')
    return Side(spaced.text, spaced.starts + has_one, spaced.ends)


@dataclass(frozen=True)
class PrefixedRows:
    """A `PreTokenizer` of rows `with_space_before`, to count their tokens; the words are slices of rows."""

    words: PreTokenizer

    # Count files record the name and the options.
    @property
    def name(self) -> str:
        return f'prefixed-{self.words.name}'

    @property
    def options(self) -> Mapping[str, object]:
        return {**self.words.options, 'prefix': ' '}

    def prepare(self, rows: TextRows) -> tuple[ListedTokens, np.ndarray]:
        side = with_space_before(Side(*rows))
        prefixed = TextRows(with_margin(side.text), read_only(side.starts), read_only(side.ends))
        state, text = self.words.prepare(prefixed)
        bounds = np.empty((2, _TOKENS_AT_ONCE + CHUNK_TOKENS), np.uint64)
        scanned = ScannedTokens(text, bounds[0], bounds[1], np.zeros(len(side) + 1, np.int64))
        found, counts = [bounds[:, :0]], np.zeros(len(side) + 1, np.int64)
        row, position, total = 0, -1, 0
        while row < len(side):
            ended = slice(row + 1, None)
            row, position, count = scan_tokens(prefixed, row, position, state, scanned)
            counts[ended] = total + scanned.row_tokens[ended]
            found.append(bounds[:, :count].copy())
            total += count
        starts, ends = np.concatenate(found, axis=1)
        return ListedTokens.of(starts, ends, counts), text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        listed, text = self.prepare(rows.part(row, row + 1))
        for start, end in zip(listed.starts.tolist(), listed.ends.tolist(), strict=True):
            yield RowPart(text, start, end, True)


def join_parts(
    encoded: EncodedSide,
    rows: np.ndarray,
    added: np.ndarray,
    count: int,
    template: tuple[Sequence[int], Sequence[int]],
) -> EncodedSide:
    """Returns the ids of `count` rows from those of their parts.

    Args:
        encoded: the ids of parts; added tokens have none.
        rows: int64[parts], ascending: the row of each part.
        added: int64[parts]: the ids of added tokens, -1 of texts.
        count: the number of rows.
        template: the ids before and after each row.
    """
    around = Surround.of(*template)
    size = len(encoded.ids) + np.count_nonzero(added >= 0) + count * sum(map(len, around))
    ids, offsets = np.empty(size, np.int32), np.zeros(count + 1, np.int64)
    _join(
        encoded.ids, read_only(encoded.offsets), read_only(rows), read_only(added), *around,
        ids, offsets,
    )  # fmt: skip
    return EncodedSide(ids, offsets)


@kernel_without_allocation
def _join(part_ids, part_offsets, rows, added, before, after, ids, offsets):
    """Writes the ids of rows, those before and after them included, and their offsets."""
    part = used = _0
    parts = np.uint64(len(rows))
    for row in range(len(offsets) - 1):
        for k in range(len(before)):
            ids[used] = before[k]
            used += _1
        while part < parts and rows[part] == row:
            if added[part] >= 0:
                ids[used] = np.int32(added[part])
                used += _1
            else:
                first, last = np.uint64(part_offsets[part]), np.uint64(part_offsets[part + _1])
                for k in range(last - first):
                    ids[used + k] = part_ids[first + k]
                used += last - first
            part += _1
        for k in range(len(after)):
            ids[used] = after[k]
            used += _1
        offsets[row + 1] = np.int64(used)


def row_encoder(
    pre_tokenizer: PreTokenizer,
    vocabulary: BpeVocabulary,
    allow_special_tokens: bool,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    is_original_text: bool = True,
) -> RowEncoder | _AddedTokenEncoder:
    """Returns an encoder of normalized rows, for one thread.

    Unless rows are the original text, added tokens that are not `normalized` are not found.

    Raises:
        InputError: as `matched_tokens`.
    """
    encoder = RowEncoder(pre_tokenizer, vocabulary.model, cache_bytes)
    found = finders(vocabulary, allow_special_tokens)[0 if is_original_text else 1 :]
    if not any(found) and not vocabulary.parts.add_prefix_space:
        return encoder
    return _AddedTokenEncoder(encoder, found, vocabulary.parts.add_prefix_space)


class Parts(NamedTuple):
    """Texts and the added tokens between them, in order.

    Attributes:
        texts: the texts; that of an added token is empty.
        ids: int64[parts]: of added tokens, -1 of texts.
        rows: int64[parts]: the number of the text that a part is from.
        is_first: bool[parts]: whether the part begins that text.
    """

    texts: Side
    ids: np.ndarray
    rows: np.ndarray
    is_first: np.ndarray

    @classmethod
    def whole(cls, texts: Side) -> Parts:
        """Returns texts without added tokens."""
        size = len(texts)
        return cls(texts, np.full(size, _TEXT), np.arange(size), np.ones(size, bool))

    def take(self, parts: slice) -> Parts:
        """Returns some of the parts."""
        texts = self.texts.take(parts)
        return Parts(texts, self.ids[parts], self.rows[parts], self.is_first[parts])


class AddedTokenFinder:
    """Finds added tokens in texts."""

    def __init__(
        self,
        tokens: Sequence[AddedToken],
        contents: Callable[[str], str] = str,
        allow_special_tokens: bool = True,
    ):
        """Takes the tokens, and what their contents become in the texts.

        As in `tokenizers`, special tokens that are not allowed stay text, but hide the tokens in them.
        """
        self._arguments = tokens, contents, allow_special_tokens
        if not allow_special_tokens and all(token.special for token in tokens):
            tokens = ()
        numbers: dict[str, int] = {}
        for number, token in enumerate(tokens):
            if content := contents(token.content):
                numbers.setdefault(content, number)
        encoded = sorted(content.encode('utf-8', 'surrogatepass') for content in numbers)
        beginnings = [
            re.escape(os.path.commonprefix([*group]) or b'')
            for _, group in itertools.groupby(encoded, lambda content: content[:2])
        ]
        self._beginnings = re.compile(b'|'.join(beginnings))
        self._trie = double_array_trie(numbers.items(), '\0') if numbers else None
        leads = sorted({content[0] for content in encoded})
        self._leads = read_only(np.array(leads[: _MOST_LEADS + 1], np.uint64))
        self._ids = read_only(np.array([token.id for token in tokens], np.int64))
        flags = [_flags(token, allow_special_tokens) for token in tokens]
        self._flags = read_only(np.array(flags, np.uint8))
        self._kinds = _NO_KINDS
        if any(flag & ~_IS_TEXT for flag in flags):
            self._kinds = _character_kinds(any(token.single_word for token in tokens))

    def __reduce__(self):
        # The arrays of a pickle are not read-only, and kernels would be compiled for them anew.
        return AddedTokenFinder, self._arguments

    def __bool__(self) -> bool:
        return self._trie is not None

    def may_be_in(self, text: bytes) -> bool:
        """Whether a token may be in a text, judged by how tokens begin."""
        return bool(self) and self._beginnings.search(text) is not None

    def cut(self, parts: Parts) -> Parts:
        """Returns the parts with their texts cut at added tokens; itself if there are none."""
        found = self._found(parts)
        if found is None:
            return parts
        text, (starts, ends, _, ids, rows), is_first = found
        return Parts(Side(text, read_only(starts), read_only(ends)), ids, rows, is_first)

    def find(self, text: bytes) -> list[Part]:
        """Returns the added tokens in a text and what lies between."""
        found = self._found(Parts.whole(side_of_rows([text]))) if self.may_be_in(text) else None
        if found is None:
            return [(0, len(text), _TEXT)]
        starts, _, stops, ids, _ = found[1].tolist()
        return list(zip(starts, stops, ids, strict=True))

    def _found(self, parts: Parts) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Returns a text, and of each part of it the columns of `_cut` and whether it begins a row."""
        if self._trie is None or not len(parts.texts):
            return None
        text, starts, ends = parts.texts.arrays()
        if ends.max() > len(text) - READABLE:
            text = with_margin(text)
        room = 2 * len(starts) + _MORE_PARTS
        while True:
            columns, is_first = np.empty((5, room), np.int64), np.empty(room, bool)
            count, tokens = _cut(
                np.ascontiguousarray(text), starts, ends, read_only(parts.ids),
                read_only(parts.rows), read_only(parts.is_first), self._leads, *self._trie,
                self._ids, self._flags, self._kinds, columns, is_first,
            )  # fmt: skip
            if count <= room:
                return (text, columns[:, :count], is_first[:count]) if tokens else None
            room = count


def _flags(token: AddedToken, allow_special_tokens: bool) -> int:
    named = {
        _IS_TEXT: token.special and not allow_special_tokens,
        _IS_WORD: token.single_word,
        _STRIPS_LEFT: token.lstrip,
        _STRIPS_RIGHT: token.rstrip,
    }
    return sum(flag for flag, is_set in named.items() if is_set)


@functools.cache
def _character_kinds(has_words: bool) -> np.ndarray:
    """Returns uint8[0x110000]: `_WHITE`, or `_OF_WORDS` if these are wanted, else 0."""
    kinds = np.zeros(CODE_POINTS, np.uint8)
    for first, end in runs_of(compiled_expression(f'{_WORD}+').pattern) if has_words else ():
        kinds[first:end] = _OF_WORDS
    kinds[[*map(ord, WHITE_SPACE)]] = _WHITE
    return read_only(kinds)


@kernel_without_allocation
def _cut(
    text, starts, ends, part_ids, part_rows, begins_row, leads, cells, numbers, ids, flags, kinds,
    columns, is_first,
):  # fmt: skip
    """Cuts parts at added tokens; fills in is_first, and the columns start, end, stop, id and row.

    A token has its own bounds as start and stop, and an empty text. Returns how many parts there are
    now, also beyond the room for them, and how many of them are tokens that were found.
    """
    trie = DoubleArrayTrie(cells, numbers)
    count = tokens = 0
    for part in range(len(starts)):
        begin, last = np.uint64(starts[part]), np.uint64(ends[part])
        row, is_begin = part_rows[part], begins_row[part]
        done = searched = chunk = begin
        uncut = count
        while chunk < last:
            bits = ~_0
            if len(leads) <= _MOST_LEADS:
                bits = _0
                for lead in leads:
                    bits |= at_least_mask(text, chunk, lead) & ~at_least_mask(
                        text, chunk, lead + _1
                    )
            if last - chunk < _CHUNK:
                bits &= (_1 << (last - chunk)) - _1
            while bits:
                place = chunk + trailing_zeros(bits)
                bits &= bits - _1
                if place < searched:
                    continue
                cell, stop = longest_piece(text, place, last, WORD_ROOT, trie)
                if stop == place:
                    continue
                searched = stop
                number = np.uint64(numbers[cell])
                flag = flags[number]
                if flag:
                    if flag & _IS_TEXT or (
                        flag & _IS_WORD
                        and (
                            _size_before(text, begin, place, kinds, _OF_WORDS)
                            or _size_behind(text, stop, last, kinds, _OF_WORDS)
                        )
                    ):
                        continue
                    size = _1
                    while size and flag & _STRIPS_LEFT and place > done:
                        size = _size_before(text, begin, place, kinds, _WHITE)
                        place -= size
                    if flag & _STRIPS_LEFT:
                        place = max(place, done)
                    size = _1
                    while size and flag & _STRIPS_RIGHT:
                        size = _size_behind(text, stop, last, kinds, _WHITE)
                        stop += size
                if done < place:
                    first = is_begin and done == begin
                    _put(columns, is_first, count, done, place, place, _TEXT, row, first)
                    count += 1
                first = is_begin and place == begin
                _put(columns, is_first, count, place, place, stop, ids[number], row, first)
                count += 1
                tokens += 1
                done = stop
            chunk += _CHUNK
        if done < last or count == uncut:
            first = is_begin and done == begin
            _put(columns, is_first, count, done, last, last, part_ids[part], row, first)
            count += 1
    return count, tokens


@kernel_without_allocation
def _put(columns, is_first, part, start, end, stop, id_, row, first):
    """Writes a part of `_cut`, if there is room."""
    if part < len(is_first):
        columns[0, part], columns[1, part] = np.int64(start), np.int64(end)
        columns[2, part], columns[3, part], columns[4, part] = np.int64(stop), id_, row
        is_first[part] = first


@kernel_without_allocation
def _size_before(text, begin, end, kinds, kind):
    """Returns the bytes of the last character of text[begin:end] if it is of a kind, else 0."""
    place = end
    while place > begin:
        place -= _1
        if text[place] & 0xC0 != 0x80:
            return _size_behind(text, place, end, kinds, kind)
    return _0


@kernel_without_allocation
def _size_behind(text, begin, end, kinds, kind):
    """Returns the bytes of the first character of text[begin:end] if it is of a kind, else 0."""
    if begin == end:
        return _0
    code, after = next_character(text, np.int64(begin))
    after = np.uint64(after)
    return after - begin if after <= end and kinds[code] == kind else _0
