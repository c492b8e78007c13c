"""Readers and packed rows of whole corpora: one order, saves anywhere, little padding. `-m corpora`."""

import functools
import json
import random
import zlib

import pytest
from jobs import succeed
from shared_corpora import FOLDER

from tokcore import open_dataset

CORPORA = {
    'docs.en': ['--text', FOLDER / 'docs.en.txt.gz'],
    'poetry.zh': ['--text', FOLDER / 'poetry.zh.txt.gz'],
    'enzh': ['--tsv', FOLDER / 'enzh.tsv.gz', '--dev-share', '5%'],
}
READERS = [1, 2, 3, 7, 16]
SAVES = 50
BUDGET = {'tokens_per_batch': 4096, 'seed': 3}
BUCKETS = {'batch_size': 64, 'start': 2, 'end': 1, 'seed': 3}

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(not FOLDER.is_dir(), reason=f'{FOLDER} is not there'),
]


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    """A function from a corpus to its dataset, which is built once."""
    made = {}

    def build(name):
        if name not in made:
            folder = tmp_path_factory.mktemp('corpora') / name
            asked = ['--name', 'd', '--vocab-size', 16384, '--shards', 10, '--output', folder]
            succeed('build', *CORPORA[name], *asked)
            made[name] = open_dataset(folder)
        return made[name]

    return build


def digest(batch):
    """What stands for a batch; whole epochs would not fit in memory."""
    return [(name, each.shape, zlib.crc32(each)) for name, each in sorted(batch.items())]


@pytest.fixture(scope='module')
def undisturbed(dataset):
    """A function from the arguments of batches to an epoch of them, which is read once."""

    @functools.cache
    def read(**asked):
        return [*map(digest, dataset('enzh').batches('train', **asked))]

    return read


def dealt(readers):
    """The batches of readers in rounds."""
    shares = [[*map(digest, reader)] for reader in readers]
    return [batch for round_ in zip(*shares, strict=True) for batch in round_]


@pytest.mark.parametrize('asked', [BUDGET, BUCKETS], ids=['budget', 'buckets'])
@pytest.mark.parametrize('count', READERS)
def test_any_number_of_readers_has_the_order_of_one(dataset, undisturbed, count, asked):
    readers = [
        dataset('enzh').batches('train', num_readers=count, reader_index=k, **asked)
        for k in range(count)
    ]
    batches = undisturbed(**asked)
    whole = len(batches) // count * count
    assert dealt(readers)[:whole] == batches[:whole] != []


@pytest.mark.parametrize('asked', [BUDGET, BUCKETS], ids=['budget', 'buckets'])
def test_a_run_that_is_saved_anywhere_goes_on_with_any_number_of_readers(dataset, asked):
    """Of the smaller split: every reader forms all batches, and there are some hundred readers."""
    dice = random.Random(1)
    batches = [*map(digest, dataset('enzh').batches('dev', **asked))]
    for _ in range(SAVES):
        before, after = dice.choice(READERS), dice.choice(READERS)
        rounds = dice.randint(0, len(batches) // before)
        reader = dataset('enzh').batches('dev', num_readers=before, **asked)
        for _ in range(rounds):
            next(reader)
        state = json.loads(json.dumps(reader.state()))
        rest = batches[rounds * before :]
        readers = [
            dataset('enzh').from_state(state, num_readers=after, reader_index=k)
            for k in range(after)
        ]
        whole = len(rest) // after * after
        assert dealt(readers)[:whole] == rest[:whole]


@pytest.mark.parametrize('name', CORPORA)
def test_packed_rows_have_little_padding(dataset, name):
    """The sides of pairs have other sums of lengths, and pairs are not cut: that much is padding anyhow."""
    features = dataset(name).features
    stored, too_long = dict.fromkeys(features, 0), 0
    for row in dataset(name).examples('train'):
        sizes = {feature: len(ids) for feature, ids in row.items()}
        if len(sizes) > 1 and max(sizes.values()) > 2048:
            too_long += 1
        else:
            stored = {feature: stored[feature] + sizes[feature] for feature in features}
    ids = sum(stored.values())
    least = 1 - ids / (len(features) * max(stored.values()))
    shares = {}
    for strategy in ('best-fit', 'greedy'):
        packed = dataset(name).packed('train', 2048, strategy=strategy, seed=1)
        given = sum(
            int((batch[f'{feature}_segmentation'] > 0).sum())
            for batch in packed
            for feature in features
        )
        assert given == ids
        assert packed.left_out == {'damaged': 0, 'length': too_long, 'remainder': 0}
        shares[strategy] = packed.padding_share
    assert shares['best-fit'] < least + 0.01
    if len(features) == 1:
        assert shares['best-fit'] < shares['greedy'] < 0.03
