"""The search over min-counts, on invented vocabulary sizes."""

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.errors import InputError
from tokcore.learning.size_search import min_counts_ahead, search_vocabulary


def search(size_of, target, **options):
    """Searches vocabularies of these sizes; also returns the min-counts built, in order."""
    built = []

    def build(min_count):
        built.append(min_count)
        return [str(min_count)] * size_of(min_count)

    reports = []
    options = {'smallest_size': 20, 'largest_count': 100_000, **options}
    result = search_vocabulary(
        build, target, report=lambda *report: reports.append(report), **options
    )
    assert len(set(built)) == len(built)  # a min-count is never built twice
    assert reports == [(m, size_of(m), target) for m in built]
    assert result.tried == tuple((m, size_of(m)) for m in built[: len(result.tried)])
    assert set(result.subtokens) == {str(result.min_count)}
    assert len(result.subtokens) == size_of(result.min_count)
    return result, built


def plain_tensor2tensor_search(size_of, target, low, high):
    """Tensor2Tensor's recursion: the best min-count, and those tried."""
    middle = (low + high) // 2
    miss = abs(size_of(middle) - target)
    if miss * 100 < target or low >= high or middle < 2:
        return middle, [middle]
    if size_of(middle) > target:
        other, path = plain_tensor2tensor_search(size_of, target, middle + 1, high)
    else:
        other, path = plain_tensor2tensor_search(size_of, target, low, middle - 1)
    best = other if abs(size_of(other) - target) < miss else middle
    return best, [middle, *path]


def descending_sizes(steps):
    """Sizes that fall by these steps and then stay."""
    sizes = [20 + sum(steps[i:]) for i in range(len(steps))] + [20]
    return lambda min_count: sizes[min(min_count, len(sizes)) - 1]


steps = st.lists(st.integers(0, 40), min_size=1, max_size=60)
ranges = st.tuples(st.integers(1, 50), st.integers(0, 60)).map(lambda t: (t[0], t[0] + t[1]))


@given(steps, st.integers(1, 1500), ranges)
def test_t2t_tries_what_tensor2tensor_tries(steps, target, limits):
    size_of = descending_sizes(steps)
    result, _ = search(size_of, target, min_count_range=limits, largest_count=len(steps))
    best, path = plain_tensor2tensor_search(size_of, target, *limits)
    assert result.min_count == best
    assert [m for m, _ in result.tried] == list(dict.fromkeys(path))


def test_the_two_default_paths_of_t2t():
    result, _ = search(lambda m: 30, 5000)
    assert [m for m, _ in result.tried] == [500, 250, 125, 62, 31, 15, 7, 3, 1]
    result, _ = search(lambda m: 9000, 5000, min_count_range=(1, 1000))
    assert [m for m, _ in result.tried] == [500, 750, 875, 938, 969, 985, 993, 997, 999, 1000]
    assert result.min_count == 500  # the first of equals


def test_t2t_never_tries_two_and_reports_the_size_of_two():
    sizes = {1: 45_686, 2: 37_596, 3: 31_182}
    result, built = search(lambda m: sizes.get(m, 31_000 // m), 32_768)
    assert result.min_count == 3
    assert 2 not in [m for m, _ in result.tried]
    assert result.reachable == ((2, 37_596), (3, 31_182))
    assert built[-1] == 2


def test_without_a_range_t2t_continues_where_the_size_at_a_thousand_is_too_large():
    size_of = lambda m: 20 + 30_000_000 // m  # noqa: E731
    result, _ = search(size_of, 8192, largest_count=10**8)
    path = [m for m, _ in result.tried]
    assert path[:10] == [500, 750, 875, 938, 969, 985, 993, 997, 999, 1000]
    assert path[10] == (1001 + 10**4) // 2
    assert abs(len(result.subtokens) - 8192) * 100 < 8192
    assert result.reachable == ()

    result, _ = search(size_of, 300, largest_count=10**8)
    assert (10_001 + 10**5) // 2 in [m for m, _ in result.tried]

    limited, _ = search(size_of, 8192, largest_count=10**8, min_count_range=(1, 1000))
    assert limited.min_count == 1000
    assert limited.reachable == ((1000, 30_020),)  # the other side is out of range


def test_t2t_ends_above_the_largest_count():
    sizes = lambda m: 9000 if m <= 2500 else 20  # noqa: E731
    result, _ = search(sizes, 8192, largest_count=2500)
    assert max(m for m, _ in result.tried) <= 10**4
    assert result.reachable == ((2500, 9000), (2501, 20))
    assert result.min_count == 500


@given(steps, st.integers(20, 1500), st.one_of(st.none(), ranges))
def test_closest_takes_the_nearer_neighbor(steps, target, limits):
    size_of = descending_sizes(steps)
    result, _ = search(
        size_of, target, strategy='closest', min_count_range=limits, largest_count=len(steps)
    )
    low, high = limits or (1, len(steps) + 1)
    nearest = min(abs(size_of(m) - target) for m in range(low, high + 1))
    assert abs(len(result.subtokens) - target) == nearest
    not_larger = [m for m in range(low, high + 1) if size_of(m) <= target]
    too_large = [m for m in range(low, high + 1) if size_of(m) > target]
    neighbors = too_large[-1:] + not_larger[:1]
    # Of two that are equally near, the larger min-count.
    assert result.min_count == min(neighbors, key=lambda m: (abs(size_of(m) - target), -m))


@given(
    steps, st.integers(20, 1500), st.sampled_from(['t2t', 'closest']), st.one_of(st.none(), ranges)
)
def test_a_miss_names_the_neighbors_around_the_target(steps, target, strategy, limits):
    size_of = descending_sizes(steps)
    result, built = search(
        size_of, target, strategy=strategy, min_count_range=limits, largest_count=len(steps)
    )
    if abs(len(result.subtokens) - target) * 100 < target:
        assert result.reachable == ()
        return
    tried = [m for m, _ in result.tried]
    low, high = limits or (1, len(steps) + 1)
    inside = range(min(low, *tried, low), max(high, *tried, high) + 1)
    too_large = [m for m in inside if size_of(m) > target]
    not_larger = [m for m in inside if size_of(m) <= target]
    neighbors = too_large[-1:] + not_larger[:1]
    assert result.reachable == tuple((m, size_of(m)) for m in neighbors)


def test_a_target_below_the_alphabet():
    with pytest.raises(InputError, match='of 19 subtokens .* smallest possible size here is 20'):
        search(lambda m: 20, 19)
    result, _ = search(lambda m: 20, 19, min_count_range=(1, 1000))
    assert len(result.subtokens) == 20
    assert result.min_count == 500
    assert result.reachable == ((1000, 20),)


def test_invalid_targets_ranges_and_strategies_are_refused():
    for target, limits in ((0, None), (50, (0, 5)), (50, (6, 5))):
        with pytest.raises(InputError):
            search(lambda m: 20, target, min_count_range=limits)
    with pytest.raises(ValueError, match="no search strategy 'best'"):
        search(lambda m: 20, 50, strategy='best')


def a_search(target, **options):
    return functools.partial(search_vocabulary, target_size=target, smallest_size=0, **options)


@given(
    steps,
    st.integers(20, 1500),
    st.sampled_from(['t2t', 'closest']),
    st.one_of(st.none(), ranges),
    st.sampled_from([1, 3, 7, 15]),
)
def test_min_counts_ahead_hold_the_next_steps_of_a_search(steps, target, strategy, limits, most):
    options = {
        'strategy': strategy, 'min_count_range': limits, 'largest_count': len(steps),
    }  # fmt: skip
    size_of = descending_sizes(steps)
    _, built = search(size_of, target, **options)
    generations = most.bit_length()
    for done in range(len(built) + 1):
        tried = {m: size_of(m) for m in built[:done]}
        ahead = min_counts_ahead(a_search(target, **options), tried, target, most)
        assert len(set(ahead)) == len(ahead) <= most
        assert ahead[:1] == built[done : done + 1]
        assert set(built[done : done + generations]) <= set(ahead)
        assert not tried.keys() & set(ahead)


def test_the_first_five_steps_of_t2t_are_thirty_one_min_counts():
    ahead = min_counts_ahead(a_search(5000, largest_count=10**6), {}, 5000, 31)
    assert ahead[:7] == [500, 750, 250, 875, 625, 375, 125]
    assert len(ahead) == 31
