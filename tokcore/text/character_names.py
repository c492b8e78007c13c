"""What sentences call characters that cannot be shown."""

_NAMES = {'\n': 'a line feed', '\r': 'a carriage return', '\0': 'a NUL'}


def character_name(character: str) -> str:
    r"""Returns what a sentence calls a character: 'a line feed' for `\n`, its number for others."""
    return _NAMES.get(character, f'U+{ord(character):04X}')
