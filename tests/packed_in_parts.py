"""Compressed files with an index of parts that can be read by themselves, put together by hand."""

import lzma
import struct
import zlib

import zstandard


def number(value):
    digits = []
    while value > 127:
        digits.append(value % 128 + 128)
        value //= 128
    return bytes([*digits, value])


def crc(data):
    return struct.pack('<I', zlib.crc32(data))


def xz_of_blocks(texts, check=lzma.CHECK_CRC64):
    """One stream with a block for each text, put together from streams of one block."""
    blocks, records = b'', b''
    texts = [text for text in texts if text]  # xz makes no block of nothing
    for text in texts:
        stream = lzma.compress(text, check=check)
        index_bytes = (struct.unpack('<I', stream[-8:-4])[0] + 1) * 4
        block = stream[12 : len(stream) - 12 - index_bytes]
        index = stream[len(stream) - 12 - index_bytes :]
        assert index[:2] == b'\0\1'
        blocks += block
        records += first_number(index[2:]) + number(len(text))
    header = lzma.compress(b'', check=check)[:12]
    index = b'\0' + number(len(texts)) + records
    index += bytes(-len(index) % 4)
    index += crc(index)
    footer = struct.pack('<I', len(index) // 4 - 1) + header[6:8]
    return header + blocks + index + crc(footer) + footer + b'YZ'


def first_number(data):
    end = next(place for place, byte in enumerate(data) if byte < 128)
    return data[: end + 1]


def xz_of_streams(texts):
    return b''.join(xz_of_blocks([text]) + bytes(4 * (n % 3)) for n, text in enumerate(texts))


def zstd_with_table(texts, checksums=False):
    frames = [zstandard.ZstdCompressor(write_checksum=True).compress(text) for text in texts]
    entries = b''.join(
        struct.pack('<II', len(frame), len(text)) + bytes(4 * checksums)
        for frame, text in zip(frames, texts, strict=True)
    )
    foot = struct.pack('<IBI', len(frames), 0x80 * checksums, 0x8F92EAB1)
    head = struct.pack('<II', 0x184D2A5E, len(entries) + len(foot))
    return b''.join(frames) + head + entries + foot


PACKERS = {
    'blocks of xz': ('xz', xz_of_blocks),
    'streams of xz': ('xz', xz_of_streams),
    'frames of zstd': ('zstd', zstd_with_table),
    'frames of zstd with checksums': ('zstd', lambda texts: zstd_with_table(texts, True)),
}
