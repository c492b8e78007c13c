"""A vocabulary file: one subtoken a line in quotes, the line number is the id."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.errors import InputError
from tokcore.subword.vocabulary_file import dump_vocabulary, parse_vocabulary

RESERVED = ['<pad>_', '<EOS>_']


def test_one_quoted_subtoken_a_line():
    assert dump_vocabulary([*RESERVED, 'the_', "'", 'é', ' ']) == (
        "'<pad>_'\n'<EOS>_'\n'the_'\n'''\n'é'\n' '\n".encode()
    )


def test_a_line_feed_by_itself_takes_its_id_and_nothing_else_holds_one():
    data = dump_vocabulary([*RESERVED, '\n', '\\10;_'])
    assert data.endswith(b"'\n''\n'\\10;_'\n")
    assert parse_vocabulary(data, 'v') == [*RESERVED, '', '\\10;_']
    for wrong in ('a\n', '\n\n', '\r', 'a\rb'):
        with pytest.raises(ValueError, match='which a vocabulary file cannot hold'):
            dump_vocabulary([*RESERVED, wrong])


@settings(deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\r\n'), max_size=5)
    )
)
def test_what_is_written_is_read(subtokens):
    assert parse_vocabulary(dump_vocabulary(RESERVED + subtokens), 'v') == RESERVED + subtokens


@pytest.mark.parametrize('reserved', [['<pad>', '<EOS>'], ['<pad>_', '<EOS>_'], ['<pad>', '<eos>']])
def test_both_spellings_of_the_reserved_tokens(reserved):
    data = ''.join(f"'{subtoken}'\n" for subtoken in [*reserved, 'a']).encode()
    assert parse_vocabulary(data, 'v') == [*reserved, 'a']


@pytest.mark.parametrize(
    'line, subtoken',
    [
        ("'a_'", 'a_'),
        ('"a_"', 'a_'),
        ('a_', 'a_'),
        ("'a_' \t\u3000", 'a_'),  # whitespace at the end goes before the quotes
        ("' a '", ' a '),
        ("  'a'", "  'a'"),  # whitespace in front stays, so this is unquoted
        ('', ''),
        ("''", ''),
        ("'", ''),
        ("'''", "'"),
        ('\'a"', '\'a"'),  # not a pair
        ("'a\r'\r", 'a'),
        ('\u2028x\x0b\x85y', '\u2028x\x0b\x85y'),  # not line ends
    ],
)
def test_a_line_gives_a_subtoken(line, subtoken):
    data = f"'<pad>'\n'<EOS>'\n{line}\nlast".encode()
    assert parse_vocabulary(data, 'v') == ['<pad>', '<EOS>', subtoken, 'last']


def test_blank_lines_have_ids_and_a_last_line_needs_no_end():
    assert parse_vocabulary(b'<pad>\n<EOS>\n\n\n', 'v') == ['<pad>', '<EOS>', '', '']
    assert parse_vocabulary(b'<pad>\n<EOS>', 'v') == ['<pad>', '<EOS>']


@pytest.mark.parametrize('subtoken', ['\n', 'a\rb', '\ud800'])
def test_what_would_not_come_back_is_not_written(subtoken):
    with pytest.raises(ValueError, match='subtoken 2'):
        dump_vocabulary([*RESERVED, subtoken])


@pytest.mark.parametrize(
    'data, reason',
    [
        (b'', 'empty'),
        (b"'<pad>_'\n'<EOS>_'\n'a'\n'\xff'\n", 'line 4 is not UTF-8 at byte offset 23'),
        (b'hello\nworld\n', "line 1 is 'hello' where a vocabulary has '<pad>'"),
        (b"'<pad>_'\n'the_'\n", "line 2 is 'the_' where a vocabulary has '<EOS>'"),
        (b"'<pad>_'\n", 'ends before line 2'),
        (b'\xef\xbb\xbf<pad>\n<EOS>\n', 'line 1'),
        (b'x' * 10_000, 'line 1'),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused_by_name(data, reason):
    with pytest.raises(InputError) as caught:
        parse_vocabulary(data, 'some/file.subwords')
    message = str(caught.value)
    assert message.startswith('some/file.subwords: ') and reason in message
    assert len(message) < 300 and '\n' not in message
