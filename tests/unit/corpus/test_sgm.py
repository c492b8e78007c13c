"""SGM where the plain rules draw too little: references, and pairs of segments by their ids."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain.sgm import decoded
from read_format import became_of, rows_of_block, texts_of

from tokcore.corpus.corpus import INVALID_UTF8, OUTSIDE_SEGMENT, TOO_LONG
from tokcore.corpus.corpus import UNMATCHED_SEGMENT as UNMATCHED
from tokcore.corpus.declarations import Sgm, SgmByIds
from tokcore.corpus.entities import decode_references
from tokcore.corpus.formats import block_rows
from tokcore.corpus.sgm_pairing import LayoutReader, corresponds
from tokcore.errors import InputError
from tokcore.text.normalizers import T2T_LINES, UNSTRIPPED_LINES

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


def test_an_error_names_the_line_with_text_in_no_segment():
    [reject] = rows_of_block(Sgm(), b'<p>\ntext\n', b'<p>\n<seg>a</seg>\n').rejects
    assert f'the line at byte {reject.offset} has text' in Sgm().explain(reject)


def read(source, target, chosen=None, most=1 << 20):
    """The rows of the blocks of two files, read as a job does, and the formats of the blocks."""
    blocks = became_of(chosen or Sgm(), (source, target), max_line_bytes=most).blocks
    return [block_rows(block, T2T_LINES) for block in blocks], [each.format for each in blocks]


def rejects_of(found):
    return [each for rows in found for each in rows.rejects]


def all_texts(found):
    return [texts for rows in found for texts in texts_of(rows)]


def segment(name, text):
    return f'<seg id="{name}">{text}</seg>' if name else f'<seg>{text}</seg>'


def document(*segments, name='a'):
    head = f'<doc docid="{name}">' if name else '<doc>'
    return ''.join(f'{line}\n' for line in [head, *segments, '</doc>'])


def paired(source, target, **options):
    found, formats = read(source.encode(), target.encode(), **options)
    return all_texts(found), rejects_of(found), {type(each) for each in formats}


def one(name='1', text='one'):
    return segment(name, text)


def two(name='2', text='two'):
    return segment(name, text)


def test_files_with_the_same_ids_on_the_same_lines_are_paired_by_lines():
    for source, target in (
        (document(one(), two()), document(one(text='EINS'), two(text='ZWEI'))),
        (document(one(), one()), document(one(text='EINS'), one(text='ZWEI'))),
        (document(one(), two()), document(one('', 'EINS'), two('', 'ZWEI'))),
        (document(one(), two()), document(one(text='EINS'), two(text='ZWEI'), name='')),
        (document(one(''), two(''), name=''), document(one('', 'EINS'), two('', 'ZWEI'), name='')),
    ):
        texts, rejects, formats = paired(source, target)
        assert formats == {Sgm} and not rejects
        assert [pair[1] for pair in texts] == ['EINS', 'ZWEI']


def test_where_ids_are_missing_the_order_in_a_document_counts():
    source = document(one(''), two('')) + document(one('', 'b one'), name='b')
    target = document(one('', 'B EINS'), name='b') + document(
        '<p>', one('', 'EINS'), two('', 'ZWEI')
    )
    texts, rejects, formats = paired(source, target)
    assert formats == {SgmByIds} and not rejects
    assert texts == [('one', 'EINS'), ('two', 'ZWEI'), ('b one', 'B EINS')]
    # One of several has an id.
    mixed = document('<p>', one(text='EINS'), two('', 'ZWEI'))
    assert paired(document(one(''), two()), mixed)[0] == [('one', 'EINS'), ('two', 'ZWEI')]


@pytest.mark.parametrize('before', [[], ['<p>']], ids=['as many lines', 'more lines'])
def test_segments_without_any_ids_on_other_lines_are_paired_by_their_order(before):
    source = document('<p>', one(''), two(''), *before, name='')
    target = document(one('', 'EINS'), two('', 'ZWEI'), '</p>', name='')
    texts, rejects, formats = paired(source, target)
    assert formats == {SgmByIds} and not rejects
    assert texts == [('one', 'EINS'), ('two', 'ZWEI')]


def test_documents_without_ids_are_paired_by_their_order():
    source = document(one(), two(), name='') + document(one(text='b one'), name='')
    target = document(two(text='ZWEI'), one(text='EINS')) + document(one(text='B EINS'), name='b')
    texts, rejects, _ = paired(source, target)
    assert not rejects
    assert texts == [('one', 'EINS'), ('two', 'ZWEI'), ('b one', 'B EINS')]


@pytest.mark.parametrize(
    ('source', 'target', 'wanted'),
    [
        (document(one(), two()), document(one()), ["segment '2' of document 'a' has no counterpart"]),
        (document(one()), document(two()), ["segment '1' of", "segment '2' of"]),
        (document(one()), document(one(), name='b'), ["in document 'a', which", "in document 'b', which"]),
        (document(one(''), two('')), document(one('')), ['a segment without an id of document'] * 3),
        (document(one(), two(), one()), document(one(), two()), ["segment '1' of document 'a' is there twice"] * 3),
        (document(one()), document(one(), name='') * 2, ["in document 'a'", *['in a document without'] * 2]),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_rejected_by_name(source, target, wanted):
    _, rejects, _ = paired(source, target)
    assert [each.reason for each in rejects] == [UNMATCHED] * len(wanted)
    for reject, words in zip(rejects, wanted, strict=True):
        assert words in reject.why
        assert Sgm().explain(reject).startswith(reject.why)


def test_two_segments_on_a_line_are_two_and_one_on_two_lines_is_one():
    source = document(f' {one()} <p> {two()} <p>', '<seg id="3">three', 'words</seg>')
    target = document(one(text='EINS'), two(text='ZWEI'), segment('3', 'DREI'))
    found, _ = read(source.encode(), target.encode())
    assert all_texts(found) == [('one', 'EINS'), ('two', 'ZWEI'), ('three words', 'DREI')]
    [rows] = found
    line = source.index(' <seg id="1"')
    assert rows.offsets.tolist() == [line, source.index('<seg id="2"'), source.index('<seg id="3"')]


def test_white_space_in_segments_is_kept_as_in_files_that_are_paired_by_lines():
    lines = [one(text=' one\u3000'), two(text='\ttwo words  ')]
    wanted = [(' one\u3000',) * 2, ('\ttwo words  ',) * 2]
    for target, kind in [(lines, Sgm), (lines[::-1], SgmByIds)]:
        files = (document(*lines).encode(), document(*target).encode())
        [block] = became_of(Sgm(), files).blocks
        assert type(block.format) is kind
        assert texts_of(block_rows(block, UNSTRIPPED_LINES)) == wanted
    alone = document('<seg id="1">', 'on lines', 'of its own', '</seg>')
    [block] = became_of(Sgm(), (alone.encode(), document(one()).encode())).blocks
    assert texts_of(block_rows(block, UNSTRIPPED_LINES)) == [('on lines of its own', 'one')]


def test_a_row_on_a_line_of_its_own_is_known_by_that_line_in_either_way():
    lines = [f'  {one()}', two(), segment('3', 'three')]
    by_lines, _ = read(*[document(*lines).encode()] * 2)
    by_ids, _ = read(document(*lines).encode(), document(*reversed(lines)).encode())
    assert [rows.offsets.tolist() for rows in by_lines] == [
        rows.offsets.tolist() for rows in by_ids
    ]


def test_flaws_of_segments_and_texts_outside_of_them():
    source = document(
        '<seg id="1">no end', two(), 'stray <b>words</b>', segment('3', 'y' * 80), segment('4', 'ü'), segment('5', 'five')
    ).encode()  # fmt: skip
    target = document(*(segment(name, 'text') for name in '12345')).encode()
    found, _ = read(source.replace('ü'.encode(), b'\xff'), target, most=70)
    assert all_texts(found) == [('two', 'text'), ('five', 'text')]
    wanted = [
        (OUTSIDE_SEGMENT, b'no end'),
        (OUTSIDE_SEGMENT, b'stray'),
        (TOO_LONG, b'<seg id="3">yy'),
        (INVALID_UTF8, b'<seg id="4">\xff'),
    ]
    rejects = rejects_of(found)
    assert [each.reason for each in rejects] == [reason for reason, _ in wanted]
    for reject, (_, words) in zip(rejects, wanted, strict=True):
        assert words in reject.line
    assert rejects[2].size == len(segment('3', 'y' * 80))


def test_text_outside_is_found_in_the_time_that_the_line_takes_to_read():
    def outside(line):
        began = time.process_time()
        _, rejects, _ = paired(document(one(), line), document('<p>', one(text='EINS')))
        return [each.line for each in rejects], time.process_time() - began

    assert outside(' \t stray \f text \r')[0] == [b' \t stray \f text \r']
    rejected, seconds = outside(' ' * 40_000)  # each from every byte on: some ten seconds
    assert rejected == [] and seconds < 3


def test_references_are_decoded_if_asked():
    source, target = document(one(text='a &lt; b')), document('<p>', one(text='c &amp; d'))
    assert paired(source, target, chosen=Sgm('decode'))[0] == [('a < b', 'c & d')]
    assert paired(source, target)[0] == [('a &lt; b', 'c &amp; d')]


def test_attributes_are_written_in_several_ways():
    source = "<DOC sysid=x DOCID=a><seg id=1>one</seg></DOC>\n<doc id='b'>\n<seg a=\"2\" ID='1'>b</seg>\n</doc>"
    target = document(one(text='B EINS'), name='b') + document(one(text='EINS'))
    assert paired(source, target)[0] == [('one', 'EINS'), ('b', 'B EINS')]


def test_a_file_too_large_to_be_paired_in_memory_is_refused(monkeypatch):
    monkeypatch.setattr('tokcore.corpus.sgm_pairing.MOST_PAIRED_BYTES', 60)
    with pytest.raises(InputError, match='corpus has segments that are not on the same lines'):
        paired(document(one(), two()), document(two(), one()))


def test_a_layout_does_not_depend_on_where_a_large_file_is_cut(monkeypatch):
    source = ''.join(document(one(), two(), name=str(number)) for number in range(20))
    target = source.replace('docid="7"', 'docid="x"')
    for most in (1, 30, 100, 1 << 20):
        monkeypatch.setattr('tokcore.corpus.sgm_pairing.MOST_PAIRED_BYTES', most)
        layouts = []
        for text in (source, target):
            reader = LayoutReader()
            assert b''.join(reader.watched([text.encode()])) == text.encode()
            layouts.append(reader.layout())
        assert corresponds(layouts[0], layouts[0]) and not corresponds(*layouts)
