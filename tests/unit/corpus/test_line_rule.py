r"""'\n' or '\r\n' ends a line, in every format of lines and for every normalizer, however it is cut."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from read_format import became_of

from tokcore.corpus.line_formats import Bitext, Labelled, PlainText
from tokcore.corpus.tsv import Tsv
from tokcore.text.normalizers import (
    STRIPPED_LINES,
    T2T_LINES,
    UNSTRIPPED_LINES,
    StrippedLines,
    UnstrippedLines,
)

MARK = b'\xef\xbb\xbf'

NORMALIZERS = {
    UNSTRIPPED_LINES: lambda text: text,
    UnstrippedLines('NFKC'): lambda text: unicodedata.normalize('NFKC', text),
    STRIPPED_LINES: str.strip,
    StrippedLines('\r\n '): lambda text: text.strip('\r\n '),
    T2T_LINES: lambda text: text.replace('\r', '').strip(),
}

PIECES = [
    b'\n', b'\n', b'\r\n', b'\r\n', b'\r', b'\r\r\n', b' ', b'\t', b'a', b'b\r', b'\x1c', b'\0',
    *(each.encode() for each in '\x85\xa0\u2028\u3000é字\ufeff'),
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map(b''.join)
DAMAGED = st.lists(st.sampled_from([*PIECES, b'\xff', b'\xe5\xad']), max_size=25).map(b''.join)
SIZES = st.sampled_from(
    [(1, False), (2, False), (3, False), (1 << 20, False), (1, True), (9, True)]
)
EACH_NORMALIZER = st.sampled_from([*NORMALIZERS])


def plain_lines(data):
    """Each line's offset and text, by the rule on docs/corpora.md."""
    offset, lines = 0, []
    for line in whole_lines(data):
        text = line
        if line.endswith(b'\n'):
            text = line[:-2] if line.endswith(b'\r\n') else line[:-1]
        lines.append((offset, text.removeprefix(MARK) if not offset else text))
        offset += len(line)
    return lines


def whole_lines(data):
    parts = [part + b'\n' for part in data.split(b'\n')]
    parts[-1] = parts[-1][:-1]
    return [part for part in parts if part]


def text_of(line, normalizer):
    """The text of a line, '' if it is blank, or None if it is not UTF-8."""
    if normalizer is T2T_LINES:
        line = line.replace(b'\r', b'')
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    return NORMALIZERS[normalizer](text) if text.strip() else ''


def read(declared, contents, sizes, normalizer):
    size, zipped = sizes
    return became_of(declared, contents, size, size, zipped=zipped, normalizer=normalizer)


@given(st.one_of(TEXTS, DAMAGED), SIZES, EACH_NORMALIZER)
@example(b'a\r', (1, False), UNSTRIPPED_LINES)
@example(b'a\r\n\r\n  b  \r\n\xe3\x80\x80\n\r\r\nc\r\r\nd\r', (1, False), UNSTRIPPED_LINES)
@example(MARK + MARK + b'a\r\n' + MARK + b'b', (1, True), UNSTRIPPED_LINES)
@example(MARK, (1, True), UNSTRIPPED_LINES)
@example(MARK + b'\xff\n', (1, False), T2T_LINES)
@example('\u3000\n\t\r\n'.encode(), (1, False), StrippedLines('\r\n '))
def test_lines_of_text(data, sizes, normalizer):
    became = read(PlainText(), data, sizes, normalizer)
    texts = {offset: text_of(line, normalizer) for offset, line in plain_lines(data)}
    assert became.found == {
        offset: 'invalid_utf8' if text is None else (text,)
        for offset, text in texts.items()
        if text != ''
    }
    assert became.empty == [*texts.values()].count('')


@st.composite
def pairs(draw):
    """Two texts of equally many lines."""
    sides = draw(TEXTS), draw(TEXTS)
    lines = [whole_lines(side) for side in sides]
    count = min(map(len, lines))
    return tuple(b''.join(each[:count]) for each in lines)


@given(pairs(), SIZES, EACH_NORMALIZER)
@example((b'a\r\nb\r\n\r\n', b'\r\n \t\r\nc'), (1, False), UNSTRIPPED_LINES)
@example((MARK + b'a\r\nb\r\n', MARK + b'c\r\n' + MARK + b'd\r'), (1, True), UNSTRIPPED_LINES)
def test_lines_of_pairs(contents, sizes, normalizer):
    became = read(Bitext(), contents, sizes, normalizer)
    expected = {}
    for (offset, source), (_, target) in zip(*map(plain_lines, contents), strict=True):
        texts = text_of(source, normalizer), text_of(target, normalizer)
        if all(texts):
            expected[offset] = texts
    assert became.found == expected


@given(TEXTS, SIZES, EACH_NORMALIZER)
@example(b'a\r\nb\r\n \r\n', (1, False), UNSTRIPPED_LINES)
def test_texts_with_labels(text, sizes, normalizer):
    labels = MARK * bool(text) + b'7\r\n' * len(whole_lines(text))
    became = read(Labelled(), (text, labels), sizes, normalizer)
    texts = {offset: text_of(line, normalizer) for offset, line in plain_lines(text)}
    assert became.found == {offset: (text,) for offset, text in texts.items() if text}


@given(st.one_of(TEXTS, DAMAGED), SIZES, EACH_NORMALIZER)
@example(
    b'a\tb\r\na\tb\r\r\na\r\tb\n\t\r\n \t\xc2\xa0\r\na\t \r\na\tb\r', (1, False), UNSTRIPPED_LINES
)
@example(MARK + b'a\tb\r\n' + MARK + b'a\tb', (1, True), UNSTRIPPED_LINES)
def test_columns_of_lines(data, sizes, normalizer):
    became = read(Tsv((1, 0)), data, sizes, normalizer)
    expected = {}
    for offset, line in plain_lines(data):
        cells = [text_of(cell, normalizer) for cell in line.split(b'\t')]
        if text_of(line, normalizer) is None:
            expected[offset] = 'invalid_utf8'
        elif not text_of(line, normalizer):
            continue
        elif len(cells) < 2:
            expected[offset] = 'missing_column'
        elif all(cells[:2]):
            expected[offset] = (cells[1], cells[0])
    assert became.found == expected


@pytest.mark.parametrize('normalizer', NORMALIZERS, ids=lambda each: f'{each.name}{each.options}')
def test_all_white_space_and_nothing_else_is_empty(normalizer):
    blanks = [chr(code) for code in range(0x110000) if chr(code).isspace() and chr(code) != '\n']
    others = ['\u200b', '\ufeff', '\u180e', '\x00', '\x1b', '\u2060', '\u3164', '.']
    lines = [*blanks, *(each * 3 for each in blanks), ''.join(blanks)]
    content = ''.join(f'{line}\n' for line in ['x', *lines, *others]).encode()
    became = became_of(PlainText(), content, normalizer=normalizer)
    text_of = NORMALIZERS[normalizer]
    assert [*became.found.values()] == [('x',), *((text_of(each),) for each in others)]
    assert became.empty == len(lines)
