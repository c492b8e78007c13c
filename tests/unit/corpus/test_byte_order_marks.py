"""A byte order mark at the start of a file belongs to no row, in every format, however files are cut."""

import pytest
from read_format import became_of

from tokcore.corpus.corpus import BlockText
from tokcore.corpus.fields import label_names
from tokcore.corpus.formats import block_rows
from tokcore.corpus.jsonl import JsonLines
from tokcore.corpus.line_formats import Bitext, Labelled, PlainText
from tokcore.corpus.sgm import Sgm
from tokcore.corpus.tmx import Tmx, TmxLines
from tokcore.corpus.tsv import Tsv
from tokcore.text.normalizers import T2T_LINES, UNSTRIPPED_LINES

MARK = b'\xef\xbb\xbf'

UNIT = b'<tu><tuv xml:lang="en"><seg>%s</seg></tuv><tuv xml:lang="de"><seg>%s</seg></tuv></tu>\n'
TMX = b'<tmx><body>\n' + UNIT % (b'a', b'b') + UNIT % (b'c', b'd') + b'</body></tmx>\n'

FILES = {
    'text': (PlainText(), (b'a\nb\r\nc\n',)),
    'text of a line': (PlainText(), (b'a',)),
    'bitext': (Bitext(), (b'a\nb\n', b'c\r\nd')),
    'tsv': (Tsv(), (b'a\tb\nc\td\n',)),
    'tsv with a header': (Tsv(('y', 'x'), header=True), (b'x\ty\na\tb\nc\td\n',)),
    'quoted tsv': (Tsv(quoting='csv'), (b'"a\t"\tb\nc\td\n',)),
    'quoted header': (Tsv(('y', 'x'), header=True, quoting='csv'), (b'"x"\ty\r\na\tb\n"c"\td\n',)),
    'labels': (Labelled(labels=('x', 'y')), (b'a\nb\n', b'y\r\nx')),
    'json lines': (JsonLines(), (b'{"text": "a"}\n{"text": "b"}\n',)),
    'json that python reads': (JsonLines(), (b' {"text": "a"}\n{"text": "b"}\n',)),
    'sgm': (Sgm(), (b'<seg id="1">a</seg>\n<seg id="2">b</seg>\n', b'<seg id="1">c</seg>\n<seg id="2">d</seg>\n')),
    'tmx': (Tmx(('en', 'de')), (TMX,)),
    'tmx of lines': (TmxLines(), (b' <seg>a</seg>\n  <seg>b</seg>\n <seg>c</seg>\n <seg>d</seg>\n',)),
}  # fmt: skip


@pytest.mark.parametrize('normalizer', [UNSTRIPPED_LINES, T2T_LINES], ids=lambda each: each.name)
@pytest.mark.parametrize('zipped', [False, True])
@pytest.mark.parametrize('size', [1, 1 << 20])
@pytest.mark.parametrize('name', FILES)
def test_rows_are_those_of_the_files_without_it(name, size, zipped, normalizer):
    declared, contents = FILES[name]
    expected = became_of(declared, contents, size, size, zipped=zipped, normalizer=normalizer)
    marked = tuple(MARK + each for each in contents)
    found = became_of(declared, marked, size, size, zipped=zipped, normalizer=normalizer)
    assert expected.found and not expected.empty - found.empty
    # The first line begins at byte 0 as before; those after it are three bytes further on.
    assert found.found == {
        offset + 3 * (offset > 0): texts for offset, texts in expected.found.items()
    }


def test_within_a_file_it_is_text():
    for contents in (MARK + MARK + b'a\n' + MARK + b'b\n', MARK + b'\n' + MARK + b'a\n'):
        for size in (1, 1 << 20):
            found = became_of(PlainText(), contents, size).found
            assert [*found.values()] == [
                (line.decode(),) for line in contents[3:].split(b'\n') if line
            ]
    lines = b'{"text": "a"}\n' + MARK + b'{"text": "b"}\n'
    assert became_of(JsonLines(), MARK + lines).found == {0: ('a',), 17: 'invalid_json'}


def test_a_file_of_nothing_else_has_an_empty_line():
    for declared in (PlainText(), Tsv(), Tsv(quoting='csv'), JsonLines()):
        for content in (MARK, MARK + b'\n', MARK + b'\r\n'):
            for zipped in (False, True):
                became = became_of(declared, content, zipped=zipped)
                assert (became.found, became.empty) == ({}, 1)


@pytest.mark.parametrize(
    'declared', [PlainText(), JsonLines(), Tsv((0,)), Tsv((0,), quoting='csv')]
)
def test_a_line_that_is_rejected_is_the_line_as_it_is_stored(declared):
    content = MARK + b'\xff\n'
    for normalizer in (UNSTRIPPED_LINES, T2T_LINES):
        [block] = became_of(declared, content).blocks
        assert block.texts == (BlockText(0, content),)
        [reject] = block_rows(block, normalizer).rejects
        assert (reject.offset, reject.position, reject.line) == (0, 3, content[:-1])


def test_bytes_of_the_mark_count_for_a_line_that_is_too_long():
    assert became_of(PlainText(), MARK + b'abc\n', max_line_bytes=6).found == {0: ('abc',)}
    assert became_of(PlainText(), MARK + b'abc\n', max_line_bytes=5).found == {0: 'too_long'}


def test_names_of_labels(tmp_path):
    path = tmp_path / 'names.txt'
    for content in (b'a b\nc\n', b'a b\r\nc\r\n', MARK + b'a b\r\nc\r\n', MARK + b'a b\nc'):
        path.write_bytes(content)
        assert label_names(str(path)) == ('a b', 'c')
