"""A refusal leaves nothing behind, and comes before the work that it would make useless."""

import pytest
from generated_text import as_tsv, pairs_with_gaps
from jobs import refuse, run, succeed, write


@pytest.fixture(scope='module')
def material(tmp_path_factory):
    """Pairs and a vocabulary for them."""
    folder = tmp_path_factory.mktemp('material')
    write(folder / 'pairs.tsv', as_tsv(pairs_with_gaps(400, 3)))
    succeed(
        'vocab', '--tsv', folder / 'pairs.tsv', '--vocab-size', 500, '--output', folder / 'vocab'
    )
    return folder


def files_below(folder):
    return [path for path in folder.rglob('*') if path.is_file()]


@pytest.mark.parametrize(
    ('text', 'work'),
    [
        (b'', False),
        (b'\n \n', True),
        pytest.param(b'', True, marks=pytest.mark.slow),
        pytest.param(b'\n \n', False, marks=pytest.mark.slow),
        pytest.param(b'\r\n', False, marks=pytest.mark.slow),
        pytest.param(b'\r\n', True, marks=pytest.mark.slow),
    ],
)
def test_an_empty_split_leaves_no_runs(material, tmp_path, text, work):
    empty = write(tmp_path / 'empty', text)
    said = refuse(
        'encode', '--tsv', material / 'pairs.tsv', '--dev', empty, '--vocab',
        material / 'vocab', '--name', 'n', '--output', tmp_path / 'out',
        *(['--work', tmp_path / 'work'] if work else []),
    )  # fmt: skip
    assert 'the dev corpus is empty' in said and str(empty) in said
    assert not (tmp_path / 'out').exists() and files_below(tmp_path) == [empty]


def test_a_split_of_empty_files_is_refused_before_training_text_is_read(material, tmp_path):
    empty = write(tmp_path / 'empty', b'')
    bad = write(tmp_path / 'bad.tsv', b'no column\n')
    said = refuse(
        'encode', '--tsv', bad, '--dev', empty, '--vocab', material / 'vocab', '--name', 'n',
        '--output', tmp_path / 'out',
    )  # fmt: skip
    assert 'the dev corpus is empty' in said


@pytest.mark.parametrize('memory', ['1KB', '100MiB'])
def test_too_little_memory_is_told_before_anything_is_counted(material, tmp_path, memory):
    ended = run(
        'build', '--tsv', material / 'pairs.tsv', '--name', 'n', '--vocab-size', 500,
        '--output', tmp_path / 'out', '--memory', memory,
    )  # fmt: skip
    assert ended.status == 2
    [sentence] = ended.said.splitlines()
    assert 'encoding takes at least' in sentence
    assert not (tmp_path / 'out').exists()
