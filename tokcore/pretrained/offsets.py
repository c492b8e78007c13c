"""Where the ids of one text are in it: as `tokenizers` says, or SentencePiece for its own models.

The steps of the encoder are done once more, in plain Python, with a text that knows where its characters
come from. The ids are known; they only say which pieces a token has.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tokcore.bpe.model import MergeModel
from tokcore.bpe.model_kernels import NONE, MergeState
from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.kernels.bytes import with_margin
from tokcore.pretrained.added_tokens import AddedTokenFinder
from tokcore.pretrained.borders import BorderPreTokenizer
from tokcore.pretrained.encoder import finders
from tokcore.pretrained.normalizers import normal_form
from tokcore.pretrained.pre_tokenizers import Cutting
from tokcore.pretrained.unigram import UnigramModel
from tokcore.pretrained.vocabulary import PretrainedVocabulary
from tokcore.text.alignment import AlignedText, Span
from tokcore.text.byte_level import spelled
from tokcore.text.patterns import WHITE_SPACE
from tokcore.text.pre_tokenizer import RowTokens, one_row, scan_row
from tokcore.text.split_sequence import pattern_pre_tokenizer
from tokcore.wordpiece.model import WordPieceModel

_Token = tuple[str, list[Span]]
"""A token as the model gets it, and for each of its characters what of the text became it."""

_Pieces = Iterator[tuple[int, int, int]]
"""Ids, and the bytes of the token that each stands for: the first, and the one after the last."""

_SPACES = spelled(b' ') + WHITE_SPACE


class OffsetFinder:
    """Finds where the ids of texts are, for any number of threads."""

    def __init__(self, vocabulary: PretrainedVocabulary, allow_special_tokens: bool = False):
        """Takes a vocabulary, and whether special tokens are found in text."""
        self._vocabulary = vocabulary
        self._finders = finders(vocabulary, allow_special_tokens)

    def offsets(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Returns for each id of a text, without those of the template, what of the text became it."""
        vocabulary, left = self._vocabulary, iter(ids)
        original, normalized = self._finders
        found: list[tuple[str, Span]] = []
        for part, id_, is_first in _parts(AlignedText.of(text), original):
            for step in vocabulary.steps if id_ < 0 else ():
                part = step.align(part)
            inner_parts = _parts(part, normalized) if id_ < 0 else [(part, id_, True)]
            for inner, inner_id, is_inner_first in inner_parts:
                if inner_id < 0:
                    inner = vocabulary.cutting.align(inner, is_first and is_inner_first)
                    for token in self._tokens(inner):
                        found += self._of_token(token, left)
                else:
                    found.append((inner.text, (inner.spans[0][0], inner.spans[-1][1])))
                    next(left)
        spans = [span for _, span in found]
        for has_prefix in vocabulary.trims:
            spans = [
                _trimmed(piece, span, has_prefix and (number == 0 or span[0] == 0))
                for number, ((piece, _), span) in enumerate(zip(found, spans, strict=True))
            ]
        return spans

    def _tokens(self, text: AlignedText) -> Iterator[_Token]:
        if not text.text:
            return
        cutting = self._vocabulary.cutting
        data = np.frombuffer(_utf8(text.text), np.uint8)
        row, spans = one_row(with_margin(data), 0, len(data)), _of_bytes((text.text, text.spans))
        # Borders change no ids, and spaces are marks here.
        is_whole = isinstance(cutting.pre_tokenizer, BorderPreTokenizer)
        pre_tokenizer = RowTokens() if is_whole else cutting.pre_tokenizer
        for starts, ends in scan_row(row, *pre_tokenizer.prepare(row)):
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                token = data[start:end]
                if cutting.byte_level:
                    yield spelled(token.tobytes()), spans[start:end]
                else:
                    firsts = np.flatnonzero(token & 0xC0 != 0x80) + start
                    yield _text(token.tobytes()), [spans[place] for place in firsts]

    def _of_token(self, token: _Token, left: Iterator[int]) -> Iterator[tuple[str, Span]]:
        spans, data = _of_bytes(token), _utf8(token[0])
        for id_, first, last in self._pieces(token[0], left):
            start, end = spans[first][0], spans[last - 1][1]
            if self._vocabulary.is_sentencepiece and last < len(data) and data[last] & 0xC0 == 0x80:
                end = start  # of the bytes of a character only the last one stands for it
            yield self._vocabulary.pieces[id_], (start, end)

    def _pieces(self, token: str, left: Iterator[int]) -> _Pieces:
        match self._vocabulary.model:
            case MergeModel() as model:
                return self._merged(token, left, model)
            case UnigramModel() as model:
                return self._unigrams(_utf8(token), left, model)
            case WordPieceModel() as model:
                return self._word_pieces(len(_utf8(token)), left, model.state.unknown)
        return iter([(next(left), 0, len(_utf8(token)))])

    def _merged(self, token: str, left: Iterator[int], model: MergeModel) -> _Pieces:
        symbols = self._symbols(token, model.state)
        if len(model.state.ignore_merges.slots) and token in self._vocabulary.entries:
            symbols = [(token, len(_utf8(token)))]
        # Where symbols are not ids, one without an id has that of unknown ones.
        odd = self._vocabulary.special_ids.unknown if len(model.state.outputs) else None
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
            data = _utf8(character)
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

    def _unigrams(self, data: bytes, left: Iterator[int], model: UnigramModel) -> _Pieces:
        fallback, begin, way = model.state.fallback, 0, model.best_way(data)
        in_sentencepiece = self._vocabulary.is_sentencepiece
        for (end, is_unknown), (_, continues) in zip(way, [*way[1:], (0, False)], strict=True):
            if is_unknown and continues:
                continue  # a run of unknown characters is one
            run = data[begin:end]
            is_entry = not in_sentencepiece and _text(run) in self._vocabulary.entries
            if (
                is_unknown and not is_entry
                and len(fallback) and (fallback[[*run]] >= 0).all()
            ):  # fmt: skip
                for place in range(begin, end):
                    ends = (place, place + 1) if in_sentencepiece else (begin, end)
                    yield next(left), *ends
            else:
                yield next(left), begin, end
            begin = end

    def _word_pieces(self, size: int, left: Iterator[int], unknown: int) -> _Pieces:
        end = 0
        while end < size:
            id_, start = next(left), end
            end += len(_utf8(self._vocabulary.pieces[id_]))
            end -= len(_utf8(self._vocabulary.joiner)) if start else 0
            yield id_, start, size if id_ == unknown else end
            if id_ == unknown:
                return


def _parts(text: AlignedText, finder: AddedTokenFinder) -> Iterator[tuple[AlignedText, int, bool]]:
    """Yields the parts of a text: each, its id if it is an added token, else -1, and if it is the first."""
    numbers = [number for number, character in enumerate(text.text) for _ in _utf8(character)]
    numbers.append(len(text.text))
    for start, end, id_ in finder.find(_utf8(text.text)):
        yield text.part(numbers[start], numbers[end]), id_, start == 0


def _of_bytes(token: _Token) -> list[Span]:
    """Returns for each byte of a token what of the text became it."""
    return [span for character, span in zip(*token, strict=True) for _ in _utf8(character)]


def _utf8(text: str) -> bytes:
    return text.encode('utf-8', 'surrogatepass')


def _text(data: bytes) -> str:
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
    cutting = Cutting(
        prefix=' ',
        prefixed='always' if parts.add_prefix_space else 'never',
        pre_tokenizer=pattern_pre_tokenizer(*parts.patterns),
        byte_level=parts.byte_level,
    )
    pretrained = PretrainedVocabulary(
        b'',
        vocabulary.entries,
        vocabulary.added,
        functools.partial(getattr, vocabulary, 'model'),
        cutting,
        (normal_form(parts.form),) if parts.form else (),
        trims=tuple(trims_of(parts.components.get('post_processor'))),
    )
    return OffsetFinder(pretrained, allow_special_tokens)
