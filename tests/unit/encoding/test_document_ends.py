"""Which token ends documents: what is asked for, the closed table, the configured one; or a refusal."""

import base64
import json

import pytest

from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary
from tokcore.encoding.document_ends import (
    EndOfDocument,
    end_candidates,
    end_of_document,
)
from tokcore.encoding.vocabulary import NO_TEMPLATE, Template
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.schemes import find_scheme
from tokcore.word.scheme import WordVocabulary
from tokcore.wordpiece.vocabulary import WordPieceVocabulary


def vocabulary(*special, ordinary=('a', '</s>', '<html>')):
    entries = {entry: id_ for id_, entry in enumerate((*ordinary, *special))}
    return BpeVocabulary(entries, (), tuple(AddedToken(entries[token], token) for token in special))


def beside(**files):
    """Reads the files of a folder, which are JSON."""
    data = {f'in/{name}.json': json.dumps(content).encode() for name, content in files.items()}
    return data.get


def candidates(vocabulary, **files):
    return [*end_candidates(vocabulary, 'in/tokenizer.json', beside(**files))]


CHAT = {'eos_token': '<|im_end|>'}


@pytest.mark.parametrize(
    ('special', 'end'),
    [
        (('<|endoftext|>', '<|im_start|>', '<|im_end|>'), '<|endoftext|>'),  # Qwen3
        (('<|begin_of_text|>', '<|end_of_text|>', '<|im_end|>'), '<|end_of_text|>'),  # Llama 3
        (
            ('<｜begin▁of▁sentence｜>', '<｜end▁of▁sentence｜>', '<|im_end|>'),
            '<｜end▁of▁sentence｜>',
        ),
        (('<pad>', '<eos>', '<bos>', '<|im_end|>'), '<eos>'),  # Gemma: its </s> is HTML
        (('<unk>', '<s>', '<|im_end|>'), '<|im_end|>'),  # none of the table
        (('[CLS]', '[SEP]', '<|im_end|>'), '[SEP]'),
        (('[CLS]', '[SEP]', '<|endoftext|>', '<|im_end|>'), '<|endoftext|>'),
    ],
)
def test_the_table_comes_before_what_is_configured(special, end):
    assert candidates(vocabulary(*special), tokenizer_config=CHAT) == [end]


def test_what_is_configured_decides_between_tokens_of_the_table():
    both = vocabulary('<|endoftext|>', '<eos>', '<|im_end|>')
    assert candidates(both) == ['<eos>', '<|endoftext|>']
    eos = {'eos_token': {'content': '<eos>', 'lstrip': False}}
    assert candidates(both, special_tokens_map=eos) == ['<eos>']
    assert candidates(both, tokenizer_config=CHAT) == ['<eos>', '<|endoftext|>', '<|im_end|>']
    assert candidates(both, tokenizer_config=CHAT, special_tokens_map=eos) == ['<eos>']


def test_two_files_that_contradict_each_other_give_two_candidates():
    none = vocabulary('<|im_end|>', '<|stop|>')
    assert candidates(none) == []
    assert candidates(none, tokenizer_config={'eos_token': None}) == []
    assert candidates(none, tokenizer_config={'eos_token': '<elsewhere>'}) == []
    stop = {'eos_token': '<|stop|>'}
    assert candidates(none, tokenizer_config=CHAT, special_tokens_map=stop) == [
        '<|im_end|>',
        '<|stop|>',
    ]
    assert candidates(none, tokenizer_config=CHAT, special_tokens_map=CHAT) == ['<|im_end|>']


def test_a_template_that_ends_with_a_candidate_has_the_end():
    both = vocabulary('<|endoftext|>', '<eos>')
    found = end_candidates(both, 'in/tokenizer.json', beside())
    eos = both.id_of('<eos>')
    end = end_of_document('targets', both, found, Template((), (9, eos)))
    assert end == EndOfDocument('targets', eos, '<eos>', True)
    for template in (NO_TEMPLATE, Template((eos,), (eos, 9))):
        assert end_of_document('targets', both, found, template) is None


def test_what_is_asked_for_is_a_token_or_an_id():
    own = vocabulary('<|endoftext|>', '<eos>')
    ids = own.id_of('<eos>'), own.id_of('a')
    for asked, id_, token in [
        ('<eos>', ids[0], '<eos>'), (str(ids[0]), ids[0], '<eos>'), ('a', ids[1], 'a')
    ]:  # fmt: skip
        end = end_of_document('inputs', own, {}, Template((), (ids[0],)), asked)
        assert end == EndOfDocument('inputs', id_, token, id_ == ids[0])
    for asked in ('<none>', str(own.vocab_size), '9' * 30):
        with pytest.raises(
            InputError, match=f"--end names '{asked}', which the vocabulary does not"
        ):
            end_of_document('inputs', own, {}, NO_TEMPLATE, asked)


def test_schemes_of_other_systems_have_the_end_of_their_template():
    pieces = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'a']
    for name, own, end in [
        ('byte', find_scheme('byte').fixed, '<EOS>'),
        ('subword', find_scheme('subword').vocabulary_of('ab'), '<EOS>'),
        ('word', find_scheme('word').vocabulary_of('ab'), '</s>'),
        ('word', WordVocabulary(['<unk>', '<s>', '</s>', '<EOS>', '[SEP]']), '</s>'),
        ('wordpiece', WordPieceVocabulary(pieces), '[SEP]'),
    ]:
        template = find_scheme(name).template(own)
        found = end_of_document('targets', own, end_candidates(own), template)
        assert (found.token, found.in_template) == (end, True)


def ranks(count, hole=None):
    """A file of ranks as tiktoken's: all bytes, and tokens of three bytes that nothing merges."""
    numbers = [number for number in range(count + (hole is not None)) if number != hole]
    tokens = [bytes([n]) if n < 256 else b'\xff%b' % n.to_bytes(3, 'big') for n in range(count)]
    lines = [b'%b %d\n' % (base64.b64encode(token), n) for token, n in zip(tokens, numbers)]
    return b''.join(lines)


@pytest.mark.parametrize(
    ('count', 'hole', 'pattern', 'end'),
    [
        (50_256, None, 'gpt2', 50_256),
        (50_280, 50_256, 'gpt2', 50_256),
        (50_257, None, 'gpt2', None),
        (50_256, None, 'cl100k', None),
        (300, None, r'\S+|\s+', None),
    ],
)
def test_ranks_are_known_by_their_pattern_and_their_number(count, hole, pattern, end):
    own = parse_pretrained(ranks(count, hole), 'x.tiktoken', pattern)
    found = end_of_document('targets', own, end_candidates(own), NO_TEMPLATE)
    if end is None:
        assert found is None and own.vocab_size == count
        asked = end_of_document('targets', own, {}, NO_TEMPLATE, '128001')
        assert asked == EndOfDocument('targets', 128_001, '', False)
        assert str(asked) == 'the id 128001'
    else:
        assert found == EndOfDocument('targets', end, '<|endoftext|>', False)
        assert str(found) == f'<|endoftext|> ({end})'
        assert own.vocab_size == max(count, end) + 1
        assert own.decode([end]) == '<|endoftext|>'
    template = find_scheme('pretrained').template(own, '7 $A 128001')
    assert template == Template((7,), (128_001,))
