"""Counts as text are read in blocks of whole lines, and nobody sees where these were cut."""

import collections
import json

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs import succeed, write

from pipelines.artifacts import counts as artifacts_counts
from pipelines.artifacts.counts import find_counts, read_counts
from pipelines.files import filesystem
from tokcore.errors import InputError

words = st.text(st.sampled_from('ab字é _'), min_size=1, max_size=6).filter(str.strip)
lines = st.lists(st.tuples(words, st.integers(0, 2**40)), min_size=1, max_size=60)


@given(lines, st.integers(1, 200))
def test_blocks_of_any_size_give_the_same_table(tmp_path_factory, pairs, block_bytes):
    path = tmp_path_factory.mktemp('counts') / 'counts.txt'
    path.write_text(''.join(f'{word}\t{count}\n' for word, count in pairs))
    whole = read_counts(find_counts([str(path)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artifacts_counts, '_TEXT_BYTES', block_bytes)
        table = read_counts(find_counts([str(path)]))
    assert list(table.items()) == list(whole.items())


@pytest.mark.parametrize('line', [1, 2, 40, 99, 100])
@pytest.mark.parametrize('name', ['counts.txt', 'counts: line 7 of 8.txt'])
def test_a_bad_line_is_told_by_its_number_in_the_file(tmp_path, monkeypatch, line, name):
    monkeypatch.setattr(artifacts_counts, '_TEXT_BYTES', 50)
    texts = [f'word{number} 3' for number in range(100)]
    texts[line - 1] = 'no count'
    path = tmp_path / name
    path.write_text('\n'.join(texts))
    with pytest.raises(InputError) as refused:
        read_counts(find_counts([str(path)]))
    assert str(refused.value).startswith(f'{path}: line {line} does not end with')


def test_a_sum_over_blocks_that_is_too_large_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(artifacts_counts, '_TEXT_BYTES', 10)
    path = tmp_path / 'counts.txt'
    path.write_text(f'ka {2**62}\nto 1\nka {2**62}\n')
    with pytest.raises(InputError, match=f"'ka' .*{path}"):
        read_counts(find_counts([str(path)]))


def test_each_file_is_opened_once_for_all_that_is_asked_of_it(tmp_path, monkeypatch):
    folder = tmp_path / 'counts'
    text = write(tmp_path / 'text.txt', b'the cat and the dog\n' * 3)
    succeed('count', '--text', text, '--output', folder)
    opened = collections.Counter()

    def counting(path):
        opened[path] += 1
        return open(path, 'rb')

    monkeypatch.setattr(filesystem, 'open_binary', counting)
    counts = find_counts([str(folder)])
    assert [each.checksum().crc32c for each in counts.wanted_inputs()]
    assert counts.size().tokens == 4
    table = read_counts(counts)
    assert dict(table.items()) == {'the': 6, 'cat': 3, 'and': 3, 'dog': 3}
    parts = {path: number for path, number in opened.items() if path.endswith('.parquet')}
    assert len(parts) == 32
    assert set(parts.values()) == {1}


@pytest.mark.parametrize('change', ['none', 'another order', 'a repeat', 'a foreign token'])
def test_partitions_are_added_up_where_they_are_not_what_they_should_be(tmp_path, change):
    folder = tmp_path / 'counts'
    text = write(tmp_path / 'text.txt', b' '.join(b'w%d' % number for number in range(500)))
    succeed('count', '--text', text, '--output', folder)
    whole = dict(read_counts(find_counts([str(folder)])).items())
    path = max(folder.glob('*.parquet'), key=lambda path: path.stat().st_size)
    table = parquet.read_table(path)
    token = table['token'][0].as_py()
    if change == 'another order':
        table = table.take(list(range(len(table)))[::-1])
    elif change == 'a repeat':
        table = pa.concat_tables([table, table.slice(0, 1)])
        whole[token] += table['count'][0].as_py()
    elif change == 'a foreign token':
        foreign = next(each for each in sorted(whole) if each not in table['token'].to_pylist())
        row = pa.table({'token': [foreign], 'count': pa.array([7], pa.int64())}, table.schema)
        table = pa.concat_tables([row, table]).sort_by('token')
        whole[foreign] += 7
    parquet.write_table(table, path)
    manifest = json.loads((folder / 'tokbeam.json').read_text())
    [listed] = [each for each in manifest['files'] if each['name'] == path.name]
    data = path.read_bytes()
    listed.update(bytes=len(data), crc32c=f'{google_crc32c.value(data):08x}', rows=len(table))
    (folder / 'tokbeam.json').write_text(json.dumps(manifest))
    assert dict(read_counts(find_counts([str(folder)])).items()) == whole
