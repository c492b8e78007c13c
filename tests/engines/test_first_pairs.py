"""The main job on 2,500 pairs: real ones where they are at hand, generated ones elsewhere."""

import itertools
import math

import pytest
from corpus_specification import Pairs, PairsSpecification
from generated_text import distinct_pairs
from shared_corpora import ENZH, read_pairs

pytestmark = pytest.mark.slow

COUNT = 2_500


class TestFirstPairs(PairsSpecification):
    @pytest.fixture(scope='class')
    def corpus(self, tmp_path_factory):
        if ENZH.exists():
            pairs = list(itertools.islice(read_pairs(ENZH), COUNT))
        else:
            pairs = distinct_pairs(COUNT, seed=5)
        return Pairs(
            pairs,
            tmp_path_factory.mktemp('first-pairs'),
            vocab_size=2_048,
            shards=10,
            correlation_bound=4 / math.sqrt(COUNT),
        )
