"""BERT's tokens beside those of Hugging Face's `tokenizers`: which characters differ, and why.

What differs is derived from Unicode's data and three rules, and compared as a set. `tokenizers` has
general categories of Unicode 8.0, a range of Chinese characters that begins 256 too late, and does
not normalize to NFC.
"""

import unicodedata

import pytest
from characters import EVERY_CHARACTER, SAMPLE
from hypothesis import given
from hypothesis import strategies as st

from tokcore.text.bert_plain import bert_tokens

pytestmark = pytest.mark.slow

# Where the marks, punctuation and format characters are that came after Unicode 8.0; what else
# lies between them came later too, or has not come yet (DerivedAge.txt, up to 14.0).
_LATER = """
61D 7FD 890-89F 8CA-8E2 9FD-9FE A76 AFA-AFF B55 C04 C3C C77 C84 D00 D3B-D3C D81 EBA 180F 1ABF-1ACE
1B7D-1B7E 1DF6-1DFB 2E43-2E5D A82C A8C5 A8FF 10D24-10D27 10EAB-10F89 11070-11074 110C2-110CD 111CF
1123E 1133B 11438-1145E 11660-1166C 116B9 1182F-1183B 1193B-11AA2 11C30-11FFF 12FF1-12FF2
13430-13438 16E97-16E9A 16F4F 16FE2-16FE4 1CF00-1CF46 1E000-1E2EF 1E944-1E95F
"""
# Of earlier ones the category changed since 8.0 (UnicodeData.txt of both): what it was then.
CATEGORY_THEN = {
    '\u166d': 'Po', '\u1734': 'Mn', '\u1885': 'Lo', '\u1886': 'Lo', '\ua9bd': 'Mc',
    '\U000111c9': 'Po',
}  # fmt: skip
DECOMPOSED_LATER = '\U00011938'  # the only one whose decomposition is not known there
NOT_SPACED = range(0x2B820, 0x2B920)  # the range begins at 2B920 where 2B820 was meant

OPTIONS = pytest.mark.parametrize(('lower_case', 'assigned'), [(True, 760), (False, 1509)])


def code_points(ranges):
    bounds = (each.partition('-') for each in ranges.split())
    return {
        code_point
        for first, _, last in bounds
        for code_point in range(int(first, 16), int(last or first, 16) + 1)
    }


LATER = code_points(_LATER)


def category_then(character):
    """Its category in Unicode 8.0, if it is a mark, punctuation or a format character now."""
    if ord(character) in LATER:
        return 'Cn'
    return CATEGORY_THEN.get(character, unicodedata.category(character))


def should_differ(character, lower_case):
    """Whether the two have other tokens for a character, by what Unicode says of it."""
    now, then = unicodedata.category(character), category_then(character)
    if now == 'Cn':
        return True  # dropped here, kept there
    if ord(character) in NOT_SPACED or (now == 'Cf') != (then == 'Cf'):
        return True
    if (now[0] == 'P') != (then[0] == 'P'):
        return True
    if lower_case:
        return (now == 'Mn') != (then == 'Mn') or character == DECOMPOSED_LATER
    text = f'a{character}b'
    return now != 'Zs' and unicodedata.normalize('NFC', text) != text  # Zs is cleaned before


@pytest.fixture(scope='module')
def tokens_there(tokenizers):
    """Gives the tokens of `tokenizers`, before they are cut into pieces."""

    def tokens(text, lower_case):
        normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lower_case)
        pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        normalized = normalizer.normalize_str(text)
        return [token for token, _ in pre_tokenizer.pre_tokenize_str(normalized)]

    return tokens


@OPTIONS
@pytest.mark.parametrize(
    'characters',
    [
        pytest.param(SAMPLE, id='a sample'),
        pytest.param(EVERY_CHARACTER, id='every character', marks=pytest.mark.corpora),
    ],
)
def test_characters_between_letters_differ_where_unicode_says_so(
    tokens_there, characters, lower_case, assigned
):
    if unicodedata.unidata_version != '14.0.0':
        pytest.skip('what came after Unicode 8.0 is listed up to 14.0')
    expected = {each for each in EVERY_CHARACTER if should_differ(each, lower_case)}
    known = {each for each in expected if unicodedata.category(each) != 'Cn'}
    assert len(known) == assigned
    tried = {*characters, *known}
    differing = {
        each
        for each in tried
        if bert_tokens(f'a{each}b', 'bert', lower_case) != tokens_there(f'a{each}b', lower_case)
    }
    assert differing == expected & tried


@given(
    st.text(
        st.one_of(
            st.characters(codec='utf-8', exclude_categories=['Cn', 'M', 'Lo']),
            st.sampled_from("aÀÉ文字ひカ가, .-'\t\nσΣς"),
        ),
        max_size=30,
    ),
    st.booleans(),
)
def test_other_text_is_the_same(tokens_there, text, lower_case):
    kept = ''.join(each for each in text if not should_differ(each, lower_case))
    assert bert_tokens(kept, 'bert', lower_case) == tokens_there(kept, lower_case)
