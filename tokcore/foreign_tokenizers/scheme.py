"""The tokenizers of trained models as a scheme: from their files, with nothing to learn."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tokcore.bpe.scheme import AddedTokenOptions, pattern
from tokcore.encoding.hub_folders import CONFIG_NAMES
from tokcore.encoding.scheme import Learned, LearningOptions, Scheme
from tokcore.encoding.vocabulary import ReadBeside, Template, read_if_there
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.options import option

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.encoder import DroppedCharacters, UnmatchedText
    from tokcore.foreign_tokenizers.encoder import PretrainedEncoder
    from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer
    from tokcore.foreign_tokenizers.vocabulary import PretrainedVocabulary
    from tokcore.text.pre_tokenizer import PreTokenizer
    from tokcore.text.rows import Normalizer


LearningT = TypeVar('LearningT', bound=LearningOptions)


@dataclass(frozen=True)
class ModelFileScheme(Scheme['PretrainedVocabulary', LearningT, AddedTokenOptions]):
    """Encodes with a model's file as the library does that wrote it."""

    encoding = AddedTokenOptions
    configs_beside = CONFIG_NAMES

    @property
    def normalizer(self) -> Normalizer:
        from tokcore.text.normalizers import UNSTRIPPED_LINES

        return UNSTRIPPED_LINES  # the encoder has the file's

    def encoder(
        self, vocabulary: PretrainedVocabulary, options: AddedTokenOptions | None = None
    ) -> PretrainedEncoder:
        from tokcore.foreign_tokenizers.encoder import PretrainedEncoder

        options = options or AddedTokenOptions()
        return PretrainedEncoder(vocabulary, options.allow_special_tokens)

    def tokenizer(self, vocabulary: PretrainedVocabulary, **encoding: Any) -> PretrainedTokenizer:
        from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer

        return PretrainedTokenizer(vocabulary, **encoding)

    def special_tokens_of(self, vocabulary: PretrainedVocabulary) -> Sequence[str]:
        return [token.content for token in vocabulary.added if token.special]

    def template(self, vocabulary: PretrainedVocabulary, text: str | None = None) -> Template:
        return vocabulary.template if text is None else super().template(vocabulary, text)


@dataclass(frozen=True)
class PretrainedScheme(ModelFileScheme[LearningOptions]):
    """Encodes as the library of a model's file does: tokenizers, tiktoken, SentencePiece, Mistral's."""

    name = 'pretrained'
    file_suffix = 'tokenizer.json'
    options = None

    pattern: str | None = option(
        "of a file of tiktoken's ranks: the name of a pattern of --pre-tokenizer, or a regular "
        "expression (default: that of the file's name, as cl100k_base.tiktoken)",
        pattern,
        'P',
        many='repeated',
        default=None,
        changes_bytes=True,
    )

    def __post_init__(self) -> None:
        if isinstance(self.pattern, tuple):  # of an option that --scheme bpe takes several of
            if len(self.pattern) > 1:
                raise InputError('--scheme pretrained takes one --pattern; leave the others out')
            object.__setattr__(self, 'pattern', self.pattern[0] if self.pattern else None)

    @property
    def pre_tokenizer(self) -> PreTokenizer:
        from tokcore.text.pre_tokenizer import RowTokens

        return RowTokens()

    def learn(
        self, table: TokenTable, options: LearningOptions, report: Progress
    ) -> Learned[PretrainedVocabulary]:
        raise InputError('--scheme pretrained learns nothing; give --scheme bpe')

    def parse(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> PretrainedVocabulary:
        from tokcore.foreign_tokenizers.files import parse_pretrained

        return parse_pretrained(data, path, self.pattern)

    def recognizes(self, data: bytes) -> bool:
        from tokcore.foreign_tokenizers.files import is_pretrained_file

        return is_pretrained_file(data)

    def options_from_file(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> Mapping[str, object]:
        from tokcore.encoding.hub_folders import pattern_of_ranks
        from tokcore.encoding.vocabulary import without_mark
        from tokcore.foreign_tokenizers.ranks import is_tiktoken_file

        is_by_name = self.pattern is None and is_tiktoken_file(without_mark(data))
        return {'pattern': pattern_of_ranks(path) if is_by_name else self.pattern}

    def dropped(self, vocabulary: PretrainedVocabulary) -> DroppedCharacters | UnmatchedText | None:
        from tokcore.bpe.model import MergeModel
        from tokcore.encoding.encoder import UnmatchedText
        from tokcore.text.regex_splits import SplitPreTokenizer

        pre_tokenizer = vocabulary.cutting.pre_tokenizer
        if isinstance(pre_tokenizer, SplitPreTokenizer) and pre_tokenizer.loses_text:
            return UnmatchedText(pre_tokenizer)
        # The other models have an unknown token, or refuse such characters.
        model = vocabulary.model
        return model.dropped(vocabulary.normalized) if isinstance(model, MergeModel) else None

    def tokens(self, text: str) -> Iterable[str]:
        return [text] if text else []

    def vocabulary_of(self, characters: Sequence[str]) -> PretrainedVocabulary:
        from tokcore.foreign_tokenizers.files import small_vocabulary

        return small_vocabulary()


SCHEME = PretrainedScheme()
