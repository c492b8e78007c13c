"""Lines of SGM as rows: segments, markup, and text that is in no segment."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.corpus import INVALID_UTF8, OUTSIDE_SEGMENT, TOO_LONG, BlockText
from tokcore.corpus.entities import decode_references
from tokcore.corpus.sgm import Sgm
from tokcore.corpus.sgm_reading import sgm_rows
from tokcore.text.normalizers import T2T_LINES, UnstrippedLines

NAMED = {'amp': '&', 'lt': '<', 'gt': '>', 'quot': '"', 'apos': "'"}
REFERENCE = re.compile('&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,10})|#[xX]([0-9a-fA-F]{1,10}));')


def is_character(value):
    return (
        value in (9, 10, 13)
        or 0x20 <= value <= 0xD7FF
        or 0xE000 <= value <= 0xFFFD
        or 0x10000 <= value <= 0x10FFFF
    )


def decoded(text):
    def character(match):
        if match[1]:
            return NAMED[match[1]]
        value = int(match[2]) if match[2] else int(match[3], 16)
        return chr(value) if is_character(value) else match[0]

    return REFERENCE.sub(character, text)


number = st.one_of(
    st.integers(0, 0x110010),
    st.sampled_from([0, 8, 9, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFE, 0x10FFFF, 0x110000, 10**10]),
)
piece = st.one_of(
    st.sampled_from(['&amp;', '&lt;', '&gt;', '&quot;', '&apos;', '&AMP;', '&nbsp;', '&amp', '&']),
    st.sampled_from(['&#', '&#x', '&#;', '&#x;', '#38;', 'amp;', 'x1f', '00065;', ';']),
    st.sampled_from(['é', '字', '😀', ' ']),
    number.map(lambda value: f'&#{value};'),
    number.map(lambda value: f'&#x{value:x};'),
    number.map(lambda value: f'&#X{value:010X};'),
)


@given(st.lists(st.lists(piece, max_size=6).map(''.join), max_size=6))
def test_references_become_characters_once(texts):
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(each) for each in encoded], dtype=np.int64)
    starts = ends - np.array([len(each) for each in encoded], np.int64)
    text, starts, ends = decode_references(np.frombuffer(b''.join(encoded), np.uint8), starts, ends)
    found = [text[a:b].tobytes().decode() for a, b in zip(starts, ends, strict=True)]
    assert found == [decoded(each) for each in texts]


def rows_of(source, target, normalizer=T2T_LINES, decodes=False, most=1 << 20):
    return sgm_rows(BlockText(100, source), BlockText(7, target), normalizer, decodes, most)


def texts_of(rows):
    return [tuple(side.row(number) for side in rows.sides) for number in range(len(rows))]


def test_a_pair_of_segments_is_a_row():
    rows = rows_of(
        b'<doc>\n <seg id="1"> a &lt; b </seg>\r\n</doc>\n', b'<doc>\n<seg> c </seg>\n</doc>\n'
    )
    assert texts_of(rows) == [('a &lt; b', 'c')]
    assert rows.offsets.tolist() == [106]
    assert (rows.lines, rows.empty, rows.rejects) == (3, 2, ())


def test_references_are_decoded_if_asked():
    rows = rows_of(b'<seg>a &lt; b&#xe9;</seg>', b'<seg>&amp;lt; &nbsp;</seg>', decodes=True)
    assert texts_of(rows) == [('a < b\xe9', '&lt; &nbsp;')]


def test_a_scheme_of_its_own_rule_gets_the_text_as_it_stands():
    rows = rows_of(b'<seg> a  b </seg>', b'<seg>\tc\t</seg>', UnstrippedLines())
    assert texts_of(rows) == [(' a  b ', '\tc\t')]


@pytest.mark.parametrize(
    'line',
    [b'', b'  ', b'<srcset a="b">', b'<p></p>', b'<doc id="1"', b'<seg></seg>', b'<seg> </seg>',
     b'<seg</seg>'],
)  # fmt: skip
def test_lines_without_text_are_empty(line):
    rows = rows_of(line + b'\n', b'<seg>text</seg>\n')
    assert (len(rows), rows.lines, rows.empty) == (0, 1, 1)


@pytest.mark.parametrize(
    'line',
    [b'text', b'<seg>begins', b'ends</seg>', b'<p>text', b'<doc>text</doc>', b'<seg>a</seg> b',
     b'<SEG>a</SEG>', b'<seg>a</seg >', '字'.encode()],
)  # fmt: skip
@pytest.mark.parametrize('side', [0, 1])
def test_text_in_no_segment_is_left_out_for_that(line, side):
    pair = [b'<p>\n<seg>text</seg>\n', b'<p>\n<seg>text</seg>\n']
    pair[side] = b'<p>\n' + line + b'\n'
    rows = rows_of(*pair)
    [reject] = rows.rejects
    assert (reject.reason, reject.side, reject.line) == (OUTSIDE_SEGMENT, side, line)
    assert reject.offset == (100, 7)[side] + 4
    assert (len(rows), rows.lines, rows.empty) == (0, 2, 1)
    assert f'the line at byte {reject.offset} has text' in Sgm().explain(reject)


def test_of_a_pair_the_source_is_told():
    rows = rows_of(b'a\n<p>\n', b'b\nc\n')
    assert [(each.side, each.line) for each in rows.rejects] == [(0, b'a'), (1, b'c')]


def test_what_is_not_text_or_too_long_is_that_first():
    source = b'a\n\xff\n' + b'x' * 90 + b'\n<seg>a</seg>'
    rows = rows_of(source, b'\xfe\nb\nc\n<seg>\xff</seg>', most=80)
    found = [(each.reason, each.side) for each in rows.rejects]
    assert found == [(INVALID_UTF8, 1), (INVALID_UTF8, 0), (TOO_LONG, 0), (INVALID_UTF8, 1)]
    assert rows.lines == len(found)


def test_blocks_of_other_numbers_of_lines_are_refused():
    with pytest.raises(ValueError, match='2 lines of the source and 1 of the target'):
        rows_of(b'a\nb\n', b'a\n')
