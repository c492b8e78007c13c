"""Row groups of Parquet shards have a bound for rows and for ids, which no cut into parts changes."""

import io
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from pipelines.foreign_formats import parquet
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.shards import EncodedRows

FEATURES = ['inputs', 'targets']
ROWS = st.lists(st.fixed_dictionaries(dict.fromkeys(FEATURES, st.integers(0, 9))), max_size=20)


def encoded(rows):
    return EncodedRows(
        {name: np.arange(sum(row[name] for row in rows), dtype=np.int32) for name in FEATURES},
        {name: row_offsets([row[name] for row in rows]) for name in FEATURES},
    )


def written(parts, most_rows, most_ids):
    stream = io.BytesIO()
    with (
        mock.patch.object(parquet, '_GROUP_ROWS', most_rows),
        mock.patch.object(parquet, '_GROUP_IDS', most_ids),
    ):
        parquet.write_parquet(stream, parts, FEATURES)
    return stream.getvalue()


def plain_groups(rows, most_rows, most_ids):
    """The number of rows of each group."""
    groups = []
    count = ids = 0
    for row in rows:
        size = sum(row.values())
        if count and (count == most_rows or ids + size > most_ids):
            groups.append(count)
            count = ids = 0
        count, ids = count + 1, ids + size
    return [*groups, count] if count else groups


@given(ROWS, st.integers(1, 9), st.integers(1, 30), st.lists(st.integers(0, 20), max_size=4))
def test_a_group_ends_before_it_has_too_many_rows_or_ids(rows, most_rows, most_ids, cuts):
    whole = encoded(rows)
    data = written([whole], most_rows, most_ids)
    file = pq.ParquetFile(io.BytesIO(data))
    metadata = file.metadata
    groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert groups == plain_groups(rows, most_rows, most_ids)
    for name in FEATURES:
        assert file.read().column(name).to_pylist() == [
            whole.part(row, row + 1).ids[name].tolist() for row in range(len(rows))
        ]
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [whole.part(first, last) for first, last in zip(bounds, bounds[1:])]
    assert written(parts, most_rows, most_ids) == data
