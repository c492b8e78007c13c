"""What a corpus is stored in: how it is packed, and what a plain reader finds in it once it is damaged.

To add one, add an entry to `CONTAINERS`.
"""

import bz2
import gzip
import lzma
import random
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import zstandard
from packed_in_parts import xz_of_blocks
from plain import drawn_text


class _Stream(Protocol):
    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes) -> bytes: ...


@dataclass(frozen=True)
class Container:
    """A way to store a text.

    Attributes:
        ending: what such a file's name ends with.
        magic: what it begins with.
        pack: makes one of a text.
        unpack: gives the text back, or None for one that is damaged.
        is_block: whether a file of another name is one, if it begins so; text may begin with `BZh`.
        is_checked: whether it holds checksums of its text, so that no change goes unseen.
    """

    ending: str
    magic: bytes
    pack: Callable[[random.Random, bytes], bytes]
    unpack: Callable[[bytes], bytes | None]
    is_block: Callable[[bytes], object] = bool
    is_checked: bool = True

    def text_in(self, data: bytes, name: str) -> bytes | None:
        """Returns the text of a file of any bytes, or None if it must be refused.

        What does not begin as it should is plain text, unless it is too short to tell and the name
        says what it was to be.
        """
        if data.startswith(self.magic) and (name.endswith(self.ending) or self.is_block(data)):
            return self.unpack(data)
        is_cut = name.endswith(self.ending) and self.magic.startswith(data)
        return None if is_cut and self.ending else data


def _pack_gzip(dice: random.Random, text: bytes) -> bytes:
    return gzip.compress(text, dice.choice([0, 1, 9]), mtime=0)


def _pack_xz(dice: random.Random, text: bytes) -> bytes:
    check = dice.choice([lzma.CHECK_CRC32, lzma.CHECK_CRC64, lzma.CHECK_SHA256])
    return lzma.compress(text, check=check, preset=dice.choice([0, 6]))


def _pack_xz_of_blocks(dice: random.Random, text: bytes) -> bytes:
    size = max(1, len(text) // dice.choice([1, 2, 5, 20]))
    return xz_of_blocks([text[start : start + size] for start in range(0, len(text), size)])


def _pack_unchecked_xz(dice: random.Random, text: bytes) -> bytes:
    return lzma.compress(text, check=lzma.CHECK_NONE, preset=0)


def _pack_zstd(dice: random.Random, text: bytes) -> bytes:
    return _zstd(dice, text, is_checked=True)


def _pack_unchecked_zstd(dice: random.Random, text: bytes) -> bytes:
    return _zstd(dice, text, is_checked=False)


def _zstd(dice: random.Random, text: bytes, is_checked: bool) -> bytes:
    level, has_size = dice.choice([-5, 3, 19]), dice.random() < 0.5
    made = zstandard.ZstdCompressor(level, write_checksum=is_checked, write_content_size=has_size)
    if dice.random() < 0.1:
        skipped = dice.randbytes(dice.randint(0, 50))
        return made.compress(text) + struct.pack('<II', 0x184D2A50, len(skipped)) + skipped
    return made.compress(text)


def _in_streams(
    pack: Callable[[random.Random, bytes], bytes],
) -> Callable[[random.Random, bytes], bytes]:
    """Packs a text as one stream or some, as appending to a file gives."""

    def packed(dice: random.Random, text: bytes) -> bytes:
        cuts = sorted(dice.randint(0, len(text)) for _ in range(dice.choice([0, 0, 0, 1, 3])))
        parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        padding = bytes(4 * dice.randint(1, 99)) if dice.random() < 0.05 else b''
        return b''.join(pack(dice, part) for part in parts) + padding

    return packed


def _of_streams(
    make: Callable[[], _Stream], failures: Sequence[type[Exception]]
) -> Callable[[bytes], bytes | None]:
    """Unpacks streams that stand one after another, with zero bytes between and behind them."""

    def unpacked(data: bytes) -> bytes | None:
        texts = []
        while rest := data if not texts else data.lstrip(b'\0'):
            stream = make()
            try:
                texts.append(stream.decompress(rest))
            except tuple(failures):
                return None
            if not stream.eof:
                return None
            data = stream.unused_data
        return b''.join(texts) if texts else None

    return unpacked


CONTAINERS = {
    'plain': Container('', b'', lambda dice, text: text, lambda data: data, is_checked=False),
    'gzip': Container(
        '.gz',
        b'\x1f\x8b',
        _in_streams(_pack_gzip),
        _of_streams(lambda: zlib.decompressobj(wbits=31), [zlib.error]),
    ),
    'bzip2': Container(
        '.bz2',
        b'BZh',
        _in_streams(lambda dice, text: bz2.compress(text, dice.choice([1, 9]))),
        _of_streams(bz2.BZ2Decompressor, [OSError, ValueError]),
        re.compile(rb'BZh[1-9](1AY&SY|\x17rE8P\x90)').match,
    ),
    'xz': Container(
        '.xz',
        b'\xfd7zXZ\0',
        _in_streams(_pack_xz),
        _of_streams(lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), [lzma.LZMAError]),
    ),
    'zstd': Container(
        '.zst',
        b'\x28\xb5\x2f\xfd',
        _in_streams(_pack_zstd),
        _of_streams(lambda: zstandard.ZstdDecompressor().decompressobj(), [zstandard.ZstdError]),
    ),
}
CONTAINERS |= {
    'xz of blocks': Container(
        '.xz',
        CONTAINERS['xz'].magic,
        _in_streams(_pack_xz_of_blocks),
        CONTAINERS['xz'].unpack,
    ),
    'xz without checks': Container(
        '.xz',
        CONTAINERS['xz'].magic,
        _in_streams(_pack_unchecked_xz),
        CONTAINERS['xz'].unpack,
        is_checked=False,
    ),
    'zstd without checks': Container(
        '.zst',
        CONTAINERS['zstd'].magic,
        _in_streams(_pack_unchecked_zstd),
        CONTAINERS['zstd'].unpack,
        is_checked=False,
    ),
}


def damaged(dice: random.Random, data: bytes) -> bytes:
    """Returns a file as bad disks, broken downloads and careless hands leave it."""
    for _ in range(dice.choice([1, 1, 1, 2, 5])):
        data = dice.choice(_DAMAGES)(dice, data)
    return data


def _flip_bits(dice: random.Random, data: bytes) -> bytes:
    spoiled = bytearray(data)
    for _ in range(dice.choice([1, 1, 1, 3, 20]) if data else 0):
        spoiled[dice.randrange(len(spoiled))] ^= 1 << dice.randrange(8)
    return bytes(spoiled)


def _cut_off(dice: random.Random, data: bytes) -> bytes:
    return data[: dice.randint(0, len(data))]


def _chunk(dice: random.Random, data: bytes) -> tuple[int, int]:
    start = dice.randint(0, len(data))
    size = dice.choice([1, 4, 16, 100, 4096, len(data)])
    return start, min(start + size, len(data))


def _double_a_chunk(dice: random.Random, data: bytes) -> bytes:
    start, end = _chunk(dice, data)
    return data[:end] + data[start:]


def _zero_a_chunk(dice: random.Random, data: bytes) -> bytes:
    start, end = _chunk(dice, data)
    return data[:start] + bytes(end - start) + data[end:]


def _swap_chunks(dice: random.Random, data: bytes) -> bytes:
    start, middle, end = sorted(dice.randint(0, len(data)) for _ in range(3))
    return data[:start] + data[middle:end] + data[start:middle] + data[end:]


def _append(dice: random.Random, data: bytes) -> bytes:
    start, end = _chunk(dice, data)
    garbage = [dice.randbytes(dice.randint(1, 600)), b'\n', b'more\n', data[start:end], bytes(9)]
    return data + dice.choice(garbage)


def _mutate(dice: random.Random, data: bytes) -> bytes:
    return drawn_text.mutated(dice, data, 1)


_DAMAGES = [_flip_bits, _cut_off, _double_a_chunk, _zero_a_chunk, _swap_chunks, _append, _mutate]
