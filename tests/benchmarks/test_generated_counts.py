"""Generated tokens are distinct, in any number of files."""

import pyarrow.parquet as parquet

from . import generated_counts


def test_tokens_are_distinct(tmp_path, monkeypatch):
    monkeypatch.setattr(generated_counts, '_FILE_TOKENS', 2000)
    paths = generated_counts.write_counts(5000, tmp_path / 'counts')
    rows = [row for path in paths for row in parquet.read_table(path).to_pylist()]
    assert len(paths) == 3 and len({row['token'] for row in rows}) == len(rows) == 5000
    assert [row['count'] for row in rows[:2]] == [33_334, 25_001]
