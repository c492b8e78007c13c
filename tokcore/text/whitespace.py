r"""Words separated by white space: by U+0020 alone, or by whatever `str.split` splits at.

The kernel reads 64 bytes at a time. Files that hold pieces as words of a line escape white space
within a piece, and a backslash that begins what looks like an escape or is right before one:

    'a b' -> 'a\32;b'      'a\32;b' -> 'a\92;32;b'      'a\b' -> 'a\b'
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import byte_range_mask, load_word, put_places, trailing_zeros
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, TextRows, scan_tokens, slice_parts
from tokcore.text.unicode import decode_word, whitespace_table

_TO_ESCAPE = re.compile(r'\s|\\(?=\d+;|\s|\\+(?:\d+;|\s))')
_ESCAPE = re.compile(r'\\(\d+);')

Split = Literal['space', 'unicode']
SPLITS: tuple[Split, ...] = get_args(Split)

_SPACE_ALONE = read_only(np.empty(0, np.uint8))

_CHUNK = np.uint64(64)
_0, _1 = np.uint64(0), np.uint64(1)
_ALL, _LAST = ~_0, np.uint64(63)


def escape_piece(piece: str) -> str:
    """Returns a piece with its white space escaped."""
    return _TO_ESCAPE.sub(lambda match: f'\\{ord(match[0])};', piece)


def unescape_piece(escaped: str) -> str:
    """Returns the piece that `escape_piece` escaped."""
    return _ESCAPE.sub(_character, escaped)


def _character(match: re.Match) -> str:
    number = int(match[1])
    return chr(number) if number <= 0x10FFFF else match[0]


class WhiteSpace(NamedTuple):
    """The state: which characters separate tokens."""

    whitespace: np.ndarray  # uint8[0x110000], `whitespace_table`; empty: U+0020 alone
    breaks: bool  # whether line feeds and carriage returns do, besides U+0020


@dataclass(frozen=True)
class SpacePreTokenizer:
    """A `PreTokenizer` of words.

    Attributes:
        split: 'space', as TensorFlow NMT splits; 'unicode', as `str.split` does.
        at_line_breaks: whether 'space' splits at line feeds and carriage returns too. The lines
            that NMT reads have none; texts in JSON and Parquet do. Manifests do not record it: each
            scheme always or never does it.
    """

    name = 'spaces'

    split: Split = 'space'
    at_line_breaks: bool = False

    @property
    def options(self) -> Mapping[str, object]:
        return {'split': self.split}

    def tokens(self, text: str) -> list[str]:
        """Returns the words of a text, in plain Python."""
        if self.split == 'unicode':
            return text.split()
        if self.at_line_breaks:
            text = text.replace('\n', ' ').replace('\r', ' ')
        return [word for word in text.split(' ') if word]

    def prepare(self, rows: TextRows) -> tuple[WhiteSpace, np.ndarray]:
        table = whitespace_table() if self.split == 'unicode' else _SPACE_ALONE
        return WhiteSpace(table, self.at_line_breaks), rows.text

    row_parts = slice_parts


@kernel_without_allocation
def _wide_spaces(text, place, inside, carried, whitespace):
    """Returns the bits of a chunk in white space of several bytes, and `carried` of the next chunk.

    `carried` are the first bits of a chunk whose bytes are in white space that begins before it. The
    first byte of such white space is C2, E1, E2 or E3.
    """
    spaces = carried
    leads = inside & (
        byte_range_mask(text, place, 0xC2, 0xC2) | byte_range_mask(text, place, 0xE1, 0xE3)
    )
    carried = _0
    while leads != _0:
        byte = trailing_zeros(leads)
        leads &= leads - _1
        word = load_word(text, place + byte)
        if whitespace[decode_word(word)]:
            size = np.uint64(2) if word & np.uint64(0xFF) == np.uint64(0xC2) else np.uint64(3)
            bits = (_1 << size) - _1
            spaces |= bits << byte
            if byte + size > _CHUNK:
                carried = bits >> (_CHUNK - byte)
    return spaces, carried


@kernel_without_allocation
def _spaces_of_chunk(text, place, inside, carried, pre_tokenizer):
    """Returns the bits of a chunk in white space, and `carried` of the next chunk."""
    spaces = byte_range_mask(text, place, 0x20, 0x20)
    whitespace = pre_tokenizer.whitespace
    if len(whitespace) == 0:
        if pre_tokenizer.breaks:
            spaces |= byte_range_mask(text, place, 0x0A, 0x0A)
            spaces |= byte_range_mask(text, place, 0x0D, 0x0D)
        return spaces, _0
    spaces |= byte_range_mask(text, place, 0x09, 0x0D) | byte_range_mask(text, place, 0x1C, 0x1F)
    wide, carried = _wide_spaces(text, place, inside, carried, whitespace)
    return spaces | wide, carried


@scan_tokens.register(WhiteSpace)
@kernel_without_allocation
def scan_words(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the rows."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    begun = ended = _0
    while row < len(rows.starts):
        place = np.uint64(rows.starts[row] if position < 0 else position)
        row_end = np.uint64(rows.ends[row])
        carried = _0
        while place < row_end:
            if begun > room:
                if begun > ended:
                    place = tokens.starts[ended]
                # Behind white space that ends in this chunk, since a call begins with characters.
                place += trailing_zeros(~carried)
                return row, np.int64(place), np.int64(ended)
            left = row_end - place
            inside = _ALL if left >= _CHUNK else (_1 << left) - _1
            spaces, carried = _spaces_of_chunk(rows.text, place, inside, carried, pre_tokenizer)
            letters = ~spaces & inside
            before = letters << _1 | np.uint64(begun > ended)
            begun = put_places(letters & ~before, place, tokens.starts, begun)
            ended = put_places(before & ~letters, place, tokens.ends, ended)
            place += min(left, _CHUNK)
        if begun > ended:
            tokens.ends[ended] = row_end
            ended = begun
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, np.int64(position), np.int64(ended)
