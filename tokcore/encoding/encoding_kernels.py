"""Rows of text to rows of ids, some thousand tokens at a time and pass by pass.

The passes: find the tokens, look them up, segment those that the cache does not have, put the ids
in order. Each is a loop over all of these tokens: memory is waited for once, and the processor
guesses the branches of a pass right. How tokens are found and how they are segmented is chosen by
the types of two states, see `tokcore.encoding`.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_masks import store_pair
from tokcore.compiled.compilation import kernel, kernel_without_allocation, read_only
from tokcore.compiled.ragged_bytes import grown
from tokcore.encoding.model import (
    NO_ROOM,
    MissedTokens,
    larger_workspace,
    segment_tokens,
)
from tokcore.encoding.token_cache import IDS_REMEMBERED, insert_ids, look_up
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, scan_tokens

TOKENS = 1024 + CHUNK_TOKENS
"""Places for the tokens of one pass."""

_0, _1, _2, _32 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)


class Surround(NamedTuple):
    """The ids that stand before and after each row, int32[...], read-only."""

    before: np.ndarray
    after: np.ndarray

    @classmethod
    def of(cls, before: Sequence[int], after: Sequence[int]) -> 'Surround':
        return _surround(tuple(before), tuple(after))


@functools.lru_cache
def _surround(before: tuple[int, ...], after: tuple[int, ...]) -> Surround:
    return Surround(*(read_only(np.array(ids, np.int32)) for ids in (before, after)))


class IdRows(NamedTuple):
    """Where rows of ids go: row r is ids[offsets[r]:offsets[r + 1]]."""

    ids: np.ndarray  # int32, of which so many are used
    used: int
    offsets: np.ndarray  # int64[rows + 1], of which the first is set


@kernel_without_allocation
def _put_rows(found, segmented_ids, row_tokens, done, row, count, surround, out):
    """Puts the ids of so many tokens behind those of `IdRows`; returns how many are used then.

    The rows from `done` up to `row` end among them, by row_tokens[r + 1]; places are left for their
    `Surround`, and for what stands before the row behind them. Always writes three ids for a token
    and advances by the true number: a branch on it is mispredicted too often.
    """
    before, after = np.uint64(len(surround.before)), np.uint64(len(surround.after))
    token, used = _0, np.uint64(out.used)
    ids = out.ids
    while True:
        end = np.uint64(row_tokens[done + 1] if done < row else count)
        while token < end:
            more = found[_2 * token + _1]
            size = more >> _32
            if size <= np.uint64(IDS_REMEMBERED):
                store_pair(ids, used, found[_2 * token])
                store_pair(ids, used + _2, more)
            else:
                first = found[_2 * token]
                for k in range(size):
                    ids[used + k] = segmented_ids[first + k]
            used += size
            token += _1
        if done == row:
            return np.int64(used)
        used += after
        done += 1
        out.offsets[done] = np.int64(used)
        used += before


@kernel_without_allocation
def _put_surround(surround, done, row, ids, offsets):
    """Puts the ids around the rows from `done` up to `row`, when what is between is there."""
    before, after = np.uint64(len(surround.before)), np.uint64(len(surround.after))
    while done < row:
        start, end = np.uint64(offsets[done]), np.uint64(offsets[done + 1]) - after
        for k in range(before):
            ids[start + k] = surround.before[k]
        for k in range(after):
            ids[end + k] = surround.after[k]
        done += 1


@kernel
def encode_rows(rows, surround, pre_tokenizer, model, cache, tokens, work, out):
    """Encodes `TextRows`, each with its `Surround`, to `IdRows` behind those that there are.

    `pre_tokenizer` and `model` are states, `tokens` (`ScannedTokens`, of `TOKENS` places), `work`
    and what `TokenCache` has beside its slots are for its own use. Of out.offsets all but the first
    are set. Returns (ids, used, start, end, left); the array is the one given or a larger one.
    Where tokens.text[start:end] cannot be spelt it stops, `left` as `segment_tokens` says; else
    that is 0.
    """
    ids = grown(out.ids, out.used, len(surround.before))
    used = out.used + len(surround.before)
    around = len(surround.before) + len(surround.after)
    row, position = 0, -1
    while row < len(rows.starts):
        done = row
        row, position, count = scan_tokens(rows, row, position, pre_tokenizer, tokens)
        missed = MissedTokens(cache.missed, *look_up(tokens, count, cache))
        most = 0
        if missed.count:
            number, left = segment_tokens(tokens, missed, model, work)
            if left == NO_ROOM:
                work = larger_workspace(missed, model, work)
                number, left = segment_tokens(tokens, missed, model, work)
            if left:
                token = missed.numbers[number]
                return ids, used, tokens.starts[token], tokens.ends[token], left
            insert_ids(missed, work.ids, work.id_bounds, cache)
            most = np.int64(work.id_bounds[missed.count])
        ids = grown(ids, used, most + IDS_REMEMBERED * count + (row - done) * around + 4)
        used = _put_rows(
            cache.found, work.ids, tokens.row_tokens, done, row, count, surround,
            IdRows(ids, used, out.offsets),
        )  # fmt: skip
        _put_surround(surround, done, row, ids, out.offsets)
    return ids, used - len(surround.before), _0, _0, 0
