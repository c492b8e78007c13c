"""Added tokens: each is found in text before the pre-tokenizer splits it, and has its own id.

As `tokenizers` does, those that are not `normalized` are found in the original text first, then the
others in the normalized text between them; always the leftmost, and the longest at one position.
The pre-tokenizer splits each text between them by itself.

A kernel finds added tokens by a trie of their bytes. Their properties are then applied to one match after
another: a `single_word` must not touch letters, and a token with `lstrip` or `rstrip` takes the white space
on that side with it.
"""

from __future__ import annotations

import functools
import itertools
import operator
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary
from tokcore.encoding.encoder import DEFAULT_CACHE_BYTES, EncodedSide, RowEncoder, side_of_rows
from tokcore.errors import InputError
from tokcore.kernels.bytes import with_margin
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
    readable_parts,
    scan_tokens,
)
from tokcore.text.rows import Side
from tokcore.wordpiece.model import WORD_ROOT, double_array_trie, longest_piece

_WORD = r'[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]'
_TEXT = -1

_FIRST_ROOM = 1 << 10

_FEW_MATCHES = 16
"""Fewer take less time one by one."""

_MOST_LEADS = 8
"""First bytes of tokens: up to so many are looked for in 64 bytes at once; with more, tokens are at each byte."""

_TOKENS_AT_ONCE = 1 << 14
_SPACE = 0x20
_CHUNK, _0, _1 = np.uint64(CHUNK), np.uint64(0), np.uint64(1)
_FLAGS = ('single_word', 'lstrip', 'rstrip')

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
        places = sum(find.places_in(text) for find in self._finders)
        if places > _FEW_MATCHES:
            return self.encode_side(side_of_rows([text]), '', before, after).ids
        if places:
            return np.array([*before, *self._ids(text, self._finders), *after], np.int32)
        return self._encoder.encode_text(self._prefixed(text), before, after)

    def _prefixed(self, text: bytes) -> bytes:
        has_one = not self._add_prefix_space or text[:1] in (b'', b' ')
        return text if has_one else b' ' + text

    def _ids(self, text: bytes, finders: Sequence[AddedTokenFinder]) -> list[int]:
        if not finders:
            return self._encoder.encode_text(self._prefixed(text)).tolist()
        ids: list[int] = []
        for start, end, id_ in finders[0].find(text):
            ids += [id_] if id_ >= 0 else self._ids(text[start:end], finders[1:])
        return ids


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
    sizes = np.diff(encoded.offsets) + (added >= 0)
    before, after = (np.array(ids, np.int32) for ids in template)
    row_sizes = np.bincount(rows, sizes, count).astype(np.int64) + len(before) + len(after)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(row_sizes, out=offsets[1:])
    ids = np.empty(offsets[-1], np.int32)
    _join(
        encoded.ids, read_only(encoded.offsets), read_only(rows), read_only(added),
        read_only(before), read_only(after), ids, offsets,
    )  # fmt: skip
    return EncodedSide(ids, offsets)


@kernel_without_allocation
def _join(part_ids, part_offsets, rows, added, before, after, ids, offsets):
    """Writes the ids of rows, those before and after them included."""
    part = _0
    parts = np.uint64(len(rows))
    for row in range(len(offsets) - 1):
        used = np.uint64(offsets[row])
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
        self._is_text = np.array([token.special for token in tokens], bool)
        self._is_text &= not allow_special_tokens
        if self._is_text.all():
            tokens = ()
        numbers: dict[str, int] = {}
        for number, token in enumerate(tokens):
            content = contents(token.content)
            if content:
                numbers.setdefault(content, number)
        self._tokens, self._contents, self._allow = tokens, contents, allow_special_tokens
        self._ids = np.array([token.id for token in tokens], np.int64)
        self._alters = np.array(
            [token.single_word or token.lstrip or token.rstrip for token in tokens], bool
        )
        encoded = sorted(content.encode('utf-8', 'surrogatepass') for content in numbers)
        by_lead = itertools.groupby(encoded, key=operator.itemgetter(0))
        self._beginnings = [os.path.commonprefix([*group]) or b'' for _, group in by_lead]
        leads = [beginning[0] for beginning in self._beginnings]
        self._leads = read_only(np.array(leads[: _MOST_LEADS + 1], np.uint64))
        self._trie = double_array_trie(numbers.items(), '\0') if numbers else None

    def __reduce__(self):
        # The arrays of a pickle are not read-only, and kernels would be compiled for them anew.
        return AddedTokenFinder, (self._tokens, self._contents, self._allow)

    def __bool__(self) -> bool:
        return self._trie is not None

    def places_in(self, text: bytes) -> int:
        """Returns in how many places of a text a token may begin, judged by the first bytes of tokens."""
        return sum(map(text.count, self._beginnings))

    def cut(self, parts: Parts) -> Parts:
        """Returns the parts with their texts cut at added tokens."""
        if self._trie is None or not len(parts.texts):
            return parts
        texts = parts.texts
        rows, starts, ends, numbers = self._matches(texts)
        if not len(rows):
            return parts
        if len(rows) < _FEW_MATCHES or self._alters[numbers].any():
            cut_rows, pieces = self._pieces_one_by_one(texts, rows, starts, ends, numbers)
        else:
            ids = self._ids[numbers]
            cut_rows, pieces = np.unique(rows), _pieces_of_matches(texts, rows, starts, ends, ids)
        return _merged(parts, cut_rows, pieces)

    def find(self, text: bytes) -> list[tuple[int, int, int]]:
        """Returns (start, end, id) of the added tokens in a text and what lies between, with the id -1."""
        if self.places_in(text):
            side = side_of_rows([text])
            rows, *matches = self._matches(side)
            if len(rows):
                pieces = self._pieces_one_by_one(side, rows, *matches)[1]
                return [(start, end, id_) for _, start, end, id_ in pieces.tolist()]
        return [(0, len(text), _TEXT)]

    def _matches(self, texts: Side) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Returns the text's number, the start, the end and the token's number of each match, as arrays."""
        assert self._trie is not None
        matches: list[tuple[np.ndarray, ...]] = []
        done = 0
        for rows in readable_parts(texts.text, texts.starts, texts.ends):
            # Texts near the end are copied: matches there are shifted back.
            shift = int(texts.starts[done]) - int(rows.starts[0]) if len(rows.starts) else 0
            room = _FIRST_ROOM
            while True:
                out = np.empty((4, room), np.int64)
                count = _find(*rows, self._leads, self._trie, *out)
                if count <= room:
                    break
                room = count
            out = out[:, :count]
            out = out[:, ~self._is_text[out[3]]]
            matches.append((out[0] + done, out[1] + shift, out[2] + shift, out[3]))
            done += len(rows.starts)
        return tuple(np.concatenate(column) for column in zip(*matches, strict=True))  # type: ignore[return-value]

    def _pieces_one_by_one(
        self,
        texts: Side,
        rows: np.ndarray,
        starts: np.ndarray,
        ends: np.ndarray,
        numbers: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows with matches and their pieces, by the properties of the tokens."""
        text = texts.text.tobytes()
        matches = zip(*(column.tolist() for column in (rows, starts, ends, numbers)), strict=True)
        pieces: list[tuple[int, int, int, int]] = []
        for row, of_row in itertools.groupby(matches, operator.itemgetter(0)):
            bounds = int(texts.starts[row]), int(texts.ends[row])
            pieces += self._pieces(text, row, bounds, (match[1:] for match in of_row))
        return np.unique(rows), np.array(pieces, np.int64).reshape(-1, 4)

    def _pieces(
        self,
        text: bytes,
        row: int,
        bounds: tuple[int, int],
        matches: Iterable[tuple[int, int, int]],
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yields (row, start, end, id) of the parts of a text, as `tokenizers` has them."""
        begin, last = bounds
        done = begin
        for start, end, number in matches:
            token = self._tokens[number]
            if token.single_word and (
                _is_word(text[max(begin, start - 4) : start].decode('utf-8', 'replace')[-1:])
                or _is_word(text[end : min(last, end + 4)].decode('utf-8', 'replace')[:1])
            ):
                continue
            if token.lstrip:
                before = text[begin:start].decode()
                start = max(begin + len(before.rstrip(WHITE_SPACE).encode()), done)
            if token.rstrip:
                after = text[end:last].decode()
                end += len(after.encode()) - len(after.lstrip(WHITE_SPACE).encode())
            if done < start:
                yield row, done, start, _TEXT
            yield row, start, end, token.id
            done = end
        if done < last:
            yield row, done, last, _TEXT


def _pieces_of_matches(
    texts: Side, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray, ids: np.ndarray
) -> np.ndarray:
    """Returns (row, start, end, id) of the parts of texts with matches, which stay as they are."""
    is_first = np.append(True, rows[1:] != rows[:-1])
    is_last = np.append(is_first[1:], True)
    begins = np.where(is_first, texts.starts[rows], np.append(0, ends[:-1]))
    lasts = texts.ends[rows]
    no_ids = np.full(len(rows), _TEXT)
    # What is before each match, the match, and what is after the last one of a text.
    columns = (
        (rows, begins, starts, no_ids),
        (rows, starts, ends, ids),
        (rows, ends, lasts, no_ids),
    )
    pieces = np.stack([np.stack(column, axis=1) for column in columns], axis=1)
    wanted = np.stack([begins < starts, starts < ends, is_last & (ends < lasts)], axis=1)
    return pieces[wanted]


def _is_word(character: str) -> bool:
    return bool(compiled_expression(_WORD).match(character))


def _merged(parts: Parts, cut_rows: np.ndarray, pieces: np.ndarray) -> Parts:
    """Returns the parts with those numbered `cut_rows` replaced by pieces (row, start, end, id)."""
    stays = np.ones(len(parts.texts), bool)
    stays[cut_rows] = False
    kept = np.flatnonzero(stays)
    numbers = np.concatenate([kept, pieces[:, 0]])
    order = np.argsort(numbers, kind='stable')
    starts = np.concatenate([parts.texts.starts[kept], pieces[:, 1]])[order]
    ends = np.concatenate([parts.texts.ends[kept], pieces[:, 2]])[order]
    ids = np.concatenate([parts.ids[kept], pieces[:, 3]])[order]
    numbers = numbers[order]
    is_first = parts.is_first[numbers] & (starts == parts.texts.starts[numbers])
    ends = np.where(ids == _TEXT, ends, starts)
    return Parts(
        Side(parts.texts.text, read_only(starts), read_only(ends)),
        ids,
        parts.rows[numbers],
        is_first,
    )


@kernel_without_allocation
def _find(text, starts, ends, leads, trie, rows, begins, stops, numbers):
    """Fills in the matches in texts; returns how many there are, also beyond the room for them."""
    count = 0
    for row in range(len(starts)):
        chunk, end = np.uint64(starts[row]), np.uint64(ends[row])
        searched = chunk
        while chunk < end:
            bits = ~_0
            if len(leads) <= _MOST_LEADS:
                bits = _0
                for lead in leads:
                    bits |= at_least_mask(text, chunk, lead) & ~at_least_mask(
                        text, chunk, lead + _1
                    )
            if end - chunk < _CHUNK:
                bits &= (_1 << (end - chunk)) - _1
            while bits:
                place = chunk + trailing_zeros(bits)
                bits &= bits - _1
                if place < searched:
                    continue
                cell, stop = longest_piece(text, place, end, WORD_ROOT, trie)
                if stop == place:
                    continue
                if count < len(rows):
                    rows[count], numbers[count] = row, trie.ids[cell]
                    begins[count], stops[count] = np.int64(place), np.int64(stop)
                count += 1
                searched = stop
            chunk += _CHUNK
    return count
