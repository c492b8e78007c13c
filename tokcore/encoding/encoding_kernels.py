"""Rows of text to rows of ids, some thousand tokens at a time and pass by pass.

The passes: find the tokens, look them up, spell out and cut those that the cache does not have, put
the ids in order. Each is a loop over all of these tokens, so that memory is waited for once and the
processor guesses the branches of a pass right.
"""

import numpy as np

from tokcore.compiled.byte_masks import store_pair
from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.compiled.wide_loads import load_word
from tokcore.encoding.subtoken_trie import probe_bigrams, segment_longest_match
from tokcore.encoding.token_cache import GROUP, IDS_REMEMBERED, insert_ids, look_up
from tokcore.text.escaping import BACKSLASH, LETTER_U, UNDERSCORE
from tokcore.text.t2t_scanning import CHUNK_TOKENS, scan_tokens
from tokcore.text.utf8 import decode_word

MAX_GROWTH = 5
"""Characters of escaped text for a byte: a control character such as U+007F becomes `\\127;`."""

_TOKENS = 1024  # of one pass
_EOS = np.int32(1)
_SEMICOLON, _ZERO = np.uint32(0x3B), np.uint32(0x30)
_0, _1, _2, _32 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)
_10 = np.uint64(10)


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
def escape_to_code_points(text, starts, ends, missed, misses, alphabet, codes, bounds):
    """Writes the escaped tokens `text[starts[i]:ends[i]]`, i of missed[:misses], as code points.

    The m-th becomes `codes[bounds[m]:bounds[m + 1]]` (uint32, uint64), with room for `MAX_GROWTH`
    code points for a byte and one more. `alphabet` has a bit for each code point that is written as
    itself.
    """
    length = _0
    bounds[0] = _0
    for miss in range(np.uint64(misses)):
        token = missed[miss]
        place = starts[token]
        end = ends[token]
        while place < end:
            word = load_word(text, place)
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


@kernel_without_allocation
def _put_ids(found, cut_ids, token, end, ids, used):
    """Puts the ids of the tokens from `token` up to `end` into ids[used:]; returns the new `used`.

    Always writes three and advances by the true number: a branch on it is mispredicted too often.
    """
    while token < end:
        more = found[token, 1]
        count = more >> _32
        if count <= np.uint64(IDS_REMEMBERED):
            store_pair(ids, used, found[token, 0])
            store_pair(ids, used + _2, more)
        else:
            first = found[token, 0]
            for k in range(count):
                ids[used + k] = cut_ids[first + k]
        used += count
        token += _1
    return used


@kernel
def _grown(array, used, size):
    """The array, or a larger copy if it has no `size` places behind the first `used`."""
    if used + size <= len(array):
        return array
    # By half and not twofold: blocks of rare characters decide on how much memory a job takes.
    larger = np.empty(max(len(array) + len(array) // 2, used + size), array.dtype)
    larger[:used] = array[:used]
    return larger


@kernel
def encode_rows(
    text, starts, ends, eos, classes, alphabet, edges, edge_ids, shift, slots, ids, used, offsets
):
    """Encodes the rows `text[starts[r]:ends[r]]`, each ended by EOS if `eos` is 1 and not 0.

    Puts them behind the first `used` ids. Row r is `ids[offsets[r]:offsets[r + 1]]`; of `offsets`,
    int64[rows + 1], all but the first are set. Returns (ids, used, start, end, missed); the array
    is the one given or a larger one. Where no subtoken begins the last `missed` escaped characters
    of the token text[start:end] it stops; else `missed` is 0.
    """
    token_starts = np.empty(_TOKENS + CHUNK_TOKENS, np.uint64)
    token_ends = np.empty(_TOKENS + CHUNK_TOKENS, np.uint64)
    missed = np.empty(_TOKENS + CHUNK_TOKENS, np.uint64)
    bounds = np.empty(_TOKENS + CHUNK_TOKENS, np.uint64)
    id_bounds = np.empty(_TOKENS + CHUNK_TOKENS, np.uint64)
    rows = np.empty(GROUP, np.uint64)
    words = np.empty((_TOKENS + CHUNK_TOKENS, 2), np.uint64)
    found = np.empty((_TOKENS + CHUNK_TOKENS, 2), np.uint64)
    codes = np.empty(_TOKENS, np.uint32)
    cut_ids = np.empty(_TOKENS, np.int32)
    matches = np.empty(_TOKENS, np.uint64)
    deeper = np.empty(_TOKENS, np.uint64)
    row, position = 0, -1
    while row < len(starts):
        done = row
        row, position, tokens = scan_tokens(
            text, starts, ends, row, position, classes, token_starts, token_ends, offsets
        )
        misses, missed_bytes = look_up(
            text, token_starts, token_ends, tokens, shift, slots, rows, words, found, missed
        )
        most = MAX_GROWTH * missed_bytes + misses
        if misses:
            codes = _grown(codes, 0, most + 1)
            cut_ids = _grown(cut_ids, 0, most)
            escape_to_code_points(
                text, token_starts, token_ends, missed, misses, alphabet, codes, bounds
            )
            length = np.int64(bounds[misses])
            matches = _grown(matches, 0, length)
            deeper = _grown(deeper, 0, length)
            probe_bigrams(codes, length, edges, edge_ids, matches, deeper)
            cut, left = segment_longest_match(
                codes, bounds, misses, edges, edge_ids, matches, deeper, cut_ids, id_bounds
            )
            if left:
                token = missed[cut]
                return ids, used, token_starts[token], token_ends[token], left
            insert_ids(missed, misses, cut_ids, id_bounds, shift, slots, words, found)
            most = np.int64(id_bounds[misses])
        ids = _grown(ids, used, most + IDS_REMEMBERED * tokens + row - done + 4)
        token, next_id = _0, np.uint64(used)
        while done < row:
            row_tokens = np.uint64(offsets[done + 1])
            next_id = _put_ids(found, cut_ids, token, row_tokens, ids, next_id)
            token = row_tokens
            ids[next_id] = _EOS
            next_id += np.uint64(eos)
            done += 1
            offsets[done] = np.int64(next_id)
        used = np.int64(_put_ids(found, cut_ids, token, np.uint64(tokens), ids, next_id))
    return ids, used, _0, _0, 0
