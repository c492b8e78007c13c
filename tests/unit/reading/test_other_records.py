"""TFRecords of other programs: `tokbeam index` makes them a dataset, whatever they hold, or says why not."""

import json
import os
import shutil

import pytest
from dataset_files import framed as with_frame
from protobuf_example import features_by_protobuf
from written_dataset import framed, listed, opened, write_dataset

from pipelines.cli.main import main
from tokcore import load_tokenizer, mixture, open_dataset
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.errors import InputError

ROWS = [{'inputs': [number, 1], 'targets': [*range(2, 4 + number), 1]} for number in range(40)]
NAMES = ['enzh-train-00000-of-00002', 'enzh-train-00001-of-00002', 'enzh-dev-00000-of-00001']
SHARDS = [ROWS[:20], ROWS[20:33], ROWS[33:]]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / 'theirs'
    folder.mkdir()
    for name, rows in zip(NAMES, SHARDS, strict=True):
        (folder / name).write_bytes(framed(rows)[0])
    return folder


def index(place):
    assert main(['index', str(place), '--progress=none']) == 0


def refused(capsys, *arguments):
    assert main(['index', *map(str, arguments), '--progress=none']) == 2
    return capsys.readouterr().err


def test_rows_are_read_by_number(folder, tmp_path, capsys):
    (folder / 'vocab.txt').write_text('no records\n')
    index(folder)
    said = capsys.readouterr().out
    parts = (
        'dev: 7 rows, whose',
        'train: 33 rows, whose',
        'features: inputs, targets',
        'not TFRecords: vocab.txt',
    )
    assert all(each in said for each in parts)
    dataset = open_dataset(folder)
    rows = dataset['train']
    assert len(rows) == 33 and [listed(row) for row in rows[5:25:3]] == ROWS[5:25:3]
    assert [*map(listed, rows.rows([32, 0, 0]))] == [ROWS[32], ROWS[0], ROWS[0]]
    assert listed(dataset['dev'][-1]) == ROWS[-1]
    assert [*map(listed, dataset.examples('train'))] == ROWS[:33]
    assert features_by_protobuf(rows.record(21)) == ROWS[21]
    with pytest.raises(IndexError, match='row 33 of 33 rows'):
        rows.record(33)
    shown = f'<Dataset {folder}: examples of dev 7, train 33; ids of inputs, targets>'
    assert repr(dataset) == shown
    own = write_dataset(tmp_path / 'own', [SHARDS[0]])
    # A whole dataset of ours is not one of others, whatever is in `index`.
    shutil.copytree(folder / 'index', own / 'index', dirs_exist_ok=True)
    assert list(open_dataset(own).splits) == ['train'] and len(open_dataset(own)['train']) == 20


def test_they_have_the_order_the_batches_and_the_states_of_our_own(folder, tmp_path):
    index(folder)
    own = opened(tmp_path / 'own', SHARDS[:2])
    own.write_index()
    theirs = open_dataset(folder)
    for asked in ({'seed': 3}, {'seed': 3, 'shuffle': 'exact'}):
        ours, others = (
            [
                *map(listed, each.batches('train', tokens_per_batch=40, pad=0, **asked)),
                *map(listed, each.packed('train', 50, pad=0, end=False, **asked)),
            ]
            for each in (own, theirs)
        )
        assert ours == others
    batches = theirs.batches('train', tokens_per_batch=40, pad=0)
    next(batches)
    rest = own.from_state(json.loads(json.dumps(batches.state())))
    assert [*map(listed, rest)] == [*map(listed, batches)]
    mixed = mixture({'a': theirs, 'b': open_dataset(folder)}, stop='all')
    other = opened(tmp_path / 'other', [ROWS[:3]])
    with pytest.raises(InputError, match='the state is of other shards than those of train'):
        theirs.from_state(other.batches('train', tokens_per_batch=40).state())  # which has a pad
    buckets = mixed.batches('dev', batch_size=3, start=0, end=1)
    assert sum(len(batch['target_input']) for batch in buckets) == 14
    for call, said in (
        (lambda: theirs.batches('train', tokens_per_batch=40), "has the role 'pad'; give pad="),
        (lambda: theirs.packed('train', 50, pad=0), 'does not say which token ends its documents'),
        (lambda: theirs.scheme, 'does not record the vocabulary of its rows; give it'),
        (lambda: theirs.text([3]), 'give it to open_dataset as vocabulary'),
    ):
        with pytest.raises(InputError, match=said):
            call()


def test_a_vocabulary_gives_text_and_special_ids(folder, tmp_path):
    words = ''.join(
        f"'{word}'\n" for word in ['<pad>', '<EOS>', 'some_', *'abcdefghijklmnop_\\u;0123456789']
    )
    (tmp_path / 'vocab.subwords').write_text(words)
    tokenizer = load_tokenizer(tmp_path / 'vocab.subwords', scheme='subword')
    index(folder)
    dataset = open_dataset(folder, vocabulary=tmp_path / 'vocab.subwords')
    assert dataset.scheme.name == 'subword'
    assert dataset.text([2, 3, 19, 1]) == tokenizer.decode([2, 3, 19])
    assert (dataset.special_ids().pad, dataset.special_ids().end) == (0, 1)
    assert dataset.end_of_document() == EndOfDocument('targets', 1, '<EOS>', True)
    size = dataset.vocab_size('inputs')
    assert f'ids of inputs {size}, targets {size}; scheme subword>' in repr(dataset)
    with pytest.raises(InputError, match=f'which is not an id from 0 to {size - 1}'):
        [*dataset.batches('train', tokens_per_batch=99)]
    both = {
        'vocabulary': tmp_path / 'vocab.subwords',
        'target_vocabulary': tmp_path / 'vocab.subwords',
    }
    assert open_dataset(folder, **both).vocab_size('targets') == size
    with pytest.raises(InputError, match='give both'):
        open_dataset(folder, target_vocabulary=tmp_path / 'vocab.subwords')
    (tmp_path / 'any').write_bytes(b'\0\1')
    with pytest.raises(InputError, match='the form of .*any does not show the scheme'):
        open_dataset(folder, vocabulary=tmp_path / 'any')


@pytest.mark.parametrize(
    ('names', 'splits'),
    [
        (['translate-train-00000-of-00001'], ['train']),
        (
            ['lm1b-test.tfrecord-00000-of-00001', 'lm1b-train.tfrecord-00000-of-00001'],
            ['test', 'train'],
        ),
        (['train.tfrecord', 'valid.tfrecords'], ['train', 'valid']),
        (['wiki_000.tfrec', 'wiki_001.tfrec'], ['wiki', 'wiki']),
        (['0001.tfrecord', '0002.tfrecord'], ['train', 'train']),
        (['a-train-0-of-1', 'b-train-0-of-1'], ['a-train', 'b-train']),
        (['records'], ['records']),
        ([f'train-{number}-of-12' for number in range(12)], ['train'] * 12),
    ],
    ids=str,
)
@pytest.mark.parametrize('one_by_one', [False, True])
def test_names_have_the_splits(names, splits, one_by_one, tmp_path):
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(framed(ROWS[: number + 1])[0])
        if one_by_one and '-of-' not in name:
            index(tmp_path / name)
    if not one_by_one or '-of-' in names[0]:
        index(tmp_path)
    dataset = open_dataset(tmp_path)
    found = [(name, rows) for name, own in dataset.splits.items() for rows in own.shard_examples]
    assert found == [(split, number + 1) for number, split in enumerate(splits)]


def test_records_of_any_content_are_given_as_bytes(tmp_path):
    texts = [b'not an Example', b'', b'\xff' * 300]
    (tmp_path / 'any.tfrecord').write_bytes(b''.join(map(with_frame, texts)))
    index(tmp_path)
    dataset = open_dataset(tmp_path)
    rows = dataset['any']
    assert [rows.record(number) for number in range(-3, 0)] == texts
    for read in (
        lambda: rows[0],
        lambda: rows.rows([0]),
        lambda: next(dataset.examples('any')),
        lambda: dataset.batches('any', tokens_per_batch=9),
        lambda: dataset.batches('any', batch_size=2, start=0, end=1),
        lambda: dataset.packed('any', 9),
    ):
        with pytest.raises(InputError, match='Examples with lists of int64 .*record\\(i\\)'):
            read()


def test_what_cannot_be_indexed_is_refused(folder, tmp_path, capsys):
    (tmp_path / 'empty').mkdir()
    assert 'no uncompressed TFRecords' in refused(capsys, tmp_path / 'empty')
    assert 'No such file' in refused(capsys, tmp_path / 'nowhere')
    assert '--job names the corpus of a dataset' in refused(capsys, folder, '--job', 'x.toml')
    with pytest.raises(InputError, match=f'run `tokbeam index {folder}` first'):
        open_dataset(folder)
    os.remove(folder / NAMES[1])
    assert 'has not all shards of enzh-train' in refused(capsys, folder)
    data = framed(SHARDS[1])[0]
    (folder / NAMES[1]).write_bytes(data[:-1])
    assert 'record 12, byte' in refused(capsys, folder)
    (folder / NAMES[1]).write_bytes(data[:-5] + b'x' + data[-4:])
    said = refused(capsys, folder)
    assert 'record 12, byte' in said and 'content does not match' in said
    (folder / NAMES[1]).write_bytes(b'\x1f\x8b' + data)
    assert 'is compressed' in refused(capsys, folder)
    assert not (folder / 'index' / 'records.json').exists()


@pytest.mark.parametrize('name', [b'\xff-train.tfrecord', b'a\nb', b'a\n.tfrecord', 'ä'.encode()])
def test_a_name_that_cannot_be_kept_is_refused_before_anything_is_kept(folder, capsys, name):
    with open(os.path.join(os.fsencode(folder), name), 'wb') as file:
        file.write(framed(SHARDS[0])[0])
    if main(['index', str(folder), '--progress=none']) == 0:
        assert open_dataset(folder)['train'][0]
    else:
        assert 'cannot be indexed' in capsys.readouterr().err
        assert not (folder / 'index' / 'records.json').exists()


def changed(change):
    def damage(folder):
        path = folder / 'index' / 'records.json'
        fields = json.loads(path.read_text())
        change(fields)
        path.write_text(json.dumps(fields))

    return damage


@pytest.mark.parametrize(
    ('damage', 'said'),
    [
        (lambda folder: (folder / NAMES[0]).unlink(), 'is missing, or is'),
        (lambda folder: (folder / NAMES[0]).write_bytes(b''), 'is not a file of the 1310'),
        (lambda folder: (folder / 'index' / 'records.json').write_text('{'), 'does not say what'),
        (lambda folder: (folder / 'index' / NAMES[1]).unlink(), 'has no index'),
        (changed(lambda fields: fields.update(format=9)), 'format 9'),
        (changed(lambda fields: fields.pop('files')), 'does not say what'),
        (changed(lambda fields: fields['files'][0].update(name='../x')), 'does not say what'),
        (changed(lambda fields: fields['features'].append('x' * 5000)), 'does not say what'),
        (changed(lambda fields: fields['files'][0].update(rows=1 << 39)), 'cannot be 5497558138'),
        (changed(lambda fields: fields['files'][1].update(crc32c='00000000')), 'is not the index of'),
    ],
    ids=['gone', 'cut off', 'damaged', 'no index', 'format', 'no files', 'outside', 'long', 'rows', 'other'],
)  # fmt: skip
def test_what_has_changed_since_is_refused(damage, said, folder):
    index(folder)
    damage(folder)
    with pytest.raises(InputError, match=said) as error:
        rows = open_dataset(folder)['train']
        rows.rows(range(len(rows)))
    assert f'run `tokbeam index {folder}`' in str(error.value)
