"""Lines to rows where the plain rules draw too little: every byte sequence, white space, long lines."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain.lines import NORMALIZERS, NamedText, single_rows
from read_format import became_of, rows_of_block, texts_of

from tokcore.corpus.declarations import Bitext, PlainText
from tokcore.corpus.line_rows import text_rows
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.unicode import valid_utf8_prefix


def test_only_the_beginning_of_a_line_that_is_too_long_is_kept():
    [reject] = text_rows(b'ab' * 1000 + b'\n', 0, T2T_LINES, 1500).rejects
    assert (reject.line, reject.size) == (b'ab' * 500, 2000)


@pytest.mark.parametrize('returns', [b'', b'\r'])
def test_damage_is_found_in_a_line_of_megabytes(returns):
    line = (b'x' * 999 + returns) * 3000 + b'\xff'
    [reject] = text_rows(line, 5, T2T_LINES).rejects
    assert reject.position == 5 + len(line) - 1


def test_pairs_of_blocks_must_have_as_many_lines():
    with pytest.raises(ValueError):
        rows_of_block(Bitext(), b'a\nb', b'a\n')
    assert len(rows_of_block(Bitext(), b'a\nb', b'c\nd\n')) == 2


@given(
    st.text(st.characters(exclude_categories=['Cs']), max_size=20),
    st.text(st.characters(exclude_categories=['Cs']), max_size=5),
)
def test_a_prefix_stands_before_each_row(text, prefix):
    (side,) = text_rows(text.encode(), 0, T2T_LINES).sides
    prefixed = side.with_prefix(prefix)
    assert [prefixed.row(each) for each in range(len(prefixed))] == [
        prefix + side.row(each) for each in range(len(side))
    ]


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


@pytest.mark.parametrize(
    'before', [b'', b'abcdefg', '字'.encode(), '字ab'.encode(), 'é字'.encode()]
)
def test_sequences_are_judged_alike_wherever_they_stand_in_a_line(before):
    # Lines are looked at 64 bytes at a time where that settles it: a sequence may lie across two.
    edges = [0x00, 0x0A, 0x0D, 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0]
    leads = [0x61, 0x80, 0xC1, 0xC2, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF4, 0xFF]
    data = b'\n'.join(
        before + bytes([lead, second, third]) + after
        for lead, second, third in itertools.product(leads, edges, edges)
        for after in (b'', '国'.encode() + b'abcdefgh' * 9)
    )
    found, expected = (
        text_rows(data, 0, T2T_LINES),
        single_rows([NamedText('', data)], None, 1 << 24),
    )
    assert texts_of(found) == expected.rows and found.offsets.tolist() == expected.offsets
    assert found.empty == expected.empty
    assert [(each.offset, each.position) for each in found.rejects] == [
        (each.offset, each.offset + each.damage) for each in expected.rejects
    ]


def whole_characters(chunk: bytes) -> int:
    """How many bytes of a chunk are whole characters, the last perhaps cut; 0 if one is wrong."""
    try:
        return len(chunk.decode().encode())
    except UnicodeDecodeError as error:
        return error.start if error.reason == 'unexpected end of data' else 0


@pytest.mark.parametrize('position', [1, 2, 31, 60, 61, 62, 63])
def test_64_bytes_are_judged_at_once_as_python_does(position):
    edges = [0x00, 0x0A, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xE1, 0xFF]
    leads = [*edges, 0xC1, 0xC2, 0xDF, 0xE0, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF3, 0xF4, 0xF5]
    sequences = [
        *(bytes(each) for each in itertools.product(range(0x80, 256), range(256))),
        *(bytes(each) for each in itertools.product(leads, edges, edges)),
        *(bytes(each) for each in itertools.product(leads[-4:], edges, edges, edges)),
    ]
    for sequence in sequences:
        chunk = (b'a' * position + sequence + b'b' * 64)[:64]
        found = valid_utf8_prefix(np.frombuffer(chunk, np.uint8), np.uint64(0))
        assert found == whole_characters(chunk), sequence
