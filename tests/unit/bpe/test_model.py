"""Tokens are merged by rank as a plain list would be, of any length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.bpe.model import MergeModel, merge_work, premerged_characters
from tokcore.bpe.model_kernels import NONE, SHORT, Units, merge_long, merge_short
from tokcore.kernels.bytes import with_margin
from tokcore.kernels.hash_tables import token_lookup
from tokcore.kernels.jit import read_only
from tokcore.text.pre_tokenizer import RowPart

BYTES = list(range(256))


def units_of(premerged=None, unknown=NONE, fuse=0, missing=(), fallback=None):
    symbols = np.array([0 if byte in missing else byte + 1 for byte in BYTES], np.int32)
    characters = np.arange(256, dtype=np.uint32)
    premerged = np.empty(0, np.int32) if premerged is None else premerged
    fallback = np.full(256, NONE, np.int32) if fallback is None else fallback
    return Units(*map(read_only, (symbols, characters, premerged, fallback)), unknown, fuse)


def merged(symbols, merges, batched_merges=False):
    """The rule, on a list: the first pair of the lowest rank; or all of it at once."""
    ranks = {(left, right): (rank, new) for rank, (left, right, new) in enumerate(merges)}
    symbols = list(symbols)
    while True:
        found = [
            (*ranks[pair], place)
            for place, pair in enumerate(zip(symbols, symbols[1:], strict=False))
            if pair in ranks
        ]
        if not found:
            return symbols
        rank, new, first = min(found, key=lambda each: (each[0], each[2]))
        places = (
            [place for other, _, place in found if other == rank] if batched_merges else [first]
        )
        out, done = [], 0
        for place in places:
            if place >= done:
                out += [*symbols[done:place], new]
                done = place + 2
        symbols = out + symbols[done:]


def ids_of(model, data: bytes) -> list[int]:
    text = with_margin(np.frombuffer(data, np.uint8))
    [ids] = model.segment_long_token(RowPart(text, 0, len(data), True))
    return ids.tolist()


def random_merges(chance, alphabet, count, shuffled):
    merges, seen = [], set()
    for _ in range(count):
        pool = [*alphabet, *(new for *_, new in merges)]
        pair = chance.choice(pool), chance.choice(pool)
        if pair not in seen:
            seen.add(pair)
            merges.append((*pair, 256 + len(merges)))
    if shuffled:
        chance.shuffle(merges)
    return merges


@pytest.mark.parametrize('batched_merges', [False, True])
@given(st.randoms(use_true_random=False), st.booleans())
def test_any_merges_of_any_token(batched_merges, chance, shuffled):
    merges = random_merges(chance, b'abc', chance.randrange(1, 40), shuffled)
    model = MergeModel(merges, units_of(), size=400, batched_merges=batched_merges)
    for size in (1, 2, 7, SHORT, SHORT + 1, 3 * SHORT):
        token = bytes(chance.choices(b'abcd', k=size))
        assert ids_of(model, token) == merged(token, merges, batched_merges)


def test_a_pair_that_comes_up_may_be_of_lower_rank():
    # `ab a` is merged before the second `a b`, unless all of `a b` are merged at once.
    merges = [(256, 97, 257), (97, 98, 256)]
    one, all_ = (
        MergeModel(merges, units_of(), size=300, batched_merges=batched_merges)
        for batched_merges in (False, True)
    )
    assert ids_of(one, b'abab') == [257, 98]
    assert ids_of(all_, b'abab') == [256, 256]


@given(st.randoms(use_true_random=False), st.booleans())
def test_characters_taken_whole_change_nothing(chance, shuffled):
    text = 'aé中丮文🙂'
    coded = text.encode()
    merges = random_merges(chance, coded, chance.randrange(1, 60), shuffled)
    characters = {ord(each): each.encode() for each in text[1:]}
    premerged = premerged_characters(characters, [byte + 1 for byte in BYTES], merges)
    model = MergeModel(merges, units_of(premerged), size=400)
    for size in (1, 2, 5, 30):
        token = ''.join(chance.choices(text, k=size)).encode()
        assert ids_of(model, token) == merged(token, merges)


def test_which_characters_are_taken_whole():
    one, two, three = '中'.encode()
    inside = [(one, two, 256), (256, three, 257)]
    characters = {ord('中'): '中'.encode()}
    bytes_ = [byte + 1 for byte in BYTES]

    def symbol(merges):
        return premerged_characters(characters, bytes_, merges)[ord('中')] - 1

    assert symbol(inside) == 257
    assert symbol([*inside, (97, one, 258)]) == 257
    assert symbol([inside[0], (97, 256, 258), inside[1]]) == -1, 'a letter may take the first part'
    assert symbol([(three, one, 258), *inside]) == -1, 'and the last byte goes with the next'
    assert symbol(inside[:1]) == -1


@pytest.mark.parametrize('token', [b'a', b'ab'])
def test_the_heap_is_popped_three_times_a_symbol_at_most(token):
    merges = [(97, 98, 256), (97, 97, 257), (256, 256, 258), (257, 257, 259), (258, 258, 260)]
    model = MergeModel(merges, units_of(), size=300)
    for count in (1_000, 2_000, 4_000):
        work, again = merge_work(count, 1), merge_work(count, 1)
        work.ids[:count] = np.frombuffer((token * count)[:count], np.uint8)
        left, pops = merge_long(np.uint64(0), np.uint64(count), model.state, work)
        assert pops <= 3 * count
        again.ids[:count] = np.frombuffer((token * count)[:count], np.uint8)
        short = merge_short(np.uint64(0), np.uint64(count), model.state, again)
        assert work.ids[:left].tolist() == again.ids[:short].tolist()


def test_what_has_no_symbol():
    merges = [(97, 98, 256)]

    def ids(data, **options):
        units = units_of(missing=b'xyz', **options)
        return ids_of(MergeModel(merges, units, size=300), data)

    # It is dropped, and what it stood between is joined: as `tokenizers` does.
    assert ids(b'axbxyab') == [256, 256]
    assert ids(b'axbxyab', unknown=299) == [97, 299, 98, 299, 299, 256]
    assert ids(b'axbxyab', unknown=299, fuse=1) == [97, 299, 98, 299, 256]
    fallback = np.full(256, NONE, np.int32)
    fallback[ord('x')] = 298
    assert ids(b'axyb', unknown=299, fallback=fallback) == [97, 298, 299, 98]


def test_whole_tokens_are_not_merged():
    model = MergeModel(
        [(97, 98, 256)],
        units_of(),
        size=300,
        ignore_merges=token_lookup({b'abc': 280, b'x' * 40: 281}),
    )
    assert ids_of(model, b'abc') == [280]
    assert ids_of(model, b'x' * 40) == [281]
    assert ids_of(model, b'abcd') == [256, 99, 100]
