"""Tensor2Tensor's rule for lines, for rows of any bytes wherever they stand."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.text.sides import Side
from tokcore.text.t2t_lines import T2T_LINES

PIECES = [
    b' ', b'\t', b'\r', b'\n', b'\x1c', b'a', b'Zz9', b'_', b'x' * 70, b'\xff', b'\xe5\xad',
    b'\xe5\r\xad\x97', *(each.encode() for each in '\xa0\u3000\ufeffé字😀'),
]  # fmt: skip
rows = st.lists(st.sampled_from(PIECES), max_size=8).map(b''.join)
gaps = st.sampled_from([b'\n', b'\t', b'\n\n\n', b'\n\xff\xff\n', b'\t\xc3\t', b'\r\n'])


def side_of(texts, between):
    """Rows in one text, with what stands before each of them."""
    joined, starts, ends = b'', [], []
    for text, gap in zip(texts, between, strict=True):
        joined += gap
        starts.append(len(joined))
        joined += text
        ends.append(len(joined))
    text = np.frombuffer(joined + b'\n', np.uint8)
    return Side(text, np.array(starts, np.int64), np.array(ends, np.int64))


def plain(row):
    """The text of a row, or where its bytes break, each '\\r' being dropped before."""
    kept = [place for place, byte in enumerate(row) if byte != ord('\r')]
    try:
        return bytes(row[place] for place in kept).decode().strip()
    except UnicodeDecodeError as error:
        return kept[error.start]


@settings(deadline=None)
@given(st.lists(st.tuples(rows, gaps), max_size=12))
@example([(b' a\nb\r\n', b'\n'), (b'', b'\n'), (b'\r \r', b'\n'), (b'\xe5\xad', b'\t')])
def test_each_row_is_what_it_would_be_alone(drawn):
    given_rows = side_of(*([each[part] for each in drawn] for part in (0, 1)))
    found = T2T_LINES.apply(given_rows)
    expected = [plain(row) for row, _ in drawn]
    texts = [found.side.row(index) for index in range(len(found.side))]
    assert texts == [each if isinstance(each, str) else '' for each in expected]
    assert found.damages == {
        index: int(given_rows.starts[index]) + place
        for index, place in enumerate(expected)
        if isinstance(place, int)
    }


def test_it_has_a_name_and_no_options():
    assert (T2T_LINES.name, dict(T2T_LINES.options)) == ('t2t-lines', {})
