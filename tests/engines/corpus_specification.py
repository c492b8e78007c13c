"""What the main job must show on a corpus of pairs, of whatever size.

`PairsSpecification` is run on a few thousand pairs with the `slow` tests, and on a whole corpus by
the mark `corpora`: the assertions are the same.
"""

import collections
import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from dataset_files import (
    decoded,
    encoders_of,
    files_of,
    lines_of,
    read_shards,
    shards_and_vocabularies,
)
from generated_text import as_bitext, as_tsv, kept_pairs
from jobs import succeed, write


def rank_correlation(places: np.ndarray, others: np.ndarray) -> float:
    """Spearman's rank correlation of values without ties."""
    ranks = [np.argsort(np.argsort(each)) for each in (places, others)]
    return float(np.corrcoef(*ranks)[0, 1])


def assert_shuffled(shard_to_places: Sequence[Sequence[int]], bound: float) -> None:
    """Asserts that input places, in output order, are those of a shuffle of the whole corpus.

    Args:
        shard_to_places: for each shard the input places of its examples, together 0..n-1.
        bound: what no rank correlation may exceed.
    """
    places = np.concatenate([np.asarray(shard, np.int64) for shard in shard_to_places])
    count, shards = len(places), len(shard_to_places)
    assert sorted(places.tolist()) == list(range(count))
    output_places = np.argsort(places)

    assert abs(rank_correlation(places, np.arange(count))) < bound
    # Neighbours in the output were no neighbours in the input, nor the other way round.
    assert abs(rank_correlation(places[:-1], places[1:])) < bound
    assert abs(rank_correlation(output_places[:-1], output_places[1:])) < bound

    # A shard's size is a binomial variable: 4.5 standard deviations, which is well within 10 % of
    # a share from 2,025 examples a shard on.
    share = count / shards
    for shard in shard_to_places:
        assert abs(len(shard) - share) <= 4.5 * math.sqrt(share)

    # Some of each hundredth of the input in each shard, as far as chance allows: a fair shuffle of
    # a few thousand leaves some cells empty, one of a hundred thousand leaves none.
    hundredths = [set((np.asarray(shard) * 100 // count).tolist()) for shard in shard_to_places]
    empty = sum(100 - len(found) for found in hundredths)
    expected = 100 * shards * (1 - 1 / shards) ** (count / 100)
    assert empty <= expected + 4 * math.sqrt(expected)


@dataclasses.dataclass(frozen=True)
class Pairs:
    """A corpus of distinct pairs as gzipped columns, what is asked for, and a folder to work in."""

    pairs: Sequence[tuple[str, str]]
    folder: Path
    vocab_size: int
    shards: int
    correlation_bound: float

    @cached_property
    def compressed(self) -> Path:
        return write(self.folder / 'pairs.tsv.gz', as_tsv(self.pairs))

    @cached_property
    def plain(self) -> Path:
        return write(self.folder / 'pairs.tsv', as_tsv(self.pairs))

    @cached_property
    def two_files(self) -> tuple[Path, Path]:
        source, target = as_bitext(self.pairs)
        return write(self.folder / 'pairs.en', source), write(self.folder / 'pairs.zh', target)

    def command(self, output: Path, *inputs: object) -> list[object]:
        return [
            *('build', *(inputs or ('--tsv', self.compressed)), '--name', 'enzh'),
            *('--vocab-size', self.vocab_size, '--shards', self.shards, '--output', output),
        ]

    @cached_property
    def built(self) -> Path:
        """The dataset of the plainest command."""
        output = self.folder / 'built'
        succeed(*self.command(output))
        return output

    @cached_property
    def texts(self) -> list[list[tuple[str, ...]]]:
        """The decoded texts of each shard of the plainest command's dataset."""
        encoders = encoders_of(self.built)
        return [decoded(shard, encoders) for shard in read_shards(self.built)]


class PairsSpecification:
    """Subclasses give the fixture `corpus`."""

    @pytest.mark.parametrize('column, side', [(0, 'inputs'), (1, 'targets')])
    def test_the_vocabulary_is_tensor2tensors_file(
        self, t2t_text_encoder, corpus, tmp_path, column, side
    ):
        encoder = t2t_text_encoder.SubwordTextEncoder.build_from_generator(
            (pair[column] for pair in kept_pairs(corpus.pairs)),
            corpus.vocab_size,
            max_subtoken_length=200,
        )
        encoder.store_to_file(str(tmp_path / 'theirs'))
        ours = corpus.built / f'vocab.enzh.{corpus.vocab_size}.subwords.{side}'
        assert ours.read_bytes() == (tmp_path / 'theirs').read_bytes()

    def test_every_pair_is_there_exactly_once(self, corpus):
        kept = kept_pairs(corpus.pairs)
        found = collections.Counter(text for shard in corpus.texts for text in shard)
        assert found == collections.Counter(kept)
        lines = lines_of(corpus.built)
        assert lines['lines'] == len(corpus.pairs)
        assert lines['empty'] == len(corpus.pairs) - len(kept)

    def test_the_ids_are_those_of_encoding_one_text_after_another(self, corpus):
        encoders = encoders_of(corpus.built)
        shard = read_shards(corpus.built)[0]
        for example, texts in zip(shard, corpus.texts[0], strict=True):
            for side, text in zip(('inputs', 'targets'), texts, strict=True):
                assert example[side] == [*encoders[side].encode(text), 1]

    def test_the_order_is_a_shuffle(self, corpus):
        place = {pair: place for place, pair in enumerate(kept_pairs(corpus.pairs))}
        shard_to_places = [[place[text] for text in shard] for shard in corpus.texts]
        assert_shuffled(shard_to_places, corpus.correlation_bound)

    def test_another_seed_gives_another_order_of_the_same_examples(self, corpus, tmp_path):
        succeed(*corpus.command(tmp_path / 'out'), '--seed', 1)
        first, second = (
            [repr(example) for shard in read_shards(folder) for example in shard]
            for folder in (corpus.built, tmp_path / 'out')
        )
        assert sorted(first) == sorted(second)
        by_example = {example: place for place, example in enumerate(first)}
        places = np.array([by_example[example] for example in second])
        assert abs(rank_correlation(places, np.arange(len(places)))) < corpus.correlation_bound

    @pytest.mark.parametrize(
        'options',
        [
            ['@item-size', '1MiB', '--workers', 1],
            ['@item-size', '100KiB', '--workers', 3],
        ],
        ids=lambda options: ' '.join(map(str, options)),
    )
    def test_workers_and_work_items_change_no_byte(self, corpus, tmp_path, options):
        succeed(*corpus.command(tmp_path / 'out'), *options)
        assert files_of(tmp_path / 'out') == files_of(corpus.built)

    def test_plain_text_gives_the_same_bytes_as_gzip(self, corpus, tmp_path):
        command = corpus.command(tmp_path / 'out', '--tsv', corpus.plain)
        succeed(*command, '@item-size', '1MiB')
        built = shards_and_vocabularies(corpus.built)
        assert shards_and_vocabularies(tmp_path / 'out') == built

    def test_two_files_give_the_same_vocabularies_and_examples(self, corpus, tmp_path):
        source, target = corpus.two_files
        command = corpus.command(tmp_path / 'out', '--source', source, '--target', target)
        succeed(*command, '@item-size', '100KiB')
        for path in corpus.built.glob('vocab.*'):
            assert (tmp_path / 'out' / path.name).read_bytes() == path.read_bytes()
        first, second = (
            sorted(repr(example) for shard in read_shards(folder) for example in shard)
            for folder in (corpus.built, tmp_path / 'out')
        )
        assert first == second
