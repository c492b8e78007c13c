"""What a scheme is: how lines become tokens, tokens become ids, and ids become text again.

A scheme has five parts, named as Hugging Face's tokenizers name them:

    a line ─ normalizer ─▶ a row ─ pre-tokenizer ─▶ tokens ─ model ─▶ ids ─ post-processor ─▶ ids
    ids ─ decoder ─▶ text

and a vocabulary file, a learner, and options. `tokcore.schemes` has them by name. To add one
(`tests/engines/reverse_scheme` is a whole example):

1. A module with a frozen dataclass that is a `Scheme`, and an instance of it as `SCHEME`. For its
   help the command imports the module: what is heavy (kernels: anything that imports numba) is
   imported in the method that needs it. The instance goes to workers with the steps of a pipeline.
   Its fields are options that every command takes.
2. Dataclasses of the options of its learner, a `LearningOptions` with more fields, and of its
   encoder, an `EncodingOptions`.
3. A `Vocabulary`, whose `model` gives the ids of tokens (`encoding.kernels`), and a pre-tokenizer
   (`text.pre_tokenizer`): each with a state, a `NamedTuple` whose type selects the kernel's body.
   States of one scheme are defined in a folder with all the kernels that they select.
4. Its name and where it is, as one line of `schemes._MODULES` or by a call of `schemes.register`
   before the command begins.
"""

from __future__ import annotations

import abc
import dataclasses
import json
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from tokcore.encoding.vocabulary import (
    ReadBeside,
    Template,
    Vocabulary,
    default_template_ids,
    read_if_there,
    template,
    template_ids,
)
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.options import option, positive, recorded

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.encoder import RowEncoder
    from tokcore.text.pre_tokenizer import PreTokenizer
    from tokcore.text.rows import Normalizer

NORMALIZER_KEY = 'tokbeam.normalizer'
PRE_TOKENIZER_KEY = 'tokbeam.pre_tokenizer'
"""Where a count file's Parquet schema records them, as JSON."""


class PieceWriter(Protocol):
    """Writes text as pieces."""

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Returns the pieces of each line, as a line."""

    def text(self, line: str) -> str:
        """Returns the text of a line of pieces."""


@dataclass(frozen=True)
class Learned:
    """A vocabulary and how it was found.

    Attributes:
        vocabulary: the entries.
        min_count: that a search ended at; None where nothing was searched.
        tried: (min-count, size) of each vocabulary that a search looked at.
        reachable: (min-count, size) around what was asked for.
        smallest_size: of all vocabularies that these tokens can give, None if any size is possible.
    """

    vocabulary: Vocabulary
    min_count: int | None = None
    tried: tuple[tuple[int, int], ...] = ()
    reachable: tuple[tuple[int, int], ...] = ()
    smallest_size: int | None = None


@dataclass(frozen=True)
class EncodingOptions:
    """How a vocabulary encodes, where that changes no token; a scheme's own are a subclass's."""

    template: str | None = option(
        "what surrounds each row's ids ($A), as '[CLS] $A [SEP]' (default: the scheme's; of lines, "
        'nothing)',
        template,
        'T',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
    )


@dataclass(frozen=True)
class Scheme(abc.ABC):
    """How text becomes ids. A subclass's fields are the options of its parts that change tokens.

    They are declared as options (`options.option_fields`), so that every command takes them, and are
    recorded with what was made. It is pickled to workers, so all that is heavy is imported where it
    is used.
    """

    name: ClassVar[str]
    """As `--scheme` has it."""

    file_suffix: ClassVar[str]
    """What ends the name of a vocabulary's file in a dataset: `vocab.NAME.SIZE.suffix`."""

    options: ClassVar[type[LearningOptions] | None]
    """What is asked of its learner; None where nothing is learned."""

    encoding: ClassVar[type[EncodingOptions]] = EncodingOptions
    """What is asked of its encoder."""

    @property
    def unstorable(self) -> str:
        """The characters, of ASCII, that no token in its vocabulary's file can have."""
        return '\n\r'

    @property
    def rows_have_unstorable(self) -> bool:
        """Whether its tokens can have such characters, if a row has them.

        Where they can, rows that give such tokens are left out when tokens are counted.
        """
        return True

    default_template: ClassVar[str] = '$A'
    """What surrounds a row of an example, if nothing else is asked for; see `vocabulary`."""

    beam_learner: ClassVar[str | None] = None
    """`module:name` of a learner on Beam, a string since these packages know no Beam; or None."""

    learner_bytes_per_character: ClassVar[int] = 50
    """What the learner in memory takes at most for each byte of the distinct tokens: of subwords, if
    a search goes down to min-count 1, places and a tree of every string. On 10 million tokens of 13
    characters 50 were measured, and 24 down to min-count 50."""

    @property
    @abc.abstractmethod
    def normalizer(self) -> Normalizer:
        """What makes text of a row's bytes, and says which rows are empty."""

    @property
    @abc.abstractmethod
    def pre_tokenizer(self) -> PreTokenizer:
        """What cuts rows into tokens."""

    @property
    def rules(self) -> TokenRules:
        """The normalizer and the pre-tokenizer as records name them."""
        parts = (self.normalizer, self.pre_tokenizer)
        return TokenRules(*(Component(each.name, dict(each.options)) for each in parts))

    def check(self, options: LearningOptions) -> None:
        """Refuses, before anything is counted, what this scheme cannot learn.

        Raises:
            InputError: options that do not go together.
        """

    @abc.abstractmethod
    def learn(self, table: TokenTable, options: LearningOptions, report: Progress) -> Learned:
        """Learns a vocabulary from distinct tokens and their counts, in memory.

        Args:
            table: the tokens that the pre-tokenizer cuts.
            options: an instance of `self.options`.
            report: is told (min-count, size, size asked for) of each vocabulary looked at.

        Raises:
            InputError: no such vocabulary can be had.
        """

    @abc.abstractmethod
    def parse(self, data: bytes, path: str, read: ReadBeside = read_if_there) -> Vocabulary:
        """Reads a vocabulary's file.

        Args:
            data: what it holds.
            path: of the file.
            read: gives what another file holds, one that belongs to it, or None if there is none.

        Raises:
            InputError: naming `path`, if this is none of this scheme's.
        """

    def recognizes(self, data: bytes) -> bool:
        """Whether a file without a record is a vocabulary of this scheme beyond any doubt."""
        return False

    def options_from_file(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> Mapping[str, object]:
        """Returns the options of this scheme that a vocabulary's file tells by itself, by their keys.

        Raises:
            InputError: naming `path`, if the file is none of this scheme's.
        """
        return {}

    @property
    def fixed(self) -> Vocabulary | None:
        """The only vocabulary of a scheme that has no files of any."""
        return None

    def encoder(self, vocabulary: Vocabulary, options: EncodingOptions | None = None) -> RowEncoder:
        """Returns an encoder of rows for one thread; `options` are an instance of `encoding`."""
        from tokcore.encoding.encoder import RowEncoder

        return RowEncoder(self.pre_tokenizer, vocabulary.model)

    def piece_writer(self, vocabulary: Vocabulary) -> PieceWriter | None:
        """Returns what writes lines of pieces if a scheme has a form of its own for these."""
        return None

    def entries_name(self, name: str) -> str | None:
        """Returns the name of the file with a vocabulary's ids, if its own, of this name, has none."""
        return None

    def entries(self, vocabulary: Vocabulary, table: TokenTable) -> bytes:
        """Returns the file with a vocabulary's ids, by what it makes of the tokens of a table."""
        raise NotImplementedError(f'vocabularies of --scheme {self.name} have ids')

    def template(self, vocabulary: Vocabulary, asked: str | None = None) -> Template:
        """Returns what surrounds each row of an example: as asked for, or by default.

        Raises:
            InputError: a token was asked for that the vocabulary does not have.
        """
        if asked is not None:
            return template_ids(asked, vocabulary)
        return default_template_ids(self.default_template, vocabulary)

    @abc.abstractmethod
    def tokens(self, text: str) -> Iterable[str]:
        """Cuts a row into tokens in plain Python: the oracle of the pre-tokenizer's kernel."""

    @abc.abstractmethod
    def vocabulary_of(self, characters: Sequence[str]) -> Vocabulary:
        """Returns a small vocabulary that spells these characters, to compile kernels with."""

    def vocabulary_name(self, dataset: str, size: str, side: str | None = None) -> str:
        """Returns the file name of a dataset's vocabulary, or of one side's."""
        stem = f'vocab.{dataset}.{size}.{self.file_suffix}'
        return stem if side is None else f'{stem}.{side}'


@dataclass(frozen=True)
class LearningOptions:
    """How a vocabulary is learned; a scheme's own options are fields of a subclass."""

    vocab_size: int = option('entries to aim for, {range}', positive, 'N', changes_bytes=True)

    def is_met(self, size: int) -> bool:
        """Whether a size is as near to the one asked for as a search is to come."""
        return self.vocab_size is None or abs(size - self.vocab_size) * 100 < self.vocab_size

    @property
    def size_label(self) -> str:
        """What the name of a vocabulary's file tells of its size."""
        return str(self.vocab_size)

    @property
    def on_beam(self) -> str:
        """Where a learner on Beam is said to learn."""
        return 'on Beam'

    rarest_option: ClassVar[str | None] = None
    """The option that leaves rare tokens out, if there is one."""

    def kept(self, table: TokenTable) -> TokenTable:
        """Returns the tokens that are learned from."""
        return table

    def for_manifest(self) -> dict[str, object]:
        """Returns what the vocabulary's bytes depend on; all learners give the same."""
        return recorded(self)

    def is_beyond(self, min_count: int) -> bool:
        """Whether a search that asks for a min-count has left the range it began in."""
        return False


@dataclass(frozen=True)
class NothingToLearn:
    """The options of a scheme that learns nothing."""


@dataclass(frozen=True)
class Component:
    """A part of a scheme as records name it: which one, and what was asked of it."""

    name: str
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f'{self.name} {json.dumps(self.options, sort_keys=True)}' if self.options else self.name
        )

    def to_record(self) -> dict[str, object]:
        """Returns what JSON holds of it."""
        return {'name': self.name, 'options': dict(self.options)}

    @classmethod
    def from_record(cls, record: object) -> Component:
        """Raises TypeError or KeyError for what `to_record` cannot have given."""
        if not isinstance(record, dict):
            raise TypeError('a normalizer or pre-tokenizer is no JSON object')
        name, options = record['name'], record['options']
        if not isinstance(name, str) or not isinstance(options, dict):
            raise TypeError('a normalizer or pre-tokenizer has no name or options')
        return cls(name, options)


@dataclass(frozen=True)
class TokenRules:
    """All that the tokens of a line depend on."""

    normalizer: Component
    pre_tokenizer: Component

    def __str__(self) -> str:
        return f'normalizer {self.normalizer} and pre-tokenizer {self.pre_tokenizer}'

    def metadata(self) -> dict[str, str]:
        """Returns what a count file's Parquet schema says of them."""
        return {
            NORMALIZER_KEY: json.dumps(self.normalizer.to_record(), sort_keys=True),
            PRE_TOKENIZER_KEY: json.dumps(self.pre_tokenizer.to_record(), sort_keys=True),
        }

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, str]) -> TokenRules | None:
        """Returns the rules of a count file's schema, None if it records none.

        Raises:
            ValueError, TypeError, KeyError: what is there is no such record.
        """
        found = [metadata.get(key) for key in (NORMALIZER_KEY, PRE_TOKENIZER_KEY)]
        if found == [None, None]:
            return None
        return cls(*(Component.from_record(json.loads(each or 'null')) for each in found))


def check_rules(recorded: TokenRules | None, wanted: TokenRules, what: str) -> None:
    """Holds rules that a file records against those that are asked for; None records none.

    Raises:
        InputError: its tokens were found by other rules; both are named.
    """
    if recorded is not None and recorded != wanted:
        raise InputError(
            f'{what} was made with {recorded}, but {wanted} are asked for; count the text again, or '
            'give the --scheme that it was made for'
        )
