"""The options of the BPE trainer, and the rules that differ between the presets.

The rules say which pair is merged next, and when training ends.
"""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.encoding.scheme import LearningOptions
from tokcore.errors import InputError
from tokcore.options import LARGEST_INT64, WholeNumber, flag, option, positive, special_token

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable

_BYTES = 'its tokenizer.json holds bytes, all 256 of them, and no ends of words'
_CODES = 'a file of codes holds characters and no ids'
_HELD = {
    'gpt2': (_BYTES, {'byte_level': True, 'end_of_word': ''}),
    'cl100k': (_BYTES, {'byte_level': True, 'end_of_word': ''}),
    'subword-nmt': (
        f'{_CODES}, and words end with </w>',
        {'byte_level': False, 'end_of_word': '</w>'},
    ),
    'textbook': (f'{_CODES}, and words end with _', {'byte_level': False, 'end_of_word': '_'}),
}
"""Of each preset what its file can hold, said, and the only values of some options."""

_NOT_HELD = {
    'gpt2': ('limit_alphabet', 'total_symbols'),
    'cl100k': ('limit_alphabet', 'total_symbols'),
    'subword-nmt': ('limit_alphabet', 'special_token'),
    'textbook': ('special_token', 'total_symbols'),
}
"""Options that its file cannot hold, or that mean nothing for it."""

Ties = Literal['smallest-ids', 'largest-pair', 'first']


def end_of_word(value: str) -> str:
    """What is written behind words, without white space; of `none` nothing."""
    return '' if value == 'none' else special_token(value)


@dataclass(frozen=True)
class BpeOptions(LearningOptions):
    """How merges are learned; what is None is the preset's."""

    vocab_size: int | None = option(
        'entries to end at, {range}; or --merges', positive, 'N', default=None, changes_bytes=True
    )
    merges: int | None = option(
        'merges to learn, {range}; or --vocab-size', positive, 'N', default=None, changes_bytes=True
    )
    ties: Ties | None = option(
        'of the pairs that occur most: the one of the smallest ids, as Hugging Face; the largest '
        "as strings, as subword-nmt; that occurs first, as the textbook (default: the preset's)",
        get_args(Ties),
        default=None,
        changes_bytes=True,
    )
    byte_level: bool | None = option(
        "words are bytes at first, or else characters (default: the preset's)",
        None,
        default=None,
        changes_bytes=True,
    )
    end_of_word: str | None = option(
        "what is behind the last character of each word (default: the preset's)",
        end_of_word,
        'X|none',
        default=None,
        changes_bytes=True,
    )
    min_count: int | None = option(
        'pairs that occur less often are not merged (default: 1; of subword-nmt 2)',
        WholeNumber(1, LARGEST_INT64),
        'N',
        default=None,
        changes_bytes=True,
    )
    min_token_count: int | None = option(
        'tokens that occur less often are left out before merges are learned, to save memory '
        '(default: none is)',
        positive,
        'N',
        default=None,
        changes_bytes=True,
    )
    max_piece_length: int | None = option(
        'pieces stay shorter than this many bytes or characters, {range}, but for those of two '
        '(default: any length)',
        positive,
        'N',
        default=None,
        changes_bytes=True,
    )
    limit_alphabet: int | None = option(
        'only the N commonest characters stay in words (default: all; never of bytes)',
        positive,
        'N',
        default=None,
        changes_bytes=True,
    )
    special_token: tuple[str, ...] = option(
        'an entry before all others, as <pad>; may be repeated',
        special_token,
        'X',
        default=(),
        many='repeated',
        changes_bytes=True,
    )
    total_symbols: bool = option(
        'of subword-nmt: --merges counts the characters within words and at their ends too',
        None,
        default=False,
        changes_bytes=True,
    )

    def __post_init__(self):
        if (self.vocab_size is None) == (self.merges is None):
            wrong = 'is missing' if self.merges is None else 'and --merges say both when to end'
            raise InputError(f'--vocab-size {wrong}; give it or --merges, and not both')
        if self.total_symbols and self.merges is None:
            raise InputError('--total-symbols goes with --merges; give that, or leave it out')
        if len(set(self.special_token)) != len(self.special_token):
            raise InputError('--special-token names one token twice')

    rarest_option = 'min-token-count'

    def kept(self, table: TokenTable) -> TokenTable:
        if self.min_token_count is None:
            return table
        found = (table.counts >= self.min_token_count).nonzero()[0]
        return dataclasses.replace(table.pick(found), is_ordered=table.is_ordered)

    @property
    def size_label(self) -> str:
        return f'merges-{self.merges}' if self.vocab_size is None else str(self.vocab_size)

    def rules(self, preset: str) -> BpeRules:
        """Returns a preset's rules with what is asked for in their place.

        Raises:
            InputError: naming the option, if the preset's file cannot hold it.
        """
        holds, only = _HELD[preset]
        for name, held in only.items():
            asked = getattr(self, name)
            if asked not in (None, held):
                raise _refusal(name, asked, preset, holds)
        for name in _NOT_HELD[preset]:
            if getattr(self, name):
                raise _refusal(name, None, preset, holds)
        asked = {
            name: getattr(self, name)
            for name in ('ties', 'min_count', 'max_piece_length', 'limit_alphabet')
            if getattr(self, name) is not None
        }
        return dataclasses.replace(
            PRESETS[preset],
            merges=self.merges,
            vocab_size=self.vocab_size,
            special_tokens=self.special_token,
            total_symbols=self.total_symbols,
            **asked,
        )


@dataclass(frozen=True)
class BpeRules:
    """How merges are learned.

    Attributes:
        ties: which of the pairs of largest count. `smallest-ids`: of the smallest ids, first the
            left ones compared (Hugging Face); `largest-pair`: the largest as strings, by code
            points, first the left ones compared (subword-nmt); `first`: that occurs first, words
            scanned in order and each from left to right (the textbook).
        byte_level: whether words begin as bytes, all 256 of which have an id; else as characters,
            those that occur.
        end_of_word: is appended to the last character of each word.
        min_count: pairs that occur less are not merged; nor are those that do not occur.
        max_piece_length: pieces stay shorter than so many bytes or characters, but for those of
            two (the `max_token_length` of tokenizers).
        limit_alphabet: so many characters stay, those of most occurrences and among equals of
            smallest code points, and special tokens too; the others are taken out of words. Not
            for bytes.
        special_tokens: have the first ids. A piece that is one has its id.
        merges: ends it, as the next two do.
        vocab_size: ids in all; those of special tokens, characters and bytes are there whatever it
            is.
        total_symbols: takes characters within words and at ends of words off `merges`, counted as
            subword-nmt does.
    """

    ties: Ties = 'smallest-ids'
    byte_level: bool = True
    end_of_word: str = ''
    min_count: int = 1
    max_piece_length: int | None = None
    limit_alphabet: int | None = None
    special_tokens: tuple[str, ...] = ()
    merges: int | None = None
    vocab_size: int | None = None
    total_symbols: bool = False


PRESETS = {
    'gpt2': BpeRules(),
    'cl100k': BpeRules(),
    'subword-nmt': BpeRules('largest-pair', byte_level=False, end_of_word='</w>', min_count=2),
    'textbook': BpeRules('first', byte_level=False),
}
"""What each preset says of merges. The textbook's words hold their end, a `_`, when counted."""


def _refusal(name: str, value: str | bool | None, preset: str, holds: str) -> InputError:
    if isinstance(value, bool):
        typed = flag(name if value else f'no-{name}')
    else:
        typed = flag(name) if value is None else f'{flag(name)} {value or "none"}'
    return InputError(f'{typed} cannot go with --preset {preset}: {holds}; leave it out')
