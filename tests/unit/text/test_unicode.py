"""Characters in kernels, against Python's own UTF-8."""

import random

import numpy as np

from tokcore.kernels.jit import read_only
from tokcore.text.unicode import decode_word, next_character, utf8_length


def test_every_character_is_decoded():
    code_points = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
    for code_point in [*code_points, *range(0x20, 0x110000, 997)]:
        if 0xD800 <= code_point < 0xE000:
            continue
        data = b'x' + chr(code_point).encode()
        array = read_only(np.frombuffer(data, np.uint8))
        assert next_character(array, 1) == (code_point, len(data))
        assert decode_word(np.uint64(int.from_bytes(data[1:], 'little'))) == code_point
        if code_point > 0x7F:
            assert utf8_length(array, 1, len(data)) == len(data) - 1
            assert utf8_length(array, 1, len(data) - 1) == 0


def test_every_two_and_three_byte_sequence_is_judged_as_python_does():
    def judged(sequence: bytes) -> int:
        try:
            return len(sequence) if len(sequence.decode()) == 1 else 0
        except UnicodeDecodeError:
            return 0

    pairs = [bytes([lead, second]) for lead in range(0x80, 256) for second in range(256)]
    edges = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
    triples = [pair + bytes([third]) for pair in pairs for third in edges]
    generator = random.Random(1)
    quads = [
        bytes([generator.randrange(0xEF, 0xF6), *(generator.choice(edges) for _ in range(3))])
        for _ in range(20_000)
    ]
    for sequence in [*pairs, *triples, *quads]:
        found = utf8_length(np.frombuffer(sequence, np.uint8), 0, len(sequence))
        assert (found if found == len(sequence) else 0) == judged(sequence), sequence
