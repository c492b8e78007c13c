"""Unigram models as a scheme: SentencePiece's, learned from counts of words, with its names of options."""

from __future__ import annotations

import dataclasses
import functools
import os
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, SupportsFloat, get_args

from tokcore.encoding.hub_folders import CONFIG_NAME, TOKENIZER_NAME
from tokcore.encoding.scheme import Learned, LearningOptions, vocab_size_option
from tokcore.encoding.vocabulary import ReadBeside, read_if_there
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.scheme import ModelFileScheme
from tokcore.learning.size_search import Progress
from tokcore.options import LARGEST_INT32, Decimal, WholeNumber, option, special_tokens

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.foreign_tokenizers.sentencepiece import Piece
    from tokcore.foreign_tokenizers.sentences import SentenceLines, SentenceWords
    from tokcore.foreign_tokenizers.vocabulary import PretrainedVocabulary
    from tokcore.unigram.learner import PieceRules

Rule = Literal['nmt_nfkc', 'identity']
Learner = Literal['auto', 'memory', 'beam']

_VOCAB_NAME = 'tokenizer.vocab'

_NO_ORDER = 'counts of words do not have the order of sentences and words'
_SAMPLE = 'give --vocab-sample uniform:SHARE in its place'
_UNTRIED = 'its results have not been compared with those of SentencePiece'
_REFUSED = {
    'split_by_whitespace': _NO_ORDER,
    'treat_whitespace_as_suffix': _NO_ORDER,
    'add_dummy_prefix': _NO_ORDER,
    'input_sentence_size': _SAMPLE,
    'shuffle_input_sentence': _SAMPLE,
    'model_type': '--scheme says it',
    **dict.fromkeys(
        'allow_whitespace_only_pieces auto_character_coverage bos_id bos_piece eos_id eos_piece '
        'normalization_rule_tsv pad_id pad_piece pretokenization_delimiter '
        'remove_extra_whitespaces required_chars seed_sentencepieces_file split_by_number '
        'split_by_unicode_script split_digits train_extremely_large_corpus unk_id unk_piece '
        'unk_surface use_sparse_pruning'.split(),
        _UNTRIED,
    ),
}
"""Options of SentencePiece's trainer that there are not, with the reason."""

_TRAINER_FIELDS = {
    4: 'vocab_size',
    10: 'character_coverage',
    14: 'seed_sentencepiece_size',
    15: 'shrinking_factor',
    16: 'num_threads',
    17: 'num_sub_iterations',
    18: 'max_sentence_length',
    20: 'max_sentencepiece_length',
    30: 'control_symbols',
    31: 'user_defined_symbols',
    33: 'hard_vocab_limit',
    35: 'byte_fallback',
}
"""The fields of TrainerSpec by their numbers."""

_option = functools.partial(option, changes_bytes=True)


@dataclass(frozen=True)
class UnigramOptions(LearningOptions):
    """How pieces are learned, with the names and defaults of SentencePiece's trainer."""

    vocab_size: int = vocab_size_option()
    character_coverage: float = _option(
        'the share of characters that become pieces, {range}; the others are unknown (default: 0.9995)',
        Decimal(0.98, 1),
        'SHARE',
        default=0.9995,
    )
    num_threads: int = _option(
        'partial sums of the learner, {range}; SentencePiece has one for each thread, and scores depend on it '
        '(default: 16)',
        WholeNumber(1, 1024),
        'N',
        default=16,
    )
    shrinking_factor: float = _option(
        'the share of pieces that a pruning step keeps, {range} (default: 0.75)',
        Decimal(0.5, 0.95),
        'SHARE',
        default=0.75,
    )
    num_sub_iterations: int = _option(
        'EM iterations between two pruning steps, {range} (default: 2)',
        WholeNumber(1, 10),
        'N',
        default=2,
    )
    seed_sentencepiece_size: int = _option(
        'pieces to begin with; 0: 8 for each entry, at least 100000 (default: 1000000)',
        WholeNumber(0, LARGEST_INT32),
        'N',
        default=1_000_000,
    )
    max_sentencepiece_length: int = _option(
        'the most characters of a piece, {range} (default: 16)',
        WholeNumber(1, 512),
        'N',
        default=16,
    )
    hard_vocab_limit: bool = _option(
        'refuse a text that gives fewer entries than --vocab-size (default: on)', None, default=True
    )
    learner: Learner = option(
        'memory: in this process; beam: on the workers; auto: in memory where it fits (default: auto)',
        get_args(Learner),
        default='auto',
    )


@dataclass(frozen=True)
class UnigramScheme(ModelFileScheme[UnigramOptions]):
    """`<unk> <s> </s>`, symbols, then pieces with the logarithms of their probabilities."""

    name = 'unigram'
    file_suffix = 'model'
    options = UnigramOptions
    beam_learner = 'pipelines.learning.unigram_on_beam:search_on_beam'
    # Words as tokens and in letters, or ranked: 4. Pieces, 120 bytes each: 6 where they are a million.
    learner_bytes_per_character = 10
    learner_steps = 'steps'
    counts_last_word = True
    refused_options = _REFUSED

    normalization_rule_name: Rule = _option(
        'the normalization, by its name in SentencePiece; both collapse spaces (default: nmt_nfkc)',
        get_args(Rule),
        default='nmt_nfkc',
    )
    max_sentence_length: int = _option(
        'rows of more than N bytes are not learned from, {range} (default: 4192)',
        WholeNumber(10, 1 << 30),
        'N',
        default=4192,
    )
    control_symbols: tuple[str, ...] = _option(
        'entries that text never becomes, after <unk>, <s> and </s>',
        special_tokens,
        'A,B,…',
        default=(),
    )
    user_defined_symbols: tuple[str, ...] = _option(
        'entries that stay whole wherever they are in text',
        special_tokens,
        'A,B,…',
        default=(),
    )
    byte_fallback: bool = _option(
        'spell unknown characters by 256 entries for bytes', None, default=False
    )

    def __post_init__(self) -> None:
        names = [*self.control_symbols, *self.user_defined_symbols]
        twice = sorted({name for name in names if names.count(name) > 1 or name == '<unk>'})
        if twice:
            raise InputError(
                f'--control-symbols and --user-defined-symbols define {twice[0]} again; leave it out'
            )

    @property
    def unstorable(self) -> str:
        return ''

    @property
    def counting_normalizer(self) -> SentenceLines:
        from tokcore.foreign_tokenizers.sentences import SentenceLines

        return SentenceLines()

    @property
    def pre_tokenizer(self) -> SentenceWords:
        from tokcore.foreign_tokenizers.sentences import SentenceWords

        names = tuple(piece.text for piece in self._meta_pieces)
        return SentenceWords(self.normalization_rule_name, self.max_sentence_length, names)

    @property
    def row_check(self) -> SentenceWords:
        return self.pre_tokenizer

    @property
    def _meta_pieces(self) -> list[Piece]:
        from tokcore.foreign_tokenizers.sentencepiece_files import meta_pieces

        return meta_pieces(self.control_symbols, self.user_defined_symbols, self.byte_fallback)

    def check(self, options: UnigramOptions) -> None:
        self.piece_rules(options).check_size(1)  # a text has a character

    def learn(
        self, table: TokenTable, options: UnigramOptions, report: Progress
    ) -> Learned[PretrainedVocabulary]:
        return self.learn_in_threads(table, options, report, os.cpu_count() or 1)

    def learn_in_threads(
        self, table: TokenTable, options: UnigramOptions, report: Progress, most: int
    ) -> Learned[PretrainedVocabulary]:
        from tokcore.foreign_tokenizers.sentences import check_words
        from tokcore.unigram.learner import learn_pieces

        check_words(table)
        rules, tables = self.piece_rules(options), [table]
        del table  # nobody else may have it, and then its memory is free
        learned = learn_pieces(
            tables.pop(), rules, min(rules.num_threads, most), functools.partial(report, 0)
        )
        return self.learned_from(learned, options)

    def piece_rules(self, options: UnigramOptions) -> PieceRules:
        """Returns how pieces are learned."""
        from tokcore.unigram.learner import PieceRules

        fields = dataclasses.asdict(options)
        del fields['learner']
        return PieceRules(num_meta_pieces=len(self._meta_pieces), **fields)

    def learned_from(
        self, pieces: Sequence[tuple[str, SupportsFloat]], options: UnigramOptions
    ) -> Learned[PretrainedVocabulary]:
        """Returns the vocabulary of learned pieces and their scores."""
        from tokcore.foreign_tokenizers.sentencepiece import NORMAL, Piece
        from tokcore.foreign_tokenizers.sentencepiece_files import model_file
        from tokcore.foreign_tokenizers.sentences import charsmap_data

        first, rule = self._meta_pieces, self.normalization_rule_name
        values = {**vars(self), **vars(options), 'vocab_size': len(first) + len(pieces)}
        usual = {**vars(UnigramScheme()), **vars(UnigramOptions(0)), 'num_threads': 0}
        trainer = [
            (number, value)
            for number, name in _TRAINER_FIELDS.items()
            if values[name] != usual[name]
            for value in (values[name] if isinstance(values[name], tuple) else [values[name]])
        ]
        entries = [*first, *(Piece(text, float(score), NORMAL) for text, score in pieces)]
        data = model_file(entries, trainer, [(1, rule), (2, charsmap_data(rule))])
        return Learned(self.parse(data, 'the learned model'))

    def parse(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> PretrainedVocabulary:
        from tokcore.foreign_tokenizers.files import parse_pretrained
        from tokcore.foreign_tokenizers.sentencepiece import is_sentencepiece_file

        if not is_sentencepiece_file(data):
            raise InputError(
                f'{path} is not a SentencePiece model; give a .model file, or --scheme pretrained'
            )
        return parse_pretrained(data, path)

    @property
    def tokenizer_file_names(self) -> tuple[str, ...]:
        from tokcore.foreign_tokenizers.sentences import normalized_sentence

        rule = self.normalization_rule_name
        # `tokenizers` normalizes such symbols too.
        if any(
            normalized_sentence(name, rule) != '▁' + name or '▁' in name
            for name in self.user_defined_symbols
        ):
            return (_VOCAB_NAME,)
        return TOKENIZER_NAME, CONFIG_NAME, _VOCAB_NAME

    def tokenizer_files(self, vocabulary: PretrainedVocabulary) -> Mapping[str, bytes]:
        from tokcore.foreign_tokenizers.sentencepiece import read_model
        from tokcore.foreign_tokenizers.sentencepiece_files import unigram_json, vocab_file

        pieces, specs = read_model(vocabulary.data, vocabulary.path)
        files = {}
        if TOKENIZER_NAME in self.tokenizer_file_names:
            tokenizer, config = unigram_json(pieces, specs, self.byte_fallback)
            files = {TOKENIZER_NAME: tokenizer, CONFIG_NAME: config}
        return files | {_VOCAB_NAME: vocab_file(pieces)}

    def tokens(self, text: str) -> Iterable[str]:
        return self.pre_tokenizer.tokens(text)

    def vocabulary_of(self, characters: Sequence[str]) -> PretrainedVocabulary:
        pieces = [(character, -1.0) for character in sorted({*characters, '▁'})]
        return self.learned_from(pieces, UnigramOptions(0)).vocabulary


SCHEME = UnigramScheme()
