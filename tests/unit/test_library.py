"""tokcore without Beam: one call learns, and the tokenizers of all schemes have one interface."""

import ast
import inspect
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipelines
import tokcore
from tokcore import InputError, Tokenizer, TokenTable
from tokcore.text.bert import bert_words
from tokcore.text.bert_plain import bert_tokens

TEXTS = [
    'The cat sat on the mat.', 'a cat, a mat', "Don't _pad_ the cats\\mats!", 'Çà va? naïve 的的 猫',
    'Ein Vogel ﬁel ΣΑΣ Ǆ',
] * 4  # fmt: skip

OPTIONS = {
    'subword': {'vocab_size': 120},
    'wordpiece': {'vocab_size': 120, 'min_count_range': '1:1000'},
    'wordpiece of the paper': {
        'vocab_size': 120, 'min_count_range': (1, 1000), 'normalizer': 'bert-original',
    },
    'bpe': {'vocab_size': 290},
    'bpe of normal forms': {'vocab_size': 290, 'unicode_form': 'NFKC', 'pre_tokenizer': 'cl100k'},
    'bpe of subword-nmt': {'preset': 'subword-nmt', 'merges': 20},
    'bpe of the textbook': {'preset': 'textbook', 'merges': 20},
    'word': {'vocab_size': 20},
    'word at any white space': {'vocab_size': 20, 'split': 'unicode'},
}  # fmt: skip

BYTE_LEVEL = ('bpe', 'byte')


@pytest.fixture(scope='module')
def tokenizers():
    made = {
        name: tokcore.learn_vocabulary(TEXTS, name.split()[0], **options)
        for name, options in OPTIONS.items()
    }
    return {**made, 'byte': tokcore.load_tokenizer(scheme='byte')}


ALL = [*OPTIONS, 'byte']
KNOWN = st.text(st.sampled_from("aeTtchmsdn _\\;'.,!?\n\r\t  ÇçàïΣσςﬁ的猫̀é́각Ǆ½"), max_size=20)


@pytest.mark.parametrize('name', ALL)
def test_one_interface(tokenizers, name):
    tokenizer = tokenizers[name]
    assert isinstance(tokenizer, Tokenizer)
    assert len(tokenizer) == tokenizer.vocab_size == len(tokenizer.pieces)
    assert repr(tokenizer).startswith(f'{type(tokenizer).__name__}(vocab_size={len(tokenizer)}')
    for role, id_ in tokenizer.special_ids._asdict().items():
        assert id_ is None or f'{role}={id_}' in repr(tokenizer)
    texts = ['the cat', '', 'a mat']
    batch = tokenizer.encode_batch(texts)
    assert batch == [tokenizer.encode(text) for text in texts]
    assert tokenizer.decode_batch(batch) == [tokenizer.decode(ids) for ids in batch]
    with pytest.raises(TypeError, match='in a list'):
        tokenizer.encode_batch('the cat')
    for wrong in (5, None, b'the cat', ['the', 'cat']):
        message = f'the text is {re.escape(repr(wrong))}, of the type .*; give a string'
        for call in (tokenizer.encode, tokenizer.encode_with_offsets):
            with pytest.raises(TypeError, match=message):
                call(wrong)
        with pytest.raises(TypeError, match=message):
            tokenizer.encode_batch(['the cat', wrong])
    for id_ in (10**9, len(tokenizer), -1):
        with pytest.raises(InputError, match=f'{id_} is not an id of the vocabulary, which has'):
            tokenizer.decode([id_])


@pytest.mark.parametrize('name', OPTIONS)
def test_a_saved_vocabulary_is_loaded_with_the_same_ids(tokenizers, name, tmp_path):
    tokenizer = tokenizers[name]
    path = tmp_path / 'vocabulary.codes'
    tokenizer.save(path)
    scheme = name.split()[0]
    options = {key: value for key, value in OPTIONS[name].items() if key in ('normalizer', 'split')}
    copy = tokcore.load_tokenizer(path, scheme, **options)
    assert copy.encode_batch(TEXTS) == tokenizer.encode_batch(TEXTS)


def test_a_file_tells_its_scheme(tokenizers, tmp_path):
    tokenizers['wordpiece'].save(tmp_path / 'vocab.txt')
    loaded = tokcore.load_tokenizer(tmp_path / 'vocab.txt', lower_case=False)
    assert isinstance(loaded, tokcore.WordPieceTokenizer)
    with pytest.raises(ValueError, match='no vocabulary file'):
        tokenizers['byte'].save(tmp_path / 'bytes')


@pytest.mark.parametrize('name', ALL)
@given(text=KNOWN)
def test_offsets_are_where_pieces_are(tokenizers, name, text):
    tokenizer = tokenizers[name]
    texts = [text, 'the cat', text]
    assert tokenizer.encode_batch(texts) == [*map(tokenizer.encode, texts)]
    encoding = tokenizer.encode_with_offsets(text, add_special_tokens=False)
    assert len(encoding) == len(encoding.tokens) == len(encoding.offsets)
    assert tokenizer.encode_with_offsets(text).ids == tokenizer.encode(text)
    last = 0
    for id_, token, (start, end) in zip(
        encoding.ids, encoding.tokens, encoding.offsets, strict=True
    ):
        assert 0 <= start <= end <= len(text) and last <= end
        last = end
        own = text[start:end]
        if name in BYTE_LEVEL:
            piece = tokenizer.vocabulary.decode_bytes([id_])
            assert piece in own.encode()
            assert piece == own.encode() or len(piece) < len(own.encode())
        elif name.startswith('wordpiece') and id_ != tokenizer.special_ids.unknown:
            plain = bert_tokens(own, tokenizer._parts[0].kind)
            first = token.removeprefix('##')[:1]
            assert first in 'σς' or ''.join(plain).startswith(first) or len(own) == 1
        elif name.startswith('word ') and id_ != tokenizer.special_ids.unknown:
            assert own == token
        elif name == 'subword' and not set(own) - set('aeTtchmsdn '):  # not escaped
            assert own == token.removesuffix('_')
        elif name == 'bpe of subword-nmt' and token != '<unk>':
            assert own in (token, token.removesuffix('@@'))
        elif name == 'bpe of the textbook' and token not in ('<unk>', '[UNK]'):
            assert own == token.removesuffix('_') or '_' in own


@pytest.mark.parametrize('kind', ['bert', 'bert-original'])
@pytest.mark.parametrize(
    'options', [(True, True, True), (False, False, True), (True, False, False)]
)
@given(text=st.one_of(st.text(max_size=20), KNOWN))
def test_words_with_places_are_the_words_of_bert(kind, options, text):
    lower, strip, cjk = options
    words = list(bert_words(text, kind, lower, strip, cjk, ()))
    assert [word for word, _ in words] == bert_tokens(text, kind, lower, strip, cjk)
    for word, spans in words:
        assert len(word) == len(spans)


def test_offsets_as_they_are_read(tokenizers):
    encoding = tokenizers['wordpiece'].encode_with_offsets('The Çat')
    assert encoding.tokens[0] == '[CLS]' and encoding.offsets[0] == encoding.offsets[-1] == (0, 0)
    assert encoding.offsets[1][0] == 0 and encoding.offsets[-2][1] == 7
    spans = tokenizers['bpe of normal forms'].encode_with_offsets('aﬁé').offsets
    assert spans[0] == (0, 1) and (1, 2) in spans and spans[-1][1] == len('aﬁé')


def test_a_table_gives_the_vocabulary_of_its_texts():
    table = TokenTable.from_items([('the', 9), ('cat', 7), ('mat', 5)])
    assert tokcore.learn_vocabulary(table, 'word', vocab_size=5).pieces[3:] == ('the', 'cat')


@pytest.mark.parametrize('name', OPTIONS)
def test_files_are_learned_from_as_the_lines_that_they_have(tokenizers, name, tmp_path):
    (tmp_path / 'a').write_text(''.join(f'{text}\n' for text in TEXTS))
    options = OPTIONS[name]
    of_file = tokcore.learn_vocabulary(scheme=name.split()[0], paths=[tmp_path / 'a'], **options)
    assert of_file.vocabulary.dump() == tokenizers[name].vocabulary.dump()


@pytest.mark.parametrize(
    ('call', 'error', 'reason'),
    [
        (lambda: tokcore.find_scheme('bep'), InputError, "did you mean 'bpe'"),
        (lambda: tokcore.find_scheme('word', slpit='space'), TypeError, "did you mean 'split'"),
        (lambda: tokcore.learn_vocabulary([], vocab_size=90), InputError, 'nothing to learn'),
        (lambda: tokcore.learn_vocabulary('text', vocab_size=90), TypeError, 'in a list'),
        (lambda: tokcore.learn_vocabulary([b'x'], vocab_size=90), TypeError, 'give strings'),
        (lambda: tokcore.learn_vocabulary(['x'], 'byte'), InputError, 'learns nothing'),
        (lambda: tokcore.learn_vocabulary(['x'], vocab_sise=3), TypeError, "mean 'vocab_size'"),
        (lambda: tokcore.learn_vocabulary(['x']), TypeError, 'no vocab_size'),
        (lambda: tokcore.load_tokenizer('missing'), InputError, 'missing'),
        (lambda: tokcore.load_tokenizer(scheme='bpe'), TypeError, 'path is missing'),
        (lambda: tokcore.load_tokenizer(__file__), InputError, 'test_library.py'),
    ],
)  # fmt: skip
def test_mistakes(call, error, reason):
    with pytest.raises(error, match=reason):
        call()


def names_for_type_checkers(package):
    """The module of each name that the package imports for type checkers alone, and their `__all__`."""
    tree = ast.parse(inspect.getsource(package))
    [block] = [node for node in tree.body if isinstance(node, ast.If) and 'TYPE' in ast.dump(node.test)
               and not isinstance(node.test, ast.UnaryOp)]  # fmt: skip
    *imports, listed = block.body
    origins = {name.name: node.module for node in imports for name in node.names}
    return origins, ast.literal_eval(listed.value)


@pytest.mark.parametrize('package', [tokcore, pipelines])
def test_names_are_listed_before_they_are_imported(package):
    origins = {name: module for module, names in package._NAMES.items() for name in names}
    assert names_for_type_checkers(package) == (origins, sorted(origins))
    assert dir(package) == sorted(package.__all__) == package.__all__ == sorted(origins)
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match='no attribute'):
        package.nothing  # noqa: B018
