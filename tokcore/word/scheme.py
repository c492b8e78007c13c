"""Whole words as a scheme, as in TensorFlow NMT and Tensor2Tensor's `TokenTextEncoder`."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.encoding.scheme import EncodingOptions, Learned, LearningOptions, Scheme
from tokcore.encoding.vocabulary import (
    ReadBeside,
    SpecialIds,
    bracketed_tokens,
    read_if_there,
    special_ids_by_name,
    without_mark,
)
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.options import (
    LARGEST_INT64,
    WholeNumber,
    option,
    positive,
    special_tokens_option,
)
from tokcore.word.files import read_words

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.encoder import RowEncoder
    from tokcore.text.rows import Normalizer
    from tokcore.text.whitespace import SpacePreTokenizer
    from tokcore.word.model import WordModel

Split = Literal['space', 'unicode']
Unknown = Literal['token', 'stop']

_NMT_SPECIAL_TOKENS = ('<unk>', '<s>', '</s>')
_BEGINNING = 64  # bytes, in which these three lines are
"""The first words of TensorFlow NMT's vocabularies."""


@dataclass(frozen=True)
class WordOptions(LearningOptions):
    """Which words have ids."""

    vocab_size: int | None = option(
        'entries at most (or give --min-count)', positive, 'N', default=None, changes_bytes=True
    )
    min_count: int | None = option(
        'words that are counted less often have no id (default: none; then --vocab-size)',
        WholeNumber(1, LARGEST_INT64),
        'N',
        default=None,
        changes_bytes=True,
    )
    special_tokens: tuple[str, ...] | None = special_tokens_option()

    def __post_init__(self):
        if self.vocab_size is None and self.min_count is None:
            raise InputError('--vocab-size is missing; give it, or --min-count')

    @property
    def first_entries(self) -> tuple[str, ...]:
        """The special tokens."""
        return _NMT_SPECIAL_TOKENS if self.special_tokens is None else self.special_tokens

    @property
    def size_label(self) -> str:
        return f'min-count-{self.min_count}' if self.vocab_size is None else str(self.vocab_size)


@dataclass(frozen=True)
class WordEncodingOptions(EncodingOptions):
    """How unknown words are encoded."""

    unknown: Unknown = option(
        'token: they get the id of the unknown token; stop: an error names the line and the word '
        '(default: token)',
        get_args(Unknown),
        default='token',
    )


@dataclass(frozen=True)
class WordScheme(Scheme['WordVocabulary', WordOptions, WordEncodingOptions]):
    """`<unk> <s> </s>`, then words by count and code points."""

    name = 'word'
    file_suffix = 'words.txt'
    options = WordOptions
    encoding = WordEncodingOptions
    default_template = '$A </s>'

    split: Split = option(
        "space: words end at U+0020 and at line breaks; unicode: at what Python's "
        'str.split cuts at (default: space)',
        get_args(Split),
        default='space',
        changes_bytes=True,
    )

    @property
    def rows_have_unstorable(self) -> bool:
        return False  # words end at these characters

    @property
    def normalizer(self) -> Normalizer:
        from tokcore.text.normalizers import STRIPPED_LINES

        return STRIPPED_LINES

    @property
    def pre_tokenizer(self) -> SpacePreTokenizer:
        from tokcore.text.whitespace import SpacePreTokenizer

        return SpacePreTokenizer(self.split, at_line_breaks=True)

    def learn(
        self, table: TokenTable, options: WordOptions, report: Progress
    ) -> Learned[WordVocabulary]:
        from tokcore.word.model import most_frequent_words

        first = options.first_entries
        most = None if options.vocab_size is None else options.vocab_size - len(first)
        words, smallest = most_frequent_words(table, options.min_count or 1, most, frozenset(first))
        return Learned(WordVocabulary([*first, *words]), smallest)

    def parse(self, data: bytes, path: str, read: ReadBeside = read_if_there) -> WordVocabulary:
        return parse_words(data, path, self.split)

    def recognizes(self, data: bytes) -> bool:
        first = without_mark(data[:_BEGINNING]).replace(b'\r\n', b'\n').split(b'\n', 3)[:3]
        return first == [token.encode() for token in _NMT_SPECIAL_TOKENS]

    def encoder(
        self, vocabulary: WordVocabulary, options: WordEncodingOptions | None = None
    ) -> RowEncoder:
        from tokcore.encoding.encoder import RowEncoder

        model = vocabulary.model
        if options is not None and options.unknown == 'stop':
            model = vocabulary.strict_model
        return RowEncoder(self.pre_tokenizer, model)

    def unknown_token(self, options: WordEncodingOptions) -> str | None:
        return '<unk>' if options.unknown == 'token' else None

    def special_tokens_in(self, vocabulary: WordVocabulary, prefix: str) -> Mapping[str, int]:
        return bracketed_tokens(vocabulary.ids, prefix)

    def tokens(self, text: str) -> Iterable[str]:
        return self.pre_tokenizer.tokens(text)

    def vocabulary_of(self, characters: Sequence[str]) -> WordVocabulary:
        words = {*characters} - {'\n', ''}
        return WordVocabulary([*_NMT_SPECIAL_TOKENS, *sorted(words)])


class WordVocabulary:
    """A `Vocabulary` of words, which are distinct and not empty."""

    def __init__(self, words: Sequence[str]):
        """Takes the words by id, with special tokens."""
        self.words = tuple(words)

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    @functools.cached_property
    def special_ids(self) -> SpecialIds:
        return special_ids_by_name(self.id_of)

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: id_ for id_, word in enumerate(self.words)}

    def id_of(self, token: str) -> int | None:
        return self.ids.get(token)

    @functools.cached_property
    def model(self) -> WordModel:
        """The model that gives unknown words the unknown token's id, if there is one."""
        return self._model(self.special_ids.unknown)

    @functools.cached_property
    def strict_model(self) -> WordModel:
        """The model to which unknown words are errors."""
        return self._model(None)

    def _model(self, unknown: int | None) -> WordModel:
        from tokcore.word.model import WordModel

        return WordModel(self.words, unknown)

    def dump(self) -> bytes:
        """Returns the file.

        Raises:
            ValueError: a word is empty, would be read as another one, or occurs twice.
        """
        if len(self.ids) != len(self.words):
            raise ValueError('a word is in the vocabulary twice; a file has an id for each line')
        for id_, word in enumerate(self.words):
            has_mark = id_ == 0 and word.startswith('\ufeff')
            if not word or '\n' in word or word != word.removesuffix('\r').strip(' ') or has_mark:
                raise ValueError(f'{word!r} cannot be a line of a vocabulary file')
        return ''.join(f'{word}\n' for word in self.words).encode()

    @property
    def pieces(self) -> tuple[str, ...]:
        """The words by id."""
        return self.words

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns `decode` in UTF-8."""
        return self.decode(ids).encode()

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the words with spaces between them; ids out of range have none."""
        size = len(self.words)
        return ' '.join(self.words[id_] for id_ in ids if 0 <= id_ < size)


def parse_words(data: bytes, path: str, split: Split = 'space') -> WordVocabulary:
    """Returns the vocabulary of a file; raises InputError as `read_words`."""
    return WordVocabulary(read_words(data, path, split))


SCHEME = WordScheme()
