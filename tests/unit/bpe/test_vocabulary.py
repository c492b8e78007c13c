"""tokenizer.json is read whole or refused by the name and the place of what is not understood."""

import copy
import json

import pytest

from tokcore.bpe.scheme import SCHEME
from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary
from tokcore.encoding.vocabulary import Template
from tokcore.errors import InputError
from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.text.patterns import DEFINITIONS
from tokcore.tokenizers import BpeTokenizer

ALPHABET = sorted(BYTE_TO_CHARACTER[byte] for byte in range(256))
MERGES = (('t', 'h'), ('th', 'e'), ('Ġ', 'the'))
SPECIAL = ('<s>', '</s>')
VOCABULARY = BpeVocabulary.learned([*SPECIAL, *ALPHABET, 'th', 'the', 'Ġthe'], MERGES, SPECIAL)
BYTE_LEVEL = VOCABULARY.parts.components['pre_tokenizer']
CL100K = {
    'type': 'Split',
    'pattern': {'Regex': DEFINITIONS['cl100k'].expressions[0]},
    'behavior': 'Isolated',
    'invert': False,
}


def file_with(place='', value=None):
    """The file as JSON, with another value at a place such as 'model.dropout'."""
    file = json.loads(VOCABULARY.dump())
    *folders, name = place.split('.')
    inner = file
    for each in folders:
        inner = inner[each]
    if name:
        inner[name] = copy.deepcopy(value)
    return file


def parsed(place='', value=None):
    return SCHEME.parse(json.dumps(file_with(place, value)).encode(), 'x.json')


def test_what_was_written_is_read():
    again = SCHEME.parse(VOCABULARY.dump(), 'x.json')
    assert again == VOCABULARY
    assert again.dump() == VOCABULARY.dump()
    assert SCHEME.recognizes(VOCABULARY.dump())
    assert not SCHEME.recognizes(b'{"model": {"type": "WordPiece"}}')
    assert not SCHEME.recognizes(b'{')
    assert list(file_with()) == [
        'version', 'truncation', 'padding', 'added_tokens', 'normalizer', 'pre_tokenizer',
        'post_processor', 'decoder', 'model',
    ]  # fmt: skip


def test_ids_pieces_and_text():
    tokenizer = BpeTokenizer(VOCABULARY)
    assert tokenizer.tokenize('the the\n') == ['the', 'Ġthe', 'Ċ']
    assert tokenizer.decode(tokenizer.encode('the thé \r\t')) == 'the thé \r\t'
    assert tokenizer.decode([VOCABULARY.id_of('Ã')]) == '\ufffd'
    assert tokenizer.decode_bytes([VOCABULARY.id_of('Ã')]) == b'\xc3'
    assert tokenizer.decode([0]) == '<s>'
    assert tokenizer.vocab_size == 261


def test_special_tokens_are_text_unless_they_are_allowed():
    text = 'the<s>the'
    assert BpeTokenizer(VOCABULARY).tokenize(text) == ['the', '<', 's', '>', 'the']
    allowed = BpeTokenizer(VOCABULARY, allow_special_tokens=True)
    assert allowed.tokenize(text) == ['the', '<s>', 'the']
    assert allowed.decode(allowed.encode(text)) == text


SEQUENCE = {'type': 'Sequence'}
PREFIXED = {**BYTE_LEVEL, 'add_prefix_space': True}


@pytest.mark.parametrize(
    ('place', 'value', 'path'),
    [
        ('normalizer', {'type': 'Lowercase'}, 'normalizer'),
        ('normalizer', {**SEQUENCE, 'normalizers': [{'type': 'NFC'}, {'type': 'Strip'}]},
         'normalizer.normalizers[1]'),
        ('pre_tokenizer', None, 'pre_tokenizer'),
        ('pre_tokenizer', {'type': 'Metaspace'}, 'pre_tokenizer'),
        ('pre_tokenizer', {**SEQUENCE, 'pretokenizers': []}, 'pre_tokenizer'),
        ('pre_tokenizer', {**SEQUENCE, 'pretokenizers': [CL100K, PREFIXED]},
         'pre_tokenizer.pretokenizers[1]'),
        ('pre_tokenizer', {**SEQUENCE, 'pretokenizers': [BYTE_LEVEL, {'type': 'Digits'}]},
         'pre_tokenizer.pretokenizers[1]'),
        ('pre_tokenizer', {**CL100K, 'behavior': 'MergedWithNext'}, 'pre_tokenizer.behavior'),
        ('post_processor', {'type': 'Unheard'}, 'post_processor'),
        ('decoder', {'type': 'Metaspace'}, 'decoder'),
        ('model.type', 'Unigram', 'model'),
        ('model.dropout', 0.1, 'model.dropout'),
        ('model.continuing_subword_prefix', '##', 'model.continuing_subword_prefix'),
        ('model.end_of_word_suffix', '</w>', 'model.end_of_word_suffix'),
        ('model.unk_token', '<none>', 'model.unk_token'),
        ('model.merges', [['t', 'x'], ['t', 'x']], 'model.merges[0]'),
        ('model.merges', ['t h e'], 'model.merges[0]'),
        ('model.vocab', {'a': 0, 'b': 0}, 'model.vocab'),
        ('model.vocab', {'a': 1 << 30}, 'model.vocab'),
        ('model.vocab', {'a': -1}, 'model.vocab'),
        ('added_tokens', [{'content': 'x'}], 'added_tokens[0]'),
        ('added_tokens', [{'content': 'new', 'id': 7}], 'added_tokens[0]'),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_with_its_path(place, value, path):
    with pytest.raises(InputError) as refused:
        parsed(place, value)
    assert str(refused.value).startswith('x.json') and f'$.{path}' in str(refused.value)


def test_a_model_of_another_kind_is_refused():
    with pytest.raises(InputError, match='not JSON'):
        SCHEME.parse(b'{', 'x.json')
    with pytest.raises(InputError, match='not a vocabulary of byte pair encoding'):
        SCHEME.parse(b'abc\n', 'x.json')


def test_parts_that_are_understood():
    assert parsed('model.merges', ['t h', 'th e', 'Ġ the']).merges == MERGES
    whole = {**BYTE_LEVEL, 'use_regex': False}
    assert parsed('pre_tokenizer', whole).parts.patterns == ('none',)
    sequence = {'type': 'Sequence', 'pretokenizers': [CL100K, whole]}
    assert parsed('pre_tokenizer', sequence).parts.patterns == ('cl100k',)
    llama3 = {**CL100K, 'pattern': {'Regex': DEFINITIONS['llama3'].expressions[0]}}
    sequence['pretokenizers'][0] = llama3
    assert parsed('pre_tokenizer', sequence).parts.patterns == ('llama3',)
    assert parsed('normalizer', {'type': 'NFKC'}).parts.form == 'NFKC'
    assert SCHEME.configured_for(parsed('normalizer', {'type': 'NFC'})).form == 'NFC'
    template = {
        'type': 'TemplateProcessing',
        'single': [
            {'SpecialToken': {'id': '<s>', 'type_id': 0}},
            {'Sequence': {'id': 'A', 'type_id': 0}},
            {'SpecialToken': {'id': '</s>', 'type_id': 0}},
        ],
        'pair': [],
        'special_tokens': {
            '<s>': {'id': '<s>', 'ids': [0], 'tokens': ['<s>']},
            '</s>': {'id': '</s>', 'ids': [1], 'tokens': ['</s>']},
        },
    }
    found = parsed('post_processor', {'type': 'Sequence', 'processors': [BYTE_LEVEL, template]})
    assert SCHEME.template(found) == Template((0,), (1,))
    assert SCHEME.template(found, '$A <s>') == Template((), (0,))
    assert BpeTokenizer(found).encode('the') == [0, found.id_of('the'), 1]
    assert BpeTokenizer(found).encode('', add_special_tokens=False) == []
    roberta = {'type': 'RobertaProcessing', 'sep': ['</s>', 1], 'cls': ['<s>', 0]}
    assert SCHEME.template(parsed('post_processor', roberta)) == Template((0,), (1,))


def test_patterns_without_a_name_are_read_and_not_recognized():
    number = {**CL100K, 'pattern': {'Regex': r'\d'}}
    digits = {'type': 'Digits', 'individual_digits': False}
    sequence = {'type': 'Sequence', 'pretokenizers': [number, digits, BYTE_LEVEL]}
    found = parsed('pre_tokenizer', sequence)
    assert found.parts.patterns == (r'\d', r'\p{N}+', 'gpt2') and not found.parts.is_named
    assert SCHEME.configured_for(found).pattern == found.parts.patterns
    assert BpeTokenizer(found).tokenize('the 12½') == ['the', 'Ġ', '1', '2', 'Â', '½']
    # The scheme `pretrained` has more of such files.
    assert not SCHEME.recognizes(found.dump())


def test_two_files_are_read_together(tmp_path):
    entries, merges = tmp_path / 'g-vocab.json', tmp_path / 'g-merges.txt'
    entries.write_text(json.dumps(VOCABULARY.entries))
    with pytest.raises(InputError, match='g-merges.txt'):
        BpeTokenizer.load(entries)
    merges.write_text('#version: 0.2\nt h\nth e\r\nĠ the\n')
    for path in (entries, merges):
        assert BpeTokenizer.load(path).tokenize('the the') == ['the', 'Ġthe']
    merges.write_text('t h\n\n')
    with pytest.raises(InputError, match="line 2: '' is not a pair"):
        BpeTokenizer.load(entries)


def test_a_tokenizer_is_saved_whole(tmp_path):
    path = tmp_path / 'x.json'
    BpeTokenizer(VOCABULARY).save(path)
    assert path.read_bytes() == VOCABULARY.dump()
    assert list(tmp_path.iterdir()) == [path]
    assert BpeTokenizer.load(path).vocabulary == VOCABULARY


def test_an_added_token_that_takes_blanks_is_refused_when_it_is_looked_for():
    token = AddedToken(0, '<s>', lstrip=True)
    vocabulary = BpeVocabulary(VOCABULARY.entries, MERGES, (token,))
    assert BpeTokenizer(vocabulary).tokenize('<s>') == ['<', 's', '>']
    with pytest.raises(InputError, match="'<s>' has lstrip.*leave out --allow-special-tokens"):
        BpeTokenizer(vocabulary, allow_special_tokens=True)


def test_roles_are_those_of_special_tokens_alone():
    ids = VOCABULARY.special_ids
    assert (ids.begin, ids.end, ids.unknown) == (0, 1, None)
    named = BpeVocabulary.learned([*ALPHABET, 'UN', 'UNK'], (('U', 'N'), ('UN', 'K')))
    assert named.special_ids.unknown is None
    assert named.id_of('UNK') == 257
