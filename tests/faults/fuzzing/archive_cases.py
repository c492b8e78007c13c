"""Archives of many members, sound and with their structure changed: the rows that were drawn, or a sentence."""

import gzip
import io
import random
import struct
import tarfile
import zipfile
from collections.abc import Callable

import zstandard
from packed_in_parts import xz_of_blocks, zstd_with_table
from plain import drawn_text
from plain.contents import READ, REFUSED, joint_verdict
from plain.lines import NamedText, single_rows

from .format_cases import NOT_KNOWN, count_drawn
from .room import Room

_LONGEST = 16 << 20  # the default of --max-line-size
_BLOCK = 512


def attack_archives(room: Room, dice: random.Random) -> None:
    """Counts some members of an archive, in any order, of which half of the times a part is changed."""
    members = _draw_members(dice)
    is_changed = dice.random() < 0.6
    is_zip = dice.random() < 0.35
    if is_zip:
        ending, data = '.zip', _zipped(dice, members)
        data = _changed_zip(dice, data) if is_changed else data
    else:
        ending, pack = dice.choice(_PACKERS)
        changes_tar = is_changed and dice.random() < 0.8
        tar = _tarred(dice, members)
        data = pack(dice, _changed_tar(dice, tar) if changes_tar else tar)
        if is_changed and not changes_tar:
            data = _changed_end(dice, data)
    path = f'some{ending}'
    room.write(path, data)
    pattern = dice.choice(['*', 'a/*', 'a/1*'])
    chosen = sorted(name for name in members if name.startswith(pattern.rstrip('*')))
    rows = single_rows(
        [NamedText(f'{path}!{name}', members[name]) for name in chosen], None, _LONGEST
    )
    words = ['--text', f'{path}!{pattern}', '--on-error=skip']
    words += ['@item-size', str(dice.choice([100, 5000, 1 << 20]))]
    expected = NOT_KNOWN if is_changed else rows if rows.rows else None
    if expected is rows:
        verdict = joint_verdict(members[name] for name in chosen)
        expected = rows if verdict == READ else None if verdict == REFUSED else NOT_KNOWN
    count_drawn(room, words, [path], 1, expected)


def _draw_members(dice: random.Random) -> dict[str, bytes]:
    names = [f'{dice.choice("ab")}/{number}' for number in range(dice.randint(1, 30))]
    names += dice.sample(['a/' + 'long' * 60, 'a/é', '../a/up'], dice.randint(0, 3))
    dice.shuffle(names)
    return {name: dice.choice([b'', drawn_text.text(dice)[:3000]]) for name in names}


def _tarred(dice: random.Random, members: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    kind = dice.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    with tarfile.open(fileobj=sink, mode='w', format=kind) as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return sink.getvalue()


def _zipped(dice: random.Random, members: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, 'w') as packed:
        for name, text in members.items():
            method = dice.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
            packed.writestr(zipfile.ZipInfo(name), text, method)
    return sink.getvalue()


def _in_parts(dice: random.Random, data: bytes) -> list[bytes]:
    size = dice.choice([700, 5000, 60_000])
    return [data[start : start + size] for start in range(0, len(data), size)]


_Pack = Callable[[random.Random, bytes], bytes]

_PACKERS: list[tuple[str, _Pack]] = [
    ('.tar', lambda dice, data: data),
    ('.tgz', lambda dice, data: gzip.compress(data, mtime=0)),
    ('.tar.zst', lambda dice, data: zstandard.compress(data)),
    ('.tar.zst', lambda dice, data: zstd_with_table(_in_parts(dice, data))),
    ('.tar.xz', lambda dice, data: xz_of_blocks(_in_parts(dice, data))),
]

_FIELDS = {
    'name': (0, 100),
    'size': (124, 12),
    'checksum': (148, 8),
    'type': (156, 1),
    'magic': (257, 8),
    'prefix': (345, 155),
}


def _headers(data: bytes) -> list[int]:
    """Where the headers of a sound tar begin."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [each.offset for each in tar.getmembers()]


def _changed_tar(dice: random.Random, data: bytes) -> bytes:
    """Changes a header, or the order or the number of members."""
    starts = [*_headers(data), len(data.rstrip(b'\0')) + -len(data.rstrip(b'\0')) % _BLOCK]
    parts = [data[start:end] for start, end in zip(starts, starts[1:], strict=False)]
    number = dice.randrange(len(parts))
    how = dice.choice(['field', 'field', 'field', 'twice', 'order', 'end', 'cut', 'sparse'])
    if how == 'field':
        parts[number] = _with_changed_field(dice, parts[number])
    elif how == 'twice':
        parts.insert(dice.randrange(len(parts)), parts[number])
    elif how == 'order':
        dice.shuffle(parts)
    elif how == 'sparse':
        parts.insert(number, _pax_header(dice))
    whole = b''.join(parts) + (b'' if how == 'end' else bytes(2 * _BLOCK))
    return whole[: dice.randrange(len(whole) + 1)] if how == 'cut' else whole


def _with_changed_field(dice: random.Random, part: bytes) -> bytes:
    field = dice.choice(list(_FIELDS))
    start, size = _FIELDS[field]
    header = bytearray(part[:_BLOCK])
    if field == 'size':
        told = dice.choice([0, 1, 511, 512, 513, len(part), 1 << 33, dice.randrange(1 << 20)])
        new = b'%011o\0' % told
        if dice.random() < 0.2:
            new = bytes([dice.choice([0x80, 0xFF])]) + dice.randbytes(11)  # in base 256
    elif field == 'type':
        new = dice.choice([b'0', b'\0', b'1', b'2', b'5', b'7', b'S', b'L', b'K', b'x', b'g', b'V'])
    else:
        new = dice.choice([bytes(size), dice.randbytes(size), b'a/1'.ljust(size, b'\0')[:size]])
    header[start : start + size] = new
    if field != 'checksum' and dice.random() < 0.8:
        header[148:156] = b' ' * 8
        header[148:156] = b'%06o\0 ' % sum(header)
    return bytes(header) + part[_BLOCK:]


def _pax_header(dice: random.Random) -> bytes:
    """An extended header of the next member, with a number in it that may be anything."""
    names = ['size', 'path', 'GNU.sparse.size', 'GNU.sparse.map', 'GNU.sparse.numblocks', 'mtime']
    fields = {
        name: dice.choice(['0', '7', '-1', str(1 << 40), '0,5,9,3', 'x', ''])
        for name in dice.sample(names, dice.randint(1, 4))
    }
    if dice.random() < 0.3:
        fields |= {'GNU.sparse.major': '1', 'GNU.sparse.minor': '0'}
    records = b''.join(_record(name, value) for name, value in fields.items())
    info = tarfile.TarInfo('./PaxHeaders/x')
    info.type, info.size = tarfile.XHDTYPE, len(records)
    return info.tobuf(tarfile.USTAR_FORMAT) + records + bytes(-len(records) % _BLOCK)


def _record(name: str, value: str) -> bytes:
    rest = f' {name}={value}\n'.encode()
    size = len(rest) + 1
    while len(str(size)) + len(rest) != size:
        size += 1
    return str(size).encode() + rest


def _changed_zip(dice: random.Random, data: bytes) -> bytes:
    """Changes a number of the directory, of a member's own header, or of the end."""
    changed = bytearray(data)
    magic, size = dice.choice([(b'PK\1\2', 46), (b'PK\1\2', 46), (b'PK\3\4', 30), (b'PK\5\6', 22)])
    places = [place for place in range(len(data)) if data.startswith(magic, place)]
    place = dice.choice(places)
    field = place + dice.randrange(4, size - 3)
    number = dice.choice([0, 1, 8, 0xFFFF, 0xFFFFFFFF, dice.randrange(1 << 16), len(data)])
    if dice.random() < 0.5:
        struct.pack_into('<H', changed, field, number & 0xFFFF)
    else:
        struct.pack_into('<I', changed, field - field % 2, number)
    return bytes(changed)


def _changed_end(dice: random.Random, data: bytes) -> bytes:
    """Changes bytes where indexes are."""
    changed = bytearray(data)
    for _ in range(dice.choice([1, 2, 5])):
        place = len(changed) - 1 - dice.randrange(min(len(changed), 150))
        changed[place] = dice.choice([0, 255, changed[place] ^ 1 << dice.randrange(8)])
    return bytes(changed)
