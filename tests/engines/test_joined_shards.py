"""`--output-format joined`, of `build`, `encode` and `convert`: BERT's features of pairs."""

import json

import pytest
from dataset_files import files_of, manifest_of, read_shards
from jobs import refuse, run, succeed

from tokcore import load_tokenizer, open_dataset
from tokcore.errors import InputError
from tokcore.records.tfrecord import parse_features, read_records

LENGTH = 24
JOIN = ['--output-format', 'joined', '--pack', LENGTH]


@pytest.fixture(scope='module')
def vocabulary(small, tmp_path_factory):
    path = tmp_path_factory.mktemp('vocabulary') / 'vocab.txt'
    texts = ['--text', small.source, '--text', small.target]
    succeed('vocab', *texts, '--scheme', 'wordpiece', '--vocab-size', 400, '--output', path)
    return path


@pytest.fixture(scope='module')
def encoding(small, vocabulary):
    files = ['--source', small.source, '--target', small.target, '--name', 'small', '--shards', 3]
    return ['encode', *files, '--vocab', vocabulary]


@pytest.fixture(scope='module')
def rows(encoding, tmp_path_factory):
    folder = tmp_path_factory.mktemp('rows') / 'tfrecord'
    succeed(*encoding, '--template', '$A', '--output', folder)
    return folder


@pytest.fixture(scope='module')
def made(encoding, tmp_path_factory):
    folder = tmp_path_factory.mktemp('joined') / 'out'
    assert ' rows cut to 24 ids' in succeed(*encoding, *JOIN, '--output', folder)
    return folder


def joined(first, second, ids):
    """BERT's features of a pair, and whether it was cut."""
    first, second = [*first], [*second]
    while len(first) + len(second) > LENGTH - 3:
        (first if len(first) > len(second) else second).pop()
    row = [ids['[CLS]'], *first, ids['[SEP]'], *second, ids['[SEP]']]
    padding = [0] * (LENGTH - len(row))
    return {
        'input_ids': row + [ids['[PAD]']] * len(padding),
        'input_mask': [1] * len(row) + padding,
        'segment_ids': [0] * (len(first) + 2) + [1] * (len(second) + 1) + padding,
    }


def test_every_row_is_in_its_place_cut_and_padded(rows, made, vocabulary):
    ids = load_tokenizer(vocabulary, 'wordpiece').vocab
    cut = 0
    for number, shard in enumerate(read_shards(rows)):
        name = f'small-train-{number:05d}-of-00003.joined'
        records = read_records((made / name).read_bytes(), name)
        assert [parse_features(record) for record in records] == [
            joined(row['inputs'], row['targets'], ids) for row in shard
        ]
        own = sum(len(row['inputs']) + len(row['targets']) > LENGTH - 3 for row in shard)
        [file] = [each for each in manifest_of(made)['files'] if each['name'] == name]
        assert (file['rows'], file['cut']) == (len(shard), own)
        cut += own
    assert 0 < cut < sum(map(len, read_shards(rows)))


def test_converted_rows_are_those_of_encode(rows, made, tmp_path):
    converting = ['convert', rows, '--to', 'joined', '--pack', LENGTH]
    assert ' rows cut to 24 ids' in succeed(*converting, '--output', tmp_path / 'out')
    assert files_of(tmp_path / 'out') == files_of(made)


@pytest.mark.parametrize(
    'way', [('@item-size', 64, '--workers', 2), ('@shuffle', 'engine')], ids=str
)
def test_the_bytes_are_those_of_any_way_to_work(way, encoding, made, tmp_path):
    succeed(*encoding, *JOIN, *way, '--output', tmp_path / 'out')
    assert files_of(tmp_path / 'out') == files_of(made)


def test_rows_are_verified_made_again_and_found(made, capsys):
    capsys.readouterr()
    assert run('verify', made, '--rerun', 'all', '--json', '--progress=none').status == 0
    [report] = map(json.loads, capsys.readouterr().out.splitlines())
    assert not report['findings']
    succeed('where', made, 1)
    with pytest.raises(InputError, match='holds its rows as joined'):
        open_dataset(made)
    succeed('card', made)
    assert 'segment_ids' in capsys.readouterr().out


def test_a_text_is_a_row_too(small, vocabulary, tmp_path):
    text = ['--text', small.source, '--name', 'one', '--shards', 1]
    succeed('encode', *text, '--vocab', vocabulary, *JOIN, '--output', tmp_path / 'out')
    name = 'one-train-00000-of-00001.joined'
    tokenizer = load_tokenizer(vocabulary, 'wordpiece')
    records = read_records((tmp_path / 'out' / name).read_bytes(), name)
    found = sorted(parse_features(record)['input_ids'] for record in records)
    lines = [line for line in small.source.read_text().split('\n') if line.strip()]
    of_lines = [tokenizer.encode(line, add_special_tokens=False)[: LENGTH - 2] for line in lines]
    begin, end, pad = (tokenizer.vocab[token] for token in ('[CLS]', '[SEP]', '[PAD]'))
    assert found == sorted([begin, *ids, end] + [pad] * (LENGTH - 2 - len(ids)) for ids in of_lines)


def test_what_does_not_go_together_is_refused(encoding, rows, small, vocabulary, tmp_path):
    around, other = tmp_path / 'around', tmp_path / 'other.txt'
    succeed(*encoding, '--output', around)
    other.write_bytes(vocabulary.read_bytes() + b'further\n')
    pair = ['encode', '--source', small.source, '--target', small.target, '--name', 'small']
    for command, said in (
        ([*encoding, *JOIN, '--template', '[CLS] $A'], 'leave --template out'),
        ([*encoding, '--output-format', 'joined'], 'go together'),
        ([*encoding, *JOIN[:3], 2], 'no room for the 3 ids'),
        (['convert', around, '--to', 'joined', '--pack', LENGTH], 'may have ids around the text'),
        ([*pair, '--scheme', 'byte', *JOIN], 'and the vocabulary lacks one of them'),
        (
            [*pair, '--vocab', vocabulary, other, '--scheme', 'wordpiece', *JOIN],
            'ids of one vocabulary',
        ),
    ):
        assert said in refuse(*command, '--output', tmp_path / 'out')
