"""Counts as text are read in blocks of whole lines, and nobody sees where these were cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.artifacts import count_files
from pipelines.artifacts.count_files import find_counts, read_counts
from tokcore.errors import InputError

words = st.text(st.sampled_from('ab字é _'), min_size=1, max_size=6).filter(str.strip)
lines = st.lists(st.tuples(words, st.integers(0, 2**40)), min_size=1, max_size=60)


@settings(deadline=None)
@given(lines, st.integers(1, 200))
def test_blocks_of_any_size_give_the_same_table(tmp_path_factory, pairs, block_bytes):
    path = tmp_path_factory.mktemp('counts') / 'counts.txt'
    path.write_text(''.join(f'{word}\t{count}\n' for word, count in pairs))
    whole = read_counts(find_counts([str(path)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_files, '_TEXT_BYTES', block_bytes)
        table = read_counts(find_counts([str(path)]))
    assert list(table.items()) == list(whole.items())


@pytest.mark.parametrize('line', [1, 2, 40, 99, 100])
@pytest.mark.parametrize('name', ['counts.txt', 'counts: line 7 of 8.txt'])
def test_a_bad_line_is_told_by_its_number_in_the_file(tmp_path, monkeypatch, line, name):
    monkeypatch.setattr(count_files, '_TEXT_BYTES', 50)
    texts = [f'word{number} 3' for number in range(100)]
    texts[line - 1] = 'no count'
    path = tmp_path / name
    path.write_text('\n'.join(texts))
    with pytest.raises(InputError) as refused:
        read_counts(find_counts([str(path)]))
    assert str(refused.value).startswith(f'{path}: line {line} does not end with')


def test_a_sum_over_blocks_that_is_too_large_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(count_files, '_TEXT_BYTES', 10)
    path = tmp_path / 'counts.txt'
    path.write_text(f'ka {2**62}\nto 1\nka {2**62}\n')
    with pytest.raises(InputError, match=f"'ka' .*{path}"):
        read_counts(find_counts([str(path)]))
