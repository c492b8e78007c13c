"""Files that tell when they are damaged."""

import pytest

from pipelines.files.attempts import read_checked, write_checked
from tokcore.errors import InputError


@pytest.mark.parametrize('pieces', [[], [b''], [b'content'], [b'con', b'', b'tent' * 5000]])
def test_gives_back_what_was_written(tmp_path, pieces):
    path = str(tmp_path / 'file')
    write_checked(path, *pieces)
    assert read_checked(path) == b''.join(pieces)


def test_every_flipped_bit_is_told(tmp_path):
    path = tmp_path / 'file'
    write_checked(str(path), b'{"some": "content"}')
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        path.write_bytes(flipped(whole, bit))
        with pytest.raises(InputError, match='is damaged; run again, and it is made anew') as told:
            read_checked(str(path))
        assert str(path) in str(told.value)


def test_every_cut_is_told(tmp_path):
    path = tmp_path / 'file'
    write_checked(str(path), b'content')
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match='is damaged'):
            read_checked(str(path))
    path.write_bytes(whole + b'\0')
    with pytest.raises(InputError, match='is damaged'):
        read_checked(str(path))


def test_a_missing_file_is_told_to_be_made_anew(tmp_path):
    with pytest.raises(InputError, match='file is missing; run again, and it is made anew'):
        read_checked(str(tmp_path / 'file'))


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
