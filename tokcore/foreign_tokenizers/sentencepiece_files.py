"""The files of a learned Unigram model: SentencePiece's .model and .vocab, and a tokenizer.json."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokcore.encoding.hub_folders import tokenizer_config, tokenizer_json
from tokcore.encoding.vocabulary import NO_TEMPLATE
from tokcore.foreign_tokenizers.pre_tokenizers import MARK
from tokcore.foreign_tokenizers.sentencepiece import (
    BYTE,
    CONTROL,
    NORMAL,
    NORMALIZER,
    UNKNOWN,
    USER_DEFINED,
    Piece,
    unigram_scores,
)

FieldValue = int | float | bytes | str
Fields = Sequence[tuple[int, FieldValue]]


def meta_pieces(
    control: Sequence[str], user_defined: Sequence[str], byte_fallback: bool
) -> list[Piece]:
    """Returns the pieces before those that are learned, by their ids."""
    kinds = {'<unk>': UNKNOWN, '<s>': CONTROL, '</s>': CONTROL}
    kinds |= dict.fromkeys(control, CONTROL) | dict.fromkeys(user_defined, USER_DEFINED)
    if byte_fallback:
        kinds |= {f'<0x{byte:02X}>': BYTE for byte in range(256)}
    return [Piece(name, 0.0, kind) for name, kind in kinds.items()]


def model_file(pieces: Iterable[Piece], trainer: Fields, normalizer: Fields) -> bytes:
    """Returns a .model file with the bytes that SentencePiece writes.

    Args:
        pieces: by their ids.
        trainer: the fields of TrainerSpec by their numbers.
        normalizer: those of NormalizerSpec.
    """
    fields: list[tuple[int, FieldValue]] = []
    for piece in pieces:
        kind = [] if piece.type == NORMAL else [(3, piece.type)]
        fields.append((1, _message([(1, piece.text), (2, piece.score), *kind])))
    return _message([*fields, (2, _message(trainer)), (3, _message(normalizer))])


def vocab_file(pieces: Iterable[Piece]) -> bytes:
    """Returns the .vocab file: each piece and its score, for people."""
    return ''.join(f'{piece.text}\t{piece.score:g}\n' for piece in pieces).encode()


def _message(fields: Fields) -> bytes:
    """Returns a message of Protocol Buffers."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(value & (1 << 64) - 1)
        elif isinstance(value, float):
            out += _varint(number << 3 | 5) + struct.pack('<f', value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += _varint(number << 3 | 2) + _varint(len(data)) + data
    return bytes(out)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def unigram_json(
    pieces: Sequence[Piece], specs: Mapping[int, Mapping[int, Any]], byte_fallback: bool
) -> tuple[bytes, bytes]:
    """Returns the tokenizer.json of a model, with which `tokenizers` has the same ids, and its config.

    Args:
        pieces: by their ids.
        specs: of the model, as `read_model` returns them.
        byte_fallback: whether unknown characters are spelled by bytes.
    """
    lowest = min(piece.score for piece in pieces)
    vocab = [
        # The text of a byte's name is never that byte.
        [piece.text, 10 * (lowest - 10) if piece.type == BYTE else score]
        for piece, score in zip(pieces, unigram_scores(pieces), strict=True)
    ]
    normalizers: list[dict[str, Any]] = [
        {'type': 'Replace', 'pattern': {'Regex': pattern}, 'content': content}
        for pattern, content in ((r'\A +', ''), (' +', MARK), (rf'{MARK}+\z', ''))
    ]
    normalizers.append({'type': 'Prepend', 'prepend': MARK})
    if charsmap := specs[NORMALIZER].get(2):
        encoded = base64.b64encode(charsmap).decode()
        normalizers.insert(0, {'type': 'Precompiled', 'precompiled_charsmap': encoded})
    metaspace = {'type': 'Metaspace', 'replacement': MARK, 'split': True}
    decoder: dict[str, Any] = {**metaspace, 'prepend_scheme': 'always'}
    if byte_fallback:
        decoder = {'type': 'Sequence', 'decoders': [{'type': 'ByteFallback'}, decoder]}
    special = [
        (id_, piece.text) for id_, piece in enumerate(pieces) if piece.type in (CONTROL, UNKNOWN)
    ]
    tokenizer = tokenizer_json(
        {'type': 'Unigram', 'unk_id': 0, 'vocab': vocab, 'byte_fallback': byte_fallback},
        special,
        NO_TEMPLATE,
        normalizer={'type': 'Sequence', 'normalizers': normalizers},
        pre_tokenizer={**metaspace, 'prepend_scheme': 'never'},
        decoder=decoder,
    )
    return tokenizer, tokenizer_config(name for _, name in special)
