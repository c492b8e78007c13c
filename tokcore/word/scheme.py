"""Whole words as a scheme: what TensorFlow NMT and Tensor2Tensor's `TokenTextEncoder` take."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.encoding.scheme import EncodingOptions, Learned, LearningOptions, Scheme
from tokcore.encoding.vocabulary import ReadBeside, read_if_there
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.options import (
    LARGEST_INT64,
    WholeNumber,
    option,
    positive,
    special_token,
    special_tokens,
    with_added,
)
from tokcore.word.vocabulary import NMT_SPECIAL_TOKENS, WordVocabulary, parse_words

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.encoder import RowEncoder
    from tokcore.text.rows import Normalizer
    from tokcore.text.whitespace import SpacePreTokenizer

Unknown = Literal['token', 'stop']


@dataclass(frozen=True)
class WordOptions(LearningOptions):
    """Which words have ids."""

    vocab_size: int | None = option(
        'entries at most, {range}; or --min-count', positive, 'N', default=None, changes_bytes=True
    )
    min_count: int | None = option(
        'words that are counted less often have no id (default: none; then --vocab-size)',
        WholeNumber(1, LARGEST_INT64),
        'N',
        default=None,
        changes_bytes=True,
    )
    special_token: tuple[str, ...] = option(
        'an entry behind the special tokens of the scheme; may be repeated',
        special_token,
        'X',
        default=(),
        many='repeated',
        changes_bytes=True,
    )
    special_tokens: tuple[str, ...] | None = option(
        'special tokens in place of those of the scheme, as <pad>,<EOS>; words: <unk>,<s>,</s>, '
        'wordpiece: [PAD],[UNK],[CLS],[SEP],[MASK]',
        special_tokens,
        'A,B,…',
        default=None,
        changes_bytes=True,
    )

    def __post_init__(self):
        if self.vocab_size is None and self.min_count is None:
            raise InputError('--vocab-size is missing; give it, or --min-count')

    @property
    def first_entries(self) -> tuple[str, ...]:
        """The special tokens."""
        return with_added(self.special_tokens, NMT_SPECIAL_TOKENS, self.special_token)

    @property
    def size_label(self) -> str:
        return f'min-count-{self.min_count}' if self.vocab_size is None else str(self.vocab_size)


@dataclass(frozen=True)
class WordEncodingOptions(EncodingOptions):
    """What becomes of words that have no id."""

    unknown: Unknown = option(
        'token: they get the id of the unknown token; stop: an error names the line and the word '
        '(default: token)',
        get_args(Unknown),
        default='token',
    )


@dataclass(frozen=True)
class WordScheme(Scheme):
    """`<unk> <s> </s>` first, then words by their counts, of equal ones by code point."""

    name = 'word'
    file_suffix = 'words.txt'
    options = WordOptions
    encoding = WordEncodingOptions
    default_template = '$A </s>'

    split: str = option(
        "space: words stand between U+0020 and line breaks; unicode: between what Python's "
        'str.split cuts at (default: space)',
        ('space', 'unicode'),
        default='space',
        changes_bytes=True,
    )

    @property
    def rows_have_unstorable(self) -> bool:
        return False  # words are cut there

    @property
    def normalizer(self) -> Normalizer:
        from tokcore.text.normalizers import STRIPPED_LINES

        return STRIPPED_LINES

    @property
    def pre_tokenizer(self) -> SpacePreTokenizer:
        from tokcore.text.whitespace import SpacePreTokenizer

        return SpacePreTokenizer(self.split, at_line_breaks=True)

    def learn(self, table: TokenTable, options: WordOptions, report: Progress) -> Learned:
        from tokcore.word.learner import frequent_words

        first = options.first_entries
        most = None if options.vocab_size is None else options.vocab_size - len(first)
        words, rarest = frequent_words(table, options.min_count or 1, most, frozenset(first))
        return Learned(WordVocabulary([*first, *words]), rarest)

    def parse(self, data: bytes, path: str, read: ReadBeside = read_if_there) -> WordVocabulary:
        return parse_words(data, path)

    def recognizes(self, data: bytes) -> bool:
        return tuple(data.split(b'\n', 3)[:3]) == tuple(
            each.encode() for each in NMT_SPECIAL_TOKENS
        )

    def encoder(
        self, vocabulary: WordVocabulary, options: WordEncodingOptions | None = None
    ) -> RowEncoder:
        from tokcore.encoding.encoder import RowEncoder

        model = vocabulary.model
        if options is not None and options.unknown == 'stop':
            model = vocabulary.strict_model
        return RowEncoder(self.pre_tokenizer, model)

    def tokens(self, text: str) -> Iterable[str]:
        return self.pre_tokenizer.tokens(text)

    def vocabulary_of(self, characters: Sequence[str]) -> WordVocabulary:
        words = {*characters} - {'\n', ''}
        return WordVocabulary([*NMT_SPECIAL_TOKENS, *sorted(words)])


SCHEME = WordScheme()
