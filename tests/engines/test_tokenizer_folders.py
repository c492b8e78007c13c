"""Files by which Hugging Face's libraries open a vocabulary: where they lie, and what becomes of them.

That these libraries open them is tested in `tests/neighbours`.
"""

import json

import google_crc32c
import pytest
from dataset_files import manifest_of
from jobs import refuse, succeed, write

BPE = ['--scheme', 'bpe', '--vocab-size', 300, '--special-tokens', '</s>']
WORDPIECE = ['--scheme', 'wordpiece', '--vocab-size', 60, '--search', 'closest']
TOKENIZER = ['tokenizer.json', 'tokenizer_config.json']


@pytest.fixture(scope='module')
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp('text') / 'text.txt'
    return write(path, b'a low tower, a lower tower\nthe lowest of towers\n' * 20)


def files_in(folder):
    """The files below a folder, without manifests, run records and counts."""
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob('*') if path.is_file()]
    return sorted(path for path in paths if 'tokbeam' not in path and not path.startswith('counts'))


@pytest.mark.parametrize(
    ('name', 'options', 'others'),
    [
        ('tokenizer.json', BPE, TOKENIZER[1:]),
        ('vocab.txt', WORDPIECE, TOKENIZER),
        ('b.json', BPE, [f'b.json.tokenizer/{name}' for name in TOKENIZER]),
        ('w.txt', WORDPIECE, [f'w.txt.tokenizer/{name}' for name in TOKENIZER]),
        ('b.codes', ['--scheme', 'bpe', '--preset', 'subword-nmt', '--merges', 20], []),
        ('vocab.txt', ['--scheme', 'word', '--vocab-size', 20], []),
    ],
)
def test_they_lie_where_the_vocabularys_name_puts_them(text, tmp_path, name, options, others):
    succeed('vocab', '--text', text, *options, '--output', tmp_path / name)
    assert files_in(tmp_path) == sorted([name, *others])
    [record] = manifest_of(tmp_path, f'{name}.tokbeam.json')['vocabularies']
    assert [each['name'] for each in record.get('beside', [])] == others
    for each in record.get('beside', []):
        data = (tmp_path / each['name']).read_bytes()
        assert each['bytes'] == len(data)
        assert each['crc32c'] == f'{google_crc32c.value(data):08x}'


@pytest.mark.parametrize('options', [BPE, pytest.param(WORDPIECE, marks=pytest.mark.slow)])
def test_their_bytes_depend_on_the_vocabulary_alone(text, tmp_path, options):
    written = []
    for name in ('one', 'two'):
        succeed('vocab', '--text', text, *options, '--output', tmp_path / name)
        folder = tmp_path / f'{name}.tokenizer'
        written.append([(folder / each).read_bytes() for each in TOKENIZER])
    assert written[0] == written[1]
    for data in written[0]:
        assert json.loads(data)


def test_a_dataset_has_one_folder_for_each_vocabulary(text, tmp_path):
    output = ['--name', 'd', '--shards', 1, '--output', tmp_path / 'd']
    pair = ['--source', text, '--target', text, *BPE]
    succeed('build', *pair, *output)
    sides = [f'tokenizer.{side}/{name}' for side in ('inputs', 'targets') for name in TOKENIZER]
    made = files_in(tmp_path / 'd')
    assert {*sides} <= {*made} and 'tokenizer.json' not in made
    succeed('build', *pair, '--shared-vocab', *output, '--overwrite')
    made = files_in(tmp_path / 'd')
    assert {*TOKENIZER} <= {*made} and not {*sides} & {*made}
    assert f'already done in {tmp_path / "d"}' in succeed('build', *pair, '--shared-vocab', *output)
    (tmp_path / 'd' / 'tokenizer_config.json').write_bytes(b'{}')
    assert 'tokenizer_config.json is missing or not of the size' in refuse(
        'build', *pair, '--shared-vocab', *output
    )


def test_a_folder_is_opened_as_one_vocabulary(text, tmp_path):
    succeed('vocab', '--text', text, *WORDPIECE, '--output', tmp_path / 'vocab.txt')
    before = files_in(tmp_path)
    said = refuse('vocab', '--text', text, *BPE, '--output', tmp_path / 'tokenizer.json')
    assert f'{tmp_path / "tokenizer.json"} exists' in said and 'give another output' in said
    assert files_in(tmp_path) == before
    succeed('vocab', '--text', text, *BPE, '--output', tmp_path / 'b.json')
    assert {*before} < {*files_in(tmp_path)}


def test_a_vocabulary_is_read_by_its_own_file_alone(text, tmp_path):
    vocabulary = tmp_path / 'vocab.txt'
    succeed('vocab', '--text', text, *WORDPIECE, '--output', vocabulary)
    for name in TOKENIZER:
        (tmp_path / name).unlink()
    succeed(
        'encode', '--text', text, '--vocab', vocabulary, '--name', 'd', '--shards', 1,
        '--output', tmp_path / 'd',
    )  # fmt: skip
    [record] = manifest_of(tmp_path / 'd')['vocabularies']
    assert 'beside' not in record
