"""What a vocabulary tells of itself, and which of its ids have a role, whatever they are called."""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from tokcore.errors import InputError
from tokcore.regular_files import read_regular

if typing.TYPE_CHECKING:
    from tokcore.encoding.model import Model

ROLE_NAMES = {
    'pad': ('[PAD]', '<pad>'),
    'begin': ('[CLS]', '<s>'),
    'end': ('[SEP]', '</s>', '<EOS>', '<|endoftext|>'),
    'unknown': ('[UNK]', '<unk>', 'UNK'),
}
"""By role the names of its token in the vocabularies of BERT, TensorFlow NMT, Tensor2Tensor
and GPT-2."""


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


ReadBeside = Callable[[str], bytes | None]
"""Gives what a file holds, or None if there is none."""


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
