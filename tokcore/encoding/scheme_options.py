"""What is asked of a scheme's learner and of its encoder, as options."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import ClassVar

from tokcore.encoding.templates import template
from tokcore.options.option_fields import option, recorded
from tokcore.options.values import positive

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable


@dataclass(frozen=True)
class LearningOptions:
    """How a vocabulary is learned; a scheme's own options are fields of a subclass."""

    vocab_size: int = option('entries to aim for, {range}', positive, 'N', changes_bytes=True)

    def is_met(self, size: int) -> bool:
        """Whether a size is as near to the one asked for as a search is to come."""
        return self.vocab_size is None or abs(size - self.vocab_size) * 100 < self.vocab_size

    @property
    def told_size(self) -> str:
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
