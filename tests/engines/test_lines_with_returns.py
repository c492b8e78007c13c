r"""Jobs of files whose lines end in '\r\n', with blank rows and byte order marks, in byte-level schemes."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from dataset_files import lines_of, manifest_of, read_shards
from generated_text import english_lines
from jobs import refuse, run, succeed, write

from tokcore import BpeTokenizer

MARK = b'\xef\xbb\xbf'
LINES = [*english_lines(40, seed=8), '  padded  ', 'a\rb', '\ttab', '字 \u3000', '\ufeffmark']
BLANKS = ['', ' ', '\t', '\u3000', '\x1c\x85', '\u2028']


@pytest.fixture(scope='module')
def vocabulary(tmp_path_factory):
    """A byte-level vocabulary without a record beside it, so that any scheme takes it."""
    folder = tmp_path_factory.mktemp('learned')
    text = write(folder / 'text.txt', '\n'.join(LINES).encode())
    succeed(
        'vocab', '--text', text, '--scheme', 'bpe', '--merges', 40, '--output', folder / 'v.json'
    )
    return write(folder / 'bare' / 'tokenizer.json', (folder / 'v.json').read_bytes())


def rows_of(folder, split='train', feature='targets'):
    return sorted(each[feature] for shard in read_shards(folder, split) for each in shard)


@pytest.mark.parametrize('scheme', ['bpe', 'pretrained'])
def test_rows_are_the_texts_without_their_line_ends(scheme, vocabulary, tmp_path):
    lines = [*LINES, *BLANKS]
    text = write(tmp_path / 'text.txt', MARK + ''.join(f'{line}\r\n' for line in lines).encode())
    last = write(tmp_path / 'last.txt', b'one\r\n \r\ntwo\r')  # ends without a line feed
    command = ['encode', '--text', text, last, '--scheme', scheme, '--vocab', vocabulary]
    out = tmp_path / 'out'
    succeed(*command, '--name', 'n', '--shards', 1, '@item-size', 7, '--output', out)
    tokenizer = BpeTokenizer.load(vocabulary)
    assert rows_of(out) == sorted(tokenizer.encode(line) for line in [*LINES, 'one', 'two\r'])
    tally = lines_of(out)
    assert (tally['lines'], tally['empty']) == (len(lines) + 3, len(BLANKS) + 1)
    assert [each['bytes'] for each in manifest_of(out)['inputs']] == [
        text.stat().st_size,
        last.stat().st_size,
    ]


def test_a_pair_with_a_blank_side_is_empty_in_every_split(vocabulary, tmp_path):
    source = write(tmp_path / 'a.en', b'one\r\n \r\n\r\ntwo \r\n')
    target = write(tmp_path / 'a.de', 'eins\r\nzwei\r\ndrei\r\n\u3000\r\n'.encode())
    inputs = []
    for split in ('--', '--dev-', '--test-'):
        inputs += [f'{split}source', source, f'{split}target', target]
    out = tmp_path / 'out'
    command = ['encode', *inputs, '--scheme', 'bpe', '--vocab', vocabulary, '--name', 'n']
    succeed(*command, '--shards', 1, '--output', out)
    tokenizer = BpeTokenizer.load(vocabulary)
    for split in ('train', 'dev', 'test'):
        assert rows_of(out, split) == [tokenizer.encode('eins')]
        assert rows_of(out, split, 'inputs') == [tokenizer.encode('one')]
        assert lines_of(out, split)['empty'] == 3


def test_vocabularies_are_those_of_the_same_lines(tmp_path):
    plain = write(tmp_path / 'plain', '\n'.join(LINES).encode())
    returns = write(tmp_path / 'returns', MARK + '\r\n'.join([*BLANKS, *LINES]).encode())
    for scheme in (['bpe', '--merges', 60], ['subword', '--vocab-size', 200]):
        for path in (plain, returns):
            output = tmp_path / f'{path.name}.{scheme[0]}'
            succeed('vocab', '--text', path, '--scheme', *scheme, '--output', output)
        found, expected = (tmp_path / f'{name}.{scheme[0]}' for name in ('returns', 'plain'))
        assert found.read_bytes() == expected.read_bytes()


def test_rows_are_made_again_and_found(vocabulary, tmp_path, capsys):
    lines = [line for pair in zip(LINES, BLANKS * 9) for line in pair]
    content = MARK + ''.join(f'{line}\r\n' for line in lines).encode()
    text = write(tmp_path / 'text.txt', content)
    out = tmp_path / 'out'
    command = ['encode', '--text', text, '--scheme', 'bpe', '--vocab', vocabulary, '--name', 'n']
    succeed(*command, '--shards', 2, '@item-size', 100, '--output', out)
    succeed('verify', out, '--rerun', 'all')
    for number, line in [(1, LINES[0]), (len(lines) - 1, LINES[-1])]:
        capsys.readouterr()
        assert run('where', out, f'{text}:{number}', '--json').status == 0
        [row] = map(json.loads, capsys.readouterr().out.splitlines())
        assert (row['texts'], row['line'], row['is_stored']) == ([line], number, True)


def test_lines_of_standard_input_follow_the_rule(vocabulary, filter_lines):
    tokenizer = BpeTokenizer.load(vocabulary)
    ids = filter_lines(
        MARK + b'one\r\n \r\n\r\ntwo\r\r\n' + MARK + b'x\nend\r', 'tokenize', '--vocab', vocabulary
    )
    expected = ['one', '', '', 'two\r', '\ufeffx', 'end\r']
    assert [[*map(int, line.split())] for line in ids.decode().splitlines()] == list(
        map(tokenizer.encode, expected)
    )
    # A mark after the first megabyte is text, though a block of lines begins there.
    far = filter_lines(b'one\n' * 300_000 + MARK + b'x\n', 'tokenize', '--vocab', vocabulary)
    assert far.endswith('\n{}\n'.format(' '.join(map(str, tokenizer.encode('\ufeffx')))).encode())


def as_before(folder: Path, name: str = 'tokbeam.json') -> None:
    """Rewrites a manifest to one of the version whose rule was `raw-lines`."""
    record = {'name': 'unstripped-lines', 'options': {}}
    manifest = json.loads((folder / name).read_bytes())
    assert manifest['normalizer'] == record
    manifest['normalizer'] = {**record, 'name': 'raw-lines'}
    write(folder / name, json.dumps(manifest).encode())


@pytest.fixture(scope='module')
def made(vocabulary, tmp_path_factory):
    """A folder of counts, a vocabulary and a dataset, all made with the rule of before."""
    folder = tmp_path_factory.mktemp('made')
    text = write(folder / 'text.txt', '\r\n'.join(LINES).encode())
    succeed('count', '--text', text, '--scheme', 'bpe', '--output', folder / 'counts')
    for path in (folder / 'counts').glob('*.parquet'):
        table = parquet.read_table(path)
        metadata = {
            key: value.replace(b'unstripped-lines', b'raw-lines')
            for key, value in table.schema.metadata.items()
        }
        parquet.write_table(table.replace_schema_metadata(metadata), path)
    succeed(
        'vocab', '--text', text, '--scheme', 'bpe', '--merges', 9, '--output', folder / 'v.json'
    )
    dataset = ['--text', text, '--scheme', 'bpe', '--vocab', vocabulary, '--name', 'n']
    succeed('encode', *dataset, '--shards', 1, '--output', folder / 'data')
    for name, manifest in [
        ('counts', 'tokbeam.json'),
        ('data', 'tokbeam.json'),
        ('.', 'v.json.tokbeam.json'),
    ]:
        as_before(folder / name, manifest)
    return folder


def test_what_was_made_with_the_rule_of_before_is_refused_by_name(made, vocabulary, tmp_path):
    text, counts, data, out = made / 'text.txt', made / 'counts', made / 'data', tmp_path / 'out'
    dataset = ['encode', '--text', text, '--scheme', 'bpe', '--name', 'n', '--shards', 1]
    for command in [
        ['count', '--counts', counts, counts, '--output', out],
        ['vocab', '--counts', counts, '--scheme', 'bpe', '--merges', 9, '--output', out],
        ['count', '--text', text, '--scheme', 'bpe', '--output', counts],
        [*dataset, '--vocab', made / 'v.json', '--output', out],
        [*dataset, '--vocab', vocabulary, '--output', data],
        ['verify', data],
        ['verify', data, '--rerun', 'all'],
        ['where', data, 0],
        ['convert', data, '--to', 'parquet', '--output', out],
        ['report', data],
    ]:
        sentence = refuse(*command)
        assert (
            'was made with the line rule raw-lines of an earlier version; make it again' in sentence
        )
    [file, *_] = sorted(counts.glob('*.parquet'))
    bare = shutil.copy(file, tmp_path / 'bare.parquet')
    sentence = refuse('vocab', '--counts', bare, '--scheme', 'bpe', '--merges', 9, '--output', out)
    assert f'the count file {bare} was made with the line rule raw-lines of an earlier' in sentence
    assert sentence.endswith('count the text again')
    assert not out.exists()


def test_it_is_made_again_with_overwrite(made, vocabulary, tmp_path):
    data = shutil.copytree(made / 'data', tmp_path / 'data')
    dataset = [
        'encode',
        '--text',
        made / 'text.txt',
        '--scheme',
        'bpe',
        '--name',
        'n',
        '--shards',
        1,
    ]
    succeed(*dataset, '--vocab', vocabulary, '--output', data, '--overwrite')
    assert manifest_of(data)['normalizer'] == {'name': 'unstripped-lines', 'options': {}}
    succeed('verify', data, '--rerun', 'all')
