r"""The kernels of the subword model: tokens are escaped and then cut into the longest subtokens.

    tokens   ScannedTokens, and which of them were missed: text[starts[i]:ends[i]]   cat  a_b
       │ escape_to_code_points, by `alphabet`
    codes    one after another, up to bounds[m]                                      cat_ a\ub_
       │ probe_bigrams, segment_longest_match, by `trie`
    ids      up to id_bounds[m]                                                      c at_ a \u b_
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.compiled.ragged_bytes import grown
from tokcore.compiled.wide_loads import load_word
from tokcore.encoding.model import NO_ROOM, larger_workspace, segment_tokens
from tokcore.subword.subtoken_trie import Trie, TrieWalk, probe_bigrams, segment_longest_match
from tokcore.text.escaping import BACKSLASH, LETTER_U, UNDERSCORE
from tokcore.text.utf8 import decode_word

MAX_GROWTH = 5
"""Characters of escaped text for a byte: a control character such as U+007F becomes `\\127;`."""

_SEMICOLON, _ZERO = np.uint32(0x3B), np.uint32(0x30)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)
_10 = np.uint64(10)


class SubwordState(NamedTuple):
    """What segmenting reads of a vocabulary; read-only, so that threads can share it."""

    trie: Trie
    alphabet: np.ndarray
    """uint64[0x110000 / 64]: bit c % 64 of word c // 64 says that code point c is written as
    itself; the others are escaped."""


@kernel_without_allocation
def _put_escape(code, out, length):
    r"""Puts what stands for a character into out[length:]: `\\`, `\u` or `\<decimal>;`.

    Returns the new length.
    """
    out[length] = BACKSLASH
    length += _1
    if code == BACKSLASH or code == UNDERSCORE:
        out[length] = BACKSLASH if code == BACKSLASH else LETTER_U
        return length + _1
    digits = _1
    limit = _10
    while code >= limit:
        digits += _1
        limit *= _10
    for digit in range(digits):
        out[length + digits - _1 - digit] = _ZERO + np.uint32(code % _10)
        code //= _10
    out[length + digits] = _SEMICOLON
    return length + digits + _1


@kernel_without_allocation
def escape_to_code_points(tokens, missed, alphabet, codes, bounds):
    """Writes the `MissedTokens` of `ScannedTokens`, escaped, as code points.

    The m-th becomes `codes[bounds[m]:bounds[m + 1]]` (uint32, uint64), with room for `MAX_GROWTH`
    code points for a byte and one more.
    """
    length = _0
    bounds[0] = _0
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        place = tokens.starts[token]
        end = tokens.ends[token]
        while place < end:
            word = load_word(tokens.text, place)
            code = decode_word(word)
            # Branches, so that the next character need not wait until this one is loaded.
            if word & np.uint64(0x80) == _0:
                place += _1
            elif word & np.uint64(0xF0) == np.uint64(0xE0):
                place += np.uint64(3)
            else:
                place += _2 if code < np.uint64(0x800) else np.uint64(4)
            if alphabet[code >> np.uint64(6)] >> (code & np.uint64(63)) & _1 != _0:
                codes[length] = code
                length += _1
            else:
                length = _put_escape(code, codes, length)
        codes[length] = UNDERSCORE
        length += _1
        bounds[miss + _1] = length


@segment_tokens.register(SubwordState)
@kernel_without_allocation
def segment_subwords(tokens, missed, model, work):
    """Segments tokens as `segment_tokens` says; `work` is a `TrieWalk`.

    What cannot be spelt are the last `left` escaped characters of a token.
    """
    if len(work.codes) < _most_codes(missed):
        return 0, NO_ROOM
    escape_to_code_points(tokens, missed, model.alphabet, work.codes, work.bounds)
    probe_bigrams(work, np.int64(work.bounds[missed.count]), model.trie)
    return segment_longest_match(work, missed.count, model.trie)


@kernel_without_allocation
def _most_codes(missed):
    """How many code points the tokens can take, with the one more that is read."""
    return MAX_GROWTH * missed.nbytes + missed.count + 1


@larger_workspace.register(SubwordState)
@kernel
def larger_walk(missed, model, work):
    """A `TrieWalk` for tokens of any size; room that is not written to takes no memory."""
    most = _most_codes(missed)
    codes, ids = grown(work.codes, 0, most), grown(work.ids, 0, most)
    matches, deeper = grown(work.matches, 0, most), grown(work.deeper, 0, most)
    return TrieWalk(codes, work.bounds, matches, deeper, ids, work.id_bounds)
