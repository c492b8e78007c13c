"""Byte pair encoding as a scheme: of GPT-2 by default, or of cl100k, subword-nmt or the textbook."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tokcore.bpe.options import MOST_CELLS, BpeOptions, BpeRules
from tokcore.bpe.vocabulary import BpeVocabulary, TokenizerParts
from tokcore.encoding.hub_folders import (
    CONFIG_NAME,
    CONFIG_NAMES,
    TOKENIZER_NAME,
    tokenizer_config,
)
from tokcore.encoding.scheme import EncodingOptions, Learned, PieceWriter, Scheme
from tokcore.encoding.vocabulary import (
    ReadBeside,
    Template,
    bracketed_tokens,
    read_if_there,
    read_vocabulary_file,
)
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.options import (
    LARGEST_UINT64,
    WholeNumber,
    chance,
    declared,
    expression,
    option,
    shown,
)
from tokcore.text.bert_plain import bert_tokens
from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.text.expressions import ExpressionError, oniguruma
from tokcore.text.patterns import DIGITS, PATTERNS, Pattern, expressions_of, patterns_of

if typing.TYPE_CHECKING:
    from tokcore.bpe.apply_codes import NmtRules
    from tokcore.bpe.files import AnyVocabulary
    from tokcore.bpe.trainer import LearnedMerges
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.encoder import DroppedCharacters, Encoder
    from tokcore.text.pre_tokenizer import PreTokenizer
    from tokcore.text.rows import Normalizer

Preset = Literal['gpt2', 'cl100k', 'subword-nmt', 'textbook']
Kind = Literal[Pattern, 'space', 'whitespace', 'bert', 't2t']

_PRE_TOKENIZERS: dict[Preset, Kind] = {
    'gpt2': 'gpt2', 'cl100k': 'llama3', 'subword-nmt': 'space', 'textbook': 'space',
}  # fmt: skip
"""The pre-tokenizer of each preset: of cl100k as Llama 3 spells it, since all readers of a
tokenizer.json take that, and tokenizers 1.0.0rc3 does not take tiktoken's spelling."""

CODES = ('subword-nmt', 'textbook')
"""The presets with files of codes: merges without ids."""


@dataclass(frozen=True)
class AddedTokenOptions(EncodingOptions):
    """Whether special tokens are found in text."""

    allow_special_tokens: bool = option(
        'take special tokens such as <|endoftext|> out of text first; without it they are text '
        'like other text',
        None,
        default=False,
        changes_bytes=True,
        unrecorded_default=True,
    )


@dataclass(frozen=True)
class BpeEncodingOptions(AddedTokenOptions):
    """How text becomes ids; what codes of subword-nmt are applied with."""

    glossary: tuple[str, ...] = option(
        'for codes of subword-nmt: a regular expression whose matches stay whole; may be repeated',
        expression,
        'X',
        default=(),
        many='repeated',
        changes_bytes=True,
        unrecorded_default=True,
    )
    split_unknown: bool = option(
        'for codes of subword-nmt: split pieces that the .vocab file lacks into those that they were '
        'merged from, as its --vocabulary does',
        None,
        default=False,
        changes_bytes=True,
        unrecorded_default=True,
    )
    dropout: float = option(
        'for codes of subword-nmt: the chance, from 0 to 1, that a merge is left out, which is useful '
        'for training data only',
        chance,
        'P',
        default=0.0,
        changes_bytes=True,
        unrecorded_default=True,
    )
    dropout_seed: int = option(
        'with --dropout: equal rows have equal pieces for one seed (default: 0)',
        WholeNumber(0, LARGEST_UINT64),
        'N',
        default=0,
        changes_bytes=True,
        unrecorded_default=True,
    )

    @property
    def nmt_rules(self) -> NmtRules:
        """What is done in addition to merging."""
        from tokcore.bpe.apply_codes import NmtRules

        return NmtRules(self.glossary, self.split_unknown, self.dropout, self.dropout_seed)


def pattern(value: str) -> str:
    """A pattern's name, or a regular expression of Oniguruma, as tokenizers has it."""
    digits = {'digits': DIGITS[False], 'individual-digits': DIGITS[True]}
    names = (*PATTERNS, *digits)
    if value not in names and re.fullmatch(r'[\w.-]*', value):  # a wrong name, as a rule
        raise argparse.ArgumentTypeError(
            f'{shown(value)} is neither a regular expression nor one of {", ".join(names)}'
        )
    expression = digits.get(value, value)
    if expression not in PATTERNS:
        try:
            oniguruma(expression)
        except ExpressionError as error:
            raise argparse.ArgumentTypeError(
                f'{shown(value)} is not a regular expression that is known: {error}'
            ) from error
    return expression


@dataclass(frozen=True)
class BpeScheme(Scheme['AnyVocabulary', BpeOptions, BpeEncodingOptions]):
    """Bytes or characters, then the results of merges."""

    name = 'bpe'
    file_suffix = 'bpe.json'
    options = BpeOptions
    encoding = BpeEncodingOptions
    learner_bytes_per_character = 20
    beam_learner = 'pipelines.learning.bpe_on_beam:search_on_beam'
    learns_in_rounds = True
    learner_most_characters = MOST_CELLS
    name_in_tokenizer_folder = TOKENIZER_NAME
    configs_beside = CONFIG_NAMES

    preset: Preset = option(
        "whose byte pair encoding: gpt2 and cl100k, of bytes, with that model's pattern; "
        "subword-nmt; textbook, of 'Dive into Deep Learning' (default: gpt2)",
        get_args(Preset),
        default='gpt2',
        changes_bytes=True,
    )
    pre_tokenizer_kind: Kind | None = option(
        "what cuts text into tokens: a model's pattern, U+0020, all white space, another scheme's "
        "rule, or none, so that lines are tokens (default: the preset's)",
        get_args(Kind),
        default=None,
        name='pre-tokenizer',
        changes_bytes=True,
    )
    form: Literal['NFC', 'NFKC'] | None = option(
        'bring text into this normal form of Unicode first (default: neither)',
        ('NFC', 'NFKC'),
        default=None,
        name='unicode-form',
        changes_bytes=True,
    )
    pattern: tuple[str, ...] = option(
        'cuts text into tokens in place of --pre-tokenizer: a regular expression as in a tokenizer.json '
        "(Oniguruma's), a pattern of --pre-tokenizer, digits or individual-digits; where it is repeated, "
        'each cuts the tokens of the one before',
        pattern,
        'P',
        default=(),
        many='repeated',
        changes_bytes=True,
        unrecorded_default=True,
    )
    add_prefix_space: bool = option(
        'put a space before each text that does not begin with one; with the pattern gpt2 or none',
        None,
        default=False,
        changes_bytes=True,
        unrecorded_default=True,
    )

    def __post_init__(self):
        if self.pattern and self.pre_tokenizer_kind:
            raise InputError('--pattern takes the place of --pre-tokenizer; give one of the two')
        if self.add_prefix_space and self.patterns not in (('gpt2',), ('none',)):
            raise InputError(
                '--add-prefix-space goes with the pattern gpt2 or none: with others a tokenizer.json '
                'puts a space before each of their tokens; leave it out'
            )

    @property
    def unstorable(self) -> str:
        return super().unstorable if self.preset in CODES else ''

    @property
    def rows_have_unstorable(self) -> bool:
        return self.kind not in ('whitespace', 'bert')

    @property
    def kind(self) -> Kind:
        """The pre-tokenizer's name; by default the preset's."""
        return self.pre_tokenizer_kind or _PRE_TOKENIZERS[self.preset]

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns that cut text, each the tokens of the one before; () if others do."""
        if self.pattern:
            return patterns_of(expressions_of(self.pattern))
        return (self.kind,) if self.kind in PATTERNS else ()

    @property
    def normalizer(self) -> Normalizer:
        from tokcore.bpe.codes import BLANK
        from tokcore.text.normalizers import (
            STRIPPED_LINES,
            T2T_LINES,
            StrippedLines,
            UnstrippedLines,
        )

        if self.patterns:
            return UnstrippedLines(self.form)
        if self.form is not None:
            raise InputError(
                f'--unicode-form goes with --pre-tokenizer {", ".join(PATTERNS)}, not with '
                f'{self.kind}; leave it out'
            )
        # subword-nmt strips only these characters from lines; other white space is part of words.
        by_kind: dict[str, Normalizer] = {'space': StrippedLines(BLANK), 't2t': T2T_LINES}
        return by_kind.get(self.kind, STRIPPED_LINES)

    @property
    def pre_tokenizer(self) -> PreTokenizer:
        words = self.words_pre_tokenizer
        if self.preset == 'textbook':
            from tokcore.bpe.codes import EndOfWordSuffix

            return EndOfWordSuffix(words)
        if self.add_prefix_space:
            from tokcore.bpe.added_tokens import PrefixedRows

            return PrefixedRows(words)
        return words

    @property
    def words_pre_tokenizer(self) -> PreTokenizer:
        """Cuts rows into words, to which `pre_tokenizer` adds an end or a prefix."""
        from tokcore.text.bert import BertPreTokenizer
        from tokcore.text.split_sequence import pattern_pre_tokenizer
        from tokcore.text.t2t import T2TPreTokenizer
        from tokcore.text.whitespace import SpacePreTokenizer

        if self.patterns:
            return pattern_pre_tokenizer(*self.patterns)
        match self.kind:
            case 'space':
                return SpacePreTokenizer('space')
            case 'whitespace':
                return SpacePreTokenizer('unicode')
            case 'bert':
                return BertPreTokenizer()
            case _:
                return T2TPreTokenizer()

    def check(self, options: BpeOptions) -> None:
        options.rules(self.preset)  # it raises the error
        if options.learner == 'beam':
            reason = self.reason_against_rounds(options)
            if reason is not None:
                raise InputError(
                    f'merges cannot be learned on Beam: {reason}; or leave out --learner'
                )
        if self.preset in CODES and (self.patterns or self.kind == 't2t'):
            raise InputError(
                f'tokens of {" and ".join(self.patterns) or self.kind} have spaces in them, and codes of '
                f'--preset {self.preset} separate symbols by spaces; give --pre-tokenizer space, '
                'whitespace or bert, or another preset'
            )
        if self.preset not in CODES and not self.patterns:
            raise InputError(
                f'--pre-tokenizer {self.kind} does not go with --preset {self.preset}, whose '
                f'tokenizer.json has none such; give {", ".join(PATTERNS)}, or another preset'
            )
        if self.form is not None and not self.patterns:
            self.normalizer  # noqa: B018 - it raises the error
        if options.extend is not None:
            self.old_vocabulary(options)
        if options.shrink is not None and self._old(options)[1].rules.byte_fallback:
            raise InputError(
                f'{options.shrink} has byte_fallback, which --shrink does not know; give another'
            )

    def old_vocabulary(self, options: BpeOptions) -> BpeVocabulary:
        """Returns the vocabulary that `--extend` names, with the patterns that the result has.

        Raises:
            InputError: it cannot be extended by tokens of this scheme, or is as large as wanted.
        """
        path, old = self._old(options)
        size = options.vocab_size
        if size is not None and size < old.vocab_size:
            raise InputError(
                f'--vocab-size {size} is below the {old.vocab_size} entries of {path}; give a larger one'
            )
        if self.patterns == old.parts.patterns:
            return old
        return dataclasses.replace(old, parts=old.parts.with_whole_texts())

    def _old(self, options: BpeOptions) -> tuple[str, BpeVocabulary]:
        """Returns the file and the vocabulary that options name; raises InputError for others."""
        from tokcore.bpe.extension import check_byte_level, check_extensible

        path = options.old_files[0]
        old = check_byte_level(self.parse(read_vocabulary_file(path), path), path)
        return path, old if options.extend is None else check_extensible(old, path)

    def for_learning(self, options: BpeOptions) -> BpeScheme:
        if not options.old_files:
            return self
        path, old = self._old(options)
        configured = self.configured_for(old)
        if self.patterns == ('none',) and options.extend is not None:
            configured = dataclasses.replace(configured, pattern=(), pre_tokenizer_kind='none')
        if self.rules == configured.rules and self.preset not in CODES:
            return self
        lines = BpeScheme(pre_tokenizer_kind='none')
        if self == SCHEME or (self == lines and options.extend is not None):
            return configured
        raise InputError(
            f'{path} is for {configured.rules}, and the options give {self.rules}; leave them out, or give '
            '--pre-tokenizer none alone with --extend, for merges across tokens'
        )

    def files_beside(self, vocabulary: AnyVocabulary, options: BpeOptions) -> Mapping[str, bytes]:
        if options.shrink is None or not isinstance(vocabulary, BpeVocabulary):
            return {}
        from tokcore.bpe.shrinking import id_maps

        return dict(zip(options.endings_beside, id_maps(self._old(options)[1], vocabulary)))

    def learn(
        self, table: TokenTable, options: BpeOptions, report: Progress
    ) -> Learned[AnyVocabulary]:
        from tokcore.bpe.trainer import learn_merges

        self.check(options)
        if options.shrink is not None:
            from tokcore.bpe.shrinking import shrink

            return Learned(shrink(table, self._old(options)[1], options.vocab_size))
        rules = self.rules_of_merges(options)
        with reported_merges(rules, report) as on_merges:
            if options.extend is None:
                return self.learned_from(learn_merges(table, rules, on_merges), options)
            from tokcore.bpe.extension import extend_merges

            old = self.old_vocabulary(options)
            extended = extend_merges(table, old, rules, on_merges)
            return Learned(extended, smallest_size=old.vocab_size)

    def learn_with_parity(
        self,
        tables: Sequence[TokenTable],
        dev_tables: Sequence[TokenTable],
        options: BpeOptions,
        report: Progress,
    ) -> Learned[AnyVocabulary]:
        """Learns from a table of each language and one of its development text; see `parity`."""
        from tokcore.bpe.parity import learn_parity_merges

        rules = options.rules(self.preset)
        with reported_merges(rules, report) as on_merges:
            merges = learn_parity_merges(tables, dev_tables, rules, on_merges)
            return self.learned_from(merges, options)

    def reason_against_parity(self, options: BpeOptions) -> str | None:
        """Returns why `learn_with_parity` cannot learn with these options; None if it can."""
        if self.preset in CODES:
            return f'is for bytes, and --preset {self.preset} has characters; give another preset'
        for name in ('extend', 'shrink'):
            if getattr(options, name) is not None:
                return f'learns all merges; leave out --{name}'
        if options.learner == 'beam':
            return 'needs all tokens in memory for each merge, and not on Beam; leave out --learner'
        return None

    def reason_against_rounds(self, options: BpeOptions) -> str | None:
        from tokcore.bpe.cutting import reason_against_cutting

        if options.shrink is not None:
            return 'nothing is learned with --shrink'
        if options.extend is not None:
            from tokcore.bpe import extension

            reason = extension.reason_against_rounds(self.old_vocabulary(options))
            return None if reason is None else f'in {options.extend} {reason}'
        return reason_against_cutting(options.rules(self.preset))

    def learn_in_rounds(
        self,
        tables: Callable[[], Iterable[TokenTable]],
        options: BpeOptions,
        report: Progress,
        folder: str,
        memory_bytes: int,
    ) -> Learned[AnyVocabulary]:
        from tokcore.bpe.cutting import cells_within, learn_by_cutting

        self.check(options)
        rules = self.rules_in_rounds(options)
        begun = None
        if options.extend is not None:
            from tokcore.bpe.extension import begin_extension

            begun = begin_extension(self.old_vocabulary(options), rules)
        most_cells = cells_within(memory_bytes, self.learner_bytes_per_character)
        with reported_merges(rules, report) as on_merges:
            learned = learn_by_cutting(tables, rules, most_cells, folder, on_merges, begun=begun)
            return self.learned_from(learned, options)

    def rules_of_merges(self, options: BpeOptions) -> BpeRules:
        """Returns the rules of learning; merges across the words of an old vocabulary make superwords."""
        superwords = options.extend is not None and self.patterns == ('none',)
        return dataclasses.replace(options.rules(self.preset), superwords=superwords)

    def rules_in_rounds(self, options: BpeOptions) -> BpeRules:
        """Returns the rules of learning in rounds, where merges of an old vocabulary count too."""
        rules = self.rules_of_merges(options)
        if options.extend is None or rules.merges is None:
            return rules
        old = self.old_vocabulary(options)
        return dataclasses.replace(rules, merges=rules.merges + len(old.merges))

    def learned_from(self, learned: LearnedMerges, options: BpeOptions) -> Learned[AnyVocabulary]:
        """Returns the vocabulary of merges that begin with those of an old one, if there is one."""
        from tokcore.bpe.codes import NmtVocabulary, TextbookVocabulary

        if options.extend is not None:
            from tokcore.bpe.extension import extended

            old = self.old_vocabulary(options)
            return Learned(extended(old, learned), smallest_size=old.vocab_size)
        if self.preset == 'textbook':
            return Learned(TextbookVocabulary(learned.merges, characters=learned.characters))
        if self.preset == 'subword-nmt':
            return Learned(NmtVocabulary(learned.merges))
        vocabulary = BpeVocabulary.learned(
            learned.entries, learned.merges, learned.special_tokens, self._parts
        )
        return Learned(vocabulary, smallest_size=learned.smallest_size)

    def parse(self, data: bytes, path: str, read: ReadBeside = read_if_there) -> AnyVocabulary:
        from tokcore.bpe.files import parse_bpe_file

        return parse_bpe_file(data, path, read)

    def recognizes(self, data: bytes) -> bool:
        from tokcore.bpe.files import is_bpe_file

        return is_bpe_file(data)

    def options_from_file(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> Mapping[str, object]:
        scheme = self.configured_for(self.parse(data, path, read))
        values = {option.key: getattr(scheme, option.field) for option in declared(BpeScheme)}
        return {key: value for key, value in values.items() if value is not None}

    def piece_writer(
        self, vocabulary: AnyVocabulary, options: BpeEncodingOptions | None = None
    ) -> PieceWriter | None:
        from tokcore.bpe.apply_codes import CodesSegmenter
        from tokcore.bpe.codes import CodesVocabulary

        if not isinstance(vocabulary, CodesVocabulary):
            return None
        return CodesSegmenter(vocabulary, (options or BpeEncodingOptions()).nmt_rules)

    def entries_name(self, name: str) -> str | None:
        from tokcore.bpe.files import entries_path

        return entries_path(name) if self.preset in CODES else None

    def entries(self, vocabulary: AnyVocabulary, table: TokenTable) -> bytes:
        from tokcore.bpe.codes import CodesVocabulary, count_pieces, entries_file

        return entries_file(count_pieces(typing.cast(CodesVocabulary, vocabulary), table))

    @property
    def tokenizer_file_names(self) -> tuple[str, ...]:
        return () if self.preset in CODES else (TOKENIZER_NAME, CONFIG_NAME)

    def tokenizer_files(self, vocabulary: AnyVocabulary) -> Mapping[str, bytes]:
        if not isinstance(vocabulary, BpeVocabulary):
            return {}
        special_tokens = [token.content for token in vocabulary.added if token.special]
        return {TOKENIZER_NAME: vocabulary.dump(), CONFIG_NAME: tokenizer_config(special_tokens)}

    @property
    def _parts(self) -> TokenizerParts:
        """The parts of a learned vocabulary."""
        return TokenizerParts.of(self.patterns, self.form, self.add_prefix_space)

    def configured_for(self, vocabulary: AnyVocabulary) -> BpeScheme:
        """Returns this scheme with the normalizer and the pre-tokenizer of a vocabulary's file."""
        from tokcore.bpe.codes import TextbookVocabulary

        if isinstance(vocabulary, BpeVocabulary):
            parts = vocabulary.parts
            name = typing.cast(Pattern, parts.patterns[0]) if parts.is_named else None
            model: Preset = 'gpt2' if name in (None, 'gpt2') else 'cl100k'
            return dataclasses.replace(
                self,
                preset=model,
                pre_tokenizer_kind=None if name == _PRE_TOKENIZERS[model] else name,
                form=parts.form,
                pattern=() if parts.is_named else parts.patterns,
                add_prefix_space=parts.add_prefix_space,
            )
        # Codes do not name their pre-tokenizer.
        textbook = isinstance(vocabulary, TextbookVocabulary)
        preset: Preset = 'textbook' if textbook else 'subword-nmt'
        return dataclasses.replace(self, preset=preset, form=None)

    def encoder(
        self, vocabulary: AnyVocabulary, options: BpeEncodingOptions | None = None
    ) -> Encoder:
        """As of `Scheme`.

        Raises:
            InputError: the vocabulary's file has another normalizer or pre-tokenizer, or an added
                token that is not supported.
        """
        from tokcore.encoding.encoder import RowEncoder

        options = options or BpeEncodingOptions()
        expected = self.configured_for(vocabulary)
        if (expected.preset in CODES) != (self.preset in CODES) or expected.rules != self.rules:
            raise InputError(
                f'the vocabulary is for {expected.rules}, but the options give {self.rules}; leave '
                'out --preset, --pre-tokenizer, --pattern, --unicode-form and --add-prefix-space'
            )
        rules = options.nmt_rules
        if not isinstance(vocabulary, BpeVocabulary):
            if rules.is_plain:
                return RowEncoder(self.pre_tokenizer, vocabulary.model)
            from tokcore.bpe.apply_codes import CodesEncoder

            return CodesEncoder(vocabulary, rules, self.tokens, self.pre_tokenizer)
        rules.check(False, 'a tokenizer.json')
        from tokcore.bpe.added_tokens import matched_tokens, row_encoder

        matched = matched_tokens(vocabulary, options.allow_special_tokens)
        original = [token for token in matched if not token.normalized]
        if original and self.form is not None:
            raise InputError(
                f'the added token {original[0].content!r:.80} is to be found before text is brought '
                f'into {self.form}, which rows of a block already are; '
                + (
                    'leave out --allow-special-tokens'
                    if original[0].special
                    else 'encode with tokcore.BpeTokenizer'
                )
            )
        return row_encoder(self.words_pre_tokenizer, vocabulary, options.allow_special_tokens)

    def unknown_token(self, options: BpeEncodingOptions) -> str | None:
        return '<unk>' if self.preset in CODES else None

    def special_tokens_in(self, vocabulary: AnyVocabulary, prefix: str) -> Mapping[str, int]:
        from tokcore.bpe.added_tokens import check_flags

        if not isinstance(vocabulary, BpeVocabulary):
            return bracketed_tokens(vocabulary.ids, prefix)
        tokens = [token for token in vocabulary.added if token.special and token.content in prefix]
        for token in tokens:
            check_flags(token, 'leave it out of the prefix')
        return {token.content: token.id for token in tokens}

    def special_tokens_of(self, vocabulary: AnyVocabulary) -> Sequence[str]:
        added = vocabulary.added if isinstance(vocabulary, BpeVocabulary) else ()
        return [token.content for token in added if token.special]

    def template(self, vocabulary: AnyVocabulary, text: str | None = None) -> Template:
        if text is None and isinstance(vocabulary, BpeVocabulary):
            return vocabulary.template
        return super().template(vocabulary, text)

    def tokens(self, text: str) -> Iterable[str]:
        from tokcore.text.t2t import tokenize

        if self.patterns:
            prefix = ' ' if self.add_prefix_space and text[:1] not in ('', ' ') else ''
            cutter: Any = self.words_pre_tokenizer
            return cutter.tokens(prefix + text)
        match self.kind:
            case 'space':
                tokens = [word for word in text.split(' ') if word]
            case 'whitespace':
                tokens = text.split()
            case 'bert':
                tokens = bert_tokens(text, 'bert', True, None, True)
            case _:
                tokens = tokenize(text)
        return [f'{token}_' for token in tokens] if self.preset == 'textbook' else tokens

    def dropped(self, vocabulary: AnyVocabulary) -> DroppedCharacters | None:
        return vocabulary.model.dropped() if isinstance(vocabulary, BpeVocabulary) else None

    def vocabulary_of(self, characters: Sequence[str]) -> AnyVocabulary:
        from tokcore.bpe.codes import NmtVocabulary, TextbookVocabulary

        if self.preset == 'textbook':
            return TextbookVocabulary((), ('<unk>',), characters=''.join(characters))
        if self.preset == 'subword-nmt':
            return NmtVocabulary((('a', 'b'),), ('<unk>',))
        alphabet = sorted(BYTE_TO_CHARACTER[byte] for byte in range(256))
        merges = ((alphabet[0], alphabet[1]),)
        return BpeVocabulary.learned([*alphabet, ''.join(merges[0])], merges, parts=self._parts)

    def vocabulary_name(self, dataset: str, size: str, side: str | None = None) -> str:
        suffix = 'codes' if self.preset in CODES else self.file_suffix
        stem = f'vocab.{dataset}.{size}.{suffix}'
        return stem if side is None else f'{stem}.{side}'


@contextlib.contextmanager
def reported_merges(rules: BpeRules, report: Progress) -> Iterator[Callable[[int], None]]:
    """Yields a function that reports the number of merges so far; reports the end after the block."""
    target = rules.merges or rules.vocab_size or 0
    report(0, 0, target)
    yield lambda merges: report(0, min(merges, target - 1), target)
    report(0, target, target)


SCHEME = BpeScheme()
