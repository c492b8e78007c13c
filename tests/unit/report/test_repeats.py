"""Rows that occur again, found by sorted hashes: as a dictionary of the rows counts them."""

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.report import repeats
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.shards import EncodedRows

IDS = st.lists(st.integers(0, 2), max_size=3)
ROWS = st.lists(st.tuples(IDS, IDS), max_size=30)


def encoded(rows, features=('inputs', 'targets')):
    """Rows, tuples of ids, as arrays."""
    ids, offsets = {}, {}
    for number, name in enumerate(features):
        own = [row[number] for row in rows]
        ids[name] = np.array([id_ for each in own for id_ in each], np.int32)
        offsets[name] = row_offsets([len(each) for each in own])
    return EncodedRows(ids, offsets)


@settings(deadline=None)
@given(
    st.fixed_dictionaries({'train': ROWS}, optional={'dev': ROWS}), st.integers(1, 40), st.data()
)
def test_counts_are_those_of_a_dictionary(rows_by_split, at_once, data):
    hashes = {split: repeats.hashes_in_file(len(rows)) for split, rows in rows_by_split.items()}
    for split, rows in rows_by_split.items():
        cut = data.draw(st.integers(0, len(rows)))
        hashes[split][cut:] = repeats.hash_rows(encoded(rows[cut:]))
        hashes[split][:cut] = repeats.hash_rows(encoded(rows[:cut]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, '_AT_ONCE', at_once)
        found = list(repeats.repeats(hashes))
    counts = {
        split: collections.Counter((*map(tuple, row),) for row in rows)
        for split, rows in rows_by_split.items()
    }
    for own in found:
        of_split = counts[own['split']]
        in_train = None
        if own['split'] != 'train' and counts['train']:
            in_train = sum(count for row, count in of_split.items() if row in counts['train'])
        assert own == {
            'split': own['split'],
            'rows': of_split.total(),
            'distinct': len(of_split),
            'most': max(of_split.values(), default=0),
            'in_train': in_train,
        }
    assert [own['split'] for own in found] == [*rows_by_split]
