"""What is asked of a vocabulary of words, as options."""

from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.encoding.scheme_options import EncodingOptions, LearningOptions
from tokcore.errors import InputError
from tokcore.options.option_fields import option
from tokcore.options.special_tokens import special_token, special_tokens, with_added
from tokcore.options.values import LARGEST_INT64, WholeNumber, positive
from tokcore.word.word_vocabulary import NMT_SPECIAL_TOKENS

Unknown = Literal['token', 'stop']


@dataclass(frozen=True)
class WordOptions(LearningOptions):
    """Which words have ids."""

    vocab_size: int | None = option(
        'entries at most, {range}; or --min-count', positive, 'N', default=None, changes_bytes=True
    )
    min_count: int | None = option(
        'words that are counted less often have no id (default: none; then --vocab-size)',
        WholeNumber(1, LARGEST_INT64),
        'N',
        default=None,
        changes_bytes=True,
    )
    special_token: tuple[str, ...] = option(
        'an entry behind the special tokens of the scheme; may be repeated',
        special_token,
        'X',
        default=(),
        many='repeated',
        changes_bytes=True,
    )
    special_tokens: tuple[str, ...] | None = option(
        'special tokens in place of those of the scheme, as <pad>,<EOS>; words: <unk>,<s>,</s>, '
        'wordpiece: [PAD],[UNK],[CLS],[SEP],[MASK]',
        special_tokens,
        'A,B,…',
        default=None,
        changes_bytes=True,
    )

    def __post_init__(self):
        if self.vocab_size is None and self.min_count is None:
            raise InputError('--vocab-size is missing; give it, or --min-count')

    @property
    def first_entries(self) -> tuple[str, ...]:
        """The special tokens."""
        return with_added(self.special_tokens, NMT_SPECIAL_TOKENS, self.special_token)

    @property
    def told_size(self) -> str:
        return f'min-count-{self.min_count}' if self.vocab_size is None else str(self.vocab_size)


@dataclass(frozen=True)
class WordEncodingOptions(EncodingOptions):
    """What becomes of words that have no id."""

    unknown: Unknown = option(
        'token: they get the id of the unknown token; stop: an error names the line and the word '
        '(default: token)',
        get_args(Unknown),
        default='token',
    )
