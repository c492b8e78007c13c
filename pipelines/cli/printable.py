"""Text for a terminal or a file of lines: what names of files may hold moves no cursor in it.

All that the command prints goes through here: its sentences and the log by `printable`, what is
meant to be stored by an escape that whoever reads it understands.
"""

import logging
from collections.abc import Callable
from typing import Any, TextIO


def printable(text: str, stream: TextIO | None) -> str:
    r"""Returns a text on one line, in characters that a stream takes; others as `\x1b`, `\ud800`.

    Args:
        text: of any characters.
        stream: that it is for; it may have no encoding.
    """
    return escaped(text, stream, lambda character: ascii(character)[1:-1])


def printable_lines(text: str, stream: TextIO | None) -> str:
    """Returns the same of each line of a text."""
    return '\n'.join(printable(line, stream) for line in text.split('\n'))


def escaped(text: str, stream: TextIO | None, escape: Callable[[str], str]) -> str:
    """Returns a text in which characters that are not printable, or not of a stream, are escaped."""
    encoding = getattr(stream, 'encoding', None) or 'utf-8'
    if text.isprintable() and _fits(text, encoding):
        return text
    return ''.join(
        character if character.isprintable() and _fits(character, encoding) else escape(character)
        for character in text
    )


def _fits(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


class LogFormatter(logging.Formatter):
    """Writes a record after the command's name: what this program says on one line.

    What others log, as Beam does tracebacks, keeps its lines.
    """

    def __init__(self, stream: TextIO | None):
        super().__init__('tokbeam: %(mark)s%(message)s')
        self._stream = stream

    def formatMessage(self, record: logging.LogRecord) -> str:
        is_ours = record.name.startswith(('pipelines', 'tokcore'))
        record.mark = 'warning: ' if is_ours and record.levelno == logging.WARNING else ''
        shown = printable if is_ours else printable_lines
        return shown(super().formatMessage(record), self._stream)

    def formatException(self, ei: Any) -> str:
        return printable_lines(super().formatException(ei), self._stream)

    def formatStack(self, stack: str) -> str:
        return printable_lines(super().formatStack(stack), self._stream)
