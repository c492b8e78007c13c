"""Text and bytes as nobody would write them, drawn from a dice."""

import gzip
import io
import random
import zlib

_WORDS = [
    'the', 'of', 'and', 'a', 'line', 'Line', 'word', "words'", '2024', '3.14', 'naïve', 'Ünï',
    "it's", 'e-mail', 'x_y', '\\n', '&', '<b>', '%', '小语', '语料', '第', '行', '分段', '。', '，', '😀', 'é',
    'ﬁ', '½', '²', 'Ⅷ', 'ᾳ', 'ß', 'İ',
]  # fmt: skip
_BLANKS = [b'', b' ', b'\t', b'\r', '\u3000'.encode(), '\xa0'.encode(), b'\x1c', b'\x0b', b'\x00']
_PIECES = [
    b'\r', b'\r\r', b'\x00', b'\t', b'\t\t', b'\x0b', b'\x0c', b'\x1c', b'\x85', b'\\10;', b'_', b'\\u',
    *(each.encode() for each in '\x85\u2028\u2029\u3000\ufeff\u180e\u0301\u200b\U0010ffff\ue000\ufffe'),
]  # fmt: skip
_BROKEN = [
    b'\x80', b'\xc3', b'\xc0\xaf', b'\xc1\xbf', b'\xe0\x80\x80', b'\xe5\xad', b'\xed\xa0\x80',
    b'\xed\xb3\xbf', b'\xf0\x8f\xbf\xbf', b'\xf0\x9f\x98', b'\xf4\x90\x80\x80', b'\xf5', b'\xff',
    b'\xe5\r\xad\x97x', b'\xfe\xff', b'\xf8\x88\x80\x80\x80',
]  # fmt: skip


def sentence(dice: random.Random) -> str:
    """Returns some words with white space between."""
    return dice.choice([' ', ' ', ' ', '', '  ']).join(dice.choices(_WORDS, k=dice.randint(1, 9)))


def line(dice: random.Random, spoiled: float, columns: int = 1) -> bytes:
    """Returns a line without its end, spoiled with that probability."""
    cells = [sentence(dice).encode() for _ in range(columns)]
    if dice.random() < 0.1:
        cells[dice.randrange(columns)] = dice.choice(_BLANKS)
    text = b'\t'.join(cells)
    if dice.random() >= spoiled:
        return text
    how = dice.random()
    if how < 0.15:
        return dice.choice(_BLANKS)
    if how < 0.35:
        return inserted(dice, text, dice.choice(_BROKEN))
    if how < 0.65:
        return inserted(dice, text, dice.choice(_PIECES))
    if how < 0.75:
        return text.rpartition(b'\t')[0] or text
    if how < 0.85:
        return dice.randbytes(dice.randint(1, 40)).replace(b'\n', b'')
    if how < 0.92:
        return b''.join(map(wild_character, [dice] * dice.randint(1, 30)))
    return text * dice.choice([2, 10, 100, 1000])


def wild_character(dice: random.Random) -> bytes:
    """Returns any character but a line feed and surrogates."""
    while True:
        point = dice.choice(
            [dice.randrange(0x80), dice.randrange(0x3000), dice.randrange(0x110000)]
        )
        if point != 0x0A and not 0xD800 <= point < 0xE000:
            return chr(point).encode()


def text(dice: random.Random, columns: int = 1) -> bytes:
    """Returns a file's text, clean in half of all cases."""
    spoiled = dice.choice([0, 0, 0, 0.03, 0.3, 1])
    count = dice.choice([0, 1, 2, 5, 20, 20, 60, 60, 200])
    lines = [line(dice, spoiled, columns) for _ in range(count)]
    if spoiled and dice.random() < 0.05:
        return dice.randbytes(dice.randint(0, 3000))
    ended = b'\n'.join(lines) + (b'\n' if lines and dice.random() < 0.8 else b'')
    if spoiled and dice.random() < 0.1:
        ended = dice.choice([b'\xef\xbb\xbf', b'\xff\xfe', b'\n\n\n', b'\x1f']) + ended
    return ended


def zipped(dice: random.Random, data: bytes) -> tuple[bytes, bool]:
    """Returns a gzip file of some members and whether it is damaged, as Python's `gzip` sees it."""
    cuts = sorted(dice.randint(0, len(data)) for _ in range(dice.choice([0, 0, 0, 1, 3])))
    ends = [*cuts, len(data)]
    stored = b''.join(
        gzip.compress(data[start:end], dice.choice([0, 1, 9]), mtime=0)
        for start, end in zip([0, *cuts], ends)
    )
    how = dice.random()
    if how < 0.80:
        return stored, False
    if how < 0.84:
        return stored + bytes(dice.randint(1, 600)), False
    if how < 0.90:
        return stored[: dice.randrange(2, len(stored))], True
    if how < 0.95:
        spoiled = bytearray(stored)
        spoiled[dice.randrange(2, len(spoiled))] ^= 1 << dice.randrange(8)
        return bytes(spoiled), not _is_same(bytes(spoiled), data)
    return stored + dice.choice([b'more\n', b'\x1f', b'\0\0x', stored[:9]]), True


def mutated(dice: random.Random, data: bytes, times: int | None = None) -> bytes:
    """Returns bytes with some of them changed, cut out, doubled or put in."""
    for _ in range(dice.choice([1, 1, 2, 5, 20]) if times is None else times):
        place = dice.randint(0, len(data))
        size = dice.choice([1, 1, 2, 8, 100])
        change = dice.randrange(6)
        if change == 0:
            data = data[:place] + dice.randbytes(size) + data[place + size :]
        elif change == 1:
            data = data[:place] + data[place + size :]
        elif change == 2:
            data = data[:place] + data[place : place + size] * 2 + data[place + size :]
        elif change == 3:
            data = inserted(dice, data, dice.choice(_PIECES + _BROKEN + [b'\n', b"'", b'"']))
        elif change == 4:
            data = data[:place]
        elif data:
            spoiled = bytearray(data)
            spoiled[place % len(data)] ^= 1 << dice.randrange(8)
            data = bytes(spoiled)
    return data


def inserted(dice: random.Random, data: bytes, piece: bytes) -> bytes:
    """Returns bytes with a piece put in somewhere."""
    place = dice.randint(0, len(data))
    return data[:place] + piece + data[place:]


def _is_same(stored: bytes, data: bytes) -> bool:
    # A flag that no version of the format uses is passed over by Python and refused by `gzip`.
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(stored)) as stream:
            is_same = stream.read() == data
    except (OSError, EOFError, zlib.error):
        return False
    return is_same and zlib_takes(stored)


def zlib_takes(stored: bytes) -> bool:
    """Returns whether zlib, stricter on a member's flags than Python, inflates it to the end."""
    while stored.strip(b'\0'):
        member = zlib.decompressobj(wbits=31)
        try:
            member.decompress(stored.lstrip(b'\0'))
        except zlib.error:
            return False
        if not member.eof:
            return False
        stored = member.unused_data
    return True
