"""The search for the min-count whose vocabulary comes closest to a target size.

It knows no learner: it asks for the vocabulary at a min-count and looks at its size. For one
min-count the vocabulary is always the learner's; strategies differ only in the min-counts they try.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.errors import InputError

Strategy = Literal['t2t', 'closest']
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

# Where the original's search begins and ends; further ranges each end at ten times more.
_FIRST_RANGE = (1, 1000)

Build = Callable[[int], Sequence[str]]
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True)
class SearchResult:
    """The vocabulary chosen, and how it was found."""

    subtokens: tuple[str, ...]
    min_count: int
    tried: tuple[tuple[int, int], ...]
    """(min-count, size) of the search's own path, in the order tried, each once."""
    reachable: tuple[tuple[int, int], ...]
    """Where the target is missed by 1 % or more: (min-count, size) of the neighbours around it, the
    larger size first; one of them only where min-count 1 or the range ends a side. Else ()."""


def search_vocabulary(
    build: Build,
    target_size: int,
    *,
    strategy: Strategy = 't2t',
    min_count_range: tuple[int, int] | None = None,
    smallest_size: int,
    largest_count: int,
    report: Progress | None = None,
) -> SearchResult:
    """Bisects over min-counts for a vocabulary of about `target_size` subtokens.

    `t2t` tries exactly what Tensor2Tensor 1.15.7's `build_to_target_size` tries, in 1 to 1,000 or
    the range given: it stops within 1 % of the target, and of all it tried the closest wins, the first
    of equals. Without a range, where it ends at 1,000 with a vocabulary still too large, it goes on
    in 1,001 to 10,000, and so on. `closest` finds the smallest min-count whose vocabulary is no
    larger than the target; the nearer of that and the one below it wins, the larger min-count of
    equals.

    Args:
      build: gives the vocabulary at a min-count; called once for each min-count tried.
      min_count_range: lowest and highest min-count; None sets no limit.
      smallest_size: of any vocabulary of this learner.
      largest_count: a min-count above it gives the smallest vocabulary.
      report: told (min-count, size, target) after each build.

    Raises:
      InputError: the target or the range makes no sense, or without a range the target is below
        the smallest size.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f'no search strategy {strategy!r}; there are {", ".join(STRATEGIES)}')
    if target_size < 1:
        raise InputError(f'the target vocabulary size is {target_size}; it must be 1 or more')
    if min_count_range is not None:
        low, high = min_count_range
        if low < 1 or low > high:
            raise InputError(
                f'the min-count range {low}:{high} is empty or starts below 1; give LOW:HIGH with '
                '1 <= LOW <= HIGH'
            )
    elif target_size < smallest_size:
        raise InputError(
            f'a vocabulary of {target_size} subtokens cannot hold the alphabet: the smallest '
            f'possible size here is {smallest_size}; ask for that or more'
        )

    sizes = _Sizes(build, target_size, report)
    if strategy == 'closest':
        _, best = _neighbours(sizes, min_count_range or (1, largest_count + 1))
        below = best - 1
        if below in sizes and (best not in sizes or sizes.miss(below) < sizes.miss(best)):
            best = below
    else:
        _follow_original(sizes, min_count_range, largest_count)
        best = min(sizes.tried, key=sizes.miss)  # the first of equals
    tried = tuple(sizes.tried.items())
    reachable: tuple[tuple[int, int], ...] = ()
    if not sizes.within_one_percent(best):
        low, high = min_count_range or (1, largest_count + 1)
        # The original's path may leave the range by one.
        around = _neighbours(sizes, (min(low, *sizes.tried), max(high, *sizes.tried)))
        reachable = tuple((count, sizes.tried[count]) for count in around if count in sizes)
    return SearchResult(tuple(sizes.vocabulary(best)), best, tried, reachable)


class _Sizes:
    """The sizes of the vocabularies built so far, by min-count, in the order tried."""

    def __init__(self, build: Build, target: int, report: Progress | None):
        self.tried: dict[int, int] = {}
        self.target = target
        self._build, self._report = build, report
        self._vocabularies: dict[int, Sequence[str]] = {}

    def __contains__(self, min_count: int) -> bool:
        return min_count in self.tried

    def __call__(self, min_count: int) -> int:
        if min_count not in self.tried:
            self._vocabularies[min_count] = subtokens = self._build(min_count)
            self.tried[min_count] = len(subtokens)
            if self._report is not None:
                self._report(min_count, len(subtokens), self.target)
        return self.tried[min_count]

    def miss(self, min_count: int) -> int:
        return abs(self.tried[min_count] - self.target)

    def within_one_percent(self, min_count: int) -> bool:
        return self.miss(min_count) * 100 < self.target

    def vocabulary(self, min_count: int) -> Sequence[str]:
        return self._vocabularies[min_count]


def _follow_original(sizes: _Sizes, limits: tuple[int, int] | None, largest_count: int) -> None:
    low, high = limits or _FIRST_RANGE
    last = _bisect_as_original(sizes, low, high)
    while limits is None and last == high <= largest_count:
        if sizes(last) <= sizes.target or sizes.within_one_percent(last):
            return
        low, high = high + 1, high * 10
        last = _bisect_as_original(sizes, low, high)


def _bisect_as_original(sizes: _Sizes, low: int, high: int) -> int:
    """Goes the original's path and returns its last min-count.

    Its off-by-ones belong to it: from 3 it goes to 1 and never to 2, and below the lower of two
    neighbours it tries the one before the interval.
    """
    while True:
        middle = (low + high) // 2
        size = sizes(middle)
        if sizes.within_one_percent(middle) or low >= high or middle < 2:
            return middle
        if size > sizes.target:
            low = middle + 1
        else:
            high = middle - 1


def _neighbours(sizes: _Sizes, limits: tuple[int, int]) -> tuple[int, int]:
    """Returns neighbouring min-counts, the first too large and the second not; built if in limits.

    What was tried before narrows the bisection. A side that the limits end is one outside of them.
    """
    low, high = limits[0] - 1, limits[1] + 1
    for min_count, size in sizes.tried.items():
        if size > sizes.target and low < min_count < high:
            low = min_count
    for min_count, size in sizes.tried.items():
        if size <= sizes.target and low < min_count < high:
            high = min_count
    while high - low > 1:
        middle = (low + high) // 2
        if sizes(middle) > sizes.target:
            low = middle
        else:
            high = middle
    return low, high
