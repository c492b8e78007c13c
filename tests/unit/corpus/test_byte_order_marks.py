"""A byte order mark at the start of a file belongs to no row, in every format, however files are cut."""

import pytest
from read_format import became_of

from tokcore.corpus.corpus import BlockText
from tokcore.corpus.declarations import JsonLines, PlainText, Tmx, TmxLines, Tsv
from tokcore.corpus.fields import label_names
from tokcore.corpus.formats import block_rows
from tokcore.text.normalizers import T2T_LINES, UNSTRIPPED_LINES

MARK = b'\xef\xbb\xbf'

UNIT = b'<tu><tuv xml:lang="en"><seg>%s</seg></tuv><tuv xml:lang="de"><seg>%s</seg></tuv></tu>\n'
TMX = b'<tmx><body>\n' + UNIT % (b'a', b'b') + UNIT % (b'c', b'd') + b'</body></tmx>\n'

FILES = {
    'quoted header': (Tsv(('y', 'x'), header=True, quoting='csv'), b'"x"\ty\r\na\tb\n"c"\td\n'),
    'tmx': (Tmx(('en', 'de')), TMX),
    'tmx of lines': (TmxLines(), b' <seg>a</seg>\n  <seg>b</seg>\n <seg>c</seg>\n <seg>d</seg>\n'),
}  # fmt: skip
"""Formats that `test_plain_rules` reads without a mark."""


@pytest.mark.parametrize('zipped', [False, True])
@pytest.mark.parametrize('size', [1, 1 << 20])
@pytest.mark.parametrize('name', FILES)
def test_rows_are_those_of_the_files_without_it(name, size, zipped):
    declared, content = FILES[name]
    expected = became_of(declared, content, size, size, zipped=zipped)
    found = became_of(declared, MARK + content, size, size, zipped=zipped)
    # The first line begins at byte 0 as before; those after it are three bytes further on.
    assert expected.found and found.found == {
        offset + 3 * (offset > 0): texts for offset, texts in expected.found.items()
    }


def test_within_a_file_it_is_text():
    for content in (MARK + MARK + b'a\n' + MARK + b'b\n', MARK + b'\n' + MARK + b'a\n'):
        texts = [(line.decode(),) for line in content[3:].split(b'\n') if line]
        for size in (1, 1 << 20):
            assert [*became_of(PlainText(), content, size).found.values()] == texts
    lines = b'{"text": "a"}\n' + MARK + b'{"text": "b"}\n'
    assert became_of(JsonLines(), MARK + lines).found == {0: ('a',), 17: 'invalid_json'}


@pytest.mark.parametrize('declared', [PlainText(), Tsv(), Tsv(quoting='csv'), JsonLines()])
def test_a_file_of_nothing_else_has_an_empty_line(declared):
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


def test_names_of_labels(tmp_path):
    path = tmp_path / 'names.txt'
    for content in (b'a b\nc\n', b'a b\r\nc\r\n', MARK + b'a b\r\nc\r\n', MARK + b'a b\nc'):
        path.write_bytes(content)
        assert label_names(str(path)) == ('a b', 'c')
