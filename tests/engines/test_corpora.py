"""The main job on a whole corpus: what issue and README claim. Run with `-m corpora`."""

import pytest
from corpus_specification import Pairs, PairsSpecification
from dataset_files import files_of, read_shards, shards_and_vocabularies
from generated_text import kept_pairs
from jobs import succeed_elsewhere
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

    def test_another_hash_seed_changes_no_byte(self, corpus, tmp_path):
        succeed_elsewhere(*corpus.command(tmp_path / 'out'), PYTHONHASHSEED='4711')
        assert files_of(tmp_path / 'out') == files_of(corpus.built)

    @pytest.mark.parametrize('item_size', ['1MiB', '12MiB'])
    def test_beams_two_worker_processes_change_no_byte(self, corpus, tmp_path, item_size):
        succeed_elsewhere(
            *corpus.command(tmp_path / 'out', '--tsv', corpus.plain, '@item-size', item_size),
            *('--direct_running_mode=multi_processing', '--direct_num_workers=2'),
        )
        built = shards_and_vocabularies(corpus.built)
        assert shards_and_vocabularies(tmp_path / 'out') == built

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
