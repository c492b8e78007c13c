"""What vocabularies are called: plain, or as Tensor2Tensor's problems look for them."""

import pytest
from dataset_files import manifest_of
from jobs import refuse, succeed, write

from tokcore import open_dataset

LANGUAGES = ['--vocab-languages', 'en,zh']


@pytest.fixture
def job(small, tmp_path):
    return (
        *('build', '--tsv', small.tsv, '--name', 'translate_enzh', '--vocab-size', 900),
        *('--shards', 2, '--output', tmp_path / 'out'),
    )


def vocabularies(folder):
    return {path.name: path.read_bytes() for path in folder.glob('vocab.*')}


def test_the_vocabularies_of_sides_end_in_their_languages(job, tmp_path):
    succeed(*job)
    plain = vocabularies(tmp_path / 'out')
    succeed(*job, *LANGUAGES, '--overwrite')
    stem = 'vocab.translate_enzh.900.subwords'
    assert vocabularies(tmp_path / 'out') == {
        f'{stem}.en': plain[f'{stem}.inputs'],
        f'{stem}.zh': plain[f'{stem}.targets'],
    }
    options = manifest_of(tmp_path / 'out')['options']
    assert options['vocab_languages'] == ['en', 'zh']


def test_the_folder_is_read_as_any_other(job, small, tmp_path):
    succeed(*job, *LANGUAGES)
    dataset = open_dataset(tmp_path / 'out')
    found = {
        tuple(dataset.text(example[side], side) for side in ('inputs', 'targets'))
        for example in dataset.examples('train')
    }
    stripped = {tuple(text.strip() for text in pair) for pair in small.pairs}
    assert found == {pair for pair in stripped if all(pair)}


def test_a_finished_result_is_known_again(job, tmp_path):
    succeed(*job, *LANGUAGES)
    assert 'already done' in succeed(*job, *LANGUAGES)
    assert 'another --vocab-languages' in refuse(*job)


def test_the_job_file_of_a_command_line_has_both(job, tmp_path, capfd):
    succeed(*job, *LANGUAGES, '--print-job')
    printed = capfd.readouterr().out
    write(tmp_path / 'job.toml', printed.encode())
    succeed('build', tmp_path / 'job.toml')
    assert len(vocabularies(tmp_path / 'out')) == 2


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        ([*LANGUAGES, '--shared-vocab'], 'here is one for all'),
        (['--vocab-languages', 'en,en'], 'is not two languages'),
        (['--vocab-languages', 'en,../x'], 'is not two languages'),
    ],
)
def test_what_cannot_be_named_is_refused(job, options, said):
    assert said in refuse(*job, *options)
