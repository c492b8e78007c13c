"""Text for a terminal or a file of lines: what names of files may hold moves no cursor in it.

All that the command prints goes through here: its sentences and the log by `printable`, what is
meant to be stored by an escape that whoever reads it understands.
"""

import contextlib
import logging
import os
import re
import unicodedata
from collections.abc import Callable
from typing import Any, TextIO

GOES_ON = ' \\'
"""At the end of a line of a command that is broken: a shell takes it with the next line."""

_WORDS = {
    '': re.compile(r'\s*\S+'),
    GOES_ON: re.compile(r"""\s*(?:--\S+ (?!-))?(?:'[^']*'|"[^"]*"|\S)+"""),
}
"""Each with the blanks before it; in a command an option with its value is one, and a quoted word."""

_COLOUR = re.compile(r'\x1b\[[0-9]*m')


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


def fitted(line: str, stream: TextIO | None, ending: str = '') -> str:
    """Returns a line as `broken` does for a terminal, and as it is elsewhere."""
    if stream is None or not stream.isatty():
        return line
    return broken(line, columns_of(stream), ending)


def broken(line: str, columns: int, ending: str = '') -> str:
    r"""Returns a line, broken between words where it is longer than so many columns of a terminal.

    Later lines are two columns further in. A word that is longer than a line stays whole.

    Args:
        line: it may have colours.
        columns: of a line.
        ending: of each line but the last, `GOES_ON` in a command.

    >>> broken('  from corpus.en, line 17', 16)
    '  from\n    corpus.en,\n    line 17'
    """
    if _columns(line) <= columns:
        return line
    indent = ' ' * (len(line) - len(line.lstrip(' ')) + 2)
    lines: list[str] = []
    here = ''
    for word in _WORDS[ending].findall(line):
        if here.strip() and _columns(here + word + ending) > columns:
            lines.append(here + ending)
            here = indent + word.lstrip()
        else:
            here += word
    return '\n'.join([*lines, here])


def columns_of(terminal: TextIO) -> int:
    """Returns how many columns a terminal has; 80 if it does not say."""
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(terminal.fileno()).columns or 80
    return 80


def _columns(text: str) -> int:
    """Returns how many columns a text takes."""
    text = _COLOUR.sub('', text)
    wide = 0 if text.isascii() else sum(unicodedata.east_asian_width(each) in 'FW' for each in text)
    return len(text) + wide


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
        ending = GOES_ON if is_ours and record.message.startswith('next: tokbeam ') else ''
        lines = shown(super().formatMessage(record), self._stream).split('\n')
        return '\n'.join(fitted(line, self._stream, ending) for line in lines)

    def formatException(self, ei: Any) -> str:
        return printable_lines(super().formatException(ei), self._stream)

    def formatStack(self, stack: str) -> str:
        return printable_lines(super().formatStack(stack), self._stream)
