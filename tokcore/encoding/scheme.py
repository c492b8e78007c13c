"""What a scheme is: how lines become tokens, tokens become ids, and ids become text again.

A scheme has five parts, named as Hugging Face's tokenizers name them:

    a line ─ normalizer ─▶ a row ─ pre-tokenizer ─▶ tokens ─ model ─▶ ids ─ post-processor ─▶ ids
    ids ─ decoder ─▶ text

and beside them a vocabulary's file, its learner, and its options. `tokcore.schemes` has them by name.

To add one (`tests/engines/reverse_scheme` is an example, whole):

1. A module with a frozen dataclass that is a `Scheme`, and an instance of it as `SCHEME`. For its
   help the command imports the module: what is heavy (kernels: anything that imports numba) is
   imported in the method that needs it. The instance goes to workers with the steps of a pipeline.
   Fields of it are options that every command takes.
2. Dataclasses of what is asked of its learner, a `LearningOptions` with more fields, and of its
   encoder, an `EncodingOptions`.
3. A `Vocabulary`, whose `model` gives the ids of tokens (`encoding.model`), and a pre-tokenizer
   (`text.pre_tokenizer`): each with a state, a `NamedTuple` whose type selects the kernel's body.
   States of one scheme are defined in a folder with all the kernels that they select.
4. Its name and where it is, as one line of `schemes._MODULES` or by a call of `schemes.register`
   before the command begins.
"""

from __future__ import annotations

import abc
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from tokcore.encoding.scheme_options import EncodingOptions, LearningOptions
from tokcore.encoding.special_ids import ReadBeside, Vocabulary, read_if_there
from tokcore.encoding.templates import Template, default_template_ids, template_ids
from tokcore.encoding.token_rules import Component, TokenRules
from tokcore.learning.size_search import Report

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.row_encoder import RowEncoder
    from tokcore.text.normalizer import Normalizer
    from tokcore.text.pre_tokenizer import PreTokenizer


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
    """What surrounds a row of an example, if nothing else is asked for; see `templates`."""

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
    def learn(self, table: TokenTable, options: LearningOptions, report: Report) -> Learned:
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

    def told_by(
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

    def encoder(
        self, vocabulary: Vocabulary, options: EncodingOptions | None = None
    ) -> RowEncoder:
        """Returns an encoder of rows for one thread; `options` are an instance of `encoding`."""
        from tokcore.encoding.row_encoder import RowEncoder

        return RowEncoder(self.pre_tokenizer, vocabulary.model)

    def piece_lines(self, vocabulary: Vocabulary) -> PieceWriter | None:
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
