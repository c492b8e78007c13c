"""Byte-level text: the 256 characters that stand for bytes."""

from __future__ import annotations

import typing
from collections.abc import Collection, Mapping

from tokcore.errors import InputError

if typing.TYPE_CHECKING:
    import numpy as np

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]

BYTE_TO_CHARACTER: Mapping[int, str] = {
    **{byte: chr(byte) for byte in _PRINTABLE},
    **{byte: chr(0x100 + number) for number, byte in enumerate(_OTHERS)},
}
"""The character that stands for each of the 256 bytes."""

CHARACTER_TO_BYTE: Mapping[str, int] = {
    character: byte for byte, character in BYTE_TO_CHARACTER.items()
}

ALPHABET: tuple[str, ...] = tuple(sorted(CHARACTER_TO_BYTE))
"""All 256 characters by code point, the order of their ids: the one for a space is after 'ÿ'."""


_NO_BYTE = -1


def spelled(token: bytes) -> str:
    """Returns the spelling of a token in files.

    >>> spelled(' é'.encode())
    'ĠÃ©'
    """
    # Latin-1 gives each byte the character of its number, and the keys are those numbers.
    return token.decode('latin-1').translate(BYTE_TO_CHARACTER)


def spelled_tokens(spellings: Collection[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the tokens that are spelled so, many at once; other strings spell none.

    Returns:
        uint8: the bytes of the tokens, one after another.
        int64[tokens]: the size of each.
        bool[spellings]: which of them spell a token.
    """
    import numpy as np  # the declaration of a scheme, which imports this module, is without it

    codes = np.frombuffer(''.join(spellings).encode('utf-32-le', 'surrogatepass'), np.uint32)
    of_codes = np.full(1 + max(map(ord, ALPHABET)) + 1, _NO_BYTE)
    of_codes[[*map(ord, CHARACTER_TO_BYTE)]] = [*CHARACTER_TO_BYTE.values()]
    data = of_codes[np.minimum(codes, len(of_codes) - 1)]
    sizes = np.fromiter(map(len, spellings), np.int64, len(spellings))
    bad_before = np.append(0, np.cumsum(data == _NO_BYTE))
    ends = np.cumsum(sizes)
    are_tokens = bad_before[ends] == bad_before[ends - sizes]
    return data[np.repeat(are_tokens, sizes)].astype(np.uint8), sizes[are_tokens], are_tokens


def token_bytes(spelling: str) -> bytes:
    """Returns the token that a file spells so.

    >>> token_bytes('ĠÃ©').decode()
    ' é'

    Raises:
        InputError: a character does not stand for a byte.
    """
    try:
        return bytes(map(CHARACTER_TO_BYTE.__getitem__, spelling))
    except KeyError as error:
        raise InputError(
            f'{spelling!r:.200} does not spell bytes: {error.args[0]!r} is not in the byte-level '
            'alphabet; give a vocabulary that is byte-level throughout'
        ) from None
