"""A file of counts with a line that is too long is refused with the line's place and size."""

import pytest

from pipelines.artifacts import counts
from pipelines.artifacts.counts import find_counts, read_counts
from tokcore.errors import InputError


def test_a_line_that_is_too_long_names_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(counts, '_TEXT_BYTES', 64)
    path = tmp_path / 'counts.txt'
    path.write_text('a 1\n' + 'b' * 70_000_000 + ' 2\n')
    with pytest.raises(InputError, match=r'the line at byte 4 of its text has 70000002 bytes'):
        read_counts(find_counts([str(path)]))
