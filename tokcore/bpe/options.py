"""The options of the BPE trainer, and the rules that presets and options give.

The rules say which pair is merged next, and when training ends.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.encoding.hub_folders import GPT_END, local_vocabulary
from tokcore.encoding.scheme import LearningOptions
from tokcore.encoding.vocabulary import read_vocabulary_file
from tokcore.errors import InputError
from tokcore.options import (
    LARGEST_INT64,
    WholeNumber,
    flag,
    option,
    path,
    positive,
    recorded,
    special_tokens_option,
)

_BYTES = 'its tokenizer.json holds bytes, all 256 of them, and no ends of words'
_CODES = 'a file of codes holds characters and no ids'
_HOLDS = {
    'gpt2': _BYTES,
    'cl100k': _BYTES,
    'subword-nmt': f'{_CODES}, and words end with </w>',
    'textbook': f'{_CODES}, and words end with _',
}
"""What the file of each preset can hold."""

_UNSUPPORTED = {
    'gpt2': ('limit_alphabet', 'total_symbols'),
    'cl100k': ('limit_alphabet', 'total_symbols'),
    'subword-nmt': ('limit_alphabet', 'special_tokens'),
    'textbook': ('special_tokens', 'total_symbols'),
}
"""The options that its file cannot hold, or that have no meaning for it."""

MOST_CELLS = (1 << 31) - 1
"""Symbols of words, and borders, that can be learned from at once."""

Ties = Literal['smallest-ids', 'largest-pair', 'first']
Learner = Literal['auto', 'memory', 'beam']


@dataclass(frozen=True)
class BpeOptions(LearningOptions):
    """How merges are learned; None is the preset's value."""

    vocab_size: int | None = option(
        'entries to end at (or give --merges)', positive, 'N', default=None, changes_bytes=True
    )
    merges: int | None = option(
        'merges to learn, {range}; or --vocab-size', positive, 'N', default=None, changes_bytes=True
    )
    min_count: int | None = option(
        'pairs that occur less often are not merged (default: 1; of subword-nmt 2)',
        WholeNumber(1, LARGEST_INT64),
        'N',
        default=None,
        changes_bytes=True,
    )
    max_piece_length: int | None = option(
        'pieces stay shorter than this many bytes or characters, {range}, except those of two '
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
    special_tokens: tuple[str, ...] | None = special_tokens_option()
    total_symbols: bool = option(
        'for codes of subword-nmt: --merges counts the characters within words and at their ends too',
        None,
        default=False,
        changes_bytes=True,
    )

    extend: str | None = option(
        'learn further merges on top of this vocabulary of byte-level BPE, a tokenizer.json, or a folder '
        'with one; its ids and merges stay, and --vocab-size counts its entries too',
        path,
        'FILE',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
    )

    shrink: str | None = option(
        'keep the fewest entries of this vocabulary of byte-level BPE, as --extend takes it, with which no '
        'token changes its pieces, or the --vocab-size most used; OUTPUT.ids.npy and OUTPUT.ids.json have the '
        'old and new ids',
        path,
        'FILE',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
        implies=('scheme', 'bpe'),
    )

    learner: Learner = option(
        'memory: from all tokens in this process; beam: on the workers, in rounds; auto: in memory '
        'where they fit, else in rounds, on the workers of a cluster or with files of words here '
        '(default: auto)',
        get_args(Learner),
        default='auto',
    )

    def __post_init__(self):
        if self.shrink is not None:
            for name in recorded(self).keys() - {'shrink', 'vocab_size'}:
                if self._has(name):
                    raise InputError(f'{flag(name)} cannot go with --shrink; leave it out')
            return
        if (self.vocab_size is None) == (self.merges is None):
            wrong = 'is missing' if self.merges is None else 'and --merges say both when to end'
            raise InputError(f'--vocab-size {wrong}; give it or --merges, and not both')
        if self.total_symbols and self.merges is None:
            raise InputError('--total-symbols needs --merges; give it, or leave it out')
        for name in ('special_tokens', 'total_symbols'):
            if self.extend is not None and self._has(name):
                raise InputError(
                    f'{flag(name)} cannot go with --extend, which keeps what the old vocabulary has; '
                    'leave it out'
                )

    @property
    def first_entries(self) -> tuple[str, ...] | None:
        return self.special_tokens

    @property
    def on_beam(self) -> str:
        return 'on Beam, in rounds'

    @property
    def size_label(self) -> str:
        of_merges = 'shrunk' if self.merges is None else f'merges-{self.merges}'
        return of_merges if self.vocab_size is None else str(self.vocab_size)

    @property
    def endings_beside(self) -> tuple[str, ...]:
        return () if self.shrink is None else ('.ids.npy', '.ids.json')

    def for_manifest(self) -> dict[str, object]:
        options = super().for_manifest()
        for name in options.keys() & {'extend', 'shrink'}:
            # The content identifies the vocabulary; a path does not.
            content = b''.join(map(read_vocabulary_file, self.old_files))
            options[name] = hashlib.sha256(content).hexdigest()
        return options

    @property
    def old_files(self) -> tuple[str, ...]:
        """The files of the vocabulary that `extend` or `shrink` names, a file or a folder; the main one first."""
        from tokcore.bpe.files import files_of_vocabulary

        old = self.extend or self.shrink
        return () if old is None else files_of_vocabulary(local_vocabulary(old).path)

    def rules(self, preset: str) -> BpeRules:
        """Returns a preset's rules, with these options in place of its own.

        Raises:
            InputError: the preset's file cannot hold an option, which is named.
        """
        for name in _UNSUPPORTED[preset]:
            if self._has(name):
                raise InputError(
                    f'{flag(name)} cannot go with --preset {preset}: {_HOLDS[preset]}; leave it out'
                )
        replaced = {
            name: getattr(self, name)
            for name in ('min_count', 'max_piece_length', 'limit_alphabet', 'special_tokens')
            if self._has(name)
        }
        if self.extend is not None:
            replaced['special_tokens'] = ()
        return dataclasses.replace(
            PRESETS[preset],
            merges=self.merges,
            vocab_size=self.vocab_size,
            total_symbols=self.total_symbols,
            **replaced,
        )

    def _has(self, name: str) -> bool:
        """Whether an option was given, also with no special tokens."""
        return getattr(self, name) not in (None, False)


@dataclass(frozen=True)
class BpeRules:
    """How merges are learned.

    Attributes:
        ties: which of the most frequent pairs is merged. `smallest-ids`: the one with the smallest
            left id, then the smallest right id (Hugging Face); `largest-pair`: the one with the
            largest left string by code points, then right string (subword-nmt); `first`: the one
            that occurs first, in the order of words and from left to right (the textbook).
        byte_level: words start as bytes, and all 256 have an id; otherwise as characters, and those
            that occur have one.
        end_of_word: the suffix of the last character of each word.
        min_count: pairs that occur less often are not merged, nor pairs that do not occur.
        max_piece_length: pieces are shorter than this many bytes or characters, except those of two
            (`max_token_length` of tokenizers).
        limit_alphabet: only this many characters stay in words, the most frequent ones, and of equal
            ones those with the smallest code points; special tokens of one character stay too. Not
            for bytes.
        special_tokens: have the first ids. A merge that results in one does not add an entry.
        merges: the number of merges to learn.
        vocab_size: the number of entries to learn; special tokens, characters and bytes are entries
            even if there are more.
        total_symbols: `merges` includes the characters within words and those at their ends, as
            subword-nmt counts them.
        superwords: pairs are not merged if the result has a colon before a space, or more than four
            words, which are its parts between spaces (SuperBPE).
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
    superwords: bool = False


PRESETS = {
    'gpt2': BpeRules(special_tokens=(GPT_END,)),
    'cl100k': BpeRules(special_tokens=(GPT_END,)),
    'subword-nmt': BpeRules('largest-pair', byte_level=False, end_of_word='</w>', min_count=2),
    'textbook': BpeRules('first', byte_level=False),
}
"""The rules of each preset. The textbook's tokens are counted with their suffix, a `_`."""
