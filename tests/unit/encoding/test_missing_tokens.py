"""Special tokens that a vocabulary lacks are named with what follows, before anything is encoded."""

import pytest

from tokcore.bpe.scheme import BpeScheme
from tokcore.schemes import find_scheme
from tokcore.word.scheme import WordOptions
from tokcore.wordpiece.options import WordPieceOptions

END = 'rows end without it'
STOPS = 'the first word without an id stops the job'

CASES = [
    ('word', {}, '<unk> <s> </s> the', []),
    ('word', {}, '<pad> <EOS> UNK the', []),
    ('word', {}, 'the cat', [f'</s>: {END}, and no id pads batches', f'<unk>: {STOPS}']),
    ('word', {}, '<pad> the <unk>', [f'</s>: {END})']),
    ('word', {'unknown': 'stop'}, '</s> the', []),
    ('word', {'template': '$A'}, '<unk> the', []),
    ('word', {'template': '$A'}, 'the', [f'<unk>: {STOPS}']),
    ('wordpiece', {}, '[UNK] [CLS] [SEP]', []),
    ('wordpiece', {}, '[UNK] [SEP] a', ['[CLS]: rows begin without it']),
    ('wordpiece', {}, '[PAD] a', ['[CLS]: rows begin', f'[SEP]: {END}', f'[UNK]: {STOPS}']),
    ('subword', {}, '<pad> <EOS>', []),
    ('byte', {}, '<pad> <EOS>', []),
    ('bpe', {}, 'a b', []),
    ('pretrained', {}, 'a b', []),
]


@pytest.mark.parametrize(('name', 'options', 'tokens', 'said'), CASES)
def test_what_a_vocabulary_lacks(name, options, tokens, said):
    scheme = find_scheme(name)
    ids = {token: id_ for id_, token in enumerate(tokens.split())}
    sentence = scheme.missing_tokens(ids.get, scheme.encoding(**options), 'words.txt')
    if not said:
        assert sentence is None
        return
    assert sentence.startswith('words.txt lacks special tokens (')
    assert all(each in sentence for each in said) and sentence.count(': ') == len(said)
    assert ('--template' in sentence) == ('template' not in options)


def test_codes_have_an_unknown_token():
    scheme = BpeScheme(preset='subword-nmt')
    assert '<unk>' in scheme.missing_tokens({'</s>': 0}.get, scheme.encoding(), 'a.vocab')


def test_what_is_learned_by_default_lacks_nothing():
    for name, options in (
        ('word', WordOptions(vocab_size=9)),
        ('wordpiece', WordPieceOptions(vocab_size=9)),
    ):
        scheme = find_scheme(name)
        ids = {token: id_ for id_, token in enumerate(options.first_entries)}
        assert scheme.missing_tokens(ids.get, scheme.encoding(), 'learned') is None
