"""Text that a SentencePiece model's charsmap leaves is copied many bytes at once, as one character after another is."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rows_of_text import side_of

from tokcore.foreign_tokenizers.sentencepiece import parse_sentencepiece


def field(number, data):
    """A field of Protocol Buffers, of less than 16,384 bytes."""
    return bytes([number << 3 | 2, len(data) & 0x7F | 0x80, len(data) >> 7]) + data


def charsmap(replacement):
    """A charsmap that replaces U+0002."""
    units = [0, 0, 1 << 8 | 2, *([0] * 253)]
    # The unit is that of the child by zero, too, so the place is 258.
    return struct.pack('<257I', 1024, *units) + bytes(258) + replacement + bytes(1)


UNKNOWN = field(1, field(1, b'<unk>') + b'\x15' + struct.pack('<f', 0) + b'\x18\x02')
ALPHABET = 'ab,~ \x02\u3000。，é😀\u0301\u3fff\u4000字龥\u9fff\ua000'


MARK = field(1, field(1, '▁'.encode()) + b'\x15' + struct.pack('<f', 0))
MERGES = field(2, b'\x18\x02')  # of the type BPE, where spaces stay


@pytest.mark.parametrize('merges', [b'', MARK + MERGES])
@pytest.mark.parametrize('removes', [b'\x20\x00', b'\x20\x01'])
@given(st.lists(st.text(ALPHABET, max_size=150) | st.text('字龥', max_size=150), max_size=5))
@example(
    [
        '字' * 21 + 'é' + '龥' * 22 + '。' * 30,
        '',
        '字' * 64,
        'a' * 64 + '\u0301字',
        'a b  ' * 30 + ' \u0301',
    ]
)
def test_text_that_stays(merges, removes, texts):
    data = UNKNOWN + merges + field(3, field(2, charsmap(b'x y')) + removes)
    [step] = parse_sentencepiece(data, 'x.model').steps
    normalizer = step.rewrite.keywords['normalizer']
    assert normalizer.keeps_ascii
    assert normalizer.keeps_ideographs
    assert normalizer.rules.space.tobytes().decode() == (' ' if merges else '▁')
    plain = normalizer._replace(keeps_ascii=False, keeps_ideographs=False)
    side = side_of(texts)
    rows, expected = (step.rewrite.func(side, normalizer=each) for each in (normalizer, plain))
    numbers = range(len(texts))
    assert [rows.row(row) for row in numbers] == [expected.row(row) for row in numbers]
