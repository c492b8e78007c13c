"""What a scheme is: how lines become tokens, tokens become ids, and ids become text again.

A scheme has five parts, named as Hugging Face's tokenizers name them:

    a line ─ normalizer ─▶ a row ─ pre-tokenizer ─▶ tokens ─ model ─▶ ids ─ post-processor ─▶ ids
    ids ─ decoder ─▶ text

and a vocabulary file, a learner, and options. `tokcore.schemes` has them by name. To add one
(`tests/engines/reverse_scheme` is a whole example):

1. A module with a frozen dataclass that is a `Scheme`, and an instance of it as `SCHEME`. Its fields
   are options of every command. `--help` imports the module, so whatever imports numba is imported
   in the method that needs it. The instance is sent to workers with the steps of a pipeline.
2. Dataclasses of the options of its learner, a `LearningOptions` with more fields, and of its
   encoder, an `EncodingOptions`.
3. A `Vocabulary`, whose `model` gives the ids of tokens (`encoding.kernels`), and a pre-tokenizer
   (`text.pre_tokenizer`). Each has a state, a `NamedTuple` whose type selects the kernel's body. The
   states of a scheme are defined in one folder with all the kernels that they select.
4. Its name and module, as a line of `schemes._MODULES` or by a call of `schemes.register` before
   the command begins.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
import json
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tokcore.checked_json import checked
from tokcore.encoding.vocabulary import (
    ReadBeside,
    Template,
    Vocabulary,
    default_template_ids,
    read_if_there,
    special_ids_by_name,
    template,
    template_ids,
    template_words,
)
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress, SearchResult
from tokcore.options import flag, option, positive, recorded

if typing.TYPE_CHECKING:
    from tokcore.counts.tables import RowCheck
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.encoder import DroppedCharacters, Encoder, UnmatchedText
    from tokcore.encoding.tokenizer import Tokenizer
    from tokcore.text.pre_tokenizer import PreTokenizer
    from tokcore.text.rows import Normalizer

NORMALIZER_KEY = 'tokbeam.normalizer'
PRE_TOKENIZER_KEY = 'tokbeam.pre_tokenizer'
"""The keys under which the Parquet schema of a count file records them, as JSON."""


class PieceWriter(Protocol):
    """Writes text as lines of pieces, and reads them."""

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Returns for each line of text the line of its pieces."""

    def text(self, line: str) -> str:
        """Returns the text of a line of pieces."""


VocabularyT = TypeVar('VocabularyT', bound=Vocabulary)


@dataclass(frozen=True)
class Learned(Generic[VocabularyT]):
    """A vocabulary, and how it was learned.

    Attributes:
        vocabulary: the vocabulary.
        min_count: with which the search ended; None if there was no search.
        tried: (min-count, size) of each vocabulary that the search made.
        reachable: (min-count, size) of the vocabularies nearest to the size that is wanted.
        smallest_size: of any vocabulary of these tokens; None if every size is possible.
    """

    vocabulary: VocabularyT
    min_count: int | None = None
    tried: tuple[tuple[int, int], ...] = ()
    reachable: tuple[tuple[int, int], ...] = ()
    smallest_size: int | None = None

    @classmethod
    def by_search(
        cls, vocabulary: VocabularyT, result: SearchResult, smallest_size: int
    ) -> Learned[VocabularyT]:
        """Returns the vocabulary that a search has found."""
        return cls(vocabulary, result.min_count, result.tried, result.reachable, smallest_size)


@dataclass(frozen=True)
class EncodingOptions:
    """Options of encoding that do not change tokens; a scheme's own are fields of a subclass."""

    template: str | None = option(
        "what surrounds each row's ids ($A), as '[CLS] $A [SEP]' (default: the scheme's; of lines, "
        'nothing)',
        template,
        'T',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
    )


def vocab_size_option() -> Any:
    """Returns the field of a vocabulary's size, for learners that search for it."""
    return option('entries to aim for', positive, 'N', changes_bytes=True)


@dataclass(frozen=True)
class LearningOptions:
    """How a vocabulary is learned; a scheme's own options are fields of a subclass."""

    vocab_size: int | None = vocab_size_option()

    def is_met(self, size: int) -> bool:
        """Whether a size is near enough to the wanted one to end a search."""
        return self.vocab_size is None or abs(size - self.vocab_size) * 100 < self.vocab_size

    @property
    def first_entries(self) -> tuple[str, ...] | None:
        """The special tokens of the vocabulary; None: all that the scheme uses are in it."""
        return None

    @property
    def size_label(self) -> str:
        """The size in the name of a vocabulary's file."""
        return str(self.vocab_size)

    @property
    def on_beam(self) -> str:
        """How messages call learning on Beam."""
        return 'on Beam'

    @property
    def endings_beside(self) -> tuple[str, ...]:
        """The ends of the names of files next to the vocabulary's, which begin with its name."""
        return ()

    def for_manifest(self) -> dict[str, object]:
        """Returns the options that the vocabulary's bytes depend on."""
        return recorded(self)

    def is_beyond(self, min_count: int) -> bool:
        """Whether a min-count is outside the range in which the search began."""
        return False


@dataclass(frozen=True)
class NothingToLearn:
    """The options of a scheme that learns nothing."""


LearningT = TypeVar('LearningT', bound=LearningOptions)
EncodingT = TypeVar('EncodingT', bound=EncodingOptions)


@dataclass(frozen=True)
class Scheme(abc.ABC, Generic[VocabularyT, LearningT, EncodingT]):
    """How text becomes ids. The fields of a subclass are the options that change tokens.

    They are declared as options (`options.option`), so every command has them, and results record
    them. A scheme is pickled to workers. The type arguments are its vocabulary, and the options of
    its learner and of its encoder.

    Examples:
        >>> scheme = tokcore.find_scheme('word')
        >>> isinstance(scheme, tokcore.Scheme), scheme.name, scheme.tokens('the cat sat')
        (True, 'word', ['the', 'cat', 'sat'])
    """

    name: ClassVar[str]
    """Its value of `--scheme`."""

    file_suffix: ClassVar[str]
    """The ending of a vocabulary's file name in a dataset: `vocab.NAME.SIZE.suffix`."""

    options: ClassVar[type[LearningOptions] | None]
    """The options of its learner; None if nothing is learned."""

    encoding: ClassVar[type[EncodingOptions]] = EncodingOptions
    """The options of its encoder."""

    name_in_tokenizer_folder: ClassVar[str | None] = None
    """The name of a vocabulary's file where Hugging Face's libraries open its folder; see
    `tokenizer_files`. None: they have no such name for it."""

    configs_beside: ClassVar[tuple[str, ...]] = ()
    """The names of files next to a vocabulary's file that say more about it, and go where it goes."""

    @property
    def unstorable(self) -> str:
        """The ASCII characters that no token in its vocabulary's file can have."""
        return '\n\r'

    @property
    def rows_have_unstorable(self) -> bool:
        """Whether tokens of a row can have such characters; such rows are then not counted."""
        return True

    default_template: ClassVar[str] = '$A'
    """The ids around a row of an example by default; see `vocabulary`."""

    beam_learner: ClassVar[str | None] = None
    """`module:name` of its learner on Beam, a string since `tokcore` does not import Beam; or None."""

    counts_last_word: ClassVar[bool] = False
    """Whether the learner must know which word is the last of the corpus (`TokenTable.last_word`)."""

    refused_options: ClassVar[Mapping[str, str]] = {}
    """Options of the program that it reproduces which it does not have, and why, by names with underscores."""

    learns_in_rounds: ClassVar[bool] = False
    """Whether tokens that do not fit in memory are learned from by `learn_in_rounds`, with files on one
    machine, or on Beam; both need that `reason_against_rounds` gives none."""

    learner_bytes_per_character: ClassVar[int] = 50
    """Bytes of memory of the learner for each byte of the distinct tokens, at most. The subword learner
    keeps a tree of all their substrings in a search down to min-count 1: on 10 million tokens of 13
    characters 50 were measured, and 24 down to min-count 50."""

    learner_steps: ClassVar[str] = 'merges'
    """What a learner without a search reports, with min-count 0: how many there are, and how many at the end."""

    learner_most_characters: ClassVar[int | None] = None
    """The most bytes of distinct tokens, with one for the end of each, that the learner can take at
    once; None: as many as fit in memory."""

    @property
    @abc.abstractmethod
    def normalizer(self) -> Normalizer:
        """Makes text of the bytes of rows."""

    @property
    def counting_normalizer(self) -> Normalizer:
        """The normalizer of rows whose tokens are counted."""
        return self.normalizer

    @property
    @abc.abstractmethod
    def pre_tokenizer(self) -> PreTokenizer:
        """Cuts rows into tokens."""

    @property
    def row_check(self) -> RowCheck | None:
        """Leaves out rows whose tokens cannot be counted; None: there are no such rows."""
        if not self.unstorable or not self.rows_have_unstorable:
            return None
        from tokcore.counts.tables import UnstorableTokens

        return UnstorableTokens(self.unstorable, self.tokens)

    @property
    def rules(self) -> TokenRules:
        """The normalizer and the pre-tokenizer, as results record them."""
        parts = (self.normalizer, self.pre_tokenizer)
        return TokenRules(*(Component(part.name, dict(part.options)) for part in parts))

    def files_beside(self, vocabulary: VocabularyT, options: LearningT) -> Mapping[str, bytes]:
        """Returns the files of `endings_beside` for a vocabulary that was learned, by these endings."""
        return {}

    def for_learning(self, options: LearningT) -> Scheme[VocabularyT, LearningT, EncodingT]:
        """Returns this scheme with what the options of learning say about it."""
        return self

    def check(self, options: LearningT) -> None:  # noqa: B027 - most schemes learn anything
        """Raises InputError, before anything is counted, if options contradict each other."""

    @abc.abstractmethod
    def learn(
        self, table: TokenTable, options: LearningT, report: Progress
    ) -> Learned[VocabularyT]:
        """Learns a vocabulary from distinct tokens and their counts, in memory.

        Args:
            table: the tokens of the pre-tokenizer.
            options: an instance of `self.options`.
            report: is called with (min-count, size, wanted size) for each vocabulary that is made.

        Raises:
            InputError: there is no such vocabulary of these tokens.
        """

    def learn_in_threads(
        self, table: TokenTable, options: LearningT, report: Progress, most: int
    ) -> Learned[VocabularyT]:
        """Learns what `learn` learns, with so many threads at most; most learners have one."""
        return self.learn(table, options, report)

    def reason_against_rounds(self, options: LearningT) -> str | None:
        """Returns why `learn_in_rounds` cannot learn with these options; None if it can."""
        return 'this learner needs all tokens in memory'

    def learn_in_rounds(
        self,
        tables: Callable[[], Iterable[TokenTable]],
        options: LearningT,
        report: Progress,
        folder: str,
        memory_bytes: int,
    ) -> Learned[VocabularyT]:
        """Learns what `learn` learns from the sum of tables, which need not fit in memory.

        Args:
            tables: returns them, and may be called several times; a token may be in several of them.
            options: of learning.
            report: is called as the search goes on.
            folder: an empty folder of this machine, for files.
            memory_bytes: that learning should keep within.

        Raises:
            InputError: there is no such vocabulary of these tokens, or only `learn` can learn it.
        """
        raise NotImplementedError(self.reason_against_rounds(options))

    @abc.abstractmethod
    def parse(self, data: bytes, path: str, read: ReadBeside = read_if_there) -> VocabularyT:
        """Parses a vocabulary's file.

        Args:
            data: its bytes.
            path: of the file.
            read: returns the bytes of another file of the vocabulary, None if there is none.

        Raises:
            InputError: naming `path`, if it is not a vocabulary of this scheme.
        """

    def recognizes(self, data: bytes) -> bool:
        """Whether a file without a record must be a vocabulary of this scheme."""
        return False

    def options_from_file(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> Mapping[str, object]:
        """Returns the options of this scheme that a vocabulary's file states, by their keys.

        Raises:
            InputError: naming `path`, if it is not a vocabulary of this scheme.
        """
        return {}

    def refuse_unstated(  # noqa: B027 - most files need no option
        self, data: bytes, path: str, stated: Collection[str]
    ) -> None:
        """Raises InputError if a vocabulary's file needs an option that is not among those stated, by their keys."""

    @property
    def fixed(self) -> VocabularyT | None:
        """The only vocabulary of a scheme that has no vocabulary files."""
        return None

    def encoder(self, vocabulary: VocabularyT, options: EncodingT | None = None) -> Encoder:
        """Returns an encoder of rows for one thread; `options` are an instance of `encoding`."""
        from tokcore.encoding.encoder import RowEncoder

        return RowEncoder(self.pre_tokenizer, vocabulary.model)

    def tokenizer(self, vocabulary: VocabularyT, **encoding: Any) -> Tokenizer | None:
        """Returns the tokenizer for use from Python; None: `tokcore.tokenizers` has it, or there is no such class.

        The keywords are fields of `encoding`.
        """
        return None

    def special_tokens_in(self, vocabulary: VocabularyT, prefix: str) -> Mapping[str, int]:
        """Returns the special tokens that get their ids in a prefix; see `prefixes`.

        They are those whose ids text never gets.

        Raises:
            InputError: one of them has a property that is not supported.
        """
        return {}

    def special_tokens_of(self, vocabulary: VocabularyT) -> Sequence[str]:
        """Returns the special tokens that are found in text with `--allow-special-tokens`."""
        return ()

    def dropped(self, vocabulary: VocabularyT) -> DroppedCharacters | UnmatchedText | None:
        """Returns what counts the text that becomes no id by mistake; None: all does."""
        return None

    def piece_writer(
        self, vocabulary: VocabularyT, options: EncodingT | None = None
    ) -> PieceWriter | None:
        """Returns the writer of lines of pieces, if the scheme has a form of its own for them."""
        return None

    def entries_name(self, name: str) -> str | None:
        """Returns the name of the file with a vocabulary's ids, if its own file has none."""
        return None

    def entries(self, vocabulary: VocabularyT, table: TokenTable) -> bytes:
        """Returns the bytes of the file with the ids, which depend on the tokens that are encoded."""
        raise NotImplementedError(f'vocabularies of --scheme {self.name} have ids')

    @property
    def tokenizer_file_names(self) -> tuple[str, ...]:
        """The names of the `tokenizer_files`."""
        return ()

    def tokenizer_files(self, vocabulary: VocabularyT) -> Mapping[str, bytes]:
        """Returns the files with which Hugging Face's libraries open a vocabulary, by their names.

        There are none where these libraries have no model that gives the same ids.
        """
        return {}

    def template(self, vocabulary: VocabularyT, text: str | None = None) -> Template:
        """Returns the ids around each row of an example.

        Args:
            vocabulary: whose ids they are.
            text: the value of `--template`; None: the scheme's own.

        Raises:
            InputError: the vocabulary does not have a token of `text`.
        """
        if text is not None:
            return template_ids(text, vocabulary)
        return default_template_ids(self.default_template, vocabulary)

    def unknown_token(self, options: EncodingT) -> str | None:
        """Returns the token whose id text without an id gets; None: all text has ids, or must have."""
        return None

    def missing_tokens(
        self, id_of: Callable[[str], int | None], options: EncodingT, vocabulary: str
    ) -> str | None:
        """Returns which special tokens a vocabulary lacks that encoding uses, and what follows.

        Args:
            id_of: returns the id of a token, None if there is no such token.
            options: of the encoder.
            vocabulary: how the sentence calls it.
        """
        roles = special_ids_by_name(id_of)
        before, after = (
            template_words(self.default_template) if options.template is None else ([], [])
        )
        if len(after) == 1 and roles.end is not None:
            after = []  # the id with this role is used, whatever its name
        lacks = {token: 'rows begin without it' for token in before if id_of(token) is None}
        ends = 'rows end without it' + ('' if roles.pad is not None else ', and no id pads batches')
        lacks |= {token: ends for token in after if id_of(token) is None}
        unknown = self.unknown_token(options)
        if unknown is not None and roles.unknown is None:
            lacks[unknown] = 'the first word without an id stops the job'
        if not lacks:
            return None
        follows = '; '.join(f'{token}: {what}' for token, what in lacks.items())
        return f'{vocabulary} lacks special tokens ({follows}); add them to it' + (
            '' if options.template is not None else ', or give --template'
        )

    @abc.abstractmethod
    def tokens(self, text: str) -> Iterable[str]:
        """Cuts a row into tokens in plain Python, as the pre-tokenizer's kernel does."""

    @abc.abstractmethod
    def vocabulary_of(self, characters: Sequence[str]) -> VocabularyT:
        """Returns a small vocabulary that spells these characters, with which kernels are compiled."""

    def vocabulary_name(self, dataset: str, size: str, side: str | None = None) -> str:
        """Returns the file name of a dataset's vocabulary, or of one side's."""
        stem = f'vocab.{dataset}.{size}.{self.file_suffix}'
        return stem if side is None else f'{stem}.{side}'


def refuse_options(scheme: Scheme, names: Iterable[str]) -> None:
    """Raises InputError if one of these is an option that a scheme refuses."""
    for name in names:
        key = name.lstrip('-').replace('-', '_')
        if key in scheme.refused_options:
            raise InputError(
                f'--scheme {scheme.name} has no {flag(key)}: {scheme.refused_options[key]}; leave it out'
            )


def refuse_different(schemes: Mapping[str, Scheme]) -> None:
    """Raises InputError if vocabularies that encode together, by their paths, need other options."""
    for (path, scheme), (other, wanted) in itertools.pairwise(schemes.items()):
        # Options of `bpe` may differ and cut text alike. The files of `pretrained` have rules of their own.
        if scheme == wanted or (scheme.rules == wanted.rules and scheme.options is not None):
            continue
        here, there = recorded(scheme), recorded(wanted)
        key = next(key for key in {**here, **there} if here.get(key) != there.get(key))
        raise InputError(
            f'{flag(key)} is {here.get(key)} for {path} and {there.get(key)} for {other}, and a job encodes '
            f'with one; give vocabularies that agree, or the option for both'
        )


@dataclass(frozen=True)
class Component:
    """A normalizer or a pre-tokenizer, as results record it: its name and its options."""

    name: str
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f'{self.name} {json.dumps(self.options, sort_keys=True)}' if self.options else self.name
        )


@dataclass(frozen=True)
class TokenRules:
    """What the tokens of a line depend on."""

    normalizer: Component
    pre_tokenizer: Component

    def __str__(self) -> str:
        return f'normalizer {self.normalizer} and pre-tokenizer {self.pre_tokenizer}'

    def metadata(self) -> dict[str, str]:
        """Returns the metadata of a count file's Parquet schema."""
        return {
            NORMALIZER_KEY: json.dumps(vars(self.normalizer), sort_keys=True),
            PRE_TOKENIZER_KEY: json.dumps(vars(self.pre_tokenizer), sort_keys=True),
        }

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, str]) -> TokenRules | None:
        """Returns the rules of a count file's schema, None if it records none.

        Raises:
            ValueError: the records are damaged.
        """
        records = [metadata.get(key) for key in (NORMALIZER_KEY, PRE_TOKENIZER_KEY)]
        if records == [None, None]:
            return None
        return cls(*(checked(json.loads(record or 'null'), Component) for record in records))


def check_line_rule(recorded: TokenRules, what: str, remedy: str) -> None:
    """Raises InputError if something was made with a rule of lines that this version no longer has.

    The `\\r` of a `\\r\\n` was text to these rules, and so were rows of white space.
    """
    normalizer = recorded.normalizer
    if normalizer.name == 'raw-lines' or 'characters' in normalizer.options:
        raise InputError(
            f'{what} was made with the line rule {normalizer} of an earlier version; {remedy}'
        )


def check_rules(recorded: TokenRules | None, wanted: TokenRules, what: str) -> None:
    """Raises InputError if a file records other rules than the wanted ones; None: it records none."""
    if recorded is not None:
        check_line_rule(recorded, what, 'count the text again')
    if recorded is not None and recorded != wanted:
        raise InputError(
            f'{what} was made with {recorded}, but the command has {wanted}; count the text again, or '
            'give the --scheme that it was made for'
        )
