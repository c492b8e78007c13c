"""Byte-level text: the 256 characters that stand for bytes."""

from collections.abc import Mapping

from tokcore.errors import InputError

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


def spelled(token: bytes) -> str:
    """Returns the spelling of a token in files.

    >>> spelled(' é'.encode())
    'ĠÃ©'
    """
    # Latin-1 gives each byte the character of its number, and the keys are those numbers.
    return token.decode('latin-1').translate(BYTE_TO_CHARACTER)


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
