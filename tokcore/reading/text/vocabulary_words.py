"""Vocabulary files as TensorFlow NMT's `check_vocab` takes them: a word a line, special ones first."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tokcore.encoding.special_ids import read_vocabulary_file
from tokcore.errors import InputError

UNKNOWN_ID = 0

_FEWEST = 3


def vocabulary_words(path: str | os.PathLike, special: Sequence[str]) -> list[str]:
    r"""Returns the words of a vocabulary file by id.

    As in `check_vocab` the special tokens, which are to be the first words, are put before those of
    a file that has none of them. Lines end at '\n'; a '\r' before it goes.

    Args:
        path: of the file.
        special: the unknown, the start and the end token.

    Raises:
        InputError: the file cannot be read, has fewer than three words, a blank line, a word twice,
            or special tokens elsewhere: the original fails at these when its table is made.
    """
    name = os.fspath(path)
    try:
        lines = read_vocabulary_file(path).decode('utf-8').split('\n')
    except UnicodeDecodeError as error:
        raise InputError(
            f'{name}: invalid UTF-8 at byte {error.start}; give a vocabulary in UTF-8'
        ) from error
    if lines[-1] == '':
        lines.pop()
    words = [line.replace('\r', '') for line in lines]
    seen: dict[str, int] = {}
    for number, word in enumerate(words, 1):
        if not word:
            raise InputError(f'{name}, line {number} is blank; take it out')
        if word in seen:
            raise InputError(
                f'{name}, line {number}: {word[:60]!r} is on line {seen[word]} too; take one of them '
                'out'
            )
        seen[word] = number
    if len(words) < _FEWEST:
        raise InputError(f'{name} has {len(words)} words; give a vocabulary of {_FEWEST} or more')
    if words[: len(special)] == list(special):
        return words
    there = [f'{token} on line {seen[token]}' for token in special if token in seen]
    if there:
        raise InputError(
            f'{name} has {", ".join(there)}, but must begin with the lines {" ".join(special)}; move '
            'them there, or take them all out and they are put there'
        )
    return [*special, *words]
