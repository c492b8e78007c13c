"""What is printed moves no cursor, is of characters that the stream takes, and breaks between words."""

import io
import logging
import shlex
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pseudo_terminal import PseudoTerminal

from pipelines.cli.job_file import tomllib
from pipelines.cli.printable import GOES_ON, LogFormatter, broken, fitted, printable
from pipelines.cli.terminal import print_data, print_lines, print_toml


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


WORD = st.text('ab-中', min_size=1, max_size=9)


@given(st.lists(WORD, min_size=1), st.integers(0, 4), st.integers(1, 30))
def test_lines_break_between_words_alone(words, indent, columns):
    lines = broken(' ' * indent + ' '.join(words), columns).split('\n')
    assert [word for line in lines for word in line.split(' ') if word] == words
    for line in lines:
        wide = sum(each == '中' for each in line)
        assert len(line) + wide <= columns or len(line.split()) == 1
    assert all(line.startswith(' ' * (indent + 2)) for line in lines[1:])


@given(st.lists(st.text("ab-'$ ", min_size=1, max_size=9), min_size=1), st.integers(1, 30))
def test_a_command_that_is_broken_is_the_same_to_a_shell(words, columns):
    command = shlex.join(words)
    assert shlex.split(broken(command, columns, GOES_ON).replace('\\\n', '')) == words


def test_colours_take_no_columns():
    assert broken('\x1b[36mab\x1b[0m \x1b[33mcd\x1b[0m', 5) == '\x1b[36mab\x1b[0m \x1b[33mcd\x1b[0m'
    assert broken('\x1b[36mab\x1b[0m cd', 4) == '\x1b[36mab\x1b[0m\n  cd'


def test_only_a_terminal_has_lines_that_are_broken(monkeypatch):
    line = 'tokbeam: train: 1,004,280 lines read, 1,004,280 examples in 10 shards'
    assert fitted(line, stream('utf-8')) == line
    terminal = PseudoTerminal(columns=40)
    monkeypatch.setattr(sys, 'stdout', terminal.stream)
    print_lines([line])
    print_data([line])
    formatter = LogFormatter(terminal.stream)
    for message in (
        line.removeprefix('tokbeam: '),
        'next: tokbeam tokenize --vocab /tmp/out/vocab < TEXT',
    ):
        record = logging.LogRecord('pipelines.x', logging.INFO, '', 0, message, (), None)
        print(formatter.format(record))
    whole = ['tokbeam: train: 1,004,280 lines read,', '  1,004,280 examples in 10 shards']
    command = ['tokbeam: next: tokbeam tokenize \\', '  --vocab /tmp/out/vocab < TEXT']
    assert terminal.close().splitlines() == [*whole, line, *whole, *command]
