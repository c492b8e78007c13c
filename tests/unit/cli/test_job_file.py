"""TOML that would take long or much memory is refused soon, at its place; all other is read."""

import pytest

from pipelines.cli.job_file import read_toml
from tokcore.errors import InputError

LITERAL = "'" * 3


def read(tmp_path, text):
    path = tmp_path / 'job.toml'
    path.write_text(text)
    return read_toml(str(path)).tables


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        (f'a = 1\n{".".join("a" * 20_000)} = 1', 'line 2: a key has more than 16 parts; mend'),
        ('[' + ' . '.join(['"a b"'] * 20_000) + ']', 'line 1: a key has more than 16 parts'),
        (f'x = {{ b = """\n""", {".".join("a" * 17)} = 1 }}', 'line 2: a key has more'),
        (f'a = {"9" * 6_000}', 'a whole number has more than 64 bits; mend'),
        (f'a = [{{ b = 0x{"f" * 6_000} }}]', 'a whole number has more than 64 bits; mend'),
        ('#' * (9 << 20), 'has 9,437,184 bytes, and a job file has at most 8,388,608; name files'),
        ('"""' * 100_000 + '"', 'is not TOML'),
        ('a' * 1_000_000, 'is not TOML'),
    ],
    ids=['parts', 'header', 'inline', 'digits', 'hexadecimal', 'bytes', 'quotes', 'word'],
)
def test_what_would_take_long_is_refused_at_its_place(tmp_path, text, said):
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    assert str(refused.value).startswith(str(tmp_path / 'job.toml')) and said in str(refused.value)


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        (f'a = "{"b." * 99}"', 'b.' * 99),
        (f'a = {LITERAL}\n{"b." * 99}c = 1{LITERAL}', 'b.' * 99 + 'c = 1'),
        (f'a = """\\"""\n{"b." * 99}c"""', '"""\n' + 'b.' * 99 + 'c'),
        (f'a = 1 # {"b." * 99}c', 1),
        (f'a = {(1 << 63) - 1}', (1 << 63) - 1),
    ],
)
def test_what_only_looks_like_it_is_read(tmp_path, text, value):
    assert read(tmp_path, text) == {'a': value}


def test_a_pattern_of_several_files_is_not_a_job(tmp_path):
    for name in 'ab':
        (tmp_path / f'{name}.toml').write_text('')
    with pytest.raises(InputError, match='names 2 files, and a job is one'):
        read_toml(str(tmp_path / '*.toml'))
