"""Encodes the rows of a block with a pretrained vocabulary.

As in `tokenizers`, added tokens that are not `normalized` are found in the rows; what lies between
them is normalized, and the other added tokens are found in that; the rest is cut and segmented. A kernel finds
added tokens by a trie of their bytes: the leftmost, and the longest at one place. Their properties are then
applied to one match after another: a `single_word` must not touch letters, and a token with `lstrip` or
`rstrip` takes the white space on that side with it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.bpe.added_tokens import join_parts
from tokcore.bpe.vocabulary import AddedToken
from tokcore.encoding.encoder import EncodedSide, RowEncoder, side_of_rows, side_of_text
from tokcore.encoding.kernels import Model
from tokcore.foreign_tokenizers.normalizers import TextStep, replaced
from tokcore.foreign_tokenizers.pre_tokenizers import MARK
from tokcore.foreign_tokenizers.vocabulary import PretrainedVocabulary
from tokcore.kernels.bytes import with_margin
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import CHUNK, at_least_mask, trailing_zeros
from tokcore.text.expression_trees import compiled_expression
from tokcore.text.patterns import WHITE_SPACE
from tokcore.text.pre_tokenizer import (
    ListedTokens,
    PreTokenizer,
    RowPart,
    TextRows,
    readable_parts,
    with_zeros_behind,
)
from tokcore.text.rows import Side
from tokcore.wordpiece.model import WORD_ROOT, double_array_trie, longest_piece


class PretrainedEncoder:
    """An `Encoder` of original rows, for one thread."""

    def __init__(self, vocabulary: PretrainedVocabulary, allow_special_tokens: bool = False):
        """Takes a vocabulary, and whether special tokens are found in text."""
        self._vocabulary = vocabulary
        self._encoder = RowEncoder(vocabulary.cutting.pre_tokenizer, vocabulary.model)
        self._finders = finders(vocabulary, allow_special_tokens)
        special = [token for token in vocabulary.added if token.special]
        self._in_prefixes = AddedTokenFinder([] if allow_special_tokens else special)

    @property
    def parts(self) -> tuple[PreTokenizer, Model]:
        """A pre-tokenizer of original rows, which is slow; and the model."""
        return _OriginalRows(self._vocabulary, self._finders), self._vocabulary.model

    def encode_side(
        self,
        side: Side,
        prefix: str = '',
        before: Sequence[int] = (),
        after: Sequence[int] = (),
    ) -> EncodedSide:
        """Returns the ids of each row, as `RowEncoder.encode_side` does.

        Special tokens in the prefix are found, as `prefixes` says. `tokenizers` has the same ids for
        the prefix and the row where it finds special tokens and the row has none.
        """
        if not prefix:
            return self._encode(Parts.whole(side), before, after)
        parts = Parts.whole(side_of_text(prefix))
        cut = self._in_prefixes.cut(parts)
        if cut is parts:
            return self._encode(Parts.whole(side.with_prefix(prefix)), before, after)
        last = int(np.flatnonzero(cut.ids >= 0)[-1])
        ids = self._encode(cut.take(slice(last + 1)), before, ()).ids.tolist()
        text = ''.join(cut.texts.row(part) for part in range(last + 1, len(cut.texts)))
        rows = Parts.whole(side.with_prefix(text))
        rows = rows._replace(is_first=np.zeros(len(side), bool))
        return self._encode(rows, ids, after)

    def encode_text(
        self, text: bytes, before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> np.ndarray:
        """As of `RowEncoder`."""
        if self._leaves(text) and not any(find.may_find_in(text) for find in self._finders):
            return self._encoder.encode_text(text, before, after)
        return self.encode_side(side_of_rows([text]), '', before, after).ids

    def _leaves(self, text: bytes) -> bool:
        """Whether normalizer and pre-tokenizer are sure to leave a text as it is before they cut it."""
        steps, cutting = self._vocabulary.steps, self._vocabulary.cutting
        are_left = not steps or (text.isascii() and all(step.leaves_ascii for step in steps))
        return are_left and cutting.leaves_texts

    def _encode(self, texts: Parts, before: Sequence[int], after: Sequence[int]) -> EncodedSide:
        texts = texts._replace(texts=with_zeros_behind(texts.texts))
        parts = texts_of(self._vocabulary, self._finders, texts)
        size = int(texts.rows[-1]) + 1 if len(texts.rows) else 0
        if len(parts.rows) == size and (parts.ids < 0).all():
            return self._encoder.encode_side(parts.texts, '', before, after)
        encoded = self._encoder.encode_side(parts.texts)
        return join_parts(encoded, parts.rows, parts.ids, size, (before, after))


Finders = tuple['AddedTokenFinder', 'AddedTokenFinder']
"""Finders of added tokens in original text, and in normalized text."""


def finders(vocabulary: PretrainedVocabulary, allow_special_tokens: bool) -> Finders:
    """Returns the finders of added tokens; special ones are left out unless they are allowed."""
    tokens = [token for token in vocabulary.added if allow_special_tokens or not token.special]
    normalized = [token for token in tokens if token.normalized]
    steps = vocabulary.steps if vocabulary.normalizes_added else ()
    content = functools.partial(_normalized, steps=steps)
    return (
        AddedTokenFinder([token for token in tokens if not token.normalized]),
        AddedTokenFinder(normalized, content),
    )


def _normalized(text: str, steps: Sequence[TextStep]) -> str:
    data = np.frombuffer(text.encode('utf-8', 'surrogatepass'), np.uint8)
    side = Side(read_only(data), np.zeros(1, np.int64), np.full(1, len(data)))
    for step in steps:
        side = step(side)
    return side.text[side.starts[0] : side.ends[0]].tobytes().decode('utf-8', 'surrogatepass')


def texts_of(vocabulary: PretrainedVocabulary, find: Finders, parts: Parts) -> Parts:
    """Returns the texts of rows as the pre-tokenizer cuts them, and the added tokens between them."""
    original, normalized = find
    parts = original.cut(parts)
    texts = parts.texts
    for step in vocabulary.steps:
        texts = step(texts)
    parts = parts._replace(texts=texts)
    if normalized:
        parts = normalized.cut(parts)
    cutting = vocabulary.cutting
    spaces = functools.partial(replaced, old=b' ', new=cutting.spaces.encode())
    return parts._replace(texts=cutting.texts(parts.texts, parts.is_first, spaces))


class _OriginalRows:
    """A `PreTokenizer` of original rows, in Python; it is for lists of unknown tokens."""

    name = 'pretrained'

    def __init__(self, vocabulary: PretrainedVocabulary, find: Finders):
        self._vocabulary = vocabulary
        self._finders = find

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def prepare(self, rows: TextRows) -> tuple[ListedTokens, np.ndarray]:
        side = Side(rows.text, rows.starts, rows.ends)
        parts = texts_of(self._vocabulary, self._finders, Parts.whole(side))
        texts = parts.texts
        text = with_margin(texts.text)
        all_rows = TextRows(text, read_only(texts.starts), read_only(texts.ends))
        data = bytearray()
        starts, ends, counts = [], [], np.zeros(len(side), np.int64)
        cutting = self._vocabulary.cutting
        for number, row in enumerate(parts.rows.tolist()):
            for part in cutting.pre_tokenizer.row_parts(all_rows, number, 0):
                starts.append(len(data))
                token = part.text[part.start : part.end].tobytes()
                data += token.replace(b' ', MARK.encode()) if cutting.keeps_spaces else token
                ends.append(len(data))
                counts[row] += 1
        bounds = np.concatenate([[0], np.cumsum(counts)])
        listed = ListedTokens.of(starts, ends, bounds)
        return listed, with_margin(np.frombuffer(bytes(data), np.uint8))

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        listed, text = self.prepare(rows.part(row, row + 1))
        for start, end in zip(listed.starts.tolist(), listed.ends.tolist(), strict=True):
            yield RowPart(text, start, end, True)


_WORD = r'[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]'
_TEXT = -1

_FIRST_ROOM = 1 << 10

_MOST_LEADS = 8
"""First bytes of tokens: up to so many are looked for in 64 bytes at once; with more, tokens are at each byte."""

_CHUNK, _0, _1 = np.uint64(CHUNK), np.uint64(0), np.uint64(1)


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

    def __init__(self, tokens: Sequence[AddedToken], contents: Callable[[str], str] = str):
        """Takes the tokens, and what their contents become in the texts."""
        numbers: dict[str, int] = {}
        for number, token in enumerate(tokens):
            content = contents(token.content)
            if content:
                numbers.setdefault(content, number)
        self._tokens = tokens
        leads = sorted({content.encode('utf-8', 'surrogatepass')[0] for content in numbers})
        self._lead_bytes = [bytes([lead]) for lead in leads]
        self._leads = read_only(np.array(leads[: _MOST_LEADS + 1], np.uint64))
        self._trie = double_array_trie(numbers.items(), '\0') if numbers else None

    def __bool__(self) -> bool:
        return self._trie is not None

    def may_find_in(self, text: bytes) -> bool:
        """Whether a text has a byte that tokens begin with."""
        return any(lead in text for lead in self._lead_bytes)

    def cut(self, parts: Parts) -> Parts:
        """Returns the parts with their texts cut at added tokens."""
        if self._trie is None or not len(parts.texts):
            return parts
        texts = parts.texts
        rows, starts, ends, numbers = self._matches(texts)
        if not len(rows):
            return parts
        alters = np.array(
            [token.single_word or token.lstrip or token.rstrip for token in self._tokens]
        )
        if alters[numbers].any():
            cut_rows, pieces = self._pieces_one_by_one(texts, rows, starts, ends, numbers)
        else:
            ids = np.array([token.id for token in self._tokens], np.int64)[numbers]
            cut_rows, pieces = np.unique(rows), _pieces_of_matches(texts, rows, starts, ends, ids)
        return _merged(parts, cut_rows, pieces)

    def find(self, text: bytes) -> list[tuple[int, int, int]]:
        """Returns (start, end, id) of the added tokens in a text and what lies between, with the id -1."""
        side = Side(np.frombuffer(text, np.uint8), np.zeros(1, np.int64), np.full(1, len(text)))
        if self._trie is not None and text:
            rows, *matches = self._matches(side)
            if len(rows):
                pieces = self._pieces_one_by_one(side, rows, *matches)[1]
                return [(start, end, id_) for _, start, end, id_ in pieces.tolist()]
        return [(0, len(text), _TEXT)]

    def _matches(self, texts: Side) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Returns of all matches: the text's number, the start, the end and the token's number."""
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
        cut_rows, first_match = np.unique(rows, return_index=True)
        bounds = [*first_match.tolist(), len(rows)]
        pieces: list[tuple[int, int, int, int]] = []
        for row, first, last in zip(cut_rows.tolist(), bounds, bounds[1:], strict=False):
            matches = zip(
                starts[first:last].tolist(), ends[first:last].tolist(),
                numbers[first:last].tolist(), strict=True,
            )  # fmt: skip
            pieces += self._pieces(
                text, row, (int(texts.starts[row]), int(texts.ends[row])), matches
            )
        return cut_rows, np.array(pieces, np.int64).reshape(-1, 4)

    def _pieces(self, text, row, bounds, matches):
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
