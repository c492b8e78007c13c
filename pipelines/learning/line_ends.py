"""What a vocabulary file, one subtoken a line, cannot hold."""

from collections.abc import Iterable


class LineEndError(ValueError):
    """A token to learn from has a line feed or a carriage return."""


def refuse_line_ends(alphabet: Iterable[str]) -> None:
    """Raises LineEndError if a line feed or a carriage return is among the characters of tokens."""
    if not {'\n', '\r'}.isdisjoint(alphabet):
        raise LineEndError(
            'a token with a line feed or a carriage return cannot be stored in a vocabulary file'
        )
