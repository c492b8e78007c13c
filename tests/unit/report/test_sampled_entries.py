"""`tokbeam inspect --seed` shows a sample in the order of what it is drawn from."""

import pytest

from pipelines.report.inspect import sampled

ENTRIES = [
    ({'split': split, 'number': number}, {})
    for split, size in (('train', 9), ('dev', 3))
    for number in range(size)
]


@pytest.mark.parametrize('count', [1, 4, 11])
def test_splits_and_rows_keep_their_order(count):
    for seed in range(50):
        found = [ENTRIES.index(entry) for entry in sampled(ENTRIES, count, seed)]
        assert found == sorted(set(found)) and len(found) == count


def test_each_entry_is_drawn_as_often_as_any_other():
    drawn = [ENTRIES.index(entry) for seed in range(3000) for entry in sampled(ENTRIES, 4, seed)]
    assert all(900 < drawn.count(place) < 1100 for place in range(len(ENTRIES)))
