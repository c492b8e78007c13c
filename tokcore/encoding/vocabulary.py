"""What a vocabulary offers: special ids by their role, and the template around a row.

A template is typed as `[CLS] $A [SEP]` and applied as ids.
"""

from __future__ import annotations

import argparse
import os
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from tokcore.errors import InputError
from tokcore.regular_files import read_regular

if typing.TYPE_CHECKING:
    from tokcore.encoding.kernels import Model

ROW = '$A'
"""Where a row's own ids stand."""

ROLE_NAMES = {
    'pad': ('[PAD]', '<pad>'),
    'begin': ('[CLS]', '<s>'),
    'end': ('[SEP]', '</s>', '<EOS>', '<|endoftext|>'),
    'unknown': ('[UNK]', '<unk>', 'UNK'),
}
"""By role the names of its token in the vocabularies of BERT, TensorFlow NMT, Tensor2Tensor
and GPT-2."""

ReadBeside = Callable[[str], bytes | None]
"""Gives what a file holds, or None if there is none."""


class Template(NamedTuple):
    """What the post-processor puts around a row's own ids."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many ids it adds."""
        return len(self.before) + len(self.after)

    def stripped(self, ids: list[int]) -> list[int]:
        """Returns a row's ids without what this puts around them, as far as it is there."""
        before, after = len(self.before), len(self.after)
        if before and tuple(ids[:before]) == self.before:
            ids = ids[before:]
        if after and tuple(ids[-after:]) == self.after:
            ids = ids[:-after]
        return ids


def template(text: str) -> str:
    """Checks a template as it is typed: tokens and one `$A`, with white space between them."""
    words = text.split()
    if words.count(ROW) != 1:
        raise argparse.ArgumentTypeError(
            f"{text[:60]!r} is no template: it must hold {ROW} once, where a row's own ids stand, "
            "as in '[CLS] $A [SEP]'"
        )
    return ' '.join(words)


def template_ids(text: str, vocabulary: Vocabulary) -> Template:
    """Returns a template that was asked for as ids.

    Raises:
        InputError: it names a token that the vocabulary does not have.
    """
    before, after = _words(text)
    return Template(*(tuple(_id(word, vocabulary) for word in words) for words in (before, after)))


def default_template_ids(text: str, vocabulary: Vocabulary) -> Template:
    """Returns a scheme's own template as ids.

    If the vocabulary lacks a token of it, the id of the end stands behind a row, and nothing else;
    nothing at all where no id has that role.
    """
    before, after = ([vocabulary.id_of(word) for word in words] for words in _words(text))
    if None not in (*before, *after):
        return Template(tuple(before), tuple(after))
    end = vocabulary.special_ids.end
    return NO_TEMPLATE if end is None else Template(after=(end,))


NO_TEMPLATE = Template()


def _words(text: str) -> tuple[list[str], list[str]]:
    words = text.split()
    place = words.index(ROW)
    return words[:place], words[place + 1 :]


def _id(word: str, vocabulary: Vocabulary) -> int:
    found = vocabulary.id_of(word)
    if found is None:
        raise InputError(
            f'--template names {word!r}, which is no entry of the vocabulary; learn one with '
            'it as a special token, or give another template'
        )
    return found


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


def without_special_ids(ids: list[int], template: Template, special_ids: SpecialIds) -> list[int]:
    """Returns the ids of a row's text: without padding, template and ends."""
    end = len(ids)
    while end and ids[end - 1] == special_ids.pad:
        end -= 1
    ids = template.stripped(ids[:end])
    end = len(ids)
    while end and ids[end - 1] in special_ids.at_end:
        end -= 1
    return ids[:end]


def special_ids_by_name(id_of: Callable[[str], int | None]) -> SpecialIds:
    """Returns the roles of a vocabulary's entries by their names.

    Args:
        id_of: gives the id of an entry, or None where there is none of that name.
    """

    def first(names: tuple[str, ...]) -> int | None:
        return next((id_ for id_ in map(id_of, names) if id_ is not None), None)

    return SpecialIds(**{role: first(names) for role, names in ROLE_NAMES.items()})


def read_vocabulary_file(path: str | os.PathLike) -> bytes:
    """Returns what a vocabulary file holds; raises InputError if it cannot be read."""
    try:
        return read_regular(path)
    except OSError as error:
        raise InputError(
            f'{os.fspath(path)}: the vocabulary cannot be read ({error.strerror}); '
            'give the path of a vocabulary file'
        ) from error


def read_if_there(path: str) -> bytes | None:
    """Returns what a local file holds, None if there is none; raises InputError if it cannot be read."""
    return read_vocabulary_file(path) if os.path.exists(path) else None


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

    @property
    def pieces(self) -> Sequence[str]:
        """The entries by id, as the vocabulary's file shows them."""

    def id_of(self, token: str) -> int | None:
        """Returns the id of a whole entry, as a template names it, or None if there is none."""

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids, as the scheme's decoder joins them; special ones are shown."""

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the same as bytes; where ids are bytes, also those that are no UTF-8."""
