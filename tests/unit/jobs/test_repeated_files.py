"""A file that is read several times is warned of, under whatever names."""

import logging
import os
import tarfile

import pytest

from pipelines.jobs.corpus import SplitPaths, find_corpus
from tokcore.corpus.order_keys import key_ranges


@pytest.fixture
def warned(caplog):
    """Finds the files of datasets; returns the warnings."""

    def warned(*datasets):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            find_corpus(datasets)
        return [record.getMessage() for record in caplog.records]

    return warned


@pytest.fixture
def a(tmp_path):
    path = tmp_path / 'a.txt'
    path.write_bytes(b'one\n')
    return str(path)


def text(*paths, split='train', **more):
    return SplitPaths(split, 'text', {'text': list(map(str, paths))}, **more)


def test_a_path_given_twice_is_named(a, warned):
    [warning] = warned(text(a, a))
    assert warning.startswith(f'{a} is read more than once for train, ')
    assert warned(text(a)) == []


@pytest.mark.parametrize('link', [os.symlink, os.link], ids=['symbolic', 'hard'])
def test_links_lead_to_one_file(a, link, warned, tmp_path):
    link(a, tmp_path / 'b.txt')
    [warning] = warned(text(tmp_path / '*.txt'))
    assert a in warning


def test_one_warning_for_many_files(a, warned, tmp_path):
    for name in 'bcd':
        (tmp_path / f'{name}.txt').write_bytes(b'one\n')  # the same text, in other files
    assert warned(text(tmp_path / '*.txt')) == []
    [warning] = warned(text(tmp_path / '*.txt', tmp_path / '?.txt'))
    assert f'each of 4 files, the first of them {a}, is read' in warning


def test_a_file_of_two_splits(a, warned, tmp_path):
    [warning] = warned(text(a), text(a, split='dev'))
    assert warning.startswith(f'{a} is read for train and for dev; ')


def test_shares_of_one_corpus_are_not_the_same_rows(a, warned):
    ranges = key_ranges({'dev': 0.1}, 0)
    train, dev = (text(a, split=split, key_range=ranges[split]) for split in ('train', 'dev'))
    assert warned(train, dev) == []


def test_a_source_with_several_targets(warned, tmp_path):
    for name in 'abc':
        (tmp_path / name).write_bytes(b'one\n')
    a, b, c = (str(tmp_path / name) for name in 'abc')

    def pairs(*rows):
        sources, targets = zip(*rows, strict=True)
        return SplitPaths('train', 'bitext', {'source': sources, 'target': targets})

    assert warned(pairs((a, b), (a, c))) == []
    [warning] = warned(pairs((a, b), (a, b)))
    assert warning.startswith(f'{a} with {b} is read more than once')


def test_members_of_an_archive_are_told_apart(a, warned, tmp_path):
    archive = tmp_path / 'a.tar'
    with tarfile.open(archive, 'w') as tar:
        for name in ('x', 'y'):
            tar.add(a, name)
    assert warned(text(f'{archive}!x', f'{archive}!y')) == []
    [warning] = warned(text(f'{archive}!x', f'{archive}!*'))
    assert f'{archive}!x is read more than once' in warning
