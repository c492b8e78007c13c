"""The tokenizer of a foreign file for use from Python, and where its ids are in a text."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence

from tokcore.bpe.model import MergeModel
from tokcore.bpe.offsets import OffsetFinder, Pieces, Token, of_bytes, text_of, utf8
from tokcore.encoding.encoder import SharedEncoder, check_text
from tokcore.encoding.tokenizer import Tokenizer, without_surrogates
from tokcore.encoding.vocabulary import read_vocabulary_file
from tokcore.foreign_tokenizers.borders import BorderPreTokenizer
from tokcore.foreign_tokenizers.encoder import PretrainedEncoder, finders
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.unigram import UnigramModel
from tokcore.foreign_tokenizers.vocabulary import PretrainedVocabulary
from tokcore.text.alignment import Span, joined_surrogates
from tokcore.text.pre_tokenizer import RowTokens
from tokcore.wordpiece.model import WordPieceModel


class PretrainedTokenizer(Tokenizer):
    """Encodes as the library does that wrote the file of a trained model; threads can share it.

    Example: with Qwen's tokenizer.json, `encode(text)` gives what `tokenizers` gives.
    """

    vocabulary: PretrainedVocabulary

    def __init__(self, vocabulary: PretrainedVocabulary, *, allow_special_tokens: bool = False):
        """Takes a vocabulary, and whether `<|endoftext|>` in text is that token, as in `tokenizers`."""
        self.vocabulary, self._around = vocabulary, vocabulary.template
        self._allow = allow_special_tokens
        make = functools.partial(PretrainedEncoder, vocabulary, allow_special_tokens)
        self._encoder = SharedEncoder(make)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike,
        pattern: str | None = None,
        allow_special_tokens: bool = False,
    ) -> PretrainedTokenizer:
        """Reads a tokenizer.json, a tekken.json, a SentencePiece model, or tiktoken's, with a pattern.

        Raises InputError if the file cannot be read, is not one of these, or has a part that is not
        supported.
        """
        data = read_vocabulary_file(path)
        return cls._of_file(data, os.fspath(path), pattern, allow_special_tokens)

    @classmethod
    def _of_file(
        cls, data: bytes, path: str, pattern: str | None, allow_special_tokens: bool
    ) -> PretrainedTokenizer:
        vocabulary = parse_pretrained(data, path, pattern)
        return cls(vocabulary, allow_special_tokens=allow_special_tokens)

    def __reduce__(self):
        # A copy reads the file again: the steps of a vocabulary cannot be pickled.
        vocabulary = self.vocabulary
        file = vocabulary.data, vocabulary.path, vocabulary.pattern
        return PretrainedTokenizer._of_file, (*file, self._allow)

    def _checked(self, text: str) -> str:
        check_text(text)
        return (
            joined_surrogates(text)
            if self.vocabulary.joins_surrogates
            else without_surrogates(text)
        )

    def _spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        return self._offset_finder.offsets(text, ids)

    @functools.cached_property
    def _offset_finder(self) -> PretrainedOffsetFinder:
        return PretrainedOffsetFinder(self.vocabulary, self._allow)

    def tokenize(self, text: str) -> list[str]:
        """Returns the pieces of a text, as the file spells them."""
        return [self.pieces[id_] for id_ in self.encode(text, add_special_tokens=False)]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes of ids, exactly where they stand for bytes."""
        return self.vocabulary.decode_bytes(self._known(ids))


class PretrainedOffsetFinder(OffsetFinder):
    """An `OffsetFinder` for all models; for those of SentencePiece, offsets are as SentencePiece gives them."""

    def __init__(self, vocabulary: PretrainedVocabulary, allow_special_tokens: bool = False):
        """Takes a vocabulary, and whether special tokens are found in text."""
        cutting = vocabulary.cutting
        # Borders change no ids, and spaces are marks here.
        is_whole = isinstance(cutting.pre_tokenizer, BorderPreTokenizer)
        super().__init__(
            vocabulary,
            vocabulary.model,
            [find.find for find in finders(vocabulary, allow_special_tokens)],
            [step.align for step in vocabulary.steps],
            cutting.align,
            RowTokens() if is_whole else cutting.pre_tokenizer,
            cutting.byte_level,
            vocabulary.trims,
        )
        self._is_sentencepiece, self._joiner = vocabulary.is_sentencepiece, vocabulary.joiner

    def _of_token(self, token: Token, left: Iterator[int]) -> Iterator[tuple[str, Span]]:
        if not self._is_sentencepiece:
            yield from super()._of_token(token, left)
            return
        spans, data = of_bytes(token), utf8(token[0])
        for id_, first, last in self._pieces(token[0], left):
            start, end = spans[first][0], spans[last - 1][1]
            if last < len(data) and data[last] & 0xC0 == 0x80:
                end = start  # of the bytes of a character only the last one stands for it
            yield self._vocabulary.pieces[id_], (start, end)

    def _pieces(self, token: str, left: Iterator[int]) -> Pieces:
        match self._model:
            case UnigramModel() as model:
                return self._unigrams(utf8(token), left, model)
            case WordPieceModel() as model:
                return self._word_pieces(len(utf8(token)), left, model.state.unknown)
            case MergeModel():
                return super()._pieces(token, left)
        return iter([(next(left), 0, len(utf8(token)))])

    def _unigrams(self, data: bytes, left: Iterator[int], model: UnigramModel) -> Pieces:
        fallback, begin, way = model.state.fallback, 0, model.best_way(data)
        in_sentencepiece = self._is_sentencepiece
        for (end, is_unknown), (_, continues) in zip(way, [*way[1:], (0, False)], strict=True):
            if is_unknown and continues:
                continue  # a run of unknown characters is one
            run = data[begin:end]
            is_entry = not in_sentencepiece and text_of(run) in self._vocabulary.entries
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

    def _word_pieces(self, size: int, left: Iterator[int], unknown: int) -> Pieces:
        end = 0
        while end < size:
            id_, start = next(left), end
            end += len(utf8(self._vocabulary.pieces[id_]))
            end -= len(utf8(self._joiner)) if start else 0
            yield id_, start, size if id_ == unknown else end
            if id_ == unknown:
                return
