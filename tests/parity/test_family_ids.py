"""Families of trained models: ids and texts are those of `tokenizers` for a file with exactly their parts."""

import json
import unicodedata

import pytest
from families import FAMILIES, family_file, lines
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.bytes_of_ids import byte_lengths
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer
from tokcore.schemes import find_scheme, schemes_of_file

ODD = "²³¹¼½¾ªµº¡§·0123456789٣ⅷ½ '!?.,_\t\n\u00a0\u3000\u0301éßΣÀ中文字。、한🙂👍🏽"
PHRASES = [*{word: None for line in lines()[::7] for word in line.split(' ')}][:2_000]
TEXTS = st.one_of(
    st.lists(st.sampled_from([*PHRASES, ' ', '  ', *ODD]), max_size=20).map(''.join),
    st.lists(st.sampled_from(PHRASES), max_size=8).map(' '.join),
    st.text(ODD, max_size=30),
    st.text(
        st.characters(max_codepoint=0x2FFF, exclude_categories=['Cs', 'Cn', 'Co']), max_size=20
    ).filter(lambda text: unicodedata.normalize('NFC', text) == text),
)


def opened(tokenizers, family):
    """The family's file as `tokenizers` and as we open it; without lengths, as transformers uses it."""
    data = family_file(tokenizers, family)
    theirs = tokenizers.Tokenizer.from_str(data)
    theirs.no_truncation()
    theirs.no_padding()
    vocabulary = parse_pretrained(data.encode(), f'{family}.json')
    return theirs, PretrainedTokenizer(vocabulary, allow_special_tokens=True)


@pytest.mark.parametrize('family', FAMILIES)
def test_ids_and_texts(tokenizers, family):
    theirs, ours = opened(tokenizers, family)
    texts = lines()
    expected = [each.ids for each in theirs.encode_batch(texts)]
    assert ours.encode_batch(texts) == expected
    joined = '\n'.join(texts) * 6  # a row of parts
    assert ours.encode(joined) == theirs.encode(joined).ids

    @given(TEXTS)
    @settings(database=None)
    @example('')
    @example('x²y³12345²67 ²²²')
    @example('<|endoftext|> a</w> </w> <unk>[SEP]')
    def same(text):
        encoding = theirs.encode(text)
        ids = encoding.ids
        assert ours.encode(text) == ids
        assert [*ours.encode_with_offsets(text).offsets] == encoding.offsets
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)

    same()


def test_lengths_of_a_file_are_ignored_with_a_line(tokenizers, tmp_path, caplog):
    data = family_file(tokenizers, 'MiniLM').encode()
    path = str(tmp_path / 'tokenizer.json')
    for _ in range(2):  # once for each file
        tokenizer = PretrainedTokenizer(parse_pretrained(data, path))
    assert len(tokenizer.encode('one two three four five six seven eight')) > 6
    said = (
        f'{path}: ignored truncation and padding, as AutoTokenizer does; rows keep all of their ids'
    )
    assert [record.getMessage() for record in caplog.records] == [said]


def test_whole_rows_with_a_suffix(tokenizers):
    file = {
        **json.loads(family_file(tokenizers, 'GPT-1')),
        'normalizer': None,
        'pre_tokenizer': None,
    }
    data = json.dumps(file)
    ours = PretrainedTokenizer(parse_pretrained(data.encode(), 'x.json'))
    texts = lines()[:200]
    expected = [each.ids for each in tokenizers.Tokenizer.from_str(data).encode_batch(texts)]
    assert ours.encode_batch(texts) == expected


@pytest.mark.parametrize('family', FAMILIES)
def test_files_are_of_the_scheme_pretrained(tokenizers, family):
    assert schemes_of_file(family_file(tokenizers, family).encode()) == ['pretrained']


@pytest.mark.parametrize(
    ('rules', 'said'),
    [
        ({'fuse_unk': True}, "the suffix '</w>' and fuse_unk"),
        ({'byte_fallback': True}, "the suffix '</w>' and byte_fallback"),
        ({'ignore_merges': True}, "the suffix '</w>' and ignore_merges"),
        ({'unk_token': None}, "the suffix '</w>' and no unk_token"),
        ({'unk_token': 'e'}, "the suffix '</w>' and a merge of unk_token"),
        ({'end_of_word_suffix': 1}, 'the suffix 1'),
    ],
)
def test_rules_that_do_not_go_with_a_suffix(tokenizers, rules, said):
    file = json.loads(family_file(tokenizers, 'HerBERT'))
    file['model'] |= rules
    with pytest.raises(
        InputError, match=rf'^x.json: {said} at \$\.model\.end_of_word_suffix is not'
    ):
        parse_pretrained(json.dumps(file).encode(), 'x.json')


def test_the_scheme_bpe_refuses_a_suffix(tokenizers):
    data = family_file(tokenizers, 'CLIP').encode()
    with pytest.raises(InputError, match='end_of_word_suffix; give --scheme pretrained'):
        find_scheme('bpe').parse(data, 'x.json')


@pytest.mark.parametrize('family', ['CLIP', 'HerBERT', 'GPT-1'])
def test_a_suffix_has_no_bytes_of_text(tokenizers, family):
    _, ours = opened(tokenizers, family)
    ids = ours.encode('the words of a text')
    assert ids and byte_lengths(ours)[ids].sum() == len('thewordsofatext')
