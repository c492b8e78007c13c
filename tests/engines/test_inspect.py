"""`tokbeam inspect` shows what is stored, of every kind of file that this program makes, and TFRecords of others."""

import gzip
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import framed, manifest_of, read_shards
from jobs import refuse, run, write

import tokcore


@pytest.fixture
def inspect(capsys):
    """Runs `inspect`; returns what it printed, a value of JSON for each line."""

    def run_inspect(*arguments):
        capsys.readouterr()
        ended = run('inspect', '--json', *arguments)
        assert ended.status == 0, ended.said
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run_inspect


def test_rows_of_a_dataset_as_ids_pieces_and_text(small_build, inspect):
    rows = inspect(small_build, '--head', 1000)
    expected = [row for shard in read_shards(small_build) for row in shard]
    assert [row['inputs']['ids'] for row in rows] == [row['inputs'] for row in expected]
    assert [row['number'] for row in rows] == list(range(len(expected)))
    dataset = tokcore.open_dataset(small_build)
    for row in rows:
        for feature in ('inputs', 'targets'):
            pieces = dataset.vocabulary(feature).pieces
            assert row[feature]['pieces'] == [pieces[id_] for id_ in row[feature]['ids']]
            assert row[feature]['text'] == dataset.text(row[feature]['ids'], feature)


def test_a_sample_is_drawn_by_its_seed_and_a_search_finds_words(small_build, inspect):
    every = inspect(small_build, '--head', 1000)
    sample = inspect(small_build, '--head', 20, '--seed', 0)
    assert (
        sample
        == inspect(small_build, '--head', 20, '--seed', 0)
        != inspect(small_build, '--head', 20, '--seed', 1)
    )
    assert len(sample) == 20 and all(row in every for row in sample)
    numbers = [row['number'] for row in sample]
    assert numbers == sorted(numbers)
    assert inspect(small_build, '--head', 10_000, '--seed', 0) == every


@pytest.mark.parametrize('output_format', ['flat', 'megatron'])
def test_documents_that_are_joined(small_build, tmp_path, output_format, inspect):
    out = tmp_path / 'joined'
    assert run('convert', small_build, '--to', output_format, '--output', out).status == 0
    rows = [row for row in inspect(small_build, '--head', 1000) if len(row['targets']['ids']) > 1]
    documents = inspect(out, '--head', 1000)
    for document, row in zip(documents, rows, strict=True):
        for feature in ('inputs', 'targets'):
            assert document[feature]['ids'] == row[feature]['ids']
            assert document[feature]['pieces'] == row[feature]['pieces']
            assert document[feature]['text'].startswith(row[feature]['text'])
    assert inspect(out, '--split', 'dev') == [row for row in documents if row['split'] == 'dev']
    numbers = inspect(out, '--head', 0)[0]
    assert numbers['train targets']['rows'] == sum(row['split'] == 'train' for row in documents)
    assert f'{output_format} files of ' in numbers['what']
    assert f'{len(documents):,} documents, each followed by' in numbers['what']
    for list_file in (*out.glob('*.csv.gz'), *out.glob('*.idx')):
        list_file.write_bytes(b'odd')
    assert 'cannot be read' in refuse('inspect', out)


def test_a_vocabulary_and_counts(small_build, inspect):
    [first, _] = manifest_of(small_build)['vocabularies']
    entries = inspect(small_build / first['name'], '--head', 10_000)
    assert len(entries) == first['size']
    dataset = tokcore.open_dataset(small_build)
    assert [each['token'] for each in entries] == list(dataset.vocabulary('inputs').pieces)
    counts = small_build / 'counts.inputs'
    tokens = inspect(counts, '--head', 10_000)
    [told] = inspect(counts, '--head', 0)
    assert told['tokens']['entries'] == len(tokens)
    assert told['tokens']['counted'] == sum(each['count'] for each in tokens)
    file = counts / manifest_of(counts)['files'][0]['name']
    assert inspect(file, '--head', 10_000) == tokens[: len(inspect(file, '--head', 10_000))]


def test_numbers_of_all_rows(small_build, inspect):
    [told] = inspect(small_build, '--head', 0)
    lengths = [len(row['inputs']) for shard in read_shards(small_build) for row in shard]
    of_inputs = told['train inputs']
    assert of_inputs['rows'] == len(lengths) and of_inputs['values'] == sum(lengths)
    assert (of_inputs['least'], of_inputs['most']) == (min(lengths), max(lengths))
    assert of_inputs['median'] == sorted(lengths)[(len(lengths) - 1) // 2]


def test_tfrecords_of_another_program(tensorflow, tmp_path, small_build, inspect):
    path = tmp_path / 'others'
    feature = tensorflow.train.Feature
    example = tensorflow.train.Example(
        features=tensorflow.train.Features(
            feature={
                'ids': feature(int64_list=tensorflow.train.Int64List(value=[5, 300, 7])),
                'score': feature(float_list=tensorflow.train.FloatList(value=[0.5, -2])),
                'label': feature(bytes_list=tensorflow.train.BytesList(value=[b'a\xff'])),
            }
        )
    )
    with tensorflow.io.TFRecordWriter(str(path)) as writer:
        writer.write(example.SerializeToString())
        writer.write(b'no example')
    first, second = inspect(path)
    assert first['ids']['values'] == [5, 300, 7]
    assert first['score']['values'] == [0.5, -2]
    assert first['label']['values'] == ['61ff']
    assert second['record']['values'] == [b'no example'.hex()]
    vocabulary = small_build / manifest_of(small_build)['vocabularies'][0]['name']
    pieces = tokcore.open_dataset(small_build).vocabulary('inputs').pieces
    [first, _] = inspect(path, '--vocab', vocabulary)
    assert first['ids']['pieces'] == [pieces[id_] for id_ in (5, 300, 7)]


def test_what_is_refused(tmp_path, small_build):
    assert 'does not exist' in refuse('inspect', tmp_path / 'nothing')
    assert 'has no tokbeam.json' in refuse('inspect', tmp_path)
    odd = write(tmp_path / 'odd', b'\x00\x01\x02')
    assert 'does not tell what kind' in refuse('inspect', odd)
    cut = write(tmp_path / 'cut', framed(b'x' * 50)[:-3])
    assert 'ends within a TFRecord' in refuse('inspect', cut)
    pq.write_table(pa.table({'token': ['a', 'b'] * 999, 'count': [1, 2] * 999}), tmp_path / 'whole')
    table = (tmp_path / 'whole').read_bytes()
    for damaged in (table[:-30], table[:40] + b'\xff' * 40 + table[80:]):
        said = refuse('inspect', write(tmp_path / 'table', damaged))
        assert f'{tmp_path}/table is not a whole Parquet file' in said and 'Traceback' not in said
    flipped = bytearray(framed(b'x' * 50))
    flipped[20] ^= 1
    assert 'content does not match' in refuse('inspect', write(tmp_path / 'f', bytes(flipped)))


def test_text_for_a_reader_and_colours_on_a_terminal(small_build, capsys, monkeypatch):
    assert run('inspect', small_build, '--head', 1).status == 0
    plain = capsys.readouterr().out
    assert plain.startswith('train 0\n  inputs: ') and '\x1b' not in plain
    monkeypatch.setattr(sys.stdout, 'isatty', lambda: True)
    assert run('inspect', small_build, '--head', 1).status == 0
    coloured = capsys.readouterr().out
    assert '\x1b[36m' in coloured and '\x1b[33m' in coloured
    for code in ('\x1b[36m', '\x1b[33m', '\x1b[1m', '\x1b[0m'):
        coloured = coloured.replace(code, '')
    assert coloured.split() == plain.split() and coloured.count('\n') > plain.count('\n')


@pytest.mark.parametrize('compression', ['GZIP', 'ZLIB'])
def test_records_that_tensorflow_compressed(
    compression, tensorflow, small_build, inspect, tmp_path
):
    shard = small_build / manifest_of(small_build)['files'][0]['name']
    records = [record.numpy() for record in tensorflow.data.TFRecordDataset(str(shard))]
    packed = tmp_path / 'packed'
    with tensorflow.io.TFRecordWriter(str(packed), compression) as writer:
        for record in records:
            writer.write(record)
    assert packed.stat().st_size < shard.stat().st_size
    assert inspect(packed, '--head', 1000) == inspect(shard, '--head', 1000)
    data = packed.read_bytes()
    write(packed, data[: len(data) // 2])
    assert 'is compressed and cut off' in refuse('inspect', packed, '--head', 1000)
    broken = bytearray(data)
    broken[len(data) // 2] ^= 0xFF
    write(packed, bytes(broken))
    assert str(packed) in refuse('inspect', packed, '--head', 1000)


def test_parts_of_gzip_one_after_another_are_read(inspect, tmp_path):
    parts = [framed(b'first'), framed(b'second')]
    path = write(tmp_path / 'parts', b''.join(map(gzip.compress, parts)))
    assert [entry['record']['values'] for entry in inspect(path)] == [
        [b'first'.hex()],
        [b'second'.hex()],
    ]


def test_compressed_text_is_not_taken_for_records(tmp_path):
    path = write(tmp_path / 'text.gz', gzip.compress(b'no record is here\n'))
    assert 'is gzip data' in refuse('inspect', path)
    assert 'give --scheme' in refuse('inspect', write(tmp_path / 'x', b'x\x9c no zlib\n'))
