"""The search for the min-count whose vocabulary comes closest to a target size.

It works with any learner that builds the vocabulary of a min-count. Strategies differ only in the
min-counts that they try.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from tokcore.errors import InputError

Strategy = Literal['t2t', 'closest']
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

# Tensor2Tensor's range; each further range ends at ten times its end.
_FIRST_RANGE = (1, 1000)

Build = Callable[[int], Sequence[str]]
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True)
class SearchResult:
    """The best vocabulary, and the path of the search.

    Examples:
        >>> learner = tokcore.MemoryLearner(tokcore.TokenTable.from_items([('the', 3), ('then', 2)]))
        >>> result = tokcore.search_vocabulary(
        ...     learner.build, 29, strategy='closest', smallest_size=28, largest_count=5
        ... )
        >>> result.min_count, result.tried
        (3, ((3, 29), (1, 30), (2, 30)))
    """

    subtokens: tuple[str, ...] = field(repr=False)  # tens of thousands
    min_count: int
    tried: tuple[tuple[int, int], ...]
    """(min-count, size) of each vocabulary built, in order, each once."""
    reachable: tuple[tuple[int, int], ...]
    """If the target is missed by 1 % or more: (min-count, size) of the two min-counts around it.

    The larger size comes first; of a min-count below 1 or out of range there is none. Else ()."""


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

    `t2t` tries the min-counts of Tensor2Tensor 1.15.7's `build_to_target_size`, from 1 to 1,000 or
    in the given range. It stops within 1 % of the target, and returns the closest vocabulary of all
    it tried, the first of equals. Without a range, if it ends at 1,000 with a vocabulary that is
    still too large, it continues from 1,001 to 10,000, and so on. `closest` finds the smallest
    min-count whose vocabulary is not larger than the target, and returns the closer of that and the
    next lower min-count; of equals, the larger min-count.

    Args:
      build: returns the vocabulary of a min-count; called once for each.
      min_count_range: lowest and highest min-count; None sets no limit.
      smallest_size: no vocabulary of this learner is smaller.
      largest_count: a larger min-count gives the smallest vocabulary.
      report: called with (min-count, size, target) after each build.

    Raises:
      InputError: the target is below 1, the range is empty or begins below 1, or without a range
        the target is below the smallest size.

    Examples:
        >>> learner = tokcore.MemoryLearner(tokcore.TokenTable.from_items([('the', 3), ('then', 2)]))
        >>> sizes = {'smallest_size': learner.smallest_size, 'largest_count': learner.largest_count}
        >>> tokcore.search_vocabulary(learner.build, 29, **sizes).subtokens[:4]
        ('<pad>_', '<EOS>_', 'the_', 't')
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
            f'a vocabulary of {target_size} subtokens cannot hold the alphabet: each character of '
            f'the text is an entry, and so the smallest possible size here is {smallest_size}; ask '
            'for that or more, or give --scheme bpe, which begins with bytes'
        )

    sizes = _Sizes(build, target_size, report)
    if strategy == 'closest':
        _, best = _neighbors(sizes, min_count_range or (1, largest_count + 1))
        below = best - 1
        if below in sizes and (best not in sizes or sizes.miss(below) < sizes.miss(best)):
            best = below
    else:
        _search_as_tensor2tensor(sizes, min_count_range, largest_count)
        best = min(sizes.tried, key=sizes.miss)  # the first of equals
    tried = tuple(sizes.tried.items())
    reachable: tuple[tuple[int, int], ...] = ()
    if not sizes.within_one_percent(best):
        low, high = min_count_range or (1, largest_count + 1)
        # Tensor2Tensor's path may leave the range by one.
        around = _neighbors(sizes, (min(low, *sizes.tried), max(high, *sizes.tried)))
        reachable = tuple((count, sizes.tried[count]) for count in around if count in sizes)
    return SearchResult(tuple(sizes.vocabularies[best]), best, tried, reachable)


def min_counts_ahead(
    search: Callable[[Build], object], tried: Mapping[int, int], target_size: int, most: int
) -> list[int]:
    """Returns the min-counts that a search may build next, by how soon.

    The first is the next one; after it come the two of which one follows, as its vocabulary is too
    large or too small, and so on.

    Args:
      search: searches vocabularies of a function; what it builds depends on nothing but their sizes.
      tried: the sizes of the vocabularies that it has built, by min-count.
      target_size: that it searches for.
      most: so many min-counts are returned, unless there are fewer.
    """

    def first_unknown(sizes: Mapping[int, int]) -> int | None:
        def build(min_count: int) -> Sequence[str]:
            if min_count not in sizes:
                raise _UnknownSizeError(min_count)
            return cast(Sequence[str], range(sizes[min_count]))

        try:
            search(build)
        except _UnknownSizeError as unknown:
            return unknown.min_count
        except InputError:
            pass  # all sizes are known, and none of them will do
        return None

    ahead: dict[int, None] = {}
    supposed = collections.deque([dict(tried)])
    while supposed and len(ahead) < most:
        sizes = supposed.popleft()
        min_count = first_unknown(sizes)
        if min_count is not None:
            ahead[min_count] = None
            # Neither is so near to the target that a search may end.
            supposed += ({**sizes, min_count: size} for size in (2 * target_size + 1, 0))
    return list(ahead)


class _UnknownSizeError(Exception):
    def __init__(self, min_count: int):
        super().__init__(min_count)
        self.min_count = min_count


class _Sizes:
    """The sizes of the vocabularies built so far, by min-count, in the order tried."""

    def __init__(self, build: Build, target: int, report: Progress | None):
        self.tried: dict[int, int] = {}
        self.target = target
        self._build, self._report = build, report
        self.vocabularies: dict[int, Sequence[str]] = {}

    def __contains__(self, min_count: int) -> bool:
        return min_count in self.tried

    def __call__(self, min_count: int) -> int:
        if min_count not in self.tried:
            self.vocabularies[min_count] = subtokens = self._build(min_count)
            self.tried[min_count] = len(subtokens)
            if self._report is not None:
                self._report(min_count, len(subtokens), self.target)
        return self.tried[min_count]

    def miss(self, min_count: int) -> int:
        return abs(self.tried[min_count] - self.target)

    def within_one_percent(self, min_count: int) -> bool:
        return self.miss(min_count) * 100 < self.target


def _search_as_tensor2tensor(
    sizes: _Sizes, min_count_range: tuple[int, int] | None, largest_count: int
) -> None:
    low, high = min_count_range or _FIRST_RANGE
    last = _bisect_as_tensor2tensor(sizes, low, high)
    while min_count_range is None and last == high <= largest_count:
        if sizes(last) <= sizes.target or sizes.within_one_percent(last):
            return
        low, high = high + 1, high * 10
        last = _bisect_as_tensor2tensor(sizes, low, high)


def _bisect_as_tensor2tensor(sizes: _Sizes, low: int, high: int) -> int:
    """Tries the min-counts that Tensor2Tensor tries, and returns the last one.

    Its off-by-one errors are kept: from 3 it goes to 1 and never to 2, and after the lower of two
    neighbors it tries the one below the interval.
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


def _neighbors(sizes: _Sizes, min_count_range: tuple[int, int]) -> tuple[int, int]:
    """Returns two consecutive min-counts, of which only the second has a small enough vocabulary.

    Sizes that are already known narrow the bisection. If all of the range is too large or small
    enough, one of the two is just outside it, and its vocabulary is not built.
    """
    first, last = min_count_range
    is_large = {count: size > sizes.target for count, size in sizes.tried.items()}
    low = max((c for c in is_large if is_large[c] and first <= c <= last), default=first - 1)
    high = min((c for c in is_large if not is_large[c] and low < c <= last), default=last + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if sizes(middle) > sizes.target:
            low = middle
        else:
            high = middle
    return low, high
