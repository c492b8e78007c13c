"""Added tokens: each is found in text before the pre-tokenizer splits it, and has its own id.

As `tokenizers` does, those that are not `normalized` are found in the original text first, then the
others in the normalized text between them; always the leftmost, and the longest at one position.
The pre-tokenizer splits each text between them by itself.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary
from tokcore.encoding.encoder import DEFAULT_CACHE_BYTES, EncodedSide, RowEncoder, side_of_rows
from tokcore.errors import InputError
from tokcore.kernels.bytes import with_margin
from tokcore.kernels.jit import kernel_without_allocation, read_only
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

_TOKENS_AT_ONCE = 1 << 14
_SPACE = 0x20
_0, _1 = np.uint64(0), np.uint64(1)
_FLAGS = ('single_word', 'lstrip', 'rstrip')

Part = tuple[int, int, int]
"""(start, end, id) of an added token, or of the text between two, with the id -1."""


class _Finder:
    """Finds tokens in bytes: the leftmost, and the longest at one position."""

    def __init__(self, ids: Mapping[bytes, int]):
        self._ids = ids
        # `re` takes the first alternative that matches.
        longest_first = sorted(ids, key=len, reverse=True)
        self._pattern = re.compile(b'|'.join(map(re.escape, longest_first)))
        self._prefix: bytes = os.path.commonprefix(longest_first) or b''

    def __call__(self, text: bytes) -> Iterator[tuple[int, int, int]]:
        """Yields (start, end, id) of each token in a text."""
        if self._prefix not in text:  # takes much less time than the pattern
            return
        for match in self._pattern.finditer(text):
            yield match.start(), match.end(), self._ids[match[0]]


def finder(
    tokens: Sequence[AddedToken], form: Literal['NFC', 'NFKC'] | None = None
) -> _Finder | None:
    """Returns the finder of tokens, in text of a Unicode normalization; None without tokens."""
    ids: dict[bytes, int] = {}
    for token in tokens:
        content = unicodedata.normalize(form, token.content) if form else token.content
        ids.setdefault(content.encode('utf-8', 'surrogatepass'), token.id)
    return _Finder(ids) if ids else None


def matched_tokens(
    vocabulary: BpeVocabulary, allow_special_tokens: bool
) -> tuple[list[AddedToken], list[AddedToken]]:
    """Returns the added tokens to find in the original text, and those in normalized text.

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
    original = [token for token in matched if not token.normalized]
    return original, [token for token in matched if token.normalized]


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
        self, encoder: RowEncoder, finders: Sequence[_Finder | None], add_prefix_space: bool = False
    ):
        """Takes the encoder of the text between added tokens, and the finders in their order."""
        self._encoder = encoder
        self._finders = [find for find in finders if find is not None]
        self._add_prefix_space = add_prefix_space

    @property
    def parts(self):
        """As of `RowEncoder`."""
        return self._encoder.parts

    def encode_side(
        self,
        side: Side,
        prefix: str = '',
        before: Sequence[int] = (),
        after: Sequence[int] = (),
    ) -> EncodedSide:
        """Returns the ids of each row, as `RowEncoder.encode_side` does."""
        side = side.with_prefix(prefix)
        parts = self._parts(side)
        if not parts:
            return self._encoder.encode_side(self._prefixed(side), '', before, after)
        rows, texts, added = _part_rows(side, parts)
        encoded = self._encoder.encode_side(self._prefixed(texts))
        return join_parts(encoded, rows, added, len(side), (before, after))

    def encode_text(
        self, text: bytes, before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> np.ndarray:
        """As of `RowEncoder`."""
        if any(next(find(text), None) for find in self._finders):
            return self.encode_side(side_of_rows([text]), '', before, after).ids
        if self._add_prefix_space and text[:1] not in (b'', b' '):
            text = b' ' + text
        return self._encoder.encode_text(text, before, after)

    def _parts(self, side: Side) -> list[list[Part]]:
        """Returns the parts of each row, or [] if there is no added token in any of them."""
        if not len(side):
            return []
        block = side.text[side.starts.min() : side.ends.max()].tobytes()
        if not any(next(find(block), None) for find in self._finders):
            return []
        bounds = zip(side.starts.tolist(), side.ends.tolist(), strict=True)
        rows: list[list[Part]] = [[(start, end, -1)] for start, end in bounds]
        has_added = False
        for find in self._finders:
            for row, parts in enumerate(rows):
                added: list[Part] = []
                for start, end, id_ in parts:
                    if id_ < 0:
                        for begin, stop, added_id in find(side.text[start:end].tobytes()):
                            added.append((start + begin, start + stop, added_id))
                    else:
                        added.append((start, end, id_))
                if added:
                    has_added = True
                    rows[row] = with_texts(added, parts[0][0], parts[-1][1])
        return rows if has_added else []

    def _prefixed(self, side: Side) -> Side:
        return with_space_before(side) if self._add_prefix_space else side


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


def with_texts(added: list[Part], start: int, end: int) -> list[Part]:
    """Returns the added tokens of a row, and the texts between them."""
    parts = []
    for begin, stop, id_ in added:
        if start < begin:
            parts.append((start, begin, -1))
        parts.append((begin, stop, id_))
        start = stop
    if start < end:
        parts.append((start, end, -1))
    return parts


def _part_rows(side: Side, parts_of_rows: list[list[Part]]) -> tuple[np.ndarray, Side, np.ndarray]:
    """Returns the row index of each part, the texts of the parts as rows, and the ids or -1.

    The text of an added token is empty.
    """
    rows = np.array([row for row, parts in enumerate(parts_of_rows) for _ in parts], np.int64)
    parts = np.array([part for parts in parts_of_rows for part in parts], np.int64).reshape(-1, 3)
    starts, ends, added = (np.ascontiguousarray(column) for column in parts.T)
    return rows, Side(side.text, starts, np.where(added < 0, ends, starts)), added


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
    original, normalized = matched_tokens(vocabulary, allow_special_tokens)
    finders = [
        finder(original if is_original_text else ()),
        finder(normalized, vocabulary.parts.form),
    ]
    if not any(finders) and not vocabulary.parts.add_prefix_space:
        return encoder
    return _AddedTokenEncoder(encoder, finders, vocabulary.parts.add_prefix_space)
