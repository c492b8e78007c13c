"""Rows of text to rows of ids, some thousand tokens at a time and pass by pass.

The passes: find the tokens, look them up, segment those that the cache does not have, put the ids
in order. Each is a loop over all of these tokens: memory is waited for once, and the processor
guesses the branches of a pass right. How tokens are found and how they are segmented is chosen by
the types of two states, see `tokcore.encoding`.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_masks import store_pair
from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.encoding.model import MissedTokens, segment_tokens
from tokcore.encoding.token_cache import IDS_REMEMBERED, insert_ids, look_up
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, scan_tokens

TOKENS = 1024 + CHUNK_TOKENS
"""Places for the tokens of one pass."""

_0, _1, _2, _32 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)


class Surround(NamedTuple):
    """The ids that stand before and after each row, int32[...], read-only."""

    before: np.ndarray
    after: np.ndarray


class IdRows(NamedTuple):
    """Where rows of ids go: row r is ids[offsets[r]:offsets[r + 1]]."""

    ids: np.ndarray  # int32, of which so many are used
    used: int
    offsets: np.ndarray  # int64[rows + 1], of which the first is set


@kernel_without_allocation
def _put_ids(found, segmented_ids, token, end, ids, used):
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
                ids[used + k] = segmented_ids[first + k]
        used += count
        token += _1
    return used


@kernel_without_allocation
def _put_some(some, ids, used):
    """Puts some ids into ids[used:]; returns the new `used`."""
    for k in range(np.uint64(len(some))):
        ids[used] = some[k]
        used += _1
    return used


@kernel_without_allocation
def _put_rows(found, segmented_ids, row_tokens, done, row, tokens, surround, out):
    """Puts the ids of so many tokens behind those of `IdRows`; returns how many are used then.

    The rows from `done` up to `row` end among them, by row_tokens[r + 1]; each gets its `Surround`,
    and the next one what stands before it.
    """
    token, used = _0, np.uint64(out.used)
    while done < row:
        end = np.uint64(row_tokens[done + 1])
        used = _put_ids(found, segmented_ids, token, end, out.ids, used)
        used = _put_some(surround.after, out.ids, used)
        token = end
        done += 1
        out.offsets[done] = np.int64(used)
        if done < len(out.offsets) - 1:
            used = _put_some(surround.before, out.ids, used)
    return np.int64(_put_ids(found, segmented_ids, token, np.uint64(tokens), out.ids, used))


@kernel
def grown(array, used, size):
    """The array, or a larger copy if it has no `size` places behind the first `used`."""
    if used + size <= len(array):
        return array
    # By half and not twofold: blocks of rare characters decide on how much memory a job takes.
    larger = np.empty(max(len(array) + len(array) // 2, used + size), array.dtype)
    larger[:used] = array[:used]
    return larger


@kernel
def encode_rows(rows, surround, pre_tokenizer, model, cache, tokens, work, out):
    """Encodes `TextRows`, each with its `Surround`, to `IdRows` behind those that there are.

    `pre_tokenizer` and `model` are states, `tokens` (`ScannedTokens`, of `TOKENS` places), `work`
    and what `TokenCache` has beside its slots are for its own use. Of out.offsets all but the first
    are set. Returns (ids, used, start, end, left); the array is the one given or a larger one.
    Where tokens.text[start:end] cannot be spelt it stops, `left` as `segment_tokens` says; else
    that is 0.
    """
    ids, used = grown(out.ids, out.used, len(surround.before)), out.used
    row, position = 0, -1
    if row < len(rows.starts):
        used = np.int64(_put_some(surround.before, ids, np.uint64(used)))
    while row < len(rows.starts):
        done = row
        row, position, count = scan_tokens(rows, row, position, pre_tokenizer, tokens)
        missed = MissedTokens(cache.missed, *look_up(tokens, count, cache))
        most = 0
        if missed.count:
            work, number, left = segment_tokens(tokens, missed, model, work)
            if left:
                token = missed.numbers[number]
                return ids, used, tokens.starts[token], tokens.ends[token], left
            insert_ids(missed, work.ids, work.id_bounds, cache)
            most = np.int64(work.id_bounds[missed.count])
        most += (row - done) * (len(surround.before) + len(surround.after))
        ids = grown(ids, used, most + IDS_REMEMBERED * count + 4)
        used = _put_rows(
            cache.found, work.ids, tokens.row_tokens, done, row, count, surround,
            IdRows(ids, used, out.offsets),
        )  # fmt: skip
    return ids, used, _0, _0, 0
