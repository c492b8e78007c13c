"""Which kind of vocabulary a file of byte pair encoding is, and the files beside it."""

from __future__ import annotations

import os
import pathlib

from tokcore.bpe.vocabulary.bpe_vocabulary import BpeVocabulary
from tokcore.bpe.vocabulary.codes_file import (
    is_codes_file,
    is_textbook_file,
    parse_nmt_codes,
    parse_textbook_codes,
)
from tokcore.bpe.vocabulary.codes_vocabulary import (
    CodesVocabulary,
    NmtVocabulary,
    TextbookVocabulary,
)
from tokcore.bpe.vocabulary.tokenizer_json import (
    is_tokenizer_of_bpe,
    parse_tokenizer,
    read_json,
    vocabulary_of_two_files,
)
from tokcore.encoding.special_ids import ReadBeside, read_if_there
from tokcore.errors import InputError

_MERGES, _ENTRIES = 'merges.txt', 'vocab.json'

CODES_SUFFIX, ENTRIES_SUFFIX = '.codes', '.vocab'

AnyVocabulary = BpeVocabulary | CodesVocabulary


def is_bpe_file(data: bytes) -> bool:
    """Whether a file can be nothing but a vocabulary of byte pair encoding."""
    return is_codes_file(data) or is_tokenizer_of_bpe(data)


def parse_bpe_file(
    data: bytes, path: str, read: ReadBeside = read_if_there
) -> AnyVocabulary:
    """Returns the vocabulary of a tokenizer.json, of codes, or of one of two files.

    vocab.json and merges.txt are read together, whichever is given, and with codes the ids of their
    pieces from a .vocab file, if there is one beside them.

    Raises:
        InputError: this is none of them, or cannot be encoded with exactly.
    """
    if data.lstrip()[:1] == b'{':
        file = read_json(data, path)
        if 'model' in file:
            return parse_tokenizer(file, path)
        merges = _beside(path, _ENTRIES, _MERGES)
        pairs = read(merges)
        if pairs is None:
            raise InputError(
                f'{path} has ids of entries and no merges; put its merges beside it, {merges}, or '
                'give a tokenizer.json'
            )
        return vocabulary_of_two_files(file, pairs, path, merges)
    if os.path.basename(path).endswith(_MERGES):
        entries = _beside(path, _MERGES, _ENTRIES)
        ids = read(entries)
        if ids is not None:
            return vocabulary_of_two_files(read_json(ids, entries), data, entries, path)
    if is_textbook_file(data):
        characters, pairs = parse_textbook_codes(data, path)
        return TextbookVocabulary(pairs, _entries(path, read), path, characters)
    if data.startswith(b'#version:') or is_codes_file(data):
        return NmtVocabulary(parse_nmt_codes(data, path), _entries(path, read), path)
    raise InputError(
        f'{path} is no vocabulary of byte pair encoding; give a tokenizer.json, a vocab.json with '
        "its merges.txt beside it, or codes, whose first line is '#version: 0.2'"
    )


def entries_path(path: str) -> str:
    """Returns where the ids of a file of codes are: `X.vocab` beside `X.codes`.

    Of one side's vocabulary in a dataset it is `X.vocab.inputs` beside `X.codes.inputs`.
    """
    folder, name = os.path.split(path)
    stem, found, side = name.rpartition(CODES_SUFFIX)
    if found and side in ('', '.inputs', '.targets'):
        return os.path.join(folder, f'{stem}{ENTRIES_SUFFIX}{side}')
    return str(pathlib.PurePath(path).with_suffix(ENTRIES_SUFFIX))


def _beside(path: str, name: str, other: str) -> str:
    """The path of the other of two files, whose names begin alike."""
    if not path.endswith(name):
        raise InputError(
            f'{path} has ids of entries and no model; give a tokenizer.json, or name it {name} and '
            f'put its {other} beside it'
        )
    return path.removesuffix(name) + other


def _entries(path: str, read: ReadBeside) -> tuple[str, ...] | None:
    beside = entries_path(path)
    data = None if beside == path else read(beside)
    if data is None:
        return None
    try:
        lines = data.decode('utf-8').split('\n')
    except UnicodeDecodeError as error:
        raise InputError(
            f'{beside} is not UTF-8 ({error.reason}); count the pieces again'
        ) from None
    if lines[-1] == '':
        lines.pop()
    return tuple(lines)
