"""The options of the WordPiece learner."""

from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.encoding.scheme import LearningOptions, vocab_size_option
from tokcore.options import min_count_range, option, special_tokens_option

SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
"""BERT's, in the order of its files."""

Search = Literal['tensorflow-text', 'closest', 'at-most']
Learner = Literal['auto', 'memory', 'beam']


@dataclass(frozen=True)
class WordPieceOptions(LearningOptions):
    """How pieces are learned, as by TensorFlow Text's learner.

    Attributes:
        slack: `tensorflow-text` ends at a size that is below the target by no more than this share.
        max_learned_word_length: in characters; longer words are not learned from.
        max_characters: words with other characters than so many of the commonest are not learned from.
        max_words: only so many of the commonest words are learned from; None: all.
        joiner: the prefix of pieces that do not start a word.
        iterations: how often words are segmented and counted, and pieces selected.
    """

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
    learner: Learner = option(
        'memory: in this process; beam: on the workers; auto: in memory where it fits '
        '(default: auto)',
        get_args(Learner),
        default='auto',
    )
    special_tokens: tuple[str, ...] | None = special_tokens_option()

    slack: float = 0.05
    max_learned_word_length: int = 50
    max_characters: int = 1000
    max_words: int | None = 5_000_000
    iterations: int = 4
    joiner: str = '##'

    @property
    def first_entries(self) -> tuple[str, ...]:
        """The special tokens."""
        return SPECIAL_TOKENS if self.special_tokens is None else self.special_tokens

    def is_met(self, size: int) -> bool:
        """Whether a size is as near to the target as the search can end."""
        if self.search == 'tensorflow-text':
            return 0 <= self.vocab_size - size <= self.slack * self.vocab_size
        return super().is_met(size)
