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
from tokcore.encoding.special_ids import read_vocabulary_file
from tokcore.errors import InputError

_MERGES, _ENTRIES = 'merges.txt', 'vocab.json'

AnyVocabulary = BpeVocabulary | CodesVocabulary


def is_bpe_file(data: bytes) -> bool:
    """Whether a file can be nothing but a vocabulary of byte pair encoding."""
    return is_codes_file(data) or is_tokenizer_of_bpe(data)


def parse_bpe_file(data: bytes, path: str) -> AnyVocabulary:
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
        return vocabulary_of_two_files(file, read_vocabulary_file(merges), path, merges)
    if os.path.basename(path).endswith(_MERGES):
        entries = _beside(path, _MERGES, _ENTRIES)
        if os.path.exists(entries):
            ids = read_json(read_vocabulary_file(entries), entries)
            return vocabulary_of_two_files(ids, data, entries, path)
    if is_textbook_file(data):
        characters, pairs = parse_textbook_codes(data, path)
        return TextbookVocabulary(pairs, _entries(path), path, characters)
    if data.startswith(b'#version:') or is_codes_file(data):
        return NmtVocabulary(parse_nmt_codes(data, path), _entries(path), path)
    raise InputError(
        f'{path} is no vocabulary of byte pair encoding; give a tokenizer.json, a vocab.json with '
        "its merges.txt beside it, or codes, whose first line is '#version: 0.2'"
    )


def entries_path(path: str) -> str:
    """Returns where the ids of a file of codes are: `X.vocab` beside `X.codes`."""
    return str(pathlib.PurePath(path).with_suffix('.vocab'))


def _beside(path: str, name: str, other: str) -> str:
    """The path of the other of two files, whose names begin alike."""
    if not path.endswith(name):
        raise InputError(
            f'{path} has ids of entries and no model; give a tokenizer.json, or name it {name} and '
            f'put its {other} beside it'
        )
    return path.removesuffix(name) + other


def _entries(path: str) -> tuple[str, ...] | None:
    beside = entries_path(path)
    if beside == path or not os.path.exists(beside):
        return None
    try:
        lines = read_vocabulary_file(beside).decode('utf-8').split('\n')
    except UnicodeDecodeError as error:
        raise InputError(
            f'{beside} is not UTF-8 ({error.reason}); count the pieces again'
        ) from None
    if lines[-1] == '':
        lines.pop()
    return tuple(lines)
