"""Where the ids of one text are in it, as `tokenizers` says.

The steps of the encoder are done once more, in plain Python, with a text that knows where its characters
come from. The ids are known; they only say which pieces a token has.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tokcore.bpe.added_tokens import Part, finders
from tokcore.bpe.model import MergeModel
from tokcore.bpe.model_kernels import NONE, MergeState
from tokcore.bpe.vocabulary import BpeVocabulary, EntriesWithAddedTokens
from tokcore.kernels.bytes import with_margin
from tokcore.text.alignment import AlignedText, Span
from tokcore.text.byte_level import spelled
from tokcore.text.patterns import WHITE_SPACE
from tokcore.text.pre_tokenizer import PreTokenizer, one_row, scan_row
from tokcore.text.split_sequence import pattern_pre_tokenizer

FindParts = Callable[[bytes], Iterable[Part]]
"""Cuts a text at its added tokens."""

Token = tuple[str, list[Span]]
"""A token as the model gets it, and for each of its characters what of the text became it."""

Pieces = Iterator[tuple[int, int, int]]
"""Ids, and the bytes of the token that each stands for: the first, and the one after the last."""

_SPACES = spelled(b' ') + WHITE_SPACE


class OffsetFinder:
    """Finds where the ids of texts are, for any number of threads.

    Args:
        vocabulary: of the ids.
        model: gives the ids of tokens.
        finders: of the added tokens in original text, and of those in normalized text.
        steps: the normalizers.
        prepare: does what pre-tokenizers do with a text before they cut it; takes also whether it begins a row.
        pre_tokenizer: cuts texts.
        byte_level: whether the model has bytes for symbols.
        trims: for each post-processor that trims offsets, whether a space was added to the text.
    """

    def __init__(
        self,
        vocabulary: EntriesWithAddedTokens,
        model: object,
        finders: Sequence[FindParts],
        steps: Sequence[Callable[[AlignedText], AlignedText]],
        prepare: Callable[[AlignedText, bool], AlignedText],
        pre_tokenizer: PreTokenizer,
        byte_level: bool,
        trims: Sequence[bool],
    ):
        self._vocabulary, self._model, self._finders = vocabulary, model, finders
        self._steps, self._prepare, self._pre_tokenizer = steps, prepare, pre_tokenizer
        self._byte_level, self._trims = byte_level, trims

    def offsets(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Returns for each id of a text, without those of the template, what of the text became it."""
        left = iter(ids)
        original, normalized = self._finders
        found: list[tuple[str, Span]] = []
        for part, id_, is_first in _parts(AlignedText.of(text), original):
            for step in self._steps if id_ < 0 else ():
                part = step(part)
            inner_parts = _parts(part, normalized) if id_ < 0 else [(part, id_, True)]
            for inner, inner_id, is_inner_first in inner_parts:
                if inner_id < 0:
                    inner = self._prepare(inner, is_first and is_inner_first)
                    for token in self._tokens(inner):
                        found += self._of_token(token, left)
                else:
                    found.append((inner.text, (inner.spans[0][0], inner.spans[-1][1])))
                    next(left)
        spans = [span for _, span in found]
        for has_prefix in self._trims:
            spans = [
                _trimmed(piece, span, has_prefix and (number == 0 or span[0] == 0))
                for number, ((piece, _), span) in enumerate(zip(found, spans, strict=True))
            ]
        return spans

    def _tokens(self, text: AlignedText) -> Iterator[Token]:
        if not text.text:
            return
        data = np.frombuffer(utf8(text.text), np.uint8)
        row, spans = one_row(with_margin(data), 0, len(data)), of_bytes((text.text, text.spans))
        for starts, ends in scan_row(row, *self._pre_tokenizer.prepare(row)):
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                token = data[start:end]
                if self._byte_level:
                    yield spelled(token.tobytes()), spans[start:end]
                else:
                    firsts = np.flatnonzero(token & 0xC0 != 0x80) + start
                    yield text_of(token.tobytes()), [spans[place] for place in firsts]

    def _of_token(self, token: Token, left: Iterator[int]) -> Iterator[tuple[str, Span]]:
        spans = of_bytes(token)
        for id_, first, last in self._pieces(token[0], left):
            yield self._vocabulary.pieces[id_], (spans[first][0], spans[last - 1][1])

    def _pieces(self, token: str, left: Iterator[int]) -> Pieces:
        """Yields the pieces of a token, and takes as many of the ids that are left."""
        assert isinstance(self._model, MergeModel)
        state = self._model.state
        symbols = self._symbols(token, state)
        if len(state.ignore_merges.slots) and token in self._vocabulary.entries:
            symbols = [(token, len(utf8(token)))]
        # Where symbols are not ids, one without an id has that of unknown ones.
        odd = self._vocabulary.special_ids.unknown if len(state.outputs) else None
        end, number = 0, 0
        while number < len(symbols):
            id_, start, name = next(left), end, ''
            # The name of a merged symbol is that of both parts, the last one's with a suffix.
            size = 1 if id_ == odd else len(self._vocabulary.pieces[id_])
            while number < len(symbols) and len(name) < size:
                name += symbols[number][0]
                end += symbols[number][1]
                number += 1
            yield id_, start, end

    def _symbols(self, token: str, state: MergeState) -> list[tuple[str, int]]:
        """Returns the names and bytes of a token's first symbols; characters that are dropped have none."""
        units, symbols = state.units, list[tuple[str, int]]()
        unknown: list[tuple[str, int]] = []  # comes before the next character that is known
        for character in token:
            data = utf8(character)
            fallback = [units.fallback[byte] for byte in data]
            if character in self._vocabulary.entries or len(state.outputs):
                symbols += [*unknown, (character, len(data))]
                unknown = []
            elif NONE not in fallback:
                symbols += [(self._vocabulary.pieces[id_], 1) for id_ in fallback]
            elif units.unknown != NONE:
                size = unknown[0][1] if unknown and units.fuse_unknown else 0
                symbols += unknown if not size else []
                unknown = [(self._vocabulary.pieces[units.unknown], size + len(data))]
        return symbols + unknown


def _parts(text: AlignedText, find: FindParts) -> Iterator[tuple[AlignedText, int, bool]]:
    """Yields the parts of a text: each, its id if it is an added token, else -1, and if it is the first."""
    numbers = [number for number, character in enumerate(text.text) for _ in utf8(character)]
    numbers.append(len(text.text))
    for start, end, id_ in find(utf8(text.text)):
        yield text.part(numbers[start], numbers[end]), id_, start == 0


def of_bytes(token: Token) -> list[Span]:
    """Returns for each byte of a token what of the text became it."""
    return [span for character, span in zip(*token, strict=True) for _ in utf8(character)]


def utf8(text: str) -> bytes:
    return text.encode('utf-8', 'surrogatepass')


def text_of(data: bytes) -> str:
    return data.decode('utf-8', 'surrogatepass')


def _trimmed(piece: str, span: Span, may_be_added: bool) -> Span:
    """Returns a span without the white space of its piece; a single space stays that may be an added one."""
    start, end = span
    leading = len(piece) - len(piece.lstrip(_SPACES))
    trailing = len(piece) - len(piece.rstrip(_SPACES))
    if leading and not (may_be_added and leading == 1):
        start = min(start + leading, end)
    return start, max(end - trailing, start) if end >= trailing else end


def trims_of(post_processor: Any) -> Iterator[bool]:
    """Yields for each part of a post-processor that trims offsets whether text has an added space."""
    match post_processor:
        case {'type': 'Sequence', 'processors': list(members)}:
            for member in members:
                yield from trims_of(member)
        case {'type': 'ByteLevel' | 'RobertaProcessing'}:
            if post_processor.get('trim_offsets', True):
                yield bool(post_processor.get('add_prefix_space', True))


def bpe_offset_finder(vocabulary: BpeVocabulary, allow_special_tokens: bool) -> OffsetFinder:
    """Returns what finds offsets for the scheme `bpe`."""
    parts = vocabulary.parts
    original, normalized = finders(vocabulary, allow_special_tokens)

    def prepare(text: AlignedText, is_first: bool) -> AlignedText:
        is_added = parts.add_prefix_space and text.text[:1] not in ('', ' ')
        return text.prepended(' ') if is_added else text

    return OffsetFinder(
        vocabulary,
        vocabulary.model,
        (original.find, normalized.find),
        [operator.methodcaller('normalized', parts.form)] if parts.form else [],
        prepare,
        pattern_pre_tokenizer(*parts.patterns),
        parts.byte_level,
        tuple(trims_of(parts.components.get('post_processor'))),
    )
