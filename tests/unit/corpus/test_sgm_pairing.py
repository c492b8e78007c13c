"""Segments paired by ids: what is drawn is what is found, however it is written."""

import gzip
import io

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tokcore.corpus.corpus import INVALID_UTF8, OUTSIDE_SEGMENT, TOO_LONG, CorpusFile, Split
from tokcore.corpus.corpus import UNMATCHED_SEGMENT as UNMATCHED
from tokcore.corpus.formats import block_rows, format_reader, index_ranges, plan_items, read_blocks
from tokcore.corpus.sgm import Sgm, SgmByIds
from tokcore.corpus.stats import block_checksums, join_checksums
from tokcore.errors import InputError
from tokcore.text.normalizers import T2T_LINES


def read(source, target, item_bytes=1 << 20, chosen=None, most=1 << 20, compressed=False):
    """The rows of two files, as blocks of them, read as a job does."""
    chosen = chosen or Sgm()
    names = ['a.sgm', 'b.sgm']
    stored = [gzip.compress(each) if compressed else each for each in (source, target)]
    files = tuple(
        CorpusFile(name, name, len(content), compressed)
        for name, content in zip(names, stored, strict=True)
    )
    split = Split('train', chosen, (files,))

    def opened(path):
        return io.BytesIO(stored[names.index(path)])

    index = [format_reader(chosen).index(part, opened) for part in index_ranges(split, item_bytes)]
    blocks = [
        block
        for item in plan_items(split, index, item_bytes)
        for block in read_blocks(item, opened, item_bytes, most)
    ]
    for side, text in enumerate((source, target)):
        checksums = [each for block in blocks for each in block_checksums(block)]
        summary = join_checksums(each for each in checksums if each.side == side)
        assert summary.bytes == len(text)
    return [block_rows(block, T2T_LINES) for block in blocks], [each.format for each in blocks]


def texts_of(found):
    return [
        tuple(side.row(each) for side in rows.sides) for rows in found for each in range(len(rows))
    ]


def rejects_of(found):
    return [each for rows in found for each in rows.rejects]


def segment(name, text):
    return f'<seg id="{name}">{text}</seg>' if name else f'<seg>{text}</seg>'


names = st.sampled_from(['1', '2', '3', '4', '5'])
documents = st.dictionaries(
    st.sampled_from(['a', 'b', 'c']),
    st.dictionaries(names, st.sampled_from(['x', 'y z', '']), max_size=5),
    max_size=3,
)


@st.composite
def written(draw, content):
    """Documents in any order, segments in any order, and any number of them on a line."""
    text = '<set>\n'
    for document in draw(st.permutations([*content])):
        text += f'<doc docid="{document}">' + draw(st.sampled_from(['', '\n', '<p>\r\n']))
        for name in draw(st.permutations([*content[document]])):
            words = content[document][name]
            words = draw(st.sampled_from([words, words.replace(' ', '\n'), f'\n{words}\r\n']))
            text += segment(name, words) + draw(st.sampled_from(['', '\n', ' <hl>', '\n\n']))
        text += '</doc>'
    return f'{text}\n</set>'.encode()


@given(st.data(), documents, documents)
def test_segments_are_paired_by_document_and_id(data, source, target):
    texts = [data.draw(written(content)) for content in (source, target)]
    assume(any(source.values()) or any(target.values()))
    found, formats = read(*texts)
    assume(SgmByIds in map(type, formats))
    pairs = {
        (words, target[document][name])
        for document, segments in source.items()
        for name, words in segments.items()
        if name in target.get(document, {})
    }
    assert set(texts_of(found)) == {pair for pair in pairs if all(pair)}
    alone = [
        (side, document, name)
        for side, (own, other) in enumerate([(source, target), (target, source)])
        for document, segments in own.items()
        for name in segments
        if name not in other.get(document, {})
    ]
    rejects = rejects_of(found)
    assert {each.reason for each in rejects} <= {UNMATCHED}
    assert len(rejects) == len(alone)
    assert [each.side for each in rejects] == sorted(side for side, _, _ in alone)
    for reject in rejects:
        text = texts[reject.side]
        assert reject.number == text[: reject.position].count(b'\n') + 1
        assert text[reject.position :].startswith(reject.line)
    offsets = [offset for rows in found for offset in rows.offsets.tolist()]
    assert offsets == sorted(set(offsets))
    for rows in found:
        assert rows.lines == len(rows) + rows.empty + len(rows.rejects)


@given(st.data(), documents)
def test_rows_do_not_depend_on_items_and_compression(data, content):
    assume(any(content.values()))
    texts = [data.draw(written(content)) for _ in range(2)]
    whole, _ = read(*texts)
    for item_bytes, compressed in ((10, False), (70, False), (30, True)):
        cut, _ = read(*texts, item_bytes=item_bytes, compressed=compressed)
        assert texts_of(cut) == texts_of(whole)
        offsets = [
            [each for rows in found for each in rows.offsets.tolist()] for found in (cut, whole)
        ]
        assert offsets[0] == offsets[1]


def document(*segments, name='a'):
    head = f'<doc docid="{name}">' if name else '<doc>'
    return ''.join(f'{line}\n' for line in [head, *segments, '</doc>'])


def paired(source, target, **options):
    found, formats = read(source.encode(), target.encode(), **options)
    return texts_of(found), rejects_of(found), {type(each) for each in formats}


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
        (document('<p>', one('', 'one'), name=''), document(one('', 'EINS'), '</p>', name='')),
    ):
        texts, rejects, formats = paired(source, target)
        assert formats == {Sgm} and not rejects
        assert [pair[1] for pair in texts] == ['EINS', 'ZWEI'][: len(texts)]


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
    assert texts_of(found) == [('one', 'EINS'), ('two', 'ZWEI'), ('three words', 'DREI')]
    [rows] = found
    line = source.index(' <seg id="1"')
    assert rows.offsets.tolist() == [line, source.index('<seg id="2"'), source.index('<seg id="3"')]


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
    assert texts_of(found) == [('two', 'text'), ('five', 'text')]
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
    with pytest.raises(InputError, match='a.sgm has segments that are not on the same lines'):
        paired(document(one(), two()), document(two(), one()))


def test_a_layout_does_not_depend_on_where_a_large_file_is_cut(monkeypatch):
    source = ''.join(document(one(), two(), name=str(number)) for number in range(20))
    target = source.replace('docid="7"', 'docid="x"')
    for most in (1, 30, 100, 1 << 20):
        monkeypatch.setattr('tokcore.corpus.sgm_layout.MOST_PAIRED_BYTES', most)
        assert paired(source, source)[2] == {Sgm}
        assert paired(source, target)[2] == {SgmByIds}
