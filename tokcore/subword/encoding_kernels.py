"""Rows of text to rows of ids: each token from the memo, or escaped and cut over the trie."""

from tokcore.compilation import kernel
from tokcore.pretokenization import character_length, decode_character
from tokcore.subword.memo_kernels import IDS_MARGIN, MAX_GROWTH, recall_tokens, remember
from tokcore.subword.trie_kernels import cut_greedily

_EOS = 1
_BACKSLASH, _UNDERSCORE, _U, _SEMICOLON, _ZERO = 0x5C, 0x5F, 0x75, 0x3B, 0x30

DONE, NO_ROOM_FOR_IDS, NO_ROOM_TO_ESCAPE, NO_SUBTOKEN = 0, 1, 2, 3


@kernel
def _write_code(code, out, length):
    r"""Puts `\<decimal>;` into out[length:]; returns the new length."""
    digits = 1
    limit = 10
    while code >= limit:
        digits += 1
        limit *= 10
    out[length] = _BACKSLASH
    for place in range(digits, 0, -1):
        out[length + place] = _ZERO + code % 10
        code //= 10
    out[length + digits + 1] = _SEMICOLON
    return length + digits + 2


@kernel
def escape_characters(text, start, end, alphabet, out):
    """Writes the escaped token `text[start:end]` to `out` as code points; returns their number.

    `out` int32[...] has room.
    """
    length = 0
    position = start
    while position < end:
        code = decode_character(text, position)
        position += character_length(text, position)
        if code == _BACKSLASH or code == _UNDERSCORE:
            out[length] = _BACKSLASH
            out[length + 1] = _BACKSLASH if code == _BACKSLASH else _U
            length += 2
        elif alphabet[code]:
            out[length] = code
            length += 1
        else:
            length = _write_code(code, out, length)
    out[length] = _UNDERSCORE
    return length + 1


@kernel
def encode_rows(
    text, starts, ends, row, position, eos, byte_classes, classes, edges, alphabet,
    index, entries, memo_bytes, memo_ids, memo_used, hash_mask, escaped, ids, used, offsets,
):  # fmt: skip
    """Encodes rows `text[starts[r]:ends[r]]` into ids[used:], from a row and a place in it on.

    Returns (outcome, row, position, used, amount): where it stopped. It stops before a token that
    needs room for `amount` more ids or for `amount` places in `escaped`, to be called again there;
    and at one whose last `amount` escaped characters begin with no subtoken.
    """
    while row < starts.size:
        while position < ends[row]:
            start, position, used, slot, key, token_hash = recall_tokens(
                text, position, starts[row], ends[row], byte_classes, classes,
                index, entries, memo_bytes, memo_ids, hash_mask, ids, used,
            )  # fmt: skip
            if start < 0:
                return NO_ROOM_FOR_IDS, row, position, used, IDS_MARGIN
            if start == position:
                break
            if MAX_GROWTH * (position - start) >= escaped.size:
                amount = MAX_GROWTH * (position - start) + 1
                return NO_ROOM_TO_ESCAPE, row, start, used, amount
            length = escape_characters(text, start, position, alphabet, escaped)
            if used + length + IDS_MARGIN > ids.size:
                return NO_ROOM_FOR_IDS, row, start, used, length + IDS_MARGIN
            first = used
            used, missed = cut_greedily(escaped, length, edges, ids, used)
            if missed:
                return NO_SUBTOKEN, row, start, used, missed
            remember(
                index, entries, memo_bytes, memo_ids, memo_used,
                slot, key, token_hash, text, start, position, ids, first, used,
            )  # fmt: skip
        if eos:
            if used == ids.size:
                return NO_ROOM_FOR_IDS, row, position, used, IDS_MARGIN
            ids[used] = _EOS
            used += 1
        row += 1
        offsets[row] = used
        if row < starts.size:
            position = starts[row]
    return DONE, row, position, used, 0
