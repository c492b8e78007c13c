"""Packed rows of whole corpora have little padding. `-m corpora`."""

import pytest
from jobs import succeed
from shared_corpora import FOLDER

from tokcore import open_dataset

CORPORA = {
    'docs.en': ['--text', FOLDER / 'docs.en.txt.gz'],
    'poetry.zh': ['--text', FOLDER / 'poetry.zh.txt.gz'],
    'enzh': ['--tsv', FOLDER / 'enzh.tsv.gz', '--dev-share', '5%'],
}

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
