"""What the post-processor puts around a row: as it is typed, `[CLS] $A [SEP]`, and as ids."""

import argparse
from typing import NamedTuple

from tokcore.encoding.special_ids import Vocabulary
from tokcore.errors import InputError

ROW = '$A'
"""Where a row's own ids stand."""


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


NO_TEMPLATE = Template()


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
