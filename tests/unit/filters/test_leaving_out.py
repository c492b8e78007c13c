"""Lists of rows that are left out: which rows their lines are, and how they are stored."""

import pytest

from tokcore.corpus.corpus import CorpusFile, FilterSpec, KeyRange, Split
from tokcore.corpus.declarations import Parquet, PlainText
from tokcore.errors import InputError
from tokcore.filters.leaving_out import AddressedFiles, list_of, refuse_missing

SEVERAL = (FilterSpec('clean_en_xx'),)


def split_of(*paths, name='train', kind=PlainText, **fields):
    files = tuple((CorpusFile(path, path.rpartition('/')[2], 9, False),) for path in paths)
    return Split(name, kind() if kind is PlainText else kind(fields=('a', 'b')), files, **fields)


def read(text, *splits):
    files = AddressedFiles(splits)
    addresses = files.read(text.encode(), 'LIST')
    return list_of(addresses).decode(), files.places(addresses)


def test_a_list_is_stored_sorted_with_each_row_once():
    stored, places = read('b:20\nb:3\na:7\n/x/b:3\n', split_of('/x/b', '/x/a'))
    assert stored == 'a:7\nb:3\nb:20\n'
    assert places['train'].tolist() == [3, 20, (1 << 44) + 7]


def test_of_files_with_one_name_each_has_a_number():
    splits = split_of('/x/1/part', '/x/2/part'), split_of('/x/3/part', name='dev')
    stored, places = read('/x/2/part:5\npart#1:4\n/x/3/part:6\n', *splits)
    assert stored == 'part#1:4\npart#2:5\npart#3:6\n'
    assert {name: own.tolist() for name, own in places.items()} == {
        'train': [4, (1 << 44) + 5],
        'dev': [6],
    }
    with pytest.raises(InputError, match="LIST, line 1: the corpus has no file 'part', or several"):
        read('part:5\n', *splits)


def test_a_path_that_is_read_twice_names_both_rows():
    assert read('/x/a:5\n', split_of('/x/a', '/x/a'))[0] == 'a#1:5\na#2:5\n'


def test_names_may_have_colons_and_digits():
    split = split_of('/x/a:5', filters=SEVERAL)
    assert read('a:5:30:2\n', split)[0] == 'a:5:32:0\n'
    assert read('a:5:3\n', split_of('/x/a', '/x/a:5'))[0] == 'a:5:3\n'


def test_a_row_of_a_share_may_be_in_any_of_its_splits():
    shared = [split_of('/x/a', name=name, key_range=KeyRange(0, 0, 9)) for name in ('train', 'dev')]
    places = read('a:5\n', *shared)[1]
    assert {name: own.tolist() for name, own in places.items()} == {'train': [5], 'dev': [5]}


def test_rows_that_are_no_lines_and_made_of_one_have_numbers():
    split = split_of('/x/a', kind=Parquet, filters=SEVERAL)
    stored, places = read('a:2:1\n', split)
    assert (stored, places['train'].tolist()) == ('a:2:1\n', [2 * 4096 + 1])


@pytest.mark.parametrize('line', ['a', 'a:', 'a:-1', 'a:1x', ':3', 'a:123456789012345'])
def test_other_lines_are_refused(line):
    with pytest.raises(InputError, match='LIST, line 1: .* is not FILE:BYTE'):
        read(f'{line}\n', split_of('/x/a'))


def test_unknown_files_and_missing_pieces_are_refused():
    with pytest.raises(InputError, match="the corpus has no file 'b'"):
        read('b:1\n', split_of('/x/a'))
    with pytest.raises(InputError, match='give FILE:BYTE:PIECE'):
        read('a:1\n', split_of('/x/a', filters=SEVERAL))


def test_entries_without_a_row_are_named():
    rows, found = AddressedFiles([split_of('/x/a')]), {('train', 3)}
    refuse_missing(rows.read(b'a:3\n', 'LIST'), found)
    with pytest.raises(InputError, match='a:4, a:5 of the rows to leave out are not rows'):
        refuse_missing(rows.read(b'a:3\na:5\na:4\n', 'LIST'), found)
