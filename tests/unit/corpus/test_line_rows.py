"""Lines to rows, against the line rules in plain Python."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.corpus.bitext_reading import bitext_rows
from tokcore.corpus.corpus import BlockText, Reject, Rows
from tokcore.corpus.line_rows import text_rows
from tokcore.corpus.tsv_reading import tsv_rows
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.unicode import valid_utf8_prefix

# Kinds of whitespace, line ends that only look so, and bytes at the edges of UTF-8.
_PIECES = [
    b' ', b'\t', b'\r', b'\r\n', b'\n', b'\x0b', b'\x0c', b'\x1c', b'\x00', b'a', b'Zz', b'7', b'_',
    *(c.encode() for c in '\x85\xa0\u2028\u3000\ufeff\u180e\u0301é字𝔘😀\U0010ffff'),
]  # fmt: skip
_DAMAGES = [
    b'\x80', b'\xc3', b'\xc0\xaf', b'\xc1\xbf', b'\xe0\x80\x80', b'\xe5\xad', b'\xed\xa0\x80',
    b'\xf0\x8f\xbf\xbf', b'\xf0\x9f\x98', b'\xf4\x90\x80\x80', b'\xf5', b'\xff', b'\xe5\r\xad\x97',
]  # fmt: skip


def blocks(*more: bytes) -> st.SearchStrategy[bytes]:
    piece = st.one_of(
        st.sampled_from(_PIECES + list(more)),
        st.text(st.characters(exclude_categories=['Cs']), max_size=4).map(str.encode),
    )
    return st.lists(piece, max_size=40).map(b''.join)


texts = blocks()
damaged = st.one_of(blocks(*_DAMAGES), st.binary(max_size=60))
tables = blocks(b'\t', b'a\tb', b'\t\t', b'\n', *_DAMAGES[:4])


def plain_lines(data: bytes) -> list[tuple[int, bytes]]:
    """Each line with its place, without its '\\n'."""
    lines = data.split(b'\n')
    if not lines[-1]:
        lines.pop()
    places = [0]
    for line in lines:
        places.append(places[-1] + len(line) + 1)
    return list(zip(places, lines))


def damage_of(line: bytes) -> int | None:
    """Where a line breaks, its '\\r' being dropped before it is decoded."""
    kept = [(place, line[place : place + 1]) for place in range(len(line))]
    kept = [(place, byte) for place, byte in kept if byte != b'\r']
    try:
        b''.join(byte for _, byte in kept).decode('utf-8')
    except UnicodeDecodeError as error:
        return kept[error.start][0]
    return None


def plain_cells(line: bytes, columns: tuple[int, ...] | None) -> list[str] | str:
    """The stripped texts of a valid line, or a word for what else it is."""
    text = line.replace(b'\r', b'').decode('utf-8')
    if not text.strip():
        return 'empty'
    cells = [text]
    if columns is not None:
        fields = text.split('\t')
        if len(fields) <= max(columns):
            return 'missing_column'
        cells = [fields[column] for column in columns]
    cells = [cell.strip() for cell in cells]
    return cells if all(cells) else 'empty'


def too_long(side: int, start: int, line: bytes) -> Reject:
    return Reject('too_long', side, start, start, line[:1000], len(line))


def plain_rows(
    data: bytes, offset: int, columns: tuple[int, ...] | None = None, max_line_bytes: int = 1 << 24
):
    rows, empty, rejects = [], 0, []
    for place, line in plain_lines(data):
        start = offset + place
        if len(line) > max_line_bytes:
            rejects.append(too_long(0, start, line))
            continue
        damage = damage_of(line)
        if damage is not None:
            rejects.append(Reject('invalid_utf8', 0, start, start + damage, line))
            continue
        cells = plain_cells(line, columns)
        if cells == 'empty':
            empty += 1
        elif cells == 'missing_column':
            rejects.append(Reject('missing_column', 0, start, start, line))
        else:
            rows.append((start, tuple(cells)))
    return rows, empty, tuple(rejects)


def contents(rows: Rows):
    count = len(rows)
    cells = [tuple(side.row(index) for side in rows.sides) for index in range(count)]
    return list(zip(rows.offsets.tolist(), cells)), rows.empty, rows.rejects


def assert_nothing_lost(rows: Rows, data: bytes):
    assert rows.lines == len(plain_lines(data))
    assert rows.lines == len(rows) + rows.empty + len(rows.rejects)
    assert all(len(side) == len(rows) for side in rows.sides)


@given(st.one_of(texts, damaged), st.integers(0, 2**44))
@example(b'', 0)
@example(b'\n', 0)
@example(b'a', 5)
@example(b' a\r\n\r\n\nb', 10)
@example(b'a\rb\r\r\n', 0)
@example(b'\xe5\n\xad\x97', 0)
def test_lines_become_rows(data, offset):
    rows = text_rows(data, offset, T2T_LINES)
    assert contents(rows) == plain_rows(data, offset)
    assert_nothing_lost(rows, data)


bounds = st.integers(1, 12)


@given(st.one_of(texts, damaged), bounds)
@example(b'abc\n', 3)
@example(b'abcd\n', 3)
@example(b'abcd', 3)
@example(b'ab\r\r\n', 3)
@example(b'\xff\xff\xff\xff\n    \n', 3)
def test_a_line_that_is_too_long_is_that_whatever_else_it_may_be(data, bound):
    rows = text_rows(data, 9, T2T_LINES, bound)
    assert contents(rows) == plain_rows(data, 9, max_line_bytes=bound)
    assert_nothing_lost(rows, data)


@given(tables, bounds)
@example(b'abcd\na\tb\nab\tcd\n', 3)
def test_a_line_that_is_too_long_has_no_columns(data, bound):
    rows = tsv_rows(data, 9, (1, 0), T2T_LINES, bound)
    assert contents(rows) == plain_rows(data, 9, (1, 0), bound)
    assert_nothing_lost(rows, data)


def test_of_a_line_that_is_too_long_the_beginning_is_kept():
    [reject] = text_rows(b'ab' * 1000 + b'\n', 0, T2T_LINES, 1500).rejects
    assert (reject.line, reject.size) == (b'ab' * 500, 2000)


@pytest.mark.parametrize('returns', [b'', b'\r'])
def test_damage_is_found_in_a_line_of_megabytes(returns):
    line = (b'x' * 999 + returns) * 3000 + b'\xff'
    [reject] = text_rows(line, 5, T2T_LINES).rejects
    assert reject.position == 5 + len(line) - 1


def test_a_small_block():
    rows = text_rows(b' a\r\n\r\n\xffx\nb', 10, T2T_LINES)
    assert contents(rows) == (
        [(10, ('a',)), (19, ('b',))],
        1,
        (Reject('invalid_utf8', 0, 16, 16, b'\xffx'),),
    )
    assert rows.lines == 4


@given(tables, st.sampled_from([(0,), (1,), (0, 1), (1, 0), (2, 0), (1, 1), (0, 1, 3)]))
@example(b'a\tb\tc\n\t\t\na\n \tb\t \n', (0, 1))
@example(b'a\tb', (0, 1))
@example(b'a\t', (0, 1))
@example(b'a\r\tb\r\n', (1, 0))
def test_columns_become_sides(data, columns):
    rows = tsv_rows(data, 7, columns, T2T_LINES)
    assert contents(rows) == plain_rows(data, 7, columns)
    assert_nothing_lost(rows, data)


@pytest.mark.parametrize('columns', [(), (0, -1)])
def test_columns_that_cannot_be(columns):
    with pytest.raises(ValueError, match='columns'):
        tsv_rows(b'a\tb\n', 0, columns, T2T_LINES)


@given(damaged, damaged, st.one_of(bounds, st.just(1 << 24)))
@example(b'a\n\xff\n\xff\nb\n', b'\xff\n\xff\nb\n', 1 << 24)
@example(b'\xff\nabcd\nabcd\n\n', b'abcd\n\xff\nabcde\nabcd\n', 3)
def test_pairs_of_lines_become_rows(source, target, bound):
    source_lines, target_lines = plain_lines(source), plain_lines(target)
    count = min(len(source_lines), len(target_lines))
    source = b''.join(line + b'\n' for _, line in source_lines[:count])
    target = b''.join(line + b'\n' for _, line in target_lines[:count])
    rows = bitext_rows(BlockText(100, source), BlockText(5000, target), T2T_LINES, bound)
    expected, empty, rejects = [], 0, []
    for pair in zip(plain_lines(source), plain_lines(target)):
        long = [side for side in (0, 1) if len(pair[side][1]) > bound]
        if long:
            place, line = pair[long[0]]
            rejects.append(too_long(long[0], (100, 5000)[long[0]] + place, line))
            continue
        damages = [damage_of(line) for _, line in pair]
        bad = [side for side in (0, 1) if damages[side] is not None]
        if bad:
            place, line = pair[bad[0]]
            start = (100, 5000)[bad[0]] + place
            rejects.append(Reject('invalid_utf8', bad[0], start, start + damages[bad[0]], line))
            continue
        cells = [plain_cells(line, None) for _, line in pair]
        if 'empty' in cells:
            empty += 1
        else:
            expected.append((100 + pair[0][0], (cells[0][0], cells[1][0])))
    assert contents(rows) == (expected, empty, tuple(rejects))
    assert_nothing_lost(rows, source)


def test_pairs_of_blocks_must_have_as_many_lines():
    with pytest.raises(ValueError, match='2 lines of the source and 1 of the target'):
        bitext_rows(BlockText(0, b'a\nb'), BlockText(0, b'a\n'), T2T_LINES)
    rows = bitext_rows(BlockText(0, b'a\nb'), BlockText(0, b'c\nd\n'), T2T_LINES)
    assert len(rows) == 2


@given(texts, st.text(st.characters(exclude_categories=['Cs']), max_size=5))
def test_a_prefix_stands_before_each_row(data, prefix):
    (side,) = text_rows(data, 0, T2T_LINES).sides
    prefixed = side.with_prefix(prefix)
    assert len(prefixed) == len(side)
    for index in range(len(side)):
        assert prefixed.row(index) == prefix + side.row(index)


@given(st.one_of(texts, damaged, tables), st.lists(st.integers(0, 100)))
def test_blocks_cut_at_any_line_ends_give_the_same_rows(data, cuts):
    lines = [line + b'\n' for _, line in plain_lines(data)]
    whole = b''.join(lines)
    borders = sorted({0, len(lines), *(cut for cut in cuts if cut < len(lines))})
    rows, empty, rejects = [], 0, ()
    for first, last in zip(borders, borders[1:]):
        offset = sum(map(len, lines[:first]))
        part = contents(text_rows(b''.join(lines[first:last]), offset, T2T_LINES))
        rows, empty, rejects = rows + part[0], empty + part[1], rejects + part[2]
    assert (rows, empty, rejects) == contents(text_rows(whole, 0, T2T_LINES))


@pytest.mark.parametrize(
    'before', [b'', b'abcdefg', '字'.encode(), '字ab'.encode(), 'é字'.encode()]
)
def test_sequences_are_judged_alike_wherever_they_stand_in_a_line(before):
    # Lines are looked at 64 bytes at a time where that settles it: a sequence may lie across two.
    edges = [0x00, 0x0A, 0x0D, 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0]
    leads = [0x61, 0x80, 0xC1, 0xC2, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF4, 0xFF]
    lines = [
        before + bytes([lead, second, third]) + after
        for lead in leads
        for second in edges
        for third in edges
        for after in (b'', '国'.encode() + b'abcdefgh' * 9)
    ]
    data = b'\n'.join(lines)
    rows, empty, rejects = plain_rows(data, 0)
    assert contents(text_rows(data, 0, T2T_LINES)) == (rows, empty, rejects)


def whole_characters(chunk: bytes) -> int:
    """How many bytes of a chunk are whole characters, the last perhaps cut; 0 if one is wrong."""
    try:
        return len(chunk.decode().encode())
    except UnicodeDecodeError as error:
        return error.start if error.reason == 'unexpected end of data' else 0


@pytest.mark.parametrize('place', [1, 2, 31, 60, 61, 62, 63])
def test_64_bytes_are_judged_at_once_as_python_does(place):
    edges = [0x00, 0x0A, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xE1, 0xFF]
    leads = [*edges, 0xC1, 0xC2, 0xDF, 0xE0, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF3, 0xF4, 0xF5]
    sequences = [
        *(bytes(each) for each in itertools.product(range(0x80, 256), range(256))),
        *(bytes(each) for each in itertools.product(leads, edges, edges)),
        *(bytes(each) for each in itertools.product(leads[-4:], edges, edges, edges)),
    ]
    for sequence in sequences:
        chunk = (b'a' * place + sequence + b'b' * 64)[:64]
        found = valid_utf8_prefix(np.frombuffer(chunk, np.uint8), np.uint64(0))
        assert found == whole_characters(chunk), sequence
