"""What is printed moves no cursor, and is of characters that the stream takes."""

import io
import logging
import sys

import pytest

from pipelines.cli.job_file import tomllib
from pipelines.cli.printable import LogFormatter, printable
from pipelines.cli.terminal import print_lines, print_toml


def stream(encoding):
    return io.TextIOWrapper(io.BytesIO(), encoding)


@pytest.mark.parametrize(
    ('text', 'encoding', 'shown'),
    [
        ('a/ü 中', 'utf-8', 'a/ü 中'),
        ('a\x1b]0;pwned\x07\n\u202e\x9b', 'utf-8', r'a\x1b]0;pwned\x07\n\u202e\x9b'),
        ('ü\udcc3', 'utf-8', r'ü\udcc3'),
        ('ü中\U0001f600', 'ascii', r'\xfc\u4e2d\U0001f600'),
        ('ü中', 'latin-1', r'ü\u4e2d'),
    ],
)
def test_what_moves_a_cursor_or_has_no_code_is_escaped(text, encoding, shown):
    assert printable(text, stream(encoding)) == shown
    assert printable(text, io.StringIO()) == printable(text, stream('utf-8'))


def formatted(name, message, *arguments, error=None):
    record = logging.LogRecord(name, logging.INFO, '', 0, message, arguments, error)
    return LogFormatter(stream('utf-8')).format(record)


def test_the_log_has_a_line_of_each_message_of_ours():
    said = formatted('pipelines.engines.progress', 'fetched %s', 'a\ntokbeam: b\x1b[2J')
    assert said == r'tokbeam: fetched a\ntokbeam: b\x1b[2J'


def test_what_others_log_and_tracebacks_keep_their_lines():
    assert formatted('apache_beam.x', 'a\nb\x1b') == 'tokbeam: a\nb\\x1b'
    try:
        raise ValueError('a\x1b')
    except ValueError:
        error = sys.exc_info()
    said = formatted('pipelines.x', 'b', error=error)
    assert said.startswith('tokbeam: b\nTraceback') and said.endswith('\nValueError: a\\x1b')


def test_a_job_file_stays_the_same_in_other_characters(monkeypatch):
    text = 'a = "ü \u202e\U0001f600\\n"\n"ö" = 1\n'
    ascii_stream = stream('ascii')
    monkeypatch.setattr(sys, 'stdout', ascii_stream)
    print_toml(text)
    ascii_stream.flush()
    written = ascii_stream.buffer.getvalue()
    assert written.isascii() and tomllib.loads(written.decode()) == tomllib.loads(text)
    assert b'\\u202E' in written


def test_lines_are_lines(capsys):
    print_lines(['a\x1bb', 'c\nd'])
    assert capsys.readouterr().out == 'a\\x1bb\nc\\nd\n'
