"""Pairwise combinations: few rows in which each two values of two factors occur together."""

import itertools
from collections.abc import Callable, Mapping, Sequence

Row = dict[str, str]


def covering_rows(
    factors: Mapping[str, Sequence[str]], is_possible: Callable[[Mapping[str, str]], bool]
) -> list[Row]:
    """Returns rows that together have each possible pair of values of two factors.

    Each row begins with the first pair that no earlier one has. Further factors get, one after
    another, the value with which the row has the most new pairs; of equal ones, that which the
    fewest rows have. The same arguments give the same rows.

    Args:
        factors: the values of each.
        is_possible: whether values go together; it gets some factors of a row, and where it rejects
            these, no row has them. Each factor must leave a value for any others that go together.

    >>> covering_rows({'a': '01', 'b': '01'}, lambda row: row != {'a': '1', 'b': '1'})
    [{'a': '0', 'b': '0'}, {'a': '0', 'b': '1'}, {'a': '1', 'b': '0'}]
    """
    missing = dict.fromkeys(
        pair
        for one, other in itertools.combinations(factors, 2)
        for pair in itertools.product(_cells(one, factors), _cells(other, factors))
        if is_possible(dict(pair))
    )
    uses = {cell: 0 for name in factors for cell in _cells(name, factors)}
    rows: list[Row] = []
    while missing:
        row = dict(next(iter(missing)))
        for name in factors:
            if name not in row:
                possible = [
                    cell for cell in _cells(name, factors) if is_possible(row | {name: cell[1]})
                ]
                gains = {cell: len(_new_pairs(row, cell, missing)) for cell in possible}
                row[name] = max(possible, key=lambda cell: (gains[cell], -uses[cell]))[1]
        row = {name: row[name] for name in factors}
        for pair in itertools.combinations(row.items(), 2):
            missing.pop(pair, None)
        for cell in row.items():
            uses[cell] += 1
        rows.append(row)
    return rows


def _cells(name: str, factors: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(name, value) for value in factors[name]]


def _new_pairs(row: Row, cell: tuple[str, str], missing: Mapping) -> list[tuple]:
    pairs = [pair for other in row.items() for pair in ((other, cell), (cell, other))]
    return [pair for pair in pairs if pair in missing]
