"""What is asked of the learner of subwords, as options."""

from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.encoding.scheme_options import LearningOptions
from tokcore.errors import InputError
from tokcore.learning.size_search import STRATEGIES, Strategy
from tokcore.options.option_fields import option
from tokcore.options.values import (
    LARGEST_INT64,
    min_count_range,
    positive,
    reserved_token,
    said,
    subtoken_length,
)

SubstringCounting = Literal['packed', 'plain']
WantedLearner = Literal['auto', 'memory', 'beam']


T2T_RANGE = (1, 1000)
"""The min-counts between which Tensor2Tensor's `build_from_generator` searches."""


@dataclass(frozen=True)
class SubwordOptions(LearningOptions):
    """How subwords are learned."""

    search: Strategy = option(
        "t2t: Tensor2Tensor's path over min-counts; closest: the size nearest to the target "
        '(default: t2t)',
        STRATEGIES,
        default='t2t',
        changes_bytes=True,
    )
    min_count_range: tuple[int, int] | None = option(
        f'min-counts to search between, from 1 to {said(LARGEST_INT64)} (default: 1:1000, and '
        'beyond where that is too low; giving 1:1000 forbids going beyond)',
        min_count_range,
        'LOW:HIGH',
        default=None,
        changes_bytes=True,
    )
    max_subtoken_length: int | None = option(
        f'subtokens stay shorter than this many characters, {positive} (default: 200)',
        subtoken_length,
        'N|none',
        default=200,
        changes_bytes=True,
    )
    reserved_tokens: tuple[str, ...] = option(
        'give X an id of its own, from 2 on; may be repeated',
        reserved_token,
        'X',
        default=(),
        name='reserved-token',
        many='repeated',
        changes_bytes=True,
    )
    learner: WantedLearner = option(
        'memory: in this process; beam: on the workers; auto: in memory where it fits '
        '(default: auto)',
        get_args(WantedLearner),
        default='auto',
    )
    substring_counting: SubstringCounting = option(
        'how a learner on Beam counts: packed tables of suffixes, or each substring, which is '
        'slow and the reference (default: packed)',
        get_args(SubstringCounting),
        default='packed',
    )

    def __post_init__(self):
        if len(set(self.reserved_tokens)) != len(self.reserved_tokens):
            raise InputError('--reserved-token names one token twice')

    @property
    def on_beam(self) -> str:
        return f'on Beam ({self.substring_counting})'

    def is_beyond(self, min_count: int) -> bool:
        """Whether Tensor2Tensor's path is past the min-counts where the original ends."""
        return (
            self.search == 't2t' and self.min_count_range is None and min_count > T2T_RANGE[1]
        )

    @property
    def learned(self) -> dict[str, object]:
        """What every learner takes."""
        return {
            'max_subtoken_length': self.max_subtoken_length,
            'reserved_tokens': self.reserved_tokens,
        }

    @property
    def lowest_min_count(self) -> int:
        """The lowest that a search can ask for: the original's path may leave the range by one."""
        return max(1, self.min_count_range[0] - 1) if self.min_count_range else 1
