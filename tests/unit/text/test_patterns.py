"""The patterns of models in plain Python."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.text.patterns import DEFINITIONS, PATTERNS, named_pattern, pattern_trees, split

ANY = st.one_of(st.characters(), st.sampled_from(" \t\r\n'sl1./SX\u0301"))


@pytest.mark.parametrize(
    ('text', 'gpt2', 'cl100k'),
    [
        ('', '', ''),
        ('Hello  big world', 'Hello| | big| world', 'Hello| | big| world'),
        # Contractions, which only cl100k finds in capitals, and not after a blank.
        ("I'll don't 's", "I|'ll| don|'t| '|s", "I|'ll| don|'t| '|s"),
        ("I'LL we'RE", "I|'|LL| we|'|RE", "I|'LL| we|'RE"),
        ("'sand 'tis", "'s|and| '|tis", "'s|and| '|tis"),
        ("o'clock ''s", "o|'|clock| ''|s", "o|'clock| ''|s"),
        ("a'ſb", "a|'|ſb", "a|'ſ|b"),
        # Numbers.
        ('12345 6789', '12345| 6789', '123|45| |678|9'),
        ('x²½٣٤٥', 'x|²½٣٤٥', 'x|²½٣|٤٥'),
        # What stands before letters.
        ('(abc) —x ..y', '(|abc|)| —|x| ..|y', '(abc|)| —|x| ..|y'),
        ('a—x\tb\xa0c', 'a|—|x|\t|b|\xa0|c', 'a|—x|\tb|\xa0c'),
        # White space gives up its last character to what follows, and keeps it at the end.
        ('a   b   ', 'a|  | b|   ', 'a|  | b|   '),
        ('\t\t\t1', '\t\t|\t|1', '\t\t|\t|1'),
        # Line breaks.
        ('a.\r\n  b', 'a|.|\r\n | b', 'a|.\r\n| | b'),
        ('a \n \n  b', 'a| \n \n | b', 'a| \n \n| | b'),
        ('a\n \n', 'a|\n \n', 'a|\n \n'),
        ('a\n  ', 'a|\n  ', 'a|\n  '),
        # Marks are not letters, and U+001C to U+001F are not white space.
        ('e\u0301x\x1cy', 'e|\u0301|x|\x1c|y', 'e|\u0301x|\x1cy'),
    ],
)
def test_cases(text, gpt2, cl100k):
    assert '|'.join(split(text, 'gpt2')) == gpt2
    assert '|'.join(split(text, 'cl100k')) == cl100k
    if text != 'a\n  ':
        assert '|'.join(split(text, 'llama3')) == cl100k


@pytest.mark.parametrize(
    ('text', 'cl100k', 'llama3'),
    [
        ('a\n  ', 'a|\n  ', 'a|\n|  '),
        ('a \n\t\r\n b', 'a| \n\t\r\n| b', 'a| \n\t\r\n| b'),
        ('a \r\n \n', 'a| \r\n \n', 'a| \r\n \n'),
        ('.\n ', '.\n| ', '.\n| '),
        ('\n \n ', '\n \n ', '\n \n| '),
    ],
)
def test_llama3_cuts_white_space_at_the_end_after_its_last_line_break(text, cl100k, llama3):
    assert '|'.join(split(text, 'cl100k')) == cl100k
    assert '|'.join(split(text, 'llama3')) == llama3


@given(st.text(ANY), st.sampled_from(PATTERNS))
def test_tokens_joined_are_the_text(text, pattern):
    tokens = split(text, pattern)
    assert ''.join(tokens) == text and '' not in tokens


@pytest.mark.parametrize(
    ('text', 'o200k', 'tekken'),
    [
        ("HelloWorld IT'S it's", "Hello|World| IT'S| it's", "Hello|World| IT|'S| it|'s"),
        ('12345 ٣٤٥٦', '123|45| |٣٤٥|٦', '1|2|3|4|5| |٣|٤|٥|٦'),
        ('字AB字C 字AB', '字AB字|C| 字|AB', '字AB字|C| 字|AB'),
        # A mark stands for either kind of letter, and before a word.
        (
            '\u0301AB!\u0301a !\u0301a',
            '\u0301|AB|!\u0301a| !\u0301|a',
            '\u0301|AB|!\u0301a| !\u0301|a',
        ),
        ('a//\n/b/c', 'a|//\n/|b|/c', 'a|//\n/|b|/c'),
        ('McDonaldʰX', 'Mc|Donaldʰ|X', 'Mc|Donaldʰ|X'),
        ('a \n  ', 'a| \n|  ', 'a| \n|  '),
    ],
)
def test_cases_of_cased_words(text, o200k, tekken):
    assert '|'.join(split(text, 'o200k')) == o200k
    assert '|'.join(split(text, 'tekken')) == tekken


def test_marks_are_letters_of_qwen3_5_alone():
    text = 'e\u0301!\u0301x 12'
    assert '|'.join(split(text, 'qwen2')) == 'e|\u0301!\u0301|x| |1|2'
    assert '|'.join(split(text, 'qwen3.5')) == 'e\u0301|!\u0301x| |1|2'


def test_a_sequence_cuts_the_tokens_of_the_split_before():
    assert '|'.join(split('漢字12345ab  c!?', 'deepseek')) == '漢字|123|45|ab| | c|!?'


def test_each_pattern_has_expressions_of_its_own():
    assert {*DEFINITIONS} == {*PATTERNS}
    assert [named_pattern(pattern_trees(name)) for name in PATTERNS] == [*PATTERNS]
