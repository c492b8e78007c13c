"""The main job on a whole corpus: what issue and README claim. Run with `-m corpora`."""

import pytest
from corpus_specification import Pairs, PairsSpecification
from dataset_files import read_shards
from generated_text import kept_pairs
from shared_corpora import ENZH, ENZH_PAIRS, read_pairs

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(not ENZH.exists(), reason=f'{ENZH} is not there'),
]


class TestWholeCorpus(PairsSpecification):
    @pytest.fixture(scope='class')
    def corpus(self, tmp_path_factory):
        return Pairs(
            list(read_pairs(ENZH)),
            tmp_path_factory.mktemp('enzh'),
            vocab_size=8_192,
            shards=10,
            correlation_bound=0.01,
            process_item_sizes=('1MiB', '12MiB'),
        )

    def test_the_corpus_is_the_one_of_the_claims(self, corpus):
        assert len(corpus.pairs) == len(set(corpus.pairs)) == ENZH_PAIRS

    def test_every_shard_holds_nine_to_eleven_percent(self, corpus):
        for shard in corpus.texts:
            assert 0.09 * ENZH_PAIRS <= len(shard) <= 0.11 * ENZH_PAIRS

    def test_every_shard_holds_some_of_each_hundredth(self, corpus):
        place = {pair: place for place, pair in enumerate(kept_pairs(corpus.pairs))}
        for shard in corpus.texts:
            assert {place[text] * 100 // ENZH_PAIRS for text in shard} == set(range(100))

    def test_tensorflow_reads_all_shards(self, tensorflow, corpus):
        shards = read_shards(corpus.built)
        paths = sorted(map(str, corpus.built.glob('enzh-train-*')))
        assert len(paths) == len(shards) == 10
        ragged = tensorflow.io.RaggedFeature(tensorflow.int64)
        features = {'inputs': ragged, 'targets': ragged}
        ours = (example for shard in shards for example in shard)
        for batch in tensorflow.data.TFRecordDataset(paths).batch(1000):
            parsed = tensorflow.io.parse_example(batch, features)
            theirs = zip(parsed['inputs'].to_list(), parsed['targets'].to_list(), strict=True)
            for inputs, targets in theirs:
                assert next(ours) == {'inputs': inputs, 'targets': targets}
        assert next(ours, None) is None
