"""What a vocabulary is; the roles of its special ids; the template around each row.

A template is typed as `[CLS] $A [SEP]`, and is applied as ids before and after a row's own.
"""

from __future__ import annotations

import argparse
import codecs
import os
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tokcore.errors import InputError
from tokcore.regular_files import read_regular

if typing.TYPE_CHECKING:
    from tokcore.encoding.kernels import Model

ROW = '$A'
"""The place of a row's own ids in a template."""

_ROLE_NAMES = {
    'pad': ('[PAD]', '<pad>'),
    'begin': ('[CLS]', '<s>'),
    'end': ('[SEP]', '</s>', '<EOS>', '<|endoftext|>'),
    'unknown': ('[UNK]', '<unk>', 'UNK'),
}
"""By role the names that its token has in BERT, TensorFlow NMT, Tensor2Tensor and GPT-2."""

_MOST_IDS, _ID_DIGITS = (1 << 31) - 1, 11

_BRACKETED = re.compile(r'<[^<>\s]+>|\[[^\[\]\s]+\]')

ReadBeside = Callable[[str], bytes | None]
"""Returns the bytes of another file of a vocabulary, or None if there is no such file."""


class Template(NamedTuple):
    """The ids that the post-processor adds before and after a row's own."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of ids that it adds."""
        return len(self.before) + len(self.after)

    def stripped(self, ids: list[int]) -> list[int]:
        """Returns a row's ids without those of the template, as far as they are there."""
        before, after = len(self.before), len(self.after)
        if before and tuple(ids[:before]) == self.before:
            ids = ids[before:]
        if after and tuple(ids[-after:]) == self.after:
            ids = ids[:-after]
        return ids


def template(text: str) -> str:
    """Checks a template of the command line: tokens or ids and one `$A`, with white space between them."""
    words = text.split()
    if words.count(ROW) != 1:
        raise argparse.ArgumentTypeError(
            f"{text[:60]!r} is not a template: it must hold {ROW} once, in the place of a row's own ids, "
            "as in '[CLS] $A [SEP]'"
        )
    return ' '.join(words)


def template_ids(text: str, vocabulary: Vocabulary) -> Template:
    """Returns a template of the command line as ids.

    Raises:
        InputError: it names a token or an id that the vocabulary does not have.
    """
    remedy = 'learn one with it as a special token, or give another template'
    return Template(
        *(
            tuple(named_id(word, vocabulary, '--template', remedy) for word in words)
            for words in template_words(text)
        )
    )


def default_template_ids(text: str, vocabulary: Vocabulary) -> Template:
    """Returns a scheme's own template as ids.

    If the vocabulary lacks one of its tokens, only the id with the role `end` is added after a row;
    or nothing, if there is none.
    """
    sides = [[vocabulary.id_of(word) for word in words] for words in template_words(text)]
    before, after = (tuple(id_ for id_ in side if id_ is not None) for side in sides)
    if (len(before), len(after)) == (len(sides[0]), len(sides[1])):
        return Template(before, after)
    end = vocabulary.special_ids.end
    return NO_TEMPLATE if end is None else Template(after=(end,))


NO_TEMPLATE = Template()


def template_words(text: str) -> tuple[list[str], list[str]]:
    """Returns the tokens of a template before and after the row."""
    words = text.split()
    row = words.index(ROW)
    return words[:row], words[row + 1 :]


def named_id(word: str, vocabulary: Vocabulary, option: str, remedy: str) -> int:
    """Returns the id of a token; digits are an id.

    Raises:
        InputError: the vocabulary does not have the token or the id.
    """
    if word.isascii() and word.isdigit():
        # Files of ranks do not list the special tokens, whose ids are above all others.
        has_others = getattr(vocabulary, 'has_unlisted_ids', False)
        limit = _MOST_IDS if has_others else vocabulary.vocab_size
        id_ = int(word) if len(word) < _ID_DIGITS and int(word) < limit else None
    else:
        id_ = vocabulary.id_of(word)
    if id_ is None:
        raise InputError(f'{option} names {word!r}, which the vocabulary does not have; {remedy}')
    return id_


class SpecialIds(NamedTuple):
    """The ids that have a role in a vocabulary; None where no id has it."""

    pad: int | None = None
    begin: int | None = None
    end: int | None = None
    unknown: int | None = None

    @property
    def at_end(self) -> frozenset[int]:
        """The ids that may follow a row's text: of padding, and of the end."""
        return frozenset(id_ for id_ in (self.pad, self.end) if id_ is not None)


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


def spelled_ids(ids: Iterable[int], vocabulary: Vocabulary) -> list[str]:
    """Returns the pieces of ids; '' for special tokens that a file of ranks does not list."""
    pieces = vocabulary.pieces
    return [pieces[id_] if id_ < len(pieces) else '' for id_ in ids]


def special_ids_by_name(id_of: Callable[[str], int | None]) -> SpecialIds:
    """Returns the special ids of a vocabulary, whose tokens have the usual names."""

    def first(names: tuple[str, ...]) -> int | None:
        return next((id_ for id_ in map(id_of, names) if id_ is not None), None)

    return SpecialIds(**{role: first(names) for role, names in _ROLE_NAMES.items()})


def bracketed_tokens(ids: Mapping[str, int], text: str) -> dict[str, int]:
    """Returns the entries within a text that are written as special tokens are, `<2zh>` or `[2zh]`."""
    return {
        entry: id_ for entry, id_ in ids.items() if entry in text and _BRACKETED.fullmatch(entry)
    }


def read_vocabulary_file(path: str | os.PathLike) -> bytes:
    """Returns the bytes of a vocabulary file; raises InputError if it cannot be read."""
    try:
        return read_regular(path)
    except OSError as error:
        raise InputError(
            f'{os.fspath(path)}: the vocabulary cannot be read ({error.strerror}); '
            'give the path of a vocabulary file'
        ) from error


def without_mark(data: bytes) -> bytes:
    """Returns the bytes of a file without the byte order mark of UTF-8, which no entry begins with."""
    return data.removeprefix(codecs.BOM_UTF8)


def read_if_there(path: str) -> bytes | None:
    """Returns the bytes of a file, None if there is none; raises InputError if it cannot be read."""
    return read_vocabulary_file(path) if os.path.exists(path) else None


class Vocabulary(Protocol):
    """The tokens of a scheme, their ids, and the model that gives ids; threads share it."""

    @property
    def vocab_size(self) -> int:
        """The number of ids, which count from 0."""

    @property
    def special_ids(self) -> SpecialIds:
        """The ids that have a role."""

    @property
    def model(self) -> Model:
        """Gives the ids of tokens to `encoder.RowEncoder`."""

    def dump(self) -> bytes:
        """Returns the bytes of the vocabulary's file."""

    @property
    def pieces(self) -> Sequence[str]:
        """The tokens by id, as they are written in the vocabulary's file."""

    def id_of(self, token: str) -> int | None:
        """Returns the id of a token, or None if there is no such token."""

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids, as the scheme's decoder joins it; special tokens are included."""

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the same as bytes, which need not be UTF-8 where ids stand for bytes."""
