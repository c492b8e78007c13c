"""Smaller vocabularies through the commands: from counts, from text, and as a dataset's."""

import json

import apache_beam as beam
import numpy as np
import pytest
from dataset_files import manifest_of
from jobs import refuse, succeed, write

import tokcore
from pipelines import CountTokens, LearnVocabulary, ReadCorpus


@pytest.fixture(scope='module')
def old(small, tmp_path_factory):
    path = tmp_path_factory.mktemp('old') / 'tokenizer.json'
    texts = ['--text', small.source, small.target]
    bpe = ['--scheme', 'bpe', '--pre-tokenizer', 'o200k']
    succeed('vocab', *texts, *bpe, '--vocab-size', 900, '--output', path)
    return path


def test_no_line_changes_its_pieces(small, old, tokenizers, tmp_path):
    counted = ['--scheme', 'bpe', '--pre-tokenizer', 'o200k', '--output', tmp_path / 'counts']
    succeed('count', '--text', small.source, *counted)
    shrink = ['--shrink', old, '--counts', tmp_path / 'counts']
    path = tmp_path / 'small' / 'tokenizer.json'
    said = succeed('vocab', *shrink, '--output', path)
    assert 'pieces change' not in said
    pairs = json.loads((path.parent / 'tokenizer.json.ids.json').read_text())
    assert np.load(path.parent / 'tokenizer.json.ids.npy').tolist() == pairs
    before, after = (tokenizers.Tokenizer.from_file(str(each)) for each in (old, path))
    new_ids = dict(pairs)
    assert 256 < len(new_ids) == after.get_vocab_size() < before.get_vocab_size() == 900
    for line in small.source.read_text().splitlines():
        ids = before.encode(line).ids
        assert after.encode(line).ids == [new_ids[id_] for id_ in ids]
    assert tokcore.load_tokenizer(path).encode('中') == after.encode('中').ids
    # The same from the text, and by the folder; a path is not recorded.
    again = tmp_path / 'again' / 'tokenizer.json'
    succeed('vocab', '--shrink', old.parent, '--text', small.source, '--output', again)
    for name in ('tokenizer.json', 'tokenizer.json.ids.npy', 'tokenizer.json.ids.json'):
        assert (again.parent / name).read_bytes() == (path.parent / name).read_bytes()
    assert str(old.parent) not in (path.parent / 'tokenizer.json.tokbeam.json').read_text()
    assert 'already done' in succeed('vocab', *shrink, '--output', path)


def test_a_pipeline_of_ones_own_writes_the_maps_of_ids_too(small, old, tmp_path):
    succeed('vocab', '--shrink', old, '--text', small.source, '--output', tmp_path / 'a.json')
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        counted = pipeline | ReadCorpus(small.source) | CountTokens('bpe', pre_tokenizer='o200k')
        _ = counted | LearnVocabulary('bpe', shrink=str(old), path=tmp_path / 'b.json')
    for ending in ('', '.ids.npy', '.ids.json'):
        made = (tmp_path / f'b.json{ending}').read_bytes()
        assert made == (tmp_path / f'a.json{ending}').read_bytes()


def test_a_size_says_how_much_text_changes(small, old, tmp_path):
    shrink = ['--shrink', old, '--text', small.source, '--vocab-size', 300]
    path = tmp_path / 'small.json'
    said = succeed('vocab', *shrink, '--output', path)
    assert '% of the text is in tokens whose pieces change' in said
    assert len(json.loads((tmp_path / 'small.json.ids.json').read_text())) == 300


def test_a_dataset_has_the_vocabulary_that_its_text_needs(small, old, tmp_path):
    text = ['--text', small.source, '--name', 'small', '--shards', 2]
    succeed('build', *text, '--shrink', old, '--output', tmp_path / 'out')
    [record] = manifest_of(tmp_path / 'out')['vocabularies']
    assert record['name'] == 'vocab.small.shrunk.bpe.json' and record['size'] < 900
    pairs = np.load(tmp_path / 'out' / 'vocab.small.shrunk.bpe.json.ids.npy')
    succeed('encode', *text, '--vocab', old, '--output', tmp_path / 'whole')
    rows, whole = (tokcore.open_dataset(tmp_path / name)['train'] for name in ('out', 'whole'))
    assert len(rows) == len(whole) > 0
    for row, with_old in zip(rows[:], whole[:], strict=True):
        assert pairs[row['targets'], 0].tolist() == with_old['targets'].tolist()
    succeed('verify', tmp_path / 'out')


def test_what_is_refused(small, old, tmp_path):
    text = ['--text', small.source, '--output', tmp_path / 'out.json']
    assert '--merges cannot go with --shrink' in refuse(
        'vocab', *text, '--shrink', old, '--merges', 9
    )
    said = refuse('vocab', *text, '--shrink', old, '--scheme', 'word')
    assert '--shrink goes with --scheme=bpe, not with --scheme=word' in said
    said = refuse('vocab', *text, '--shrink', old, '--pre-tokenizer', 'cl100k')
    assert 'and the options give normalizer' in said
    ranks = write(tmp_path / 'x.tiktoken', b'IQ== 0\nIg== 1\nIw== 2\nJA== 3\nJQ== 4\n')
    assert 'is not a vocabulary of byte pair encoding' in refuse('vocab', *text, '--shrink', ranks)
    succeed('count', '--text', small.source, '--scheme', 'bpe', '--output', tmp_path / 'counts')
    counts = ['--counts', tmp_path / 'counts', '--output', tmp_path / 'out.json']
    said = refuse('vocab', *counts, '--shrink', old)
    assert 'was made with' in said and 'count the text again' in said
