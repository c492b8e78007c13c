"""Whole words as a scheme: what TensorFlow NMT and Tensor2Tensor's `TokenTextEncoder` take."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokcore.encoding.scheme import Learned, Scheme
from tokcore.encoding.special_ids import ReadBeside, read_if_there
from tokcore.learning.size_search import Report
from tokcore.options.option_fields import option
from tokcore.word.word_options import WordEncodingOptions, WordOptions
from tokcore.word.word_vocabulary import NMT_SPECIAL_TOKENS, WordVocabulary, parse_words

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.row_encoder import RowEncoder
    from tokcore.text.normalizer import Normalizer
    from tokcore.text.whitespace.space_pre_tokenizer import SpacePreTokenizer


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
        from tokcore.text.whitespace.stripped_lines import STRIPPED_LINES

        return STRIPPED_LINES

    @property
    def pre_tokenizer(self) -> SpacePreTokenizer:
        from tokcore.text.whitespace.space_pre_tokenizer import SpacePreTokenizer

        return SpacePreTokenizer(self.split, at_line_breaks=True)

    def learn(self, table: TokenTable, options: WordOptions, report: Report) -> Learned:
        from tokcore.word.frequent_words import frequent_words

        first = options.first_entries
        most = None if options.vocab_size is None else options.vocab_size - len(first)
        words, rarest = frequent_words(table, options.min_count or 1, most, frozenset(first))
        return Learned(WordVocabulary([*first, *words]), rarest)

    def parse(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> WordVocabulary:
        return parse_words(data, path)

    def recognizes(self, data: bytes) -> bool:
        return tuple(data.split(b'\n', 3)[:3]) == tuple(
            each.encode() for each in NMT_SPECIAL_TOKENS
        )

    def encoder(
        self, vocabulary: WordVocabulary, options: WordEncodingOptions | None = None
    ) -> RowEncoder:
        from tokcore.encoding.row_encoder import RowEncoder

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
