"""Order keys: a seeded bijection of (place, offset) that shuffles; shards are ranges of keys."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.corpus.order_keys import mix64, order_keys, places_of, shard_of
from tokcore.errors import InputError

WORDS = st.integers(0, 2**64 - 1)
SEEDS = st.one_of(st.integers(0, 3), WORDS)


def plain_mix13(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def plain_mix(x: int, seed: int) -> int:
    return plain_mix13(plain_mix13(x) ^ plain_mix13((seed + 0x9E3779B97F4A7C15) % 2**64))


def plain_unmix13(x: int) -> int:
    x = (x ^ x >> 31 ^ x >> 62) * pow(0x94D049BB133111EB, -1, 2**64) % 2**64
    x = (x ^ x >> 27 ^ x >> 54) * pow(0xBF58476D1CE4E5B9, -1, 2**64) % 2**64
    return x ^ x >> 30 ^ x >> 60


def plain_unmix(key: int, seed: int) -> int:
    """What a mix that has an inverse came from: so no two values are mixed into one."""
    return plain_unmix13(plain_unmix13(key) ^ plain_mix13((seed + 0x9E3779B97F4A7C15) % 2**64))


@given(st.lists(WORDS), SEEDS)
@example([0, 1, 2**64 - 1], 0)
@example([0], 2**64 - 1)
def test_mix_is_the_named_one(values, seed):
    mixed = mix64(np.array(values, np.uint64), seed)
    assert mixed.dtype == np.uint64
    assert mixed.tolist() == [plain_mix(value, seed) for value in values]


def test_mix_is_pinned_so_that_no_release_changes_a_shuffle_unseen():
    # The first value that SplitMix64 gives from state 0, which is mix13(gamma).
    assert plain_mix13(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF
    assert order_keys(0, np.array([0, 1]), 0).tolist() == [0x48218226FF3CD4BF, 0x48294F70CCF5E4FC]


@given(st.integers(0, 2**20 - 1), st.lists(st.integers(0, 2**44 - 1)), SEEDS)
@example(2**20 - 1, [0, 2**44 - 1], 0)
def test_the_identity_comes_back(place, offsets, seed):
    keys = order_keys(place, np.array(offsets, np.int64), seed)
    identities = [plain_unmix(key, seed) for key in keys.tolist()]
    assert identities == [place * 2**44 + offset for offset in offsets]
    files, found = places_of(keys, seed)
    assert (files == place).all() and found.tolist() == offsets


@pytest.mark.parametrize('seed', [0, 1, 2**64 - 1])
def test_avalanche_each_input_bit_flips_half_of_the_output_bits(seed):
    # Identities as they really are: few places, ascending offsets.
    samples = 4096
    rows = np.arange(samples)
    identities = ((rows % 3 << 44) | rows * 83).astype(np.uint64)
    mixed = mix64(identities, seed)
    flips = np.empty((64, 64))
    for bit in range(64):
        changed = mixed ^ mix64(identities ^ np.uint64(1 << bit), seed)
        flips[bit] = [((changed >> np.uint64(k)) & np.uint64(1)).mean() for k in range(64)]
    # Each of 64 x 64 shares is within six standard deviations (1/128 each) of one half.
    assert np.abs(flips - 0.5).max() < 6 / 128
    assert abs(flips.mean() - 0.5) < 0.005


@given(st.lists(WORDS), st.one_of(st.integers(1, 2**32), st.sampled_from([1, 2**32 - 1, 2**32])))
@example([0, 2**64 - 1, 2**63, 2**32 - 1, 2**32], 2**32)
def test_shards_are_exact(keys, shards):
    found = shard_of(np.array(keys, np.uint64), shards)
    assert found.dtype == np.int64
    assert found.tolist() == [key * shards >> 64 for key in keys]


def test_shards_are_even():
    counts = np.bincount(shard_of(order_keys(0, np.arange(100_000) * 50, 0), 10), minlength=10)
    assert counts.min() > 9_000 and counts.max() < 11_000


@pytest.mark.parametrize(
    'place, offsets, seed, words',
    [
        (2**20, [0], 0, ['1048576', 'join']),
        (-1, [0], 0, ['-1']),
        (5, [0, 2**44], 0, ['number 5', '17592186044416', 'split']),
        (5, [-1], 0, ['-1']),
        (0, [0], -1, ['Seed -1']),
        (0, [0], 2**64, ['Seed 18446744073709551616']),
    ],
)
def test_what_does_not_fit_is_named(place, offsets, seed, words):
    with pytest.raises(InputError) as error:
        order_keys(place, np.array(offsets), seed)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize('shards', [0, -1, 2**32 + 1])
def test_impossible_numbers_of_shards(shards):
    with pytest.raises(ValueError, match='shards'):
        shard_of(np.zeros(1, np.uint64), shards)
