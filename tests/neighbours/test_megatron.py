"""datatrove 0.10.1 writes the same `.bin` and `.idx` of our rows, and Megatron reads them."""

import json

import pytest
from dataset_files import read_shards
from environments import run_script
from jobs import succeed
from sample_lines import SAMPLE


@pytest.fixture(scope='module')
def wide(tmp_path_factory):
    """A dataset whose vocabulary has too many ids for two bytes."""
    folder = tmp_path_factory.mktemp('wide')
    words = ['<pad>', '</s>', '<unk>', *(f'w{number}' for number in range(70_000))]
    (folder / 'words.txt').write_text('\n'.join(words) + '\n')
    text = ['--source', SAMPLE / 'train.en', '--target', SAMPLE / 'train.zh', '--shards', 2]
    given = ['--scheme', 'word', '--vocab', folder / 'words.txt', '--name', 'enzh']
    given += ['--max-unknown', '100%']  # the words are no text's
    succeed('encode', *text, *given, '--output', folder / 'out')
    return folder / 'out'


def converted(folder, output):
    """The rows of each file that `convert` writes for Megatron, by the path of the file."""
    succeed('convert', folder, '--to', 'megatron', '--output', output)
    return {
        path.with_suffix(''): [row[side] for row in shard]
        for number, shard in enumerate(read_shards(folder))
        for side in ('inputs', 'targets')
        for path in output.glob(f'enzh-train-{number:05d}-of-*_{side}_document.bin')
    }


@pytest.mark.parametrize(('kind', 'token_size'), [('dataset_folder', 2), ('wide', 4)])
def test_the_files_are_the_same(kind, token_size, environment, request, tmp_path):
    python, folder = environment('datatrove'), request.getfixturevalue(kind)
    ours = converted(folder, tmp_path / 'ours')
    rows, theirs = {path.name: those for path, those in ours.items()}, tmp_path / 'theirs'
    (tmp_path / 'rows.json').write_text(json.dumps(rows))
    ids = run_script(python, 'write_megatron.py', tmp_path / 'rows.json', theirs, token_size)
    assert ids == {name: sum(map(len, those)) for name, those in rows.items()}
    for path in ours:
        for ending in ('.bin', '.idx'):
            written = (theirs / f'{path.name}{ending}').read_bytes()
            assert written == path.with_suffix(ending).read_bytes()


# It brings PyTorch, which for Linux brings CUDA, three gigabytes.
@pytest.mark.large
@pytest.mark.parametrize(('kind', 'dtype'), [('dataset_folder', 'uint16'), ('wide', 'int32')])
def test_megatron_reads_the_rows(kind, dtype, environment, request, tmp_path):
    expected = {
        str(path): {
            'rows': rows,
            'dtypes': [dtype],
            'lengths': [*map(len, rows)],
            'documents': [*range(len(rows) + 1)],
        }
        for path, rows in converted(request.getfixturevalue(kind), tmp_path / 'ours').items()
    }
    assert run_script(environment('Megatron'), 'read_megatron.py', *expected) == expected
