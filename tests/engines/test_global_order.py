"""The order is one shuffle of the whole corpus, over all its files, decided by the seed alone."""

import math

import numpy as np
import pytest
from corpus_specification import assert_shuffled, rank_correlation
from dataset_files import decoded, encoders_of, files_of, read_shards
from generated_text import as_lines, as_tsv, distinct_pairs
from jobs import succeed, write

from tokcore.subword.text_encoder import SubwordTextEncoder

COUNT = 3_000


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    """Three files of unequal length, and the vocabularies that encode them."""
    folder = tmp_path_factory.mktemp('order')
    pairs = distinct_pairs(COUNT, seed=9)
    parts = [pairs[:200], pairs[200:2_300], pairs[2_300:]]
    paths = [write(folder / f'{n}.tsv', as_tsv(part)) for n, part in enumerate(parts)]
    succeed('vocab', '--tsv', *paths, '--vocab-size', 1500, '--output', folder / 'vocab')
    return folder, paths, pairs


def encode(corpus, output, *options):
    folder, paths, _ = corpus
    succeed(
        *('encode', '--tsv', *paths, '--vocab', folder / 'vocab'),
        *('--name', 'x', '--output', output, *options),
    )
    return read_shards(output)


def places_of(corpus, shards):
    """For each shard the places of its examples in the input."""
    folder, _, pairs = corpus
    encoder = SubwordTextEncoder.load(folder / 'vocab')
    place = {pair: place for place, pair in enumerate(pairs)}
    encoders = {'inputs': encoder, 'targets': encoder}
    return [[place[text] for text in decoded(shard, encoders)] for shard in shards]


@pytest.mark.parametrize('count', [pytest.param(1, marks=pytest.mark.slow), 3])
def test_several_files_are_shuffled_as_one(corpus, tmp_path, count):
    shards = encode(corpus, tmp_path / 'out', '--shards', count)
    assert len(shards) == count
    assert_shuffled(places_of(corpus, shards), 4 / math.sqrt(COUNT))


def test_the_number_of_shards_only_cuts_the_order(corpus, tmp_path):
    orders = [
        [
            example
            for shard in encode(corpus, tmp_path / str(count), '--shards', count)
            for example in shard
        ]
        for count in (1, 3, 64)
    ]
    assert orders[0] == orders[1] == orders[2]


def test_another_seed_is_another_shuffle(corpus, tmp_path):
    orders = []
    for seed in (0, 2**64 - 1):
        shards = encode(corpus, tmp_path / str(seed), '--shards', 4, '--seed', seed)
        places = places_of(corpus, shards)
        assert_shuffled(places, 4 / math.sqrt(COUNT))
        orders.append([place for shard in places for place in shard])
    assert abs(rank_correlation(*orders)) < 4 / math.sqrt(COUNT)


def test_the_same_seed_is_the_same_shuffle_wherever_the_files_lie(corpus, tmp_path):
    folder, paths, _ = corpus
    encode(corpus, tmp_path / 'there', '--seed', 5)
    moved = [write(tmp_path / 'else' / 'where' / path.name, path.read_bytes()) for path in paths]
    encode((folder, moved, None), tmp_path / 'here', '--seed', 5)
    assert files_of(tmp_path / 'here') == files_of(tmp_path / 'there')


def _cut(places, shards=10):
    return np.array_split(np.asarray(places), shards)


def _random_order():
    return np.random.default_rng(6).permutation(COUNT)


def _window_order():
    """What a shuffle buffer of a tenth of the corpus gives."""
    dice = np.random.default_rng(6)
    return np.argsort(np.arange(COUNT) + dice.integers(0, COUNT // 10, COUNT), kind='stable')


@pytest.mark.parametrize(
    'shard_to_places',
    [
        _cut(np.arange(COUNT)),
        _cut(_window_order()),
        [np.random.default_rng(6).permutation(part) for part in _cut(np.arange(COUNT))],
        [np.arange(COUNT)[shard::10] for shard in range(10)],
        _cut(np.random.default_rng(6).permutation(COUNT // 2)[:, None] * 2 + [0, 1]),
        np.split(_random_order(), [COUNT // 5]),
        _cut(np.append(_random_order()[1:], 0)),
    ],
    ids=['none', 'buffer', 'within shards', 'round robin', 'twos', 'unequal shards', 'one lost'],
)
def test_the_assertion_knows_what_is_not_a_shuffle(shard_to_places):
    shards = [np.ravel(shard) for shard in shard_to_places]
    with pytest.raises(AssertionError):
        assert_shuffled(shards, 4 / math.sqrt(COUNT))
    assert_shuffled(_cut(_random_order()), 4 / math.sqrt(COUNT))


def test_equal_lines_are_all_kept(tmp_path):
    lines = ['the same line again'] * 500 + ['another']
    path = write(tmp_path / 'corpus.txt', as_lines(lines))
    succeed(
        *('build', '--text', path, '--vocab-size', 60, '--name', 'x'),
        *('--shards', 4, '--output', tmp_path / 'out'),
    )
    shards = read_shards(tmp_path / 'out')
    encoders = encoders_of(tmp_path / 'out')
    texts = [text for shard in shards for [text] in decoded(shard, encoders)]
    assert sorted(texts) == sorted(lines)
    assert all(abs(len(shard) - 125) < 4.5 * math.sqrt(125) for shard in shards)
