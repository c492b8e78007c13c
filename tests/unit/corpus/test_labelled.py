"""Texts with labels of another file, as rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.bitext_reading import labelled_rows
from tokcore.corpus.corpus import INVALID_UTF8, TOO_LONG, BlockText
from tokcore.corpus.fields import UNKNOWN_LABEL, WRONG_TYPE
from tokcore.corpus.line_formats import Labelled
from tokcore.text.normalizers import T2T_LINES

NAMES = ('pos', 'neg', 'o k')


def rows_of(text, labels, names=(), most=1 << 20):
    field = Labelled(labels=names or None).extra_fields[0]
    return labelled_rows(BlockText(50, text), BlockText(9, labels), field, T2T_LINES, most)


def texts_of(rows):
    [side] = rows.sides
    [labels] = rows.extra_features
    assert labels.name == 'targets' and labels.values.dtype == np.int64
    texts = [side.row(each) for each in range(len(rows))]
    return list(zip(texts, labels.values.tolist(), strict=True))


def test_a_label_is_a_number():
    rows = rows_of(b'a b\n\nc\r\nd', b' 3 \n5\n-1\r\n+7')
    assert texts_of(rows) == [('a b', 3), ('c', -1), ('d', 7)]
    assert rows.offsets.tolist() == [50, 55, 58]
    assert (rows.lines, rows.empty, rows.rejects) == (4, 1, ())


def test_or_the_place_of_a_name():
    rows = rows_of(b'a\nb\nc\n', b'neg\r\npos\n\to k \n', NAMES)
    assert texts_of(rows) == [('a', 1), ('b', 0), ('c', 2)]


@pytest.mark.parametrize(
    ('label', 'names', 'reason'),
    [
        (b'', (), WRONG_TYPE),
        (b'one', (), WRONG_TYPE),
        (b'1.5', (), WRONG_TYPE),
        (b'1 2', (), WRONG_TYPE),
        (b'9223372036854775808', (), WRONG_TYPE),
        (b'', NAMES, UNKNOWN_LABEL),
        (b'ok', NAMES, UNKNOWN_LABEL),
        (b'0', NAMES, UNKNOWN_LABEL),
        (b'\xff', NAMES, INVALID_UTF8),
        (b'1' * 90, (), TOO_LONG),
    ],
)
def test_what_is_not_a_label_is_left_out_for_that(label, names, reason):
    rows = rows_of(b'a\nb\nc\n', b'%s\n%s\n%s\n' % (good(names), label, good(names)), names, 80)
    assert [text for text, _ in texts_of(rows)] == ['a', 'c']
    [reject] = rows.rejects
    assert (reject.reason, reject.side, reject.offset) == (reason, 1, 10 + len(good(names)))
    if reason in Labelled.reasons:
        said = Labelled(labels=names or None).explain(reject)
        assert f'the label at byte {reject.offset} is ' in said


def good(names):
    return names[0].encode() if names else b'4'


def test_a_blank_text_is_empty_whatever_its_label_is():
    rows = rows_of(b' \n\n', b'one\n\n')
    assert (len(rows), rows.lines, rows.empty, rows.rejects) == (0, 2, 2, ())


label = st.one_of(
    st.integers(-(1 << 64), 1 << 64).map(str),
    st.sampled_from(['', ' ', 'pos', ' neg', 'pos\r', '\u3000o k']),
    st.sampled_from(['\x000', '07', '1_0', '٣', '--1', '+']),
)


@given(
    st.lists(st.tuples(st.sampled_from(['', ' ', 'a', ' b\r']), label), max_size=12), st.booleans()
)
def test_rows_are_those_of_a_plain_reader(lines, is_named):
    names = NAMES if is_named else ()
    rows = rows_of(
        ''.join(f'{text}\n' for text, _ in lines).encode(),
        ''.join(f'{label}\n' for _, label in lines).encode(),
        names,
    )
    wanted, rejects = [], 0
    for text, word in ((text.strip(), word.replace('\r', '').strip()) for text, word in lines):
        if not text:
            continue
        value = plain_label(word, names)
        rejects += value is None
        if value is not None:
            wanted.append((text, value))
    assert texts_of(rows) == wanted
    assert len(rows.rejects) == rejects
    assert rows.empty == len(lines) - len(wanted) - rejects


def plain_label(word, names):
    if names:
        return names.index(word) if word in names else None
    digits = word[1:] if word[:1] in ('+', '-') else word
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    return int(word) if -(1 << 63) <= int(word) < 1 << 63 else None


def test_blocks_of_other_numbers_of_lines_are_refused():
    with pytest.raises(ValueError, match='2 lines of the source and 1 of the target'):
        rows_of(b'a\nb\n', b'1\n')
