"""Encodes the rows of a block at once, without a step of Python for each row.

Most tokens of a text have occurred before, so an encoder keeps the ids of tokens in a cache of
bounded size; the model segments the others. `unknown_tokens` lists those with the unknown id;
`DroppedCharacters` and `UnmatchedText` count the text that is in no id.

A prefix is cut at its special tokens, which get their ids in every scheme: at the leftmost, and of
several at one offset at the longest. The text between two of them is encoded by itself, and the text
after the last one together with the row:

    '<web>to <2zh> '  ─▶  the id of <web>, the ids of 'to ', the id of <2zh>, the ids of ' ' + the row

A prefix without special tokens and the row are one text.
"""

from __future__ import annotations

import re
import reprlib
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from tokcore.counts.counting import TokenAccumulator
from tokcore.encoding.kernels import (
    NO_ROOM,
    TOKENS,
    IdRows,
    MissedTokens,
    Model,
    Surround,
    empty_cache,
    encode_rows,
    larger_workspace,
    segment_tokens,
)
from tokcore.kernels.bytes import READABLE, row_offsets, with_margin
from tokcore.kernels.jit import compiled_for, read_only, read_only_state, type_key
from tokcore.text.pre_tokenizer import (
    PreTokenizer,
    ScannedTokens,
    TextRows,
    one_row,
    readable_parts,
    with_zeros_behind,
)
from tokcore.text.rows import Side

if typing.TYPE_CHECKING:
    from tokcore.text.regex_splits import SplitPreTokenizer

DEFAULT_CACHE_BYTES = 8 << 20
"""Some 260,000 tokens."""

LONG_ROW_BYTES = 256 << 10
"""Longer rows are encoded in parts, which costs a hundredth of a second a megabyte. A row of this
length, even if it is one token, takes less memory than a block does."""

LONG_TOKEN_BYTES = 1 << 10
"""Longer tokens of a long row are segmented one by one. A thousand tokens of this length, which are
segmented at once, take little memory; one by one, each takes as long as ten of them together."""

_UINT16_IDS = 1 << 16

_SEGMENTED_AT_ONCE = 256
_LONGEST_UNKNOWN = 1 << 10
"""Bytes of a token; longer ones are not among the commonest."""

_PIECE_BYTES = 1 << 20
"""Text that is looked at in one go: as code points it takes four times as much memory."""

_Encoded = TypeVar('_Encoded')

_LINE_FEED = 0x0A

_ZEROS = bytes(READABLE)


class Encoder(Protocol):
    """Encodes rows for one thread; a `RowEncoder`, or one that does more around it."""

    @property
    def parts(self) -> tuple[PreTokenizer, Model]:
        """The pre-tokenizer and the model."""

    def encode_side(
        self,
        side: Side,
        prefix: str = '',
        before: Sequence[int] = (),
        after: Sequence[int] = (),
    ) -> EncodedSide:
        """See `RowEncoder.encode_side`."""

    def encode_text(
        self, text: bytes, before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> np.ndarray:
        """See `RowEncoder.encode_text`."""


class RowEncoder:
    """Encodes blocks of rows for one thread; pre-tokenizer and model may be shared with others."""

    def __init__(
        self, pre_tokenizer: PreTokenizer, model: Model, cache_bytes: int = DEFAULT_CACHE_BYTES
    ):
        """Takes the two parts of a scheme, and about how many bytes the cache of tokens may have.

        Results do not depend on the size of the cache.
        """
        self._pre_tokenizer = pre_tokenizer
        self._model = model
        self._state, self._work = read_only_state(model.state), model.workspace(TOKENS)
        self._cache = empty_cache(cache_bytes)
        # The arrays of a single text, and the code for small sides, made once.
        self._text_end, self._text_offsets = np.zeros(1, np.int64), np.zeros(2, np.int64)
        self._text_bounds = read_only(np.zeros(1, np.int64)), read_only(self._text_end)
        self._text_state: NamedTuple | None = None
        self._text_types: Any = None
        self._compiled: Callable = encode_rows
        self._token_bounds = (np.empty(TOKENS, np.uint64), np.empty(TOKENS, np.uint64))

    @property
    def parts(self) -> tuple[PreTokenizer, Model]:
        """The pre-tokenizer and the model."""
        return self._pre_tokenizer, self._model

    def encode_side(
        self,
        side: Side,
        prefix: str = '',
        before: Sequence[int] = (),
        after: Sequence[int] = (),
    ) -> EncodedSide:
        """Returns the ids of each row: those before it, those of its prefix and text, those after.

        They are int32, or uint16 if a row is longer than `LONG_ROW_BYTES` and all ids are below 65,536.

        Raises:
            ValueError: with a sentence of the model, if it cannot spell a token.
        """
        side, surround = with_zeros_behind(side.with_prefix(prefix)), Surround.of(before, after)
        if len(side):
            start, end = int(side.starts.min()), int(side.ends.max())
            if end - start <= LONG_ROW_BYTES:
                text, offsets = side.text[start:end].tobytes(), np.zeros(len(side) + 1, np.int64)
                bounds = read_only(side.starts - start), read_only(side.ends - start)
                return EncodedSide(self._encode_small(text, *bounds, surround, offsets), offsets)
        encoded = _GrowingSide(len(side.text), len(side), self._id_type(side, surround))
        for rows in readable_parts(side.text, side.starts, side.ends):
            first, size = 0, len(rows.starts)
            for row in [*np.flatnonzero(rows.ends - rows.starts > LONG_ROW_BYTES).tolist(), size]:
                self._encode_rows(rows.part(first, row), surround, encoded)
                if row < size:
                    self._encode_long_row(rows, row, surround, encoded)
                first = row + 1
        return encoded.side()

    def encode_text(
        self, text: bytes, before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> np.ndarray:
        """Returns the ids of a text in UTF-8, as `encode_side` does without the steps that blocks need."""
        if len(text) > LONG_ROW_BYTES:
            return self.encode_side(side_of_rows([text]), '', before, after).ids
        self._text_end[0] = len(text)
        around = Surround.of(before, after)
        return self._encode_small(text, *self._text_bounds, around, self._text_offsets)

    def _encode_small(
        self,
        text: bytes,
        starts: np.ndarray,
        ends: np.ndarray,
        surround: Surround,
        offsets: np.ndarray,
    ) -> np.ndarray:
        """Returns the ids of rows, and sets their offsets, without the steps that blocks need."""
        rows = TextRows(np.frombuffer(text + _ZEROS, np.uint8), starts, ends)
        out = IdRows(np.empty(len(text) // 2 + 1, np.int32), 0, offsets)
        ids, used = self._run(rows, surround, out, is_small=True)
        return ids[:used]

    def _id_type(self, side: Side, surround: Surround) -> type[np.integer]:
        # A long row may have five ids for a byte; at four bytes each they would take too much memory.
        is_long = (side.ends - side.starts).max(initial=0) > LONG_ROW_BYTES
        # The ids around the text may be of added tokens, which are not of the model.
        largest = max(self._model.size - 1, *(ids.max(initial=0) for ids in surround))
        return np.uint16 if is_long and largest < _UINT16_IDS else np.int32

    def _encode_rows(self, rows: TextRows, surround: Surround, out: _GrowingSide) -> None:
        if out.ids.dtype != np.int32:
            part = _GrowingSide(int((rows.ends - rows.starts).sum()), len(rows.starts))
            self._encode_rows(rows, surround, part)
            out.add_rows(part)
            return
        offsets = out.offsets[out.rows : out.rows + len(rows.starts) + 1]
        out.ids, out.used = self._run(rows, surround, IdRows(out.ids, out.used, offsets))
        out.rows += len(rows.starts)

    def _run(
        self, rows: TextRows, surround: Surround, out: IdRows, is_small: bool = False
    ) -> tuple[np.ndarray, int]:
        pre_tokenizer, text = self._pre_tokenizer.prepare(rows)
        arguments = (
            rows, surround, pre_tokenizer, self._state, self._cache,
            ScannedTokens(text, *self._token_bounds, out.offsets), self._work, out,
        )  # fmt: skip
        encode = self._compiled_for_small(arguments) if is_small else encode_rows
        ids, used, start, end, failure = encode(*arguments)
        if failure:
            token = text[start:end].tobytes().decode('utf-8', 'surrogatepass')
            raise ValueError(self._model.describe_failure(token, failure))
        return ids, used

    def _compiled_for_small(self, arguments: tuple) -> Callable:
        state = arguments[2]  # the types of the others are the same for all small sides
        if state is not self._text_state:
            types = type_key(state)
            if types != self._text_types:
                self._text_types, self._compiled = types, compiled_for(encode_rows, arguments)
            self._text_state = state
        return self._compiled

    def _encode_long_row(
        self, rows: TextRows, row: int, surround: Surround, out: _GrowingSide
    ) -> None:
        out.add(surround.before)
        part, nothing = _GrowingSide(0, 1), Surround.of((), ())
        for row_part in self._pre_tokenizer.row_parts(rows, row, LONG_TOKEN_BYTES):
            if row_part.is_long_token:
                for ids in self._model.segment_long_token(row_part):
                    out.add(ids)
                continue
            part.used = part.rows = 0
            text = one_row(row_part.text, row_part.start, row_part.end)
            self._encode_rows(text, nothing, part)
            out.add(part.ids[: part.used])
        out.add(surround.after)
        out.end_row()


class SharedEncoder:
    """Encodes texts, for any number of threads: each call uses an encoder that is idle.

    A pickle has no encoders; its copy makes its own.
    """

    def __init__(self, make: Callable[[], Encoder]):
        """Takes a function that makes an encoder; not a lambda, which cannot be pickled."""
        self._make = make
        self._idle: list[Encoder] = []

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, '_idle': []}

    def encode(self, text: str, before: Sequence[int] = (), after: Sequence[int] = ()) -> list[int]:
        """Returns the ids of a text as it is, between other ids; raises ValueError as `encode_side`."""
        check_text(text)
        data = text.encode('utf-8', 'surrogatepass')
        return self._use(lambda encoder: encoder.encode_text(data, before, after)).tolist()

    def encode_batch(
        self, texts: Sequence[str], before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> list[list[int]]:
        """Returns the ids of each text, as `encode` does; raises ValueError as `encode_side`."""
        if not texts:
            return []
        for text in texts:
            check_text(text)
        side = side_of_rows([text.encode('utf-8', 'surrogatepass') for text in texts])
        encoded = self._use(lambda encoder: encoder.encode_side(side, '', before, after))
        ids, offsets = encoded.ids.tolist(), encoded.offsets.tolist()
        return [ids[start:end] for start, end in zip(offsets, offsets[1:])]

    def _use(self, encode: Callable[[Encoder], _Encoded]) -> _Encoded:
        try:
            encoder = self._idle.pop()
        except IndexError:
            encoder = self._make()
        try:
            return encode(encoder)
        finally:
            self._idle.append(encoder)


class PrefixEncoder:
    """An `Encoder` that finds special tokens in prefixes; another one encodes all text."""

    def __init__(self, encoder: Encoder, special_tokens: Callable[[str], Mapping[str, int]]):
        """Takes the encoder of text, and what returns the special tokens of a prefix with their ids."""
        self._encoder = encoder
        self._special_tokens = special_tokens
        self._cut: dict[str, tuple[tuple[int, ...], str]] = {}

    @property
    def parts(self) -> tuple[PreTokenizer, Model]:
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
        if prefix not in self._cut:
            self._cut[prefix] = self._cut_prefix(prefix)
        ids, text = self._cut[prefix]
        return self._encoder.encode_side(side, text, (*before, *ids), after)

    def encode_text(
        self, text: bytes, before: Sequence[int] = (), after: Sequence[int] = ()
    ) -> np.ndarray:
        """See `RowEncoder.encode_text`."""
        return self._encoder.encode_text(text, before, after)

    def _cut_prefix(self, prefix: str) -> tuple[tuple[int, ...], str]:
        """Returns the ids of a prefix up to its last special token, and the text after that."""
        tokens = self._special_tokens(prefix) if prefix else {}
        if not tokens:
            return (), prefix
        # `re` takes the first alternative that matches.
        longest_first = sorted(tokens, key=len, reverse=True)
        ids: list[int] = []
        end = 0
        for match in re.finditer('|'.join(map(re.escape, longest_first)), prefix):
            between = side_of_text(prefix[end : match.start()])
            ids += [*self._encoder.encode_side(between).ids.tolist(), tokens[match[0]]]
            end = match.end()
        return tuple(ids), prefix[end:]


def check_text(text: object) -> None:
    """Raises TypeError if a text is not a string."""
    if not isinstance(text, str):
        kind = type(text).__name__
        raise TypeError(f'the text is {reprlib.repr(text)}, of the type {kind}; give a string')


def side_of_text(text: str) -> Side:
    """Returns a side with one row; raises TypeError for what is not a string."""
    check_text(text)
    data = np.frombuffer(text.encode('utf-8', 'surrogatepass'), np.uint8)
    return Side(data, np.zeros(1, np.int64), np.full(1, len(data), np.int64))


def side_of_rows(rows: Sequence[bytes]) -> Side:
    """Returns one or more rows as a side, with a line feed between two of them, and zeros behind."""
    sizes = np.array([*map(len, rows)], np.int64)
    ends = (sizes + 1).cumsum() - 1
    return Side(np.frombuffer(b'\n'.join(rows) + _ZEROS, np.uint8), ends - sizes, ends)


def first_row_without_ids(
    encoder: Encoder, side: Side, prefix: str = ''
) -> tuple[int, ValueError] | None:
    """Returns the first row that the model has no ids for, and the error of `encode_side`.

    It encodes row by row, which is slow: call it once `encode_side` has failed.
    """
    for row in range(len(side)):
        one = side.take(slice(row, row + 1))
        try:
            encoder.encode_side(one, prefix)
        except ValueError as error:
            return row, error
    return None


def unknown_tokens(
    side: Side,
    encoded: EncodedSide,
    pre_tokenizer: PreTokenizer,
    model: Model,
    unknown: int,
    most: int,
    most_rows: int | None = None,
) -> dict[str, int]:
    """Returns the commonest tokens with the unknown id among theirs, with their counts.

    Args:
        side: the rows.
        encoded: their ids.
        pre_tokenizer, model: of the encoder that encoded them.
        unknown: the id of unknown tokens.
        most: how many tokens at most; of equal counts, the first by their bytes.
        most_rows: only this many rows are looked at, the first that have one; None: all.
    """
    places = np.flatnonzero(encoded.ids == unknown)
    rows = np.unique(np.searchsorted(encoded.offsets, places, 'right') - 1)[:most_rows]
    counted = TokenAccumulator()
    counted.add_rows(side.text, side.starts[rows], side.ends[rows], pre_tokenizer)
    data, offsets, counts = counted.finish()
    tokens = [
        (data[offsets[token] : offsets[token + 1]].tobytes(), int(counts[token]))
        for token in np.flatnonzero(np.diff(offsets) <= _LONGEST_UNKNOWN).tolist()
    ]
    tokens.sort(key=lambda token: (-token[1], token[0]))
    commonest: dict[str, int] = {}
    for first in range(0, len(tokens), _SEGMENTED_AT_ONCE):
        for token, count in _unknown(tokens[first : first + _SEGMENTED_AT_ONCE], model, unknown):
            commonest[token.decode('utf-8', 'replace')] = count
            if len(commonest) == most:
                return commonest
    return commonest


def _unknown(
    tokens: list[tuple[bytes, int]], model: Model, unknown: int
) -> Iterator[tuple[bytes, int]]:
    offsets = row_offsets([len(token) for token, _ in tokens]).astype(np.uint64)
    text = with_margin(np.frombuffer(b''.join(token for token, _ in tokens), np.uint8))
    scanned = ScannedTokens(text, offsets[:-1], offsets[1:], np.zeros(1, np.int64))
    missed = MissedTokens(np.arange(len(tokens), dtype=np.uint64), len(tokens), int(offsets[-1]))
    work = model.workspace(len(tokens))
    failure = segment_tokens(scanned, missed, model.state, work)[1]
    if failure == NO_ROOM:
        work = larger_workspace(missed, model.state, work)
        segment_tokens(scanned, missed, model.state, work)
    for number, token in enumerate(tokens):
        ids = work.ids[work.id_bounds[number] : work.id_bounds[number + 1]]
        if (ids == unknown).any():
            yield token


@dataclass(frozen=True)
class EncodedSide:
    """The ids of rows, one after another."""

    ids: np.ndarray
    """int32[sum of the rows' lengths], or uint16 where a row is long"""

    offsets: np.ndarray
    """int64[rows + 1]: row r has `ids[offsets[r]:offsets[r + 1]]`."""


class _GrowingSide:
    """An encoded side to which ids are added."""

    def __init__(self, text_bytes: int, rows: int, dtype: type[np.integer] = np.int32):
        # Memory that is not written to is not taken, and text seldom has more ids than this.
        self.ids = np.empty(text_bytes // 2 + rows, dtype)
        self.offsets = np.zeros(rows + 1, np.int64)
        self.rows = self.used = 0

    def add(self, ids: np.ndarray) -> None:
        """Adds ids to the current row."""
        self._make_room(len(ids))
        self.ids[self.used : self.used + len(ids)] = ids
        self.used += len(ids)

    def add_rows(self, rows: _GrowingSide) -> None:
        """Adds whole rows."""
        ends = slice(self.rows + 1, self.rows + 1 + rows.rows)
        self.offsets[ends] = self.used + rows.offsets[1 : rows.rows + 1]
        self.rows += rows.rows
        self.add(rows.ids[: rows.used])

    def end_row(self) -> None:
        self.rows += 1
        self.offsets[self.rows] = self.used

    def side(self) -> EncodedSide:
        return EncodedSide(self.ids[: self.used], self.offsets)

    def _make_room(self, size: int) -> None:
        if self.used + size <= len(self.ids):
            return
        size = self.used + size + len(self.ids) // 32
        if self.ids.flags.owndata:
            # In place: the operating system moves large memory without a copy.
            self.ids.resize(size, refcheck=False)
        else:
            larger = np.empty(size, self.ids.dtype)
            larger[: self.used] = self.ids[: self.used]
            self.ids = larger


@dataclass(frozen=True)
class DroppedCharacters:
    """How much of each character is lost.

    Attributes:
        lost: uint8[0x110000], how many bytes of a character's UTF-8 have no id.
        normalize: brings rows into the form that the model gets; None: they have it.
    """

    lost: np.ndarray
    normalize: Callable[[Side], Side] | None = None

    def count(self, side: Side, most: int) -> tuple[int, dict[str, int]]:
        """Returns how many bytes of rows have no id, and in which characters they are.

        At most `most` characters, the commonest; of equal counts, the first by code.
        """
        rows = (side if self.normalize is None else self.normalize(side)).joined()
        data = rows.text.tobytes()
        size, counts, start = 0, Counter[str](), 0
        while start < len(data):
            end = min(start + _PIECE_BYTES, len(data))
            while end < len(data) and data[end] & 0xC0 == 0x80:
                end -= 1
            text = data[start:end].decode('utf-8', 'surrogatepass')
            codes = np.frombuffer(text.encode('utf-32-le', 'surrogatepass'), np.uint32)
            lost = self.lost[codes]
            size += int(lost.sum())
            found, times = np.unique(codes[lost > 0], return_counts=True)
            counts.update(dict(zip(map(chr, found.tolist()), times.tolist(), strict=True)))
            start = end
        if self.lost[_LINE_FEED]:  # one follows each of the joined rows
            size -= int(self.lost[_LINE_FEED]) * len(side)
            counts['\n'] -= len(side)
        return size, _commonest(+counts, most)


@dataclass(frozen=True)
class UnmatchedText:
    """How much text is in no token, because no expression of a pre-tokenizer matches it."""

    pre_tokenizer: SplitPreTokenizer

    def count(self, side: Side, most: int) -> tuple[int, dict[str, int]]:
        """Returns how many bytes of rows are in no token, and in which characters; as the other `count`."""
        tokens, _ = self.pre_tokenizer.prepare(TextRows(side.text, side.starts, side.ends))
        borders = np.zeros(len(side.text) + 1, np.int64)
        for places in (side.starts, tokens.ends):
            np.add.at(borders, places, 1)
        for places in (side.ends, tokens.starts):
            np.subtract.at(borders, places, 1)
        lost = side.text[np.cumsum(borders)[:-1] > 0].tobytes()
        return len(lost), _commonest(Counter(lost.decode('utf-8', 'surrogatepass')), most)


def _commonest(counts: Counter[str], most: int) -> dict[str, int]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:most])
