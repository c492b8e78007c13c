"""BERT's WordPiece as a scheme: words, segmented into pieces, between `[CLS]` and `[SEP]`."""

from __future__ import annotations

import re
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokcore.encoding.hub_folders import (
    CONFIG_NAME,
    CONFIG_NAMES,
    ROLE_TOKENS,
    TOKENIZER_NAME,
    config_beside,
    tokenizer_config,
    tokenizer_json,
)
from tokcore.encoding.scheme import EncodingOptions, Learned, Scheme
from tokcore.encoding.vocabulary import ReadBeside, read_if_there
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.options import option, positive, shown
from tokcore.text.bert_plain import Kind, bert_tokens
from tokcore.wordpiece.options import SPECIAL_TOKENS, WordPieceOptions
from tokcore.wordpiece.vocabulary import (
    MAX_WORD_LENGTH,
    WordPieceVocabulary,
    is_vocab_txt,
    parse_pieces,
)

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.encoder import RowEncoder
    from tokcore.text.bert import BertPreTokenizer
    from tokcore.text.rows import Normalizer
    from tokcore.wordpiece.model import WordPieceModel

_STRIPPING = {'auto': None, 'yes': True, 'no': False}
"""The values of `--strip-accents` and those of transformers' `strip_accents`."""

_STRIPPING_NAMES = {value: name for name, value in _STRIPPING.items()}

_STATED = {
    'do_lower_case': 'lower_case',
    'strip_accents': 'strip_accents',
    'tokenize_chinese_chars': 'split_cjk',
    'do_basic_tokenize': None,
}
"""The options that transformers' tokenizer_config.json states, by its names; None: not supported."""

_SPECIAL = re.compile(r'\[.*\]|<.*>')

_MAX_WORD_LENGTHS: dict[Kind, int] = {'bert': MAX_WORD_LENGTH, 'bert-original': 200}


@dataclass(frozen=True)
class WordPieceEncodingOptions(EncodingOptions):
    """How words become ids."""

    max_word_length: int | None = option(
        'words of more than N characters are unknown, {range} (default: 100, and 200 with '
        '--normalizer bert-original)',
        positive,
        'N',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
    )
    allow_special_tokens: bool = option(
        'find [MASK] and other special tokens in text first, as BertTokenizer does; without it they '
        'are ordinary text',
        None,
        default=False,
        changes_bytes=True,
        unrecorded_default=True,
    )


@dataclass(frozen=True)
class WordPieceScheme(Scheme[WordPieceVocabulary, WordPieceOptions, WordPieceEncodingOptions]):
    """`[PAD] [UNK] [CLS] [SEP] [MASK]`, then characters, words and endings of words."""

    name = 'wordpiece'
    file_suffix = 'wordpiece.txt'
    options = WordPieceOptions
    encoding = WordPieceEncodingOptions
    default_template = '[CLS] $A [SEP]'
    beam_learner = 'pipelines.learning.wordpiece_on_beam:search_on_beam'
    learner_bytes_per_character = 150
    name_in_tokenizer_folder = 'vocab.txt'
    configs_beside = CONFIG_NAMES

    normalizer_kind: Kind = option(
        "bert: words as transformers' BertTokenizer finds them; bert-original: as the code of the "
        'paper does (default: bert)',
        tuple(_MAX_WORD_LENGTHS),
        default='bert',
        name='normalizer',
        changes_bytes=True,
    )
    lower_case: bool = option(
        'make letters lower case (default: on)', None, default=True, changes_bytes=True
    )
    strip_accents: str = option(
        'whether accents are stripped; auto: with --lower-case (default: auto)',
        tuple(_STRIPPING),
        default='auto',
        changes_bytes=True,
    )
    split_cjk: bool = option(
        'make each CJK ideograph a word (default: on)',
        None,
        default=True,
        changes_bytes=True,
    )

    @classmethod
    def of(
        cls,
        normalizer: Kind = 'bert',
        lower_case: bool = True,
        strip_accents: bool | None = None,
        split_cjk: bool = True,
    ) -> WordPieceScheme:
        """Returns the scheme with these options, named as in transformers.

        Raises:
            ValueError: the normalizer is neither 'bert' nor 'bert-original'.
        """
        if normalizer not in _MAX_WORD_LENGTHS:
            raise ValueError(
                f'{normalizer!r} is not a normalizer; give {" or ".join(_MAX_WORD_LENGTHS)}'
            )
        return cls(normalizer, lower_case, _STRIPPING_NAMES[strip_accents], split_cjk)

    @property
    def rows_have_unstorable(self) -> bool:
        return False  # words end at these characters

    @property
    def normalizer(self) -> Normalizer:
        from tokcore.text.normalizers import STRIPPED_LINES

        return STRIPPED_LINES

    @property
    def pre_tokenizer(self) -> BertPreTokenizer:
        return self._pre_tokenizer_for(())

    def _pre_tokenizer_for(self, special_tokens: tuple[str, ...]) -> BertPreTokenizer:
        from tokcore.text.bert import BertPreTokenizer

        return BertPreTokenizer(
            kind=self.normalizer_kind,
            lower_case=self.lower_case,
            strip_accents=_STRIPPING[self.strip_accents],
            split_cjk=self.split_cjk,
            special_tokens=special_tokens,
        )

    def learn(
        self, table: TokenTable, options: WordPieceOptions, report: Progress
    ) -> Learned[WordPieceVocabulary]:
        from tokcore.wordpiece.learner import learn_wordpieces

        return learn_wordpieces(table, options, report)

    def parse(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> WordPieceVocabulary:
        return WordPieceVocabulary(parse_pieces(data, path))

    def recognizes(self, data: bytes) -> bool:
        return is_vocab_txt(data)

    def options_from_file(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> Mapping[str, object]:
        """Returns the options that the tokenizer_config.json of transformers next to the file states."""
        config = config_beside(path, read)
        states = {key: config[key] for key in _STATED if config.get(key) is not None}
        odd = [key for key, value in states.items() if not isinstance(value, bool)]
        if config.get('never_split') or states.pop('do_basic_tokenize', True) is False:
            odd.append('never_split' if config.get('never_split') else 'do_basic_tokenize')
        if odd:
            raise InputError(
                f'{CONFIG_NAME} next to {path}: {odd[0]} {config[odd[0]]!r:.80} is not supported; take '
                'it out, or give a folder with a tokenizer.json'
            )
        return {
            option: _STRIPPING_NAMES[value] if key == 'strip_accents' else value
            for key, value in states.items()
            if (option := _STATED[key]) is not None
        }

    def refuse_unstated(self, data: bytes, path: str, stated: Collection[str]) -> None:
        if 'lower_case' in stated:
            return
        for piece in parse_pieces(data, path):
            if piece.lower() != piece and not _SPECIAL.fullmatch(piece):
                raise InputError(
                    f'{path} has {shown(piece)}, which no lower-cased text becomes, and nothing states '
                    'whether text is lower-cased; give --no-lower-case or --lower-case (lower_case= in '
                    'Python)'
                )

    def encoder(
        self, vocabulary: WordPieceVocabulary, options: WordPieceEncodingOptions | None = None
    ) -> RowEncoder:
        from tokcore.encoding.encoder import RowEncoder

        return RowEncoder(*self.encoding_parts(vocabulary, options))

    def encoding_parts(
        self, vocabulary: WordPieceVocabulary, options: WordPieceEncodingOptions | None = None
    ) -> tuple[BertPreTokenizer, WordPieceModel]:
        """Returns the pre-tokenizer and the model that encode with these options."""
        options = options or WordPieceEncodingOptions()
        special_tokens = vocabulary.special_tokens if options.allow_special_tokens else ()
        longest = options.max_word_length or _MAX_WORD_LENGTHS[self.normalizer_kind]
        return self._pre_tokenizer_for(special_tokens), vocabulary.model_for(longest)

    def unknown_token(self, options: WordPieceEncodingOptions) -> str | None:
        return '[UNK]'

    def special_tokens_in(self, vocabulary: WordPieceVocabulary, prefix: str) -> Mapping[str, int]:
        # Punctuation does not cut other entries: not capital letters, which may become lower case.
        return {
            piece: id_
            for piece, id_ in vocabulary.ids.items()
            if piece
            and piece in prefix
            and not piece.startswith(vocabulary.joiner)
            and len(bert_tokens(piece, self.normalizer_kind, False, False, False)) > 1
        }

    def special_tokens_of(self, vocabulary: WordPieceVocabulary) -> Sequence[str]:
        return vocabulary.special_tokens

    @property
    def tokenizer_file_names(self) -> tuple[str, ...]:
        # `tokenizers` has no normalizer that does what the code of the paper does.
        return (TOKENIZER_NAME, CONFIG_NAME) if self.normalizer_kind == 'bert' else ()

    def tokenizer_files(self, vocabulary: WordPieceVocabulary) -> Mapping[str, bytes]:
        if not self.tokenizer_file_names:
            return {}
        template = self.template(vocabulary)
        names = {name for names in ROLE_TOKENS.values() for name in names}
        special_tokens = {vocabulary.ids[name]: name for name in names if name in vocabulary.ids}
        special_tokens |= {id_: vocabulary.pieces[id_] for id_ in template.before + template.after}
        unknown = vocabulary.special_ids.unknown
        stripping = _STRIPPING[self.strip_accents]
        normalizer: dict[str, Any] = {
            'type': 'BertNormalizer',
            'clean_text': True,
            'handle_chinese_chars': self.split_cjk,
            'strip_accents': stripping,
            'lowercase': self.lower_case,
        }
        if not (self.lower_case if stripping is None else stripping):
            # BertTokenizer composes accents, and BertNormalizer alone does not.
            normalizer = {'type': 'Sequence', 'normalizers': [normalizer, {'type': 'NFC'}]}
        tokenizer = tokenizer_json(
            {
                'type': 'WordPiece',
                'unk_token': '[UNK]' if unknown is None else vocabulary.pieces[unknown],
                'continuing_subword_prefix': vocabulary.joiner,
                'max_input_chars_per_word': _MAX_WORD_LENGTHS[self.normalizer_kind],
                'vocab': vocabulary.ids,
            },
            sorted(special_tokens.items()),
            template,
            normalizer=normalizer,
            pre_tokenizer={'type': 'BertPreTokenizer'},
            decoder={'type': 'WordPiece', 'prefix': vocabulary.joiner, 'cleanup': True},
        )
        config = tokenizer_config(
            special_tokens.values(),
            has_type_ids=True,
            do_lower_case=self.lower_case,
            strip_accents=stripping,
            tokenize_chinese_chars=self.split_cjk,
        )
        return {TOKENIZER_NAME: tokenizer, CONFIG_NAME: config}

    def tokens(self, text: str) -> Iterable[str]:
        stripping = _STRIPPING[self.strip_accents]
        return bert_tokens(text, self.normalizer_kind, self.lower_case, stripping, self.split_cjk)

    def vocabulary_of(self, characters: Sequence[str]) -> WordPieceVocabulary:
        alphabet = sorted(set(characters).union('a'))
        joined = [f'##{character}' for character in alphabet]
        return WordPieceVocabulary([*SPECIAL_TOKENS, *alphabet, *joined])


SCHEME = WordPieceScheme()
