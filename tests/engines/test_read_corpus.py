"""`ReadCorpus`: paths to blocks, for pipelines that are not the command's."""

import gzip

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from pipelines import CountTokensByElement, ReadCorpus
from tokcore.errors import InputError

SOURCE, TARGET = b'one two\n\nthree\n', b'eins zwei\nleer\ndrei\n'


def assert_counts(corpus: ReadCorpus, sides, expected: dict[str, int]) -> None:
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        counted = pipeline | corpus | CountTokensByElement(sides, corpus.splits)
        assert_that(counted, equal_to(list(expected.items())))


@pytest.fixture
def files(tmp_path):
    (tmp_path / 'a.en').write_bytes(SOURCE)
    (tmp_path / 'a.de.gz').write_bytes(gzip.compress(TARGET, mtime=0))
    (tmp_path / 'a.tsv').write_bytes(b'one\tx\ttwo\none\n')
    return tmp_path


def test_lines_of_several_paths_and_patterns(files):
    corpus = ReadCorpus([str(files / 'a.e?'), str(files / 'a.de.gz')])
    words = ['one', 'two', 'three', 'eins', 'zwei', 'leer', 'drei']
    assert_counts(corpus, (0,), dict.fromkeys(words, 1))


@pytest.mark.parametrize('item_bytes', [1, 8 << 20])
def test_pairs_of_which_one_side_is_empty_are_left_out(files, item_bytes):
    corpus = ReadCorpus(str(files / 'a.en'), targets=str(files / 'a.de.gz'), item_bytes=item_bytes)
    assert_counts(corpus, (1,), dict.fromkeys(['eins', 'zwei', 'drei'], 1))


def test_columns(files):
    corpus = ReadCorpus(str(files / 'a.tsv'), columns=[0])
    assert_counts(corpus, (0,), {'one': 2})


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        ({'paths': 'missing'}, 'missing'),
        ({'paths': ['a.en', 'a.tsv'], 'targets': 'a.de.gz'}, 'do not pair'),
        ({'paths': 'a.en', 'targets': 'a.tsv', 'columns': [0]}, 'columns'),
        ({'paths': 'a.en', 'targets': 'a.tsv'}, 'same number of lines'),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_runs(files, monkeypatch, arguments, reason):
    monkeypatch.chdir(files)
    with pytest.raises((InputError, TypeError), match=reason):
        ReadCorpus(**arguments)
