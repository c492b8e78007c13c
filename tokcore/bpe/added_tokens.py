"""Added tokens: what is looked for in text before it is cut, and encoded by itself.

`tokenizers` looks for those that are not `normalized` in the text as it is, then normalizes what is
between them, and looks there for the others; each time for the leftmost, of several the longest.
What is between them is a text of its own for the pre-tokenizer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary
from tokcore.encoding.encoder import DEFAULT_CACHE_BYTES, EncodedSide, RowEncoder
from tokcore.errors import InputError
from tokcore.text.pre_tokenizer import PreTokenizer
from tokcore.text.rewriting import prepend
from tokcore.text.rows import Side

_SPACE = 0x20
_FLAGS = ('single_word', 'lstrip', 'rstrip')


class Finder:
    """Finds tokens in bytes: the leftmost, of several the longest."""

    def __init__(self, ids: Mapping[bytes, int]):
        self._ids = ids
        # The first alternative that matches is taken, so the longest stand before others.
        longest_first = sorted(ids, key=len, reverse=True)
        self._pattern = re.compile(b'|'.join(map(re.escape, longest_first)))

    def __call__(self, text: bytes) -> Iterator[tuple[int, int, int]]:
        """Yields (start, end, id) of each token in a text."""
        for match in self._pattern.finditer(text):
            yield match.start(), match.end(), self._ids[match[0]]


def finder(tokens: Sequence[AddedToken], form: str | None = None) -> Finder | None:
    """Returns what finds these tokens, None if there are none; their contents are normalized."""
    ids: dict[bytes, int] = {}
    for each in tokens:
        content = unicodedata.normalize(form, each.content) if form else each.content
        ids.setdefault(content.encode('utf-8', 'surrogatepass'), each.id)
    return Finder(ids) if ids else None


def matched_tokens(
    vocabulary: BpeVocabulary, allow_special_tokens: bool
) -> tuple[list[AddedToken], list[AddedToken]]:
    """Returns the added tokens that are looked for: in text as it is, and in normalized text.

    Raises:
        InputError: one of them is to be found in a way that is not supported.
    """
    matched = [each for each in vocabulary.added if allow_special_tokens or not each.special]
    for each in matched:
        for flag in _FLAGS:
            if getattr(each, flag):
                raise InputError(
                    f'the added token {each.content!r:.80} has {flag}, which is not supported; '
                    + (
                        'leave out --allow-special-tokens, and it is text like others'
                        if each.special
                        else 'encode with the tokenizers that the vocabulary was made for'
                    )
                )
    raw = [each for each in matched if not each.normalized]
    return raw, [each for each in matched if each.normalized]


class AddedTokenEncoder:
    """A `RowEncoder` that finds added tokens in rows; what is between them others encode."""

    def __init__(
        self, encoder: RowEncoder, finders: Sequence[Finder | None], add_prefix_space: bool = False
    ):
        """Takes the encoder of what is between, and what is looked for, one after another."""
        self._encoder = encoder
        self._finders = [each for each in finders if each is not None]
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
        side = prepend(side, prefix)
        found = self._find(side)
        if not found:
            return self._encoder.encode_side(self._prefixed(side), '', before, after)
        rows, cuts, added = _cut_rows(side, found)
        between = self._encoder.encode_side(self._prefixed(cuts))
        return _joined(between, rows, added, len(side), (before, after))

    def _find(self, side: Side) -> list[list[tuple[int, int, int]]]:
        """Of each row (start, end, id) of what is found, by place; nothing if no row has any."""
        if not len(side) or not any(map(self._is_anywhere(side), self._finders)):
            return []
        places = zip(side.starts.tolist(), side.ends.tolist(), strict=True)
        rows = [[(start, end, -1)] for start, end in places]
        some = False
        for find in self._finders:
            for number, parts in enumerate(rows):
                cut = []
                for start, end, id_ in parts:
                    if id_ < 0:
                        for begin, stop, added in find(side.text[start:end].tobytes()):
                            cut.append((start + begin, start + stop, added))
                    else:
                        cut.append((start, end, id_))
                if any(id_ >= 0 for _, _, id_ in cut):
                    some = True
                    rows[number] = _with_gaps(cut, *_ends(parts))
        return rows if some else []

    @staticmethod
    def _is_anywhere(side: Side) -> Callable[[Finder], bool]:
        """Says whether something is found in the text of all rows, or between them."""
        text = side.text[side.starts.min() : side.ends.max()].tobytes()
        return lambda find: next(find(text), None) is not None

    def _prefixed(self, side: Side) -> Side:
        if not self._add_prefix_space:
            return side
        lengths = side.ends - side.starts
        has_one = lengths == 0
        has_one[~has_one] = side.text[side.starts[~has_one]] == _SPACE
        spaced = prepend(side, ' ')
        return Side(spaced.text, spaced.starts + has_one, spaced.ends)


def _ends(parts: list[tuple[int, int, int]]) -> tuple[int, int]:
    return parts[0][0], parts[-1][1]


def _with_gaps(cut: list[tuple[int, int, int]], start: int, end: int) -> list[tuple[int, int, int]]:
    """What was found and what is between, with -1 as its id."""
    parts = []
    for begin, stop, id_ in cut:
        if start < begin:
            parts.append((start, begin, -1))
        parts.append((begin, stop, id_))
        start = stop
    if start < end:
        parts.append((start, end, -1))
    return parts


def _cut_rows(
    side: Side, found: list[list[tuple[int, int, int]]]
) -> tuple[np.ndarray, Side, np.ndarray]:
    """The parts of all rows: the row of each, as rows of their own, and their ids or -1.

    An added token is a row of no characters.
    """
    rows = np.array([row for row, parts in enumerate(found) for _ in parts], np.int64)
    parts = np.array([part for parts in found for part in parts], np.int64).reshape(-1, 3)
    starts, ends, added = (np.ascontiguousarray(column) for column in parts.T)
    return rows, Side(side.text, starts, np.where(added < 0, ends, starts)), added


def _joined(
    between: EncodedSide,
    rows: np.ndarray,
    added: np.ndarray,
    count: int,
    around: tuple[Sequence[int], Sequence[int]],
) -> EncodedSide:
    """The ids of so many rows, of the ids of their parts."""
    sizes = np.diff(between.offsets) + (added >= 0)
    before, after = (np.array(ids, np.int32) for ids in around)
    row_sizes = np.bincount(rows, sizes, count).astype(np.int64) + len(before) + len(after)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(row_sizes, out=offsets[1:])
    ids = np.empty(offsets[-1], np.int32)
    written = offsets[:-1].copy()
    for k in range(len(before)):
        ids[written + k] = before[k]
    for k in range(len(after)):
        ids[offsets[1:] - len(after) + k] = after[k]
    starts = np.cumsum(sizes) - sizes + len(before)
    # Behind the parts of the rows before, and what stands around these.
    starts += rows * (len(before) + len(after))
    is_added = added >= 0
    ids[starts[is_added]] = added[is_added]
    shift = np.repeat(starts - between.offsets[:-1], np.diff(between.offsets))
    ids[np.arange(len(between.ids)) + shift] = between.ids
    return EncodedSide(ids, offsets)


def row_encoder(
    pre_tokenizer: PreTokenizer,
    vocabulary: BpeVocabulary,
    allow_special_tokens: bool,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    in_raw_text: bool = True,
) -> RowEncoder | AddedTokenEncoder:
    """Returns an encoder of rows that are normalized, for one thread.

    Raises InputError as `matched_tokens`. Unless `in_raw_text`, those that are to be found before
    text is normalized are left out.
    """
    encoder = RowEncoder(pre_tokenizer, vocabulary.model, cache_bytes)
    before, behind = matched_tokens(vocabulary, allow_special_tokens)
    finders = [finder(before if in_raw_text else ()), finder(behind, vocabulary.parts.form)]
    if not any(finders) and not vocabulary.parts.add_prefix_space:
        return encoder
    return AddedTokenEncoder(encoder, finders, vocabulary.parts.add_prefix_space)
