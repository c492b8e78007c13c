"""What a scheme is: how lines become tokens, tokens become ids, and ids become text again.

A scheme has five parts, named as Hugging Face's tokenizers name them:

    a line ─ normalizer ─▶ a row ─ pre-tokenizer ─▶ tokens ─ model ─▶ ids ─ post-processor ─▶ ids
    ids ─ decoder ─▶ text

and beside them a vocabulary's file, its learner, and its options. `tokcore.schemes` has them by name.

To add one (`tests/engines/reverse_scheme` is an example, whole):

1. A module with a frozen dataclass that is a `Scheme`, and an instance of it as `SCHEME`. For its
   help the command imports the module: what is heavy (kernels: anything that imports numba) is
   imported in the method that needs it. The instance goes to workers with the steps of a pipeline.
2. A dataclass of what is asked of its learner, a `LearningOptions` with more fields.
3. A `Vocabulary`, whose `model` gives the ids of tokens (`encoding.model`), and a pre-tokenizer
   (`text.pre_tokenizer`): each with a state, a `NamedTuple` whose type selects the kernel's body.
   States of one scheme are defined in a folder with all the kernels that they select.
4. Its name and where it is, as one line of `schemes._MODULES` or by a call of `schemes.register`
   before the command begins.
"""

from __future__ import annotations

import abc
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from tokcore.encoding.learning_options import LearningOptions
from tokcore.encoding.token_rules import Component, TokenRules
from tokcore.learning.size_search import Report

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.model import Model
    from tokcore.encoding.row_encoder import RowEncoder
    from tokcore.text.normalizer import Normalizer
    from tokcore.text.pre_tokenizer import PreTokenizer


class SpecialIds(NamedTuple):
    """The ids that have a role in a vocabulary, each of them or none."""

    pad: int | None = None
    begin: int | None = None
    end: int | None = None
    unknown: int | None = None

    @property
    def at_end(self) -> frozenset[int]:
        """What stands behind a row and is none of its text: padding, and the end."""
        return frozenset(each for each in (self.pad, self.end) if each is not None)


class Template(NamedTuple):
    """What the post-processor puts around a row's own ids."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


NO_TEMPLATE = Template()


class Vocabulary(Protocol):
    """A scheme's model with its entries: what threads share."""

    @property
    def vocab_size(self) -> int:
        """How many ids there are, from 0 on."""

    @property
    def special_ids(self) -> SpecialIds:
        """Which ids have a role."""

    @property
    def model(self) -> Model:
        """What gives the ids of tokens, as the block engine asks for them."""

    def dump(self) -> bytes:
        """Returns the vocabulary's file."""

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids, as the scheme's decoder joins them; special ones are shown."""


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

    It is pickled to workers, so all that is heavy is imported where it is used.
    """

    name: ClassVar[str]
    """As `--scheme` has it."""

    file_suffix: ClassVar[str]
    """What ends the name of a vocabulary's file in a dataset: `vocab.NAME.SIZE.suffix`."""

    options: ClassVar[type[LearningOptions]]
    """What is asked of its learner."""

    beam_learner: ClassVar[str | None] = None
    """`module:name` of a learner on Beam, a string since these packages know no Beam; or None."""

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
    def parse(self, data: bytes, path: str) -> Vocabulary:
        """Reads a vocabulary's file.

        Raises:
            InputError: naming `path`, if this is none of this scheme's.
        """

    def encoder(self, vocabulary: Vocabulary) -> RowEncoder:
        """Returns an encoder of rows for one thread."""
        from tokcore.encoding.row_encoder import RowEncoder

        return RowEncoder(self.pre_tokenizer, vocabulary.model)

    @abc.abstractmethod
    def template(self, vocabulary: Vocabulary) -> Template:
        """Returns what surrounds each row of an example."""

    @abc.abstractmethod
    def tokens(self, text: str) -> Iterable[str]:
        """Cuts a row into tokens in plain Python: the oracle of the pre-tokenizer's kernel."""

    @abc.abstractmethod
    def vocabulary_of(self, characters: Sequence[str]) -> Vocabulary:
        """Returns a small vocabulary that spells these characters, to compile kernels with."""

    def vocabulary_name(self, dataset: str, size: int, side: str | None = None) -> str:
        """Returns the file name of a dataset's vocabulary, or of one side's."""
        stem = f'vocab.{dataset}.{size}.{self.file_suffix}'
        return stem if side is None else f'{stem}.{side}'
