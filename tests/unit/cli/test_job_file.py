"""A file that is no TOML, or too large to be a job, is refused."""

import pytest

from pipelines.cli.job_file import read_toml
from tokcore.errors import InputError


def read(tmp_path, text):
    path = tmp_path / 'job.toml'
    path.write_text(text)
    return read_toml(str(path)).tables


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        (f'a = {"9" * 6_000}', 'is not TOML'),
        ('#' * (9 << 20), 'has 9,437,184 bytes, and a job file has at most 8,388,608; name files'),
        ('"""' * 100_000 + '"', 'is not TOML'),
        ('a' * 1_000_000, 'is not TOML'),
    ],
    ids=['digits', 'bytes', 'quotes', 'word'],
)
def test_what_would_take_long_is_refused(tmp_path, text, said):
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    assert str(refused.value).startswith(str(tmp_path / 'job.toml')) and said in str(refused.value)


def test_a_pattern_of_several_files_is_not_a_job(tmp_path):
    for name in 'ab':
        (tmp_path / f'{name}.toml').write_text('')
    with pytest.raises(InputError, match='names 2 files, and a job is one'):
        read_toml(str(tmp_path / '*.toml'))
