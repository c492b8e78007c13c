"""A job that loses too many lines ends as soon as that is sure, and not before; stats are one row a line."""

import concurrent.futures
import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.options.job import rejection_limit
from pipelines.transforms.stats import RejectionBudget, read_stats
from tokcore.corpus.block_batches import add_stats
from tokcore.corpus.stats import BlockStats, LineTally, RangeChecksum, RejectedLines
from tokcore.errors import InputError

_OFFSETS = itertools.count(0, 1 << 20)


def block(good, bad, line_bytes=10, reason='invalid_utf8'):
    """What is known of the next block of two files: this many lines, all of the same length."""
    size, offset = (good + bad) * line_bytes, next(_OFFSETS)
    checksums = (
        RangeChecksum('train', 0, 0, offset, size, 0),
        RangeChecksum('train', 0, 1, offset, 99 * size, 0),
    )
    return BlockStats(LineTally('train', good + bad, good, 0, {reason: bad}), checksums, ())


def test_a_number_is_passed_with_the_first_line_more():
    budget = RejectionBudget(rejection_limit('5'), None)
    for _ in range(5):
        budget.spend(block(1000, 1))
    budget.spend(block(1000, 0))
    with pytest.raises(InputError, match=r'6 of 6007 lines read .* \(6 invalid_utf8\), more than'):
        budget.spend(block(1, 1))


def test_a_share_is_passed_once_no_text_left_could_make_up_for_it():
    # 1,000 bytes: 10 lines of 10 bytes are read, and the others may be 900 of a byte each.
    budget = RejectionBudget(rejection_limit('1%'), 1000)
    budget.spend(block(1, 9))
    with pytest.raises(InputError, match='10 of 20 lines read'):
        budget.spend(block(9, 1))


def test_a_share_of_an_unknown_size_is_not_passed_before_the_end():
    budget = RejectionBudget(rejection_limit('1%'), None)
    for _ in range(3):
        budget.spend(block(0, 100))


def test_pipelines_have_accounts_of_their_own_and_copies_of_one_share_it():
    first, second = (RejectionBudget(rejection_limit('5'), None) for _ in range(2))
    copy = pickle.loads(pickle.dumps(first))
    first.spend(block(0, 3))
    second.spend(block(0, 3))
    with pytest.raises(InputError, match=r'6 of 6 lines read .*\(3 invalid_utf8, 3 too_long\)'):
        copy.spend(block(0, 3, reason='too_long'))


def test_a_bundle_that_is_run_again_counts_once():
    budget = RejectionBudget(rejection_limit('5'), None)
    blocks = [block(10, 1) for _ in range(5)]
    for stats in [*blocks[:3], *blocks]:
        budget.spend(stats)
    budget.spend(add_stats(blocks[1:3]))
    one_more = block(0, 1)
    for _ in range(2):
        with pytest.raises(InputError, match='6 of 56 lines read'):
            budget.spend(one_more)


def test_text_that_is_read_again_does_not_shorten_the_rest_of_a_corpus():
    budget = RejectionBudget(rejection_limit('50%'), 1000)
    stats = block(0, 9)
    for _ in range(20):  # 90 bytes each time
        budget.spend(stats)


def test_rejected_rows_of_a_block_without_a_checksum_count_once():
    budget = RejectionBudget(rejection_limit('5'), None)
    for first_row in (0, 0, 100):
        rejected = RejectedLines('train', 'invalid_utf8', 0, first_row, b'{}\n' * 2)
        tally = LineTally('train', 100, 98, 0, {'invalid_utf8': 2})
        budget.spend(BlockStats(tally, (), (rejected,)))
    with pytest.raises(InputError, match='6 of 202 lines read'):
        budget.spend(block(0, 2))


def test_threads_lose_nothing():
    budget = RejectionBudget(rejection_limit('800'), None)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: budget.spend(block(1, 1)), range(800)))
    with pytest.raises(InputError, match='801 of 1601 lines'):
        budget.spend(block(0, 1))


blocks = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(1, 30)), max_size=12
)


@given(blocks, st.sampled_from(['0', '7', '40', '0%', '10%', '33.3%', '99%', '100%']))
def test_no_job_ends_that_would_have_passed_at_its_end(read, typed):
    limit = rejection_limit(typed)
    size = sum((good + bad) * line_bytes for good, bad, line_bytes in read)
    budget = RejectionBudget(limit, size)
    has_ended = False
    for good, bad, line_bytes in read:
        try:
            budget.spend(block(good, bad, line_bytes))
        except InputError:
            has_ended = True
    rejected = sum(bad for _, bad, _ in read)
    is_passed = limit.is_passed(rejected, rejected + sum(good for good, *_ in read))
    assert not has_ended or is_passed
    if limit.lines is not None:
        assert has_ended == is_passed


@pytest.mark.parametrize(
    'lines',
    [
        '["LineTally", "train"\n1, 1, 0]',
        '["LineTally", "train", 1, 1, 0], ["LineTally", "dev", 1, 1, 0]',
    ],
)
def test_lines_that_are_not_one_row_each_are_refused(tmp_path, lines):
    path = tmp_path / 'stats'
    path.write_text('["LineTally", "train", 2, 2, 0]\n')
    assert list(read_stats(str(path), LineTally)) == [LineTally('train', 2, 2, 0)]
    path.write_text(lines)
    with pytest.raises(InputError, match='was changed while this run worked'):
        list(read_stats(str(path), LineTally))
