"""Parquet files read on trial: what ends the child is told of the file that it was at."""

import os
import sys

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from pipelines.files import trial_reading
from pipelines.files.trial_reading import no_counts, read_on_trial
from tokcore.errors import InputError

# How a megabyte that is repeated a thousand times is written in less than one.
SMALL = {'compression': 'zstd', 'dictionary_pagesize_limit': 8 << 20, 'write_statistics': False}


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / os.fsdecode(b'sound \xff\n.parquet')
    with path.open('wb') as stream:  # pyarrow itself takes UTF-8 alone for a name
        parquet.write_table(pa.table({'token': ['a', 'b'], 'count': [1, 2]}), stream)
    return str(path), path.stat().st_size


def damaged(path, size):
    path.write_bytes(b'PAR1' + bytes(size - 8) + b'PAR1')
    return str(path), size


def test_sound_files_pass(sound):
    read_on_trial([])
    read_on_trial([sound, sound])


def test_the_file_that_is_damaged_is_named(sound, tmp_path):
    second = damaged(tmp_path / 'second', 300)
    with pytest.raises(InputError, match=f'^{second[0]} is not a Parquet file of token counts'):
        read_on_trial([sound, second, damaged(tmp_path / 'third', 300)])


def test_a_file_that_needs_more_memory_than_its_size_tells(sound, tmp_path):
    tokens = pa.DictionaryArray.from_arrays(pa.array([0] * 1000), pa.array(['x' * (1 << 20)]))
    path = tmp_path / 'large'
    table = pa.table({'token': tokens, 'count': [1] * 1000})
    parquet.write_table(table, path, **SMALL)
    with pytest.raises(InputError, match=f'^{path} .* MiB of memory'):
        read_on_trial([sound, (str(path), path.stat().st_size)])


def test_a_file_that_takes_too_long(sound, monkeypatch):
    monkeypatch.setattr(trial_reading, '_BASE_SECONDS', 0)
    with pytest.raises(InputError, match='took too long|takes more than 0 s'):
        read_on_trial([sound])


def test_a_child_that_never_reads_a_file_accuses_none(sound, monkeypatch):
    monkeypatch.setenv('PYTHONHOME', '/nowhere')
    with pytest.raises(InputError, match=r'on trial ended at once \(status 1\)'):
        read_on_trial([sound])
    monkeypatch.setattr(sys, 'executable', '/nowhere/python')
    with pytest.raises(InputError, match='cannot start a process'):
        read_on_trial([sound])


def test_modules_of_the_working_directory_are_not_taken(sound, tmp_path, monkeypatch):
    for name in ('json', 'pyarrow', 'pipelines'):
        (tmp_path / f'{name}.py').write_text('raise SystemExit(7)')
    monkeypatch.chdir(tmp_path)
    read_on_trial([sound])


def test_a_reason_is_short_and_on_one_line():
    assert str(no_counts('f', ValueError('a\n\x1b[2J\tb'))).startswith(
        'f is not a Parquet file of token counts (a [2J b); '
    )
    assert len(str(no_counts('f', 'x' * 10_000))) < 500
