"""Encodes the rows of a block with a pretrained vocabulary.

As in `tokenizers`, added tokens that are not `normalized` are found in the rows; what lies between
them is normalized, and the other added tokens are found in that; the rest is cut and segmented.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from tokcore.bpe.added_tokens import AddedTokenFinder, Finders, Parts, finders_of, join_parts
from tokcore.encoding.encoder import EncodedSide, RowEncoder, side_of_rows, side_of_text
from tokcore.encoding.kernels import Model
from tokcore.foreign_tokenizers.normalizers import TextStep, replaced
from tokcore.foreign_tokenizers.pre_tokenizers import MARK
from tokcore.foreign_tokenizers.vocabulary import PretrainedVocabulary
from tokcore.kernels.bytes import with_margin
from tokcore.kernels.jit import read_only
from tokcore.text.pre_tokenizer import (
    ListedTokens,
    PreTokenizer,
    RowPart,
    TextRows,
    with_zeros_behind,
)
from tokcore.text.rows import Side


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
        """See `RowEncoder.encode_text`."""
        if self._leaves(text) and not any(find.may_be_in(text) for find in self._finders):
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


def finders(vocabulary: PretrainedVocabulary, allow_special_tokens: bool) -> Finders:
    """Returns the finders of a vocabulary's added tokens."""
    steps = vocabulary.steps if vocabulary.normalizes_added else ()
    content = functools.partial(_normalized, steps=steps)
    return finders_of(vocabulary.added, allow_special_tokens, content)


def _normalized(text: str, steps: Sequence[TextStep]) -> str:
    side = side_of_text(text)
    for step in steps:
        side = step.rewrite(side)
    return side.text[side.starts[0] : side.ends[0]].tobytes().decode('utf-8', 'surrogatepass')


def texts_of(vocabulary: PretrainedVocabulary, find: Finders, parts: Parts) -> Parts:
    """Returns the texts of rows as the pre-tokenizer cuts them, and the added tokens between them."""
    original, normalized = find
    parts = original.cut(parts)
    parts = parts._replace(texts=vocabulary.normalized(parts.texts))
    if normalized:
        parts = normalized.cut(parts)
    cutting = vocabulary.cutting
    spaces = functools.partial(replaced, old=b' ', new=cutting.spaces.encode())
    return parts._replace(texts=cutting.texts(parts.texts, parts.is_first, spaces))


class _OriginalRows:
    """A `PreTokenizer` of original rows, in Python; it is for lists of unknown tokens."""

    name = 'pretrained'
    options: ClassVar[Mapping[str, object]] = {}

    def __init__(self, vocabulary: PretrainedVocabulary, find: Finders):
        self._vocabulary = vocabulary
        self._finders = find

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
