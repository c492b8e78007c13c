"""Datasets of every scheme are read: rows, text, batches, and the same batches in TensorFlow."""

import re
from pathlib import Path

import numpy as np
import pytest
from dataset_files import read_shards
from generated_text import kept_pairs
from jobs import succeed
from plain_nmt_batches import plain_training_batches
from written_dataset import listed

from tokcore import open_dataset
from tokcore.errors import InputError

ENDS = ['--special-tokens', '<pad>,<s>,</s>']
KINDS = {
    'subword': (['--vocab-size', 900], {'start': 0}),
    'wordpiece': (['--scheme', 'wordpiece', '--vocab-size', 700, '--min-count-range', '2:10000'], {}),
    'bpe': (['--scheme', 'bpe', '--vocab-size', 500, *ENDS], {}),
    'bpe by default': (['--scheme', 'bpe', '--vocab-size', 500], {'start': 0}),
    'bpe with ends': (
        ['--scheme', 'bpe', '--vocab-size', 500, *ENDS, '--template', '<s> $A </s>'], {},
    ),
    'word': (['--scheme', 'word', '--vocab-size', 300], {}),
    'byte': (['--scheme', 'byte'], {'start': 0}),
}  # fmt: skip
QUICK = {'subword', 'wordpiece', 'bpe with ends'}


@pytest.fixture(
    scope='module',
    params=[pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in KINDS],
)
def kind(request):
    return request.param


@pytest.fixture(scope='module')
def dataset(kind, small, tmp_path_factory):
    folder = tmp_path_factory.mktemp('dataset') / 'out'
    pairs = ['--source', small.source, '--target', small.target, '--name', 'small', '--shards', 4]
    succeed('build', *pairs, *KINDS[kind][0], '--output', folder)
    return open_dataset(folder)


@pytest.fixture(scope='module')
def stored(dataset):
    return [example for shard in read_shards(Path(dataset.folder)) for example in shard]


def test_rows_are_those_of_the_plain_reader(dataset, stored):
    assert [*map(listed, dataset.examples('train'))] == stored
    sizes = dataset.splits['train']
    assert sizes.examples == len(stored) == sum(sizes.shard_examples)


def test_text_comes_back_where_a_scheme_keeps_it(kind, dataset, stored, small):
    if kind in ('wordpiece', 'word'):
        assert dataset.text(stored[0]['targets'])
        return
    pairs = kept_pairs(small.pairs)
    if kind.startswith('bpe'):
        pairs = [pair for pair in small.pairs if None not in pair and all(map(str.strip, pair))]
    texts = [
        (dataset.text(row['inputs'], 'inputs'), dataset.text(row['targets'])) for row in stored
    ]
    assert sorted(texts) == sorted(pairs)


def test_batches_are_nmts_of_rows_without_their_template(kind, dataset, stored):
    asked = {'batch_size': 8, 'shuffle': False, **KINDS[kind][1]}
    roles = dataset.special_ids()
    start, end = asked.get('start', roles.begin), roles.end
    pad = end if roles.pad is None else roles.pad  # NMT's vocabularies have no other
    names = ('inputs', 'targets')
    pairs = [tuple(dataset.template(name).stripped(row[name]) for name in names) for row in stored]
    assert all(ids and end not in ids[-1:] for pair in pairs for ids in pair)
    assert [*map(listed, dataset.batches('train', **asked))] == plain_training_batches(
        pairs, batch_size=8, start=start, end=end, pad_source=pad, pad_target=pad
    )


def test_targets_begin_with_padding_or_the_end_where_no_id_begins_texts(kind, dataset):
    batch = next(dataset.batches('train', batch_size=2))
    roles = dataset.special_ids()
    begin = next(id_ for id_ in (roles.begin, roles.pad, roles.end) if id_ is not None)
    assert batch['target_input'][:, 0].tolist() == [begin] * 2


@pytest.mark.parametrize(
    ('method', 'asked'),
    [
        ('batches', {'batch_size': 8, 'num_buckets': 1}),
        ('batches', {'tokens_per_batch': 2000}),
        ('packed', {'length': 400, 'strategy': 'greedy'}),
    ],
    ids=str,
)
def test_a_decoder_reads_what_it_has_just_learned(dataset, method, asked):
    batch = next(getattr(dataset, method)('train', for_model='seq2seq', **asked))
    end = dataset.end_of_document().id
    texts = {dataset.text(row['targets']) for row in dataset['train'][:]}
    for read, labels in zip(batch['decoder_inputs'], batch['labels'], strict=True):
        learned = labels[: np.flatnonzero(labels == end)[0] + 1].tolist()
        assert read[1 : len(learned)].tolist() == learned[:-1]
        assert dataset.text(learned) in texts


@pytest.mark.parametrize(
    'asked',
    [
        {'batch_size': 8, 'epochs': 2},
        {'tokens_per_batch': 700},
        {'length': 40, 'batch_size': 3, 'pad': 0},
    ],
    ids=str,
)
def test_tensorflow_has_the_same_batches(tensorflow, kind, dataset, asked):
    if 'length' not in asked:
        asked = {**asked, **(KINDS[kind][1] if 'batch_size' in asked else {'pad': 0})}
    read = dataset.packed if 'length' in asked else dataset.batches
    by_tensorflow = dataset.tensorflow('train', **asked)
    for number in range(2):
        first = number * asked.get('epochs', 1)
        plain = read('train', **asked, first_epoch=first)
        for expected, found in zip(plain, by_tensorflow.as_numpy_iterator(), strict=True):
            assert expected.keys() == found.keys()
            for name, array in expected.items():
                assert found[name].dtype == array.dtype == np.int32
                assert (found[name] == array).all()


def test_a_vocabulary_that_is_not_the_one_of_the_rows_is_refused(small, small_build, tmp_path):
    pair = ['--source', small.source, '--target', small.target, '--name', 'small']
    sides = ('inputs', 'targets')
    vocabularies = [small_build / f'vocab.small.900.subwords.{side}' for side in sides]
    succeed('encode', *pair, '--vocab', *vocabularies, '--output', tmp_path / 'out')
    dataset = open_dataset(tmp_path / 'out')
    row = next(dataset.examples('train'))
    assert tuple(dataset.text(row[side], side) for side in sides) in kept_pairs(small.pairs)
    with pytest.raises(InputError, match='has the vocabulary that its rows were made with; leave'):
        open_dataset(tmp_path / 'out', vocabulary=vocabularies[0])
    copy = tmp_path / 'out' / 'tokenizer.inputs' / vocabularies[0].name
    copy.write_bytes(copy.read_bytes().replace(b'a', b'b'))
    said = f'^{re.escape(str(copy))} cannot be read, or is not the vocabulary of'
    with pytest.raises(InputError, match=said):
        open_dataset(tmp_path / 'out').text(row['inputs'], 'inputs')
