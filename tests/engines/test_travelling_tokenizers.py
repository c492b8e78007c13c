"""A dataset holds the tokenizer that it was encoded with: nothing asks for the files that were given."""

import base64
import json
import re
import shutil
import unicodedata

import numpy as np
import pytest
from dataset_files import files_of, manifest_of
from generated_text import kept_pairs
from jobs import refuse, run, succeed
from small_tokenizer import ENTRIES, TOKENIZER

from tokcore import open_dataset
from tokcore.tokenizers import load_tokenizer

LINES = ['the cat', "It's 12345 \u5b57", '', 'the the', '\ufefffirst', 'cafe\u0301!', ' x\t']
DATASET = ['--name', 'x', '--shards', 2, '--workers', 1]
LEARNED = {
    'subword': ['--vocab-size', 300],
    'wordpiece': ['--scheme', 'wordpiece', '--vocab-size', 300],
    'word': ['--scheme', 'word', '--vocab-size', 30],
    'codes': ['--scheme', 'bpe', '--preset', 'subword-nmt', '--merges', 30],
}
RANKS = [*(bytes([byte]) for byte in range(256)), b'th', b'the', b' t']


def write_tokenizers(folder, text):
    """Writes a tokenizer of each kind into a folder of its own; returns options to encode with each."""
    config = json.dumps({'eos_token': '<|end|>', 'tokenizer_class': 'PreTrainedTokenizerFast'})
    files = {
        'published': {
            'tokenizer.json': json.dumps(TOKENIZER),
            'tokenizer_config.json': config,
            'special_tokens_map.json': '{"eos_token": "<|end|>"}',
            'README.md': '---\ntags:\n- x\nlicense: "apache-2.0"\n---\n# A tokenizer\n',
        },
        'two files': {
            'vocab.json': json.dumps(ENTRIES),
            'merges.txt': '#version: 0.2\nt h\nth e\n',
        },
        'ranks': {
            'small.tiktoken': ''.join(
                f'{base64.b64encode(token).decode()} {rank}\n' for rank, token in enumerate(RANKS)
            ),
        },
    }
    names = {'published': '', 'two files': 'vocab.json', 'ranks': 'small.tiktoken'}
    options = {}
    for kind, contents in files.items():
        (folder / kind).mkdir()
        for name, content in contents.items():
            (folder / kind / name).write_text(content)
        options[kind] = ['--vocab', folder / kind / names[kind]]
    options['ranks'] += ['--pattern', 'cl100k']
    for kind, learning in LEARNED.items():
        out = folder / kind
        succeed('build', '--text', text, '--name', 'v', *learning, '--shards', 1, '--output', out)
        options[kind] = ['--vocab', out / manifest_of(out)['vocabularies'][0]['name']]
    return options


@pytest.fixture(scope='module')
def encoded(tmp_path_factory):
    """Datasets by the kind of their tokenizer, whose own files are gone; and their text."""
    folder = tmp_path_factory.mktemp('encoded')
    text = folder / 'corpus.txt'
    text.write_text(''.join(f'{line}\n' for line in LINES), encoding='utf-8')
    given = folder / 'given'
    given.mkdir()
    for kind, options in write_tokenizers(given, text).items():
        succeed('encode', '--text', text, *options, *DATASET, '--output', folder / kind)
    shutil.rmtree(given)
    return folder


KINDS = ['published', 'two files', 'ranks', *LEARNED]
TEXTS = ['the cat', "It's 12345 \u5b57", 'the the', 'first', 'cafe\u0301!', ' x\t']


def normal(text):
    """Text as each of the tokenizers gives it back, which may lose marks and white space."""
    return re.sub(r'\W|_', '', unicodedata.normalize('NFD', text)).lower()


@pytest.mark.parametrize('kind', KINDS)
def test_a_dataset_is_looked_at_without_its_tokenizer_elsewhere(encoded, printed, capsys, kind):
    folder = encoded / kind
    _, rows = printed('inspect', folder)
    texts = {row['targets']['text'] for row in rows}
    if kind != 'word':  # which has no entry for most words
        assert {*map(normal, texts)} == {*map(normal, TEXTS)}
    dataset = open_dataset(folder)
    assert texts == {dataset.text(row['targets']) for row in dataset.examples('train')}
    assert printed('verify', folder, '--rerun', 'all')[0] == 0
    _, [found] = printed('where', folder, '--text', 'cat')
    assert found['texts'] == ['the cat'] and found['pieces']['targets'] and found['is_stored']
    capsys.readouterr()
    assert run('report', folder, '--json').status == 0
    [of_rows] = json.loads(capsys.readouterr().out)['rows']
    assert of_rows['text']['targets']['rows'] == len(TEXTS)


@pytest.mark.parametrize('kind', KINDS)
def test_the_folder_is_a_vocabulary(encoded, filter_lines, tmp_path, kind):
    folder = encoded / kind
    again = ['encode', '--text', encoded / 'corpus.txt', '--vocab', folder, *DATASET]
    succeed(*again, '--output', tmp_path / 'again')
    assert files_of(tmp_path / 'again') == files_of(folder)
    if kind == 'codes':
        return
    line, tokenizer = 'the cat 12', load_tokenizer(folder)
    ids = filter_lines(f'{line}\n'.encode(), 'tokenize', '--vocab', folder)
    found = tokenizer.encode_batch([line], add_special_tokens=False)[0]
    assert found == [int(id_) for id_ in ids.split()]


def test_all_files_that_a_tokenizer_was_read_from_are_there(encoded):
    listed = {}
    for kind in KINDS:
        manifest = manifest_of(encoded / kind)
        [record] = manifest['vocabularies']
        files = [record, *record.get('beside', [])]
        assert all(re.fullmatch('[0-9a-f]{64}', file['sha256']) for file in files)
        listed[kind] = {file['name'].removeprefix('tokenizer/') for file in files}
        copies = {path.name for path in (encoded / kind / 'tokenizer').iterdir()}
        assert copies == listed[kind]
    assert listed['published'] == {
        'tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json',
    }  # fmt: skip
    assert listed['two files'] == {'vocab.json', 'merges.txt'}
    assert listed['ranks'] == {'small.tiktoken'}
    assert listed['codes'] == {'vocab.v.merges-30.codes', 'vocab.v.merges-30.vocab'}


def test_a_damaged_copy_is_found(encoded, printed, tmp_path):
    for name in ('tokenizer.json', 'tokenizer_config.json'):
        folder = tmp_path / name
        shutil.copytree(encoded / 'published', folder)
        path = folder / 'tokenizer' / name
        path.write_bytes(path.read_bytes() + b' ')
        status, [found] = printed('verify', folder)
        assert status == 3
        assert {finding['file'] for finding in found['findings']} == {
            f'tokenizer/{name}', 'tokbeam.json',
        }  # fmt: skip
        path.unlink()
        status, [found] = printed('verify', folder)
        assert status == 3 and 'it is missing' in str(found['findings'])
        assert found['root'] is None


@pytest.mark.parametrize('to', ['parquet', 'flat'])
def test_a_converted_dataset_has_it_too(encoded, printed, tmp_path, to):
    source, out = encoded / 'published', tmp_path / 'converted'
    succeed('convert', source, '--to', to, '--output', out)
    copies = {name: data for name, data in files_of(source).items() if 'tokenizer' in name}
    assert {name: data for name, data in files_of(out).items() if 'tokenizer' in name} == copies
    assert printed('verify', out, '--rerun', 'all')[0] == 0


def test_another_tokenizer_takes_its_place(encoded, tmp_path):
    out = tmp_path / 'out'
    command = ['encode', '--text', encoded / 'corpus.txt', *DATASET, '--output', out]
    succeed(*command, '--vocab', encoded / 'published')
    assert 'already done' in succeed(*command, '--vocab', encoded / 'published')
    assert 'give another output, or --overwrite' in refuse(
        *command, '--vocab', encoded / 'two files'
    )
    succeed(*command, '--vocab', encoded / 'two files', '--overwrite')
    assert files_of(out) == files_of(encoded / 'two files')
    said = refuse(*command, '--vocab', out, '--overwrite')
    assert f'{out}/tokenizer/vocab.json is read by this run and would be replaced' in said


def test_two_sides_have_two_folders(small, printed, tmp_path):
    learn = ['vocab', '--tsv', small.tsv, '--vocab-size', 400, '--scheme', 'bpe']
    for side in ('inputs', 'targets'):
        (tmp_path / side).mkdir()
        succeed(*learn, '--side', side, '--output', tmp_path / side / 'tokenizer.json')
    out, again = tmp_path / 'out', tmp_path / 'again'
    encode = ['encode', '--tsv', small.tsv, *DATASET]
    paths = [tmp_path / side / 'tokenizer.json' for side in ('inputs', 'targets')]
    given = ['--vocab', paths[0], paths[1]]
    data = [path.read_bytes() for path in paths]
    succeed(*encode, *given, '--output', out)
    for path in paths:
        shutil.rmtree(path.parent)
    copies = [out / f'tokenizer.{side}' / 'tokenizer.json' for side in ('inputs', 'targets')]
    assert [path.read_bytes() for path in copies] == data
    for options in (['--vocab', out], ['--vocab', out, out]):
        succeed(*encode, *options, '--output', again, '--overwrite')
        assert files_of(again) == files_of(out)
    assert printed('verify', out, '--rerun', 'all')[0] == 0
    dataset = open_dataset(out)
    for row in dataset.examples('train'):
        texts = dataset.text(row['inputs'], 'inputs'), dataset.text(row['targets'])
        assert tuple(text.strip() for text in texts) in kept_pairs(small.pairs)
    said = refuse('encode', '--text', small.source, *DATASET, '--vocab', out, '--output', again)
    assert f'{out} has several vocabularies; give the path of one: {copies[0]} and' in said


def test_two_tokenizers_of_one_folder_have_the_same_file_beside(small, printed, tmp_path):
    files = [tmp_path / f'{name}.txt' for name in ('source', 'target')]
    for file, side in zip(files, ('inputs', 'targets'), strict=True):
        learn = ['vocab', '--tsv', small.tsv, '--vocab-size', 400, '--scheme', 'wordpiece']
        succeed(*learn, '--side', side, '--output', file)
    (tmp_path / 'tokenizer_config.json').write_text('{"do_lower_case": true}')
    succeed(
        *('encode', '--tsv', small.tsv, *DATASET, '--vocab', *files),
        *('--output', tmp_path / 'out'),
    )
    assert printed('verify', tmp_path / 'out')[0] == 0
    for side in ('inputs', 'targets'):
        assert (tmp_path / 'out' / f'tokenizer.{side}' / 'tokenizer_config.json').exists()


def test_the_bytes_of_text_are_those_that_were_encoded(small, tmp_path, printed, capsys):
    expected = sum(len(side.encode()) for pair in kept_pairs(small.pairs) for side in pair)
    pairs = ['encode', '--tsv', small.tsv, '--scheme', 'byte', '--name', 'x', '--shards', 2]
    roots = set()
    for number, how in enumerate((
        ['--workers', 1], ['@item-size', 500, '--workers', 2], ['@shuffle', 'engine'],
        ['--target-prefix', '<2zh> '],
    )):  # fmt: skip
        out = tmp_path / f'out-{number}'
        succeed(*pairs, *how, '--output', out)
        [tally] = manifest_of(out)['lines']
        assert tally['text_bytes'] == expected
        roots.add(manifest_of(out)['root'])
    assert len(roots) == 2  # the prefix is another option
    folder = tmp_path / 'out-1'
    assert f'train: bytes of text {expected:,}' in shown(capsys, 'inspect', folder, '--head', 0)
    assert f'| {expected:,} |' in shown(capsys, 'card', folder)
    assert f'{expected:,}' in shown(capsys, 'report', folder, '--no-corpus')
    path = folder / 'tokbeam.json'
    manifest = json.loads(path.read_bytes())
    manifest['lines'][0]['text_bytes'] -= 1
    path.write_text(json.dumps(manifest))
    _, [found] = printed('verify', folder, '--rerun', '1%')
    assert 'the corpus gives other numbers of lines of train' in str(found['findings'])


@pytest.mark.parametrize('options', [['--template', '$A'], ['--target-prefix', 'the ']], ids=str)
def test_the_bytes_of_ids_add_up_to_those_of_text(encoded, tmp_path, options):
    out = tmp_path / 'out'
    vocabulary = ['--text', encoded / 'corpus.txt', '--vocab', encoded / 'ranks']
    succeed('encode', *vocabulary, *options, *DATASET, '--output', out)
    dataset = open_dataset(out)
    lengths = dataset.byte_lengths()
    assert lengths.dtype == np.int32 and lengths.shape == (dataset.vocab_size(),)
    rows = [row['targets'] for row in dataset.examples('train')]
    prefix = len('the ') if '--target-prefix' in options else 0
    [tally] = manifest_of(out)['lines']
    assert sum(int(lengths[row].sum()) - prefix for row in rows) == tally['text_bytes']


def shown(capsys, *command):
    capsys.readouterr()
    assert run(*command).status == 0
    return capsys.readouterr().out


def test_a_card_tells_the_licence_of_the_tokenizer(encoded, small_build, capsys):
    published = 'tokenizer/tokenizer.json'
    stated = 'is apache-2.0, as its README.md stated.'
    assert f'The licence of {published} {stated}' in shown(capsys, 'card', encoded / 'published')
    assert 'small.tiktoken is not stated in a README.md next to it' in shown(
        capsys, 'card', encoded / 'ranks'
    )
    assert 'was learned from this text, and has its licence.' in shown(capsys, 'card', small_build)
