"""Which file of another tool a file is, and its vocabulary."""

from __future__ import annotations

import base64
import dataclasses
import functools

from tokcore.bpe.files import forget_json, is_plain_bpe, is_tokenizer_json, json_object, read_json
from tokcore.encoding.vocabulary import without_mark
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.ranks import (
    is_tekken,
    is_tiktoken_file,
    parse_tekken,
    parse_tiktoken,
)
from tokcore.foreign_tokenizers.sentencepiece import is_sentencepiece_file, parse_sentencepiece
from tokcore.foreign_tokenizers.tokenizer_json import parse_tokenizer_json
from tokcore.foreign_tokenizers.vocabulary import PretrainedVocabulary


def parse_pretrained(data: bytes, path: str, pattern: str | None = None) -> PretrainedVocabulary:
    """Returns the vocabulary of a tokenizer.json, a tekken.json, a SentencePiece model or tiktoken's file.

    For a file of tiktoken, `pattern` is what cuts text into tokens.

    Raises:
        InputError: the file is not one of these, is damaged, or has a part that is not supported.
    """
    vocabulary = _parse(without_mark(data), path, pattern)
    forget_json()
    return vocabulary


# A command parses a file for each side, and each of the threads that encode; they share one.
@functools.lru_cache(maxsize=2)
def _parse(data: bytes, path: str, pattern: str | None) -> PretrainedVocabulary:
    vocabulary = _parse_file(data, path, pattern)
    return dataclasses.replace(vocabulary, path=path, pattern=pattern)


def _parse_file(data: bytes, path: str, pattern: str | None) -> PretrainedVocabulary:
    if is_tiktoken_file(data):
        return parse_tiktoken(data, path, pattern)
    if pattern is not None:
        raise InputError(
            f'--pattern is for files of tiktoken, and {path} states its own; leave it out'
        )
    if is_sentencepiece_file(data):
        return parse_sentencepiece(data, path)
    if data.lstrip()[:1] == b'{':
        file = read_json(data, path)
        if is_tekken(file):
            return parse_tekken(file, data, path)
        if is_tokenizer_json(file):
            return parse_tokenizer_json(file, data, path)
    raise InputError(
        f"{path} is not a tokenizer's file that is known; give a tokenizer.json, a tekken.json, a "
        'SentencePiece model, or a file of tiktoken, lines of a token in base64 and its rank'
    )


def is_pretrained_file(data: bytes) -> bool:
    """Whether a file is certainly of this kind, and the scheme `bpe` does not read it."""
    data = without_mark(data)
    if is_tiktoken_file(data) or is_sentencepiece_file(data):
        return True
    file = json_object(data)
    if file is None:
        return False
    return is_tekken(file) or (is_tokenizer_json(file) and not is_plain_bpe(file))


def small_vocabulary() -> PretrainedVocabulary:
    """Returns a vocabulary of the 256 bytes, with which kernels are compiled."""
    lines = b''.join(base64.b64encode(bytes([byte])) + f' {byte}\n'.encode() for byte in range(256))
    return parse_tiktoken(lines, 'small.tiktoken', 'o200k')
