"""Bytes as characters that can be seen, in files of byte-level vocabularies.

GPT-2's alphabet: bytes that are printable in Latin-1 are themselves, the other 68 are U+0100 to
U+0143 in their order. So a space is 'Ġ' and a line break 'Ċ'.
"""

from collections.abc import Mapping

from tokcore.errors import InputError

_THEMSELVES = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _THEMSELVES]

BYTE_TO_CHARACTER: Mapping[int, str] = {
    **{byte: chr(byte) for byte in _THEMSELVES},
    **{byte: chr(0x100 + number) for number, byte in enumerate(_OTHERS)},
}
"""The character of each of the 256 bytes."""

CHARACTER_TO_BYTE: Mapping[str, int] = {
    character: byte for byte, character in BYTE_TO_CHARACTER.items()
}

ALPHABET: tuple[str, ...] = tuple(sorted(CHARACTER_TO_BYTE))
"""All 256 characters by code point, the order in which they have ids: the space's is behind 'ÿ'."""


def spelled(token: bytes) -> str:
    """Returns how files spell a token.

    >>> spelled(' é'.encode())
    'ĠÃ©'
    """
    # Latin-1 gives each byte the character of its number, and those are the keys.
    return token.decode('latin-1').translate(BYTE_TO_CHARACTER)


def token_bytes(spelling: str) -> bytes:
    """Returns the token that is spelled so in a file.

    >>> token_bytes('ĠÃ©').decode()
    ' é'

    Raises:
        InputError: a character stands for no byte.
    """
    try:
        return bytes(map(CHARACTER_TO_BYTE.__getitem__, spelling))
    except KeyError as error:
        raise InputError(
            f'{spelling!r:.200} spells no bytes: {error.args[0]!r} is not in the byte-level '
            'alphabet; give a vocabulary that is byte-level throughout'
        ) from None
