"""The options of the WordPiece learner."""

import argparse
from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.encoding.scheme import LearningOptions, vocab_size_option
from tokcore.errors import InputError
from tokcore.options import (
    added_tokens_option,
    min_count_range,
    option,
    positive,
    shown,
    special_tokens_option,
    text,
    with_added,
)

SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
"""BERT's, in the order of its files."""

Search = Literal['tensorflow-text', 'closest', 'at-most']
Selection = Literal['endings', 'kept']
Learner = Literal['auto', 'memory', 'beam']


def slack(value: str) -> float:
    """Parses a share of the size, from 0 to 1."""
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f'{shown(value)} is not a number from 0 to 1, as 0.05')
    return number


def _number_or_none(value: str) -> int | None:
    """Parses a whole number above 0, or `none`."""
    return None if value == 'none' else positive(value)


def joiner(value: str) -> str:
    """Parses a joiner: text without white space."""
    if text(value).split() != [value]:
        raise argparse.ArgumentTypeError(f'{shown(value)} is empty or has white space in it')
    return value


@dataclass(frozen=True)
class WordPieceOptions(LearningOptions):
    """How pieces are learned, as by TensorFlow Text's learner."""

    vocab_size: int = vocab_size_option()
    search: Search = option(
        "tensorflow-text: that tool's path over min-counts, whose last vocabulary is taken; closest: "
        'the size nearest to the target; at-most: the largest size that is not above it (default: '
        'tensorflow-text)',
        get_args(Search),
        default='tensorflow-text',
        changes_bytes=True,
    )
    min_count_range: tuple[int, int] = option(
        'min-counts to search between (default: 10:10000000)',
        min_count_range,
        'LOW:HIGH',
        default=(10, 10_000_000),
        changes_bytes=True,
    )
    slack: float = option(
        'tensorflow-text ends at a size that is below the target by no more than this share '
        '(default: 0.05)',
        slack,
        'X',
        default=0.05,
        changes_bytes=True,
    )
    max_learned_word_length: int = option(
        'longer words are not learned from, in characters, {range} (default: 50)',
        positive,
        'N',
        default=50,
        changes_bytes=True,
    )
    max_characters: int = option(
        'words with other characters than the N commonest are not learned from (default: 1000)',
        positive,
        'N',
        default=1000,
        changes_bytes=True,
    )
    max_words: int | None = option(
        'only the N commonest words are learned from (default: 5000000)',
        _number_or_none,
        'N|none',
        default=5_000_000,
        changes_bytes=True,
    )
    iterations: int = option(
        'how often words are segmented and counted, and pieces selected, {range} (default: 4)',
        positive,
        'N',
        default=4,
        changes_bytes=True,
    )
    joiner: str = option(
        'the prefix of pieces that do not start a word (default: ##)',
        joiner,
        'X',
        default='##',
        changes_bytes=True,
    )
    selection: Selection = option(
        "endings: what TensorFlow Text's code does, words and endings of words become pieces; "
        'kept: what its documentation describes, stems too (default: endings)',
        get_args(Selection),
        default='endings',
        changes_bytes=True,
    )
    learner: Learner = option(
        'memory: in this process; beam: on the workers; auto: in memory where it fits '
        '(default: auto)',
        get_args(Learner),
        default='auto',
    )
    special_token: tuple[str, ...] = added_tokens_option()
    special_tokens: tuple[str, ...] | None = special_tokens_option()

    def __post_init__(self):
        if self.selection == 'kept' and self.learner == 'beam':
            raise InputError(
                '--selection kept is learned in memory only: on workers, all substrings of all words '
                'would have to be grouped at each min-count; leave out --learner beam'
            )

    @property
    def first_entries(self) -> tuple[str, ...]:
        """The special tokens."""
        return with_added(self.special_tokens, SPECIAL_TOKENS, self.special_token)

    def is_met(self, size: int) -> bool:
        """Whether a size is as near to the target as the search can end."""
        if self.search == 'tensorflow-text':
            return 0 <= self.vocab_size - size <= self.slack * self.vocab_size
        return super().is_met(size)
