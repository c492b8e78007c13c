"""`tokenize` and `detokenize`: lines on standard input to as many lines on standard output."""

import argparse
import sys
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from pipelines import filesystem
from tokcore.corpus.rows import text_rows
from tokcore.errors import InputError
from tokcore.subword.block_encoding import SubwordBlockEncoder
from tokcore.subword.encoder import SubwordTextEncoder
from tokcore.subword.vocabulary_file import parse_vocabulary

_BLOCK_BYTES = 1 << 20
"""Lines are handled by the megabyte: enough that a block's fixed costs vanish, and still prompt."""


def tokenize(options: argparse.Namespace) -> int:
    """Writes the ids of each line read; a blank line gives an empty one."""
    encoder = SubwordBlockEncoder(_load(options.vocab))
    first_line = 1
    for block in _blocks(sys.stdin.buffer):
        starts = _line_starts(block)
        rows = text_rows(block, 0)
        if rows.rejects:
            line = int(np.searchsorted(starts, rows.rejects[0].offset)) + first_line
            place = rows.rejects[0].position - rows.rejects[0].offset
            raise InputError(
                f'standard input, line {line}: invalid UTF-8 at byte {place} of the line; '
                'convert the text to UTF-8'
            )
        encoded = encoder.encode_side(rows.sides[0], eos=options.eos)
        texts = ['1' if options.eos else ''] * len(starts)
        places = np.searchsorted(starts, rows.offsets).tolist()
        ids, offsets = encoded.ids.tolist(), encoded.offsets.tolist()
        for row, place in enumerate(places):
            texts[place] = ' '.join(map(str, ids[offsets[row] : offsets[row + 1]]))
        sys.stdout.buffer.write(''.join(text + '\n' for text in texts).encode())
        first_line += len(starts)
    sys.stdout.buffer.flush()
    return 0


def detokenize(options: argparse.Namespace) -> int:
    """Writes the text of each line of ids read, without the padding and EOS at its end."""
    encoder = _load(options.vocab)
    for number, line in enumerate(sys.stdin.buffer, 1):
        ids = [_checked_id(word, number, encoder.vocab_size) for word in line.split()]
        while ids and ids[-1] in (0, 1):
            ids.pop()
        sys.stdout.buffer.write(encoder.decode(ids).encode() + b'\n')
    sys.stdout.buffer.flush()
    return 0


def _load(path: str) -> SubwordTextEncoder:
    path = filesystem.absolute(path)
    return SubwordTextEncoder(parse_vocabulary(filesystem.read_bytes(path), path))


def _checked_id(word: bytes, line: int, size: int) -> int:
    if not word.isdigit():
        raise InputError(
            f'standard input, line {line}: {word.decode("utf-8", "replace")!r} is not an id; '
            'lines must hold decimal ids between spaces'
        )
    if int(word) >= size:
        raise InputError(
            f'standard input, line {line}: id {int(word)} is not in the vocabulary of {size} '
            'entries; give the vocabulary that encoded this text'
        )
    return int(word)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Yields whole lines by the megabyte."""
    waiting: list[bytes] = []
    while piece := stream.read1(_BLOCK_BYTES):
        cut = piece.rfind(b'\n') + 1
        if not cut:
            waiting.append(piece)
            continue
        yield b''.join([*waiting, piece[:cut]])
        waiting = [piece[cut:]] if cut < len(piece) else []
    if waiting:
        yield b''.join(waiting)


def _line_starts(block: bytes) -> np.ndarray:
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord('\n')) + 1
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    return starts[:-1] if starts[-1] == len(block) else starts
