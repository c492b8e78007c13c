r"""Tensor2Tensor's tokenizer, in plain Python and as a kernel, and its escaping of tokens.

A token is a maximal run of alphanumeric characters, or of others. A token that is a single space is
dropped unless it begins or ends the text; joining puts it back between two alphanumeric tokens, so
joining restores any text. The kernel reads 64 bytes at a time, with one bit a byte for letter,
space and border. Whether a space is single shows at the byte after it, so starts and ends are
written one byte late. An escaped token has one `_`, at its end; a character outside the alphabet
becomes `\<decimal>;`.
"""

import functools
import re
from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import byte_range_mask, load_word, put_places, trailing_zeros
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, TextRows, scan_tokens, slice_parts
from tokcore.text.unicode import alphanumeric_table, decode_word, ideograph_mask

BACKSLASH, UNDERSCORE, LETTER_U, LINE_FEED = ord('\\'), ord('_'), ord('u'), ord('\n')
"""Code points, which are bytes too, with escapes of their own; `u` stands for an underscore."""

ESCAPED_LINE_FEED = tuple(b'\\10;')
"""The only spelling of a line feed: a vocabulary file has one subtoken a line."""

ESCAPE_CHARACTERS: frozenset[str] = frozenset('\\_u;0123456789')
"""The characters that escaping writes; part of every alphabet."""

_REPLACEMENT = '\u3013'  # for a number beyond Unicode, as in Tensor2Tensor
_SPECIAL = str.maketrans({'\\': '\\\\', '_': '\\u'})
_ESCAPED = re.compile(r'\\(?:u|\\|([0-9]+);)')

_CHUNK = np.uint64(64)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)
_ALL = ~_0
_LAST, _LAST_TWO = np.uint64(63), np.uint64(62)  # shifts that leave the last bits of a chunk
_LOW_SIX = np.uint64(0x3F)


def tokenize(text: str) -> list[str]:
    """Returns the tokens of a text.

    Equal to Tensor2Tensor's `tokenizer.encode` for every `str`, lone surrogates included.

    Examples:
        >>> tokcore.tokenize('Hi, you 2')
        ['Hi', ', ', 'you', '2']
    """
    code_points = np.frombuffer(text.encode('utf-32-le', 'surrogatepass'), '<u4')
    classes = alphanumeric_table()[code_points]
    borders = (np.flatnonzero(classes[1:] != classes[:-1]) + 1).tolist()
    starts = [0, *borders]
    ends = [*borders, len(text)]
    last = len(text)
    return [
        token
        for start, end in zip(starts, ends)
        if (token := text[start:end]) and (token != ' ' or start == 0 or end == last)
    ]


def detokenize(tokens: Iterable[str]) -> str:
    """Returns the text of tokens.

    A space goes between two tokens that both begin with a letter or number. Equal to
    Tensor2Tensor's `tokenizer.decode`, except that an empty token is a ValueError.

    Examples:
        >>> tokcore.detokenize(['Hi', ', ', 'you', '2'])
        'Hi, you 2'
    """
    alphanumeric = alphanumeric_table()
    pieces = []
    after_word = False
    for token in tokens:
        if not token:
            raise ValueError('a token must have at least one character')
        is_word = bool(alphanumeric[ord(token[0])])
        if is_word and after_word:
            pieces.append(' ')
        pieces.append(token)
        after_word = is_word
    return ''.join(pieces)


def alphabet_of(pieces: Iterable[str]) -> frozenset[str]:
    """Returns the characters of tokens or subtokens, and those that escaping needs."""
    return ESCAPE_CHARACTERS.union(*pieces)


def escape_token(token: str, alphabet: Collection[str]) -> str:
    r"""Returns a token's spelling in subtokens: `a_b` gives `a\ub_`.

    `\` becomes `\\`, `_` becomes `\u`, a character outside the alphabet `\<decimal>;`, and
    `_` ends it. A line feed is always written as a number (`ESCAPED_LINE_FEED`). As in
    Tensor2Tensor, the result can be unescaped only if `alphabet` has `ESCAPE_CHARACTERS`.
    """
    spelled = (
        character if character in alphabet and character != '\n' else f'\\{ord(character)};'
        for character in token.translate(_SPECIAL)
    )
    return ''.join(spelled) + '_'


def unescape_token(escaped: str) -> str:
    r"""Returns the token: `a\ub_` gives `a_b`. One `_` at the end is dropped if there is one.

    A backslash that does not begin an escape stays, and a number beyond Unicode becomes U+3013.
    """
    return _ESCAPED.sub(_unescaped, escaped.removesuffix('_'))


def _unescaped(match: re.Match) -> str:
    if match[1] is None:
        return '_' if match[0] == '\\u' else '\\'
    try:
        return chr(int(match[1]))
    except (ValueError, OverflowError):
        return _REPLACEMENT


class _AlphanumericRuns(NamedTuple):
    """The state of `T2TPreTokenizer`: which characters are letters and numbers."""

    classes: np.ndarray  # uint64[0x110000 / 64], `alphanumeric_bits`


class T2TPreTokenizer:
    """A `PreTokenizer` whose tokens are those of `tokenize`."""

    name = 't2t'
    options: ClassVar[Mapping[str, object]] = {}

    def prepare(self, rows: TextRows) -> tuple[_AlphanumericRuns, np.ndarray]:
        return _AlphanumericRuns(alphanumeric_bits()), rows.text

    row_parts = slice_parts


@functools.cache
def alphanumeric_bits() -> np.ndarray:
    """Returns uint64[0x110000 / 64]: bit c % 64 of word c // 64 is the class of code point c."""
    return read_only(np.packbits(alphanumeric_table(), bitorder='little').view(np.uint64))


@kernel_without_allocation
def _wide_marks(text, place):
    """Returns bits: where U+3000 to U+3003 and U+FF00 to U+FF0F begin, wide punctuation."""
    after, last = place + _1, place + _2
    return (
        byte_range_mask(text, place, 0xE3, 0xE3)
        & byte_range_mask(text, after, 0x80, 0x80)
        & byte_range_mask(text, last, 0x80, 0x83)
    ) | (
        byte_range_mask(text, place, 0xEF, 0xEF)
        & byte_range_mask(text, after, 0xBC, 0xBC)
        & byte_range_mask(text, last, 0x80, 0x8F)
    )


@kernel_without_allocation
def _letters_of_chunk(text, place, inside, before, classes):
    """Returns the bits, of those in `inside`, of the bytes at text[place:] in letters or numbers.

    `before` is 1 if the byte before `place` is in one, else 0.
    """
    letters = (
        byte_range_mask(text, place, 0x61, 0x7A)
        | byte_range_mask(text, place, 0x41, 0x5A)
        | byte_range_mask(text, place, 0x30, 0x39)
    )
    others = byte_range_mask(text, place, 0x80, 0xFF) & inside
    if others != _0:
        continued = byte_range_mask(text, place, 0x80, 0xBF)
        letters |= ideograph_mask(text, place)
        leads = others & ~continued & ~letters & ~_wide_marks(text, place)
        while leads != _0:
            byte = trailing_zeros(leads)
            leads &= leads - _1
            code = decode_word(load_word(text, place + byte))
            letters |= (classes[code >> np.uint64(6)] >> (code & _LOW_SIX) & _1) << byte
        # All bytes of a character are of its class.
        letters |= (letters << _1 | before) & continued
        letters |= (letters << _1 | before) & continued
        letters |= (letters << _1 | before) & continued
    return letters & inside


@scan_tokens.register(_AlphanumericRuns)
@kernel_without_allocation
def _scan_alphanumeric_runs(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the rows."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    begun = ended = _0
    while row < len(rows.starts):
        place = np.uint64(rows.starts[row] if position < 0 else position)
        row_end = np.uint64(rows.ends[row])
        # About the chunk before: whether a border is at its last byte, whether that is a space, and
        # whether its last two bytes are alphanumeric (two bits).
        border = space = _0
        # Where a call resumes within a row, a space there has a letter before it.
        last_letters = _0 if position < 0 else _2
        first = _1
        ended_before = ended
        while place < row_end or first == _0:
            if begun > room:
                if ended > ended_before:
                    position = np.int64(tokens.ends[ended - _1])
                return row, position, np.int64(ended)
            left = row_end - place
            inside = _ALL if left >= _CHUNK else (_1 << left) - _1
            last = last_letters >> _1
            letters = _letters_of_chunk(rows.text, place, inside, last, pre_tokenizer.classes)
            spaces = byte_range_mask(rows.text, place, 0x20, 0x20)
            borders = ((letters ^ (letters << _1 | last)) | first) & inside
            # The letter after a single space, which has a letter before it too.
            after_single = letters & (spaces << _1 | space) & (letters << _2 | last_letters)
            begins = (borders << _1 | border) & ~after_single
            ends = borders & ~after_single & ~first
            if left < _CHUNK:
                ends |= _1 << left
            begun = put_places(begins, place - _1, tokens.starts, begun)
            ended = put_places(ends, place, tokens.ends, ended)
            if left < _CHUNK:
                break
            border, space = borders >> _LAST, spaces >> _LAST
            last_letters = letters >> _LAST_TWO
            first = _0
            place += _CHUNK
        begun = ended
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, position, np.int64(ended)
