"""Ids and texts of Unigram models and of SentencePiece models are those of the libraries."""

import base64
import io
import json

import numpy as np
import pytest
from characters import SAMPLE
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rows_of_text import side_of

from tokcore.bpe.files import rust_float
from tokcore.errors import InputError
from tokcore.foreign_tokenizers.files import is_pretrained_file, parse_pretrained
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer
from tokcore.kernels.jit import read_only
from tokcore.text.patterns import WHITE_SPACE

LINES = [
    'the quick brown fox jumps over the lazy dog', "It's a dog's life; we'll see, THEY'RE there!",
    'Größe und große Flüsse, élan, naïve, cafe\u0301', '漢字 と かな、 12345 ٣٤٥ ½', 'def f(x): return x[1]',
    'HelloWorld  helloWorld   hello', '▁▁a ▁ b', 'ΟΔΟΣ Σ', 'over and over, the lazier the foxes',
]  # fmt: skip
PHRASES = [
    *(word for line in LINES for word in line.split(' ')), ' ', '  ', '\r', '\t', '\u00a0', '\u3000', 'the', 'aaaa',
    '<s>', '</s>', '<unk>', '<sep>', 'x<sep>y', '<0x41>', '\u0301', 'e\u0301', 'ｈａｌｆ', '㍿', 'ﬁ', '½', '①', '각', '\u1100\u1161',
    '▁', '_', '.', '...', '👍🏽', 'ǅ', 'İ', '\u200b', '\u200d', '\ufeff', '\x07', '\x00', '\U0001F468\u200d\U0001F469',
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PHRASES), max_size=25).map(''.join) | st.text(
    st.characters(exclude_categories=['Cs', 'Cn', 'Co']), max_size=20
)

MARKS = {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'always', 'split': True}


def learned(sentencepiece, **options):
    """The bytes of a small SentencePiece model."""
    written = io.BytesIO()
    options = {'vocab_size': 420 if options.get('byte_fallback') else 160, **options}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 5),
        model_writer=written,
        hard_vocab_limit=False,
        character_coverage=0.98,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    return written.getvalue()


SENTENCEPIECE_CASES = {
    'unigram': {'model_type': 'unigram'},
    'bpe': {'model_type': 'bpe'},
    'unigram with bytes': {
        'model_type': 'unigram', 'byte_fallback': True, 'normalization_rule_name': 'identity',
        'remove_extra_whitespaces': False,
    },
    'bpe with bytes': {
        'model_type': 'bpe', 'byte_fallback': True, 'normalization_rule_name': 'identity',
        'remove_extra_whitespaces': False, 'add_dummy_prefix': False,
    },
    'unigram with symbols': {
        'model_type': 'unigram', 'user_defined_symbols': ['<sep>', 'oz', 'the'],
        'normalization_rule_name': 'nmt_nfkc_cf',
    },
    'bpe with symbols': {
        'model_type': 'bpe', 'user_defined_symbols': ['<sep>', 'oz', 'the', '字 '],
        'control_symbols': ['<mask>'], 'normalization_rule_name': 'nfkc', 'pad_id': 3,
    },
    'bpe with spaces behind': {
        'model_type': 'bpe', 'treat_whitespace_as_suffix': True, 'split_by_whitespace': False,
    },
    'unigram across spaces': {'model_type': 'unigram', 'split_by_whitespace': False},
}  # fmt: skip
QUICK = {'unigram', 'bpe with bytes'}


@pytest.mark.parametrize(
    'name',
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in SENTENCEPIECE_CASES],
)  # fmt: skip
def test_models_of_sentencepiece(sentencepiece, name):
    data = learned(sentencepiece, **SENTENCEPIECE_CASES[name])
    assert is_pretrained_file(data)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = PretrainedTokenizer(parse_pretrained(data, 'small.model'))
    assert list(ours.pieces) == [theirs.id_to_piece(id_) for id_ in range(len(theirs))]
    assert ours.special_ids.unknown == theirs.unk_id()

    @given(TEXTS, st.lists(st.integers(0, len(theirs) - 1), max_size=8))
    @settings(database=None)
    @example('', [])
    @example('  ▁ a  b▁', [])
    @example(' \u3000 the  oz<sep> ', [])
    @example(' '.join([*LINES, *PHRASES]) * 40, [])
    def same(text, ids):
        expected = theirs.encode(text)
        assert ours.encode(text) == expected
        assert ours.encode_batch([text, 'the dog', text]) == [
            expected, theirs.encode('the dog'), expected
        ]  # fmt: skip
        assert ours.decode(expected) == theirs.decode(expected)
        assert ours.decode(ids) == theirs.decode(ids)
        offsets = theirs.encode(text, return_type='offset_mapping')['offsets']
        assert ours.encode_with_offsets(text).offsets == offsets

    same()


@pytest.fixture(scope='module')
def unigram_file(tokenizers):
    made = tokenizers.Tokenizer(tokenizers.models.Unigram())
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=120, special_tokens=['<unk>', '<s>'], unk_token='<unk>', show_progress=False
    )
    made.train_from_iterator(LINES * 3, trainer)
    file = json.loads(made.to_str())
    # Few characters, so that others are unknown.
    file['model']['vocab'] = [
        pair for pair in file['model']['vocab'] if not {*pair[0]} & set('ößüé漢字と½ΟΔ')
    ]
    return {
        **file, 'added_tokens': [], 'pre_tokenizer': MARKS,
        'decoder': MARKS,
    }  # fmt: skip


BYTES = [[f'<0x{byte:02X}>', -30.25 - byte] for byte in range(256)]
WORDS_AND_MARKS = {'type': 'Sequence', 'pretokenizers': [{'type': 'WhitespaceSplit'}, MARKS]}
UNIGRAM_CASES = {
    'marks': {},
    'words': {'pre_tokenizer': WORDS_AND_MARKS},
    'rows': {'pre_tokenizer': {**MARKS, 'split': False}},
    'bytes': {'model': {'byte_fallback': True}, 'more': BYTES},
    'some bytes': {'model': {'byte_fallback': True}, 'more': BYTES[:200]},
    # Runs of unknown characters that are pieces, since two of them have the larger score.
    'positive scores': {'scores': lambda id_: 100.0 + id_, 'more': [['zü', 99.0], ['üü', 99.5]]},
    'equal scores': {'scores': lambda id_: -1.0},
}


def with_case(file, case):
    model = {**file['model'], **case.get('model', {})}
    model['vocab'] = [*model['vocab'], *case.get('more', [])]
    if 'scores' in case:
        known = {pair[0] for pair in case.get('more', [])}
        model['vocab'] = [
            [entry, score if entry in known else case['scores'](id_)]
            for id_, (entry, score) in enumerate(model['vocab'])
        ]
    parts = {name: part for name, part in case.items() if name in file and name != 'model'}
    return {**file, **parts, 'model': model}


@pytest.mark.parametrize('name', UNIGRAM_CASES)
def test_unigram_of_tokenizers(tokenizers, unigram_file, name):
    file = with_case(unigram_file, UNIGRAM_CASES[name])
    data = json.dumps(file).encode()
    theirs = tokenizers.Tokenizer.from_str(data.decode())
    ours = PretrainedTokenizer(parse_pretrained(data, 'small.json'))

    @given(TEXTS)
    @settings(database=None)
    @example('züü üü  zü')
    @example('<unk> x<unk>y ü<unk>')
    @example('the'.join(WHITE_SPACE) + '\u200b\u180e ▁the ▁ ▁▁')
    def same(text):
        expected = theirs.encode(text)
        ids = expected.ids
        assert ours.encode(text) == ids
        assert ours.encode_with_offsets(text).offsets == expected.offsets
        assert ours.encode_batch([text, 'the dog', text]) == [
            ids, theirs.encode('the dog').ids, ids
        ]  # fmt: skip
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)

    same()


def test_unigram_without_an_unknown_token(tokenizers, unigram_file):
    file = with_case(unigram_file, {'model': {'unk_id': None}})
    data = json.dumps(file).encode()
    theirs = tokenizers.Tokenizer.from_str(data.decode())
    ours = PretrainedTokenizer(parse_pretrained(data, 'small.json'))
    assert ours.encode('the fox') == theirs.encode('the fox').ids
    with pytest.raises(Exception, match='unk_id'):
        theirs.encode('the 字')
    with pytest.raises(ValueError, match="no piece for '字' in '▁字'"):
        ours.encode('the 字')


RULES = {
    'nmt_nfkc': {'normalization_rule_name': 'nmt_nfkc'},
    'nmt_nfkc_cf': {'normalization_rule_name': 'nmt_nfkc_cf'},
    'odd': {'normalization_rule_tsv': 'a b|a\u0301 á|© (c)|©\u200d ©|क k|\u0301\u0301 2|\u0600a .|\u1100\u1161 가|\r \n|x\u0e33 '},
}  # fmt: skip
CLUSTERED = [
    *'a©ékक字😀x\r\n', '\u0301', '\u0302', '\u05b0', '\u0600', '\u094d', '\u0e33', '\u1100', '\u1161', '\u11a8', '\u200d',
    '\u00ad', '\uac00', '\ufe0f', '\U0001F1E9', '\U0001F3FD', '\U000110BD', ' ', '\t',
]  # fmt: skip


def model_of_rules(sentencepiece, folder, options):
    """The bytes of a model with some rules."""
    rules = options.get('normalization_rule_tsv')
    if rules is not None:
        path = folder / 'rules.tsv'
        lines = (rule.split(' ') for rule in rules.split('|'))
        in_hex = (
            '\t'.join(' '.join(f'{ord(c):X}' for c in side) for side in pair) for pair in lines
        )
        path.write_text('\n'.join([*in_hex, '']))
        options = {'normalization_rule_tsv': str(path)}
    return learned(sentencepiece, model_type='unigram', **options)


def charsmap_of(model):
    """The bytes of the charsmap of a model."""
    from tokcore.foreign_tokenizers.sentencepiece import message_fields

    spec = next(value for number, value, _ in message_fields(model, '') if number == 3)
    return next(value for number, value, _ in message_fields(spec, '') if number == 2)


@pytest.mark.parametrize(
    'rule',
    [*(pytest.param(each, marks=pytest.mark.slow) for each in ('nmt_nfkc', 'nmt_nfkc_cf')), 'odd'],
)
def test_the_charsmap_as_tokenizers_reads_it(
    tokenizers, sentencepiece, unigram_file, tmp_path, rule
):
    model = model_of_rules(sentencepiece, tmp_path, RULES[rule])
    charsmap = charsmap_of(model)
    theirs = tokenizers.normalizers.Precompiled(charsmap)
    text = base64.b64encode(charsmap).decode()
    file = {**unigram_file, 'normalizer': {'type': 'Precompiled', 'precompiled_charsmap': text}}
    data = json.dumps(file).encode()
    vocabulary = parse_pretrained(data, 'small.json')
    step = vocabulary.steps[0]
    plain = step.rewrite.__self__

    @given(st.lists(TEXTS | st.lists(st.sampled_from(CLUSTERED)).map(''.join), max_size=4))
    @settings(database=None, max_examples=100)
    @example(
        [
            '',
            'a\u0301\u0301',
            'ａ',
            '\u0301\u0301',
            '©\u200d©\u0301',
            'a\r\n',
            '\u0600a',
            'क\u094dक\u0302',
        ]
    )
    def same(texts):
        changed = step.rewrite(side_of(texts))
        rows = [changed.row(row) for row in range(len(texts))]
        assert rows == [theirs.normalize_str(text) for text in texts] == [*map(plain, texts)]

    same()
    # Pairs of every character with others that it may be in a cluster with.
    pairs = [f'{character}a{character}\u0301{character}\u200d' for character in SAMPLE]
    changed = step.rewrite(side_of([*SAMPLE, *pairs]))
    assert [changed.row(row) for row in range(len(changed))] == [*map(plain, [*SAMPLE, *pairs])]
    ours = PretrainedTokenizer(vocabulary)
    whole = tokenizers.Tokenizer.from_str(data.decode())
    for line in [
        *LINES,
        *PHRASES,
        ''.join(CLUSTERED),
        *map(''.join, zip(CLUSTERED, CLUSTERED[1:])),
    ]:
        expected, encoding = whole.encode(line), ours.encode_with_offsets(line)
        assert (encoding.ids, encoding.offsets) == (expected.ids, expected.offsets)
    # SentencePiece's own way: characters that are written at once are those that the double array has.
    [step] = parse_pretrained(model, 'small.model').steps
    normalizer = step.rewrite.keywords['normalizer']
    assert (normalizer.words != 0).sum() > 60_000
    plain = normalizer._replace(words=read_only(np.zeros_like(normalizer.words)))
    side = side_of([''.join([*SAMPLE, *pairs]), *SAMPLE, *pairs])
    rows, expected = (step.rewrite.func(side, normalizer=each) for each in (normalizer, plain))
    numbers = range(len(side))
    assert [rows.row(row) for row in numbers] == [expected.row(row) for row in numbers]


@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(-20, 0))
@settings(database=None)
@example(-3.2091901302337646)
@example(1e-320)
def test_numbers_as_the_reader_of_tokenizers_has_them(tokenizers, number):
    text = json.dumps({'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': [],
        'normalizer': None, 'pre_tokenizer': None, 'post_processor': None, 'decoder': None,
        'model': {'type': 'Unigram', 'unk_id': None, 'vocab': [['a', number]], 'byte_fallback': False}})  # fmt: skip
    written = json.loads(tokenizers.Tokenizer.from_str(text).to_str())
    assert written['model']['vocab'][0][1] == rust_float(repr(number))


def piece(text, score, kind=1):
    import struct

    data = b'\x0a' + bytes([len(text)]) + text + b'\x15' + struct.pack('<f', score)
    data += bytes([0x18, kind])
    return b'\x0a' + bytes([len(data)]) + data


UNKNOWN = piece(b'<unk>', 0, 2)


def test_equal_scores_in_single_precision(sentencepiece):
    pieces = [('▁', -3.14936), ('-', -5.256114), ('-' * 16, -6.202417), ('--', -10.512)]
    data = UNKNOWN + b''.join(piece(text.encode(), score) for text, score in pieces)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = PretrainedTokenizer(parse_pretrained(data, 'x.model'))
    for size in range(1, 120):
        assert ours.encode('-' * size) == theirs.encode('-' * size)


# Sums of some twenty are beyond 100,000, where SentencePiece begins anew; many ways have equal sums.
LARGE_SCORES = st.sampled_from(
    [-2.3, -5000.3, -5000.3 * 2, -7001.7, -33_333.3, 4000.25, -100_001.0]
)
NORMAL, USER_DEFINED, UNUSED = 1, 4, 5


@given(
    st.dictionaries(
        st.text('ab▁é字', min_size=1, max_size=5),
        st.tuples(LARGE_SCORES, st.sampled_from([NORMAL, NORMAL, NORMAL, USER_DEFINED, UNUSED])),
        max_size=20,
    ),
    st.lists(st.text('ab é字?', min_size=1, max_size=30), min_size=1, max_size=4),
)
@settings(max_examples=100, deadline=None, database=None)
@example({'a': (-5000.3, NORMAL), 'aa': (-5000.3 * 2, NORMAL)}, ['a a', 'aa ' * 20])
@example({'a': (-5.5, NORMAL), 'b': (-5.5, NORMAL), 'ab': (-60.0, USER_DEFINED)}, ['abba', 'ab'])
def test_sums_that_begin_anew(sentencepiece, scored, texts):
    scored = {'▁': (-2.3, NORMAL), **scored, 'b': (-7001.7, NORMAL)}
    pieces = (piece(text.encode(), *of_piece) for text, of_piece in scored.items())
    data = UNKNOWN + b''.join(pieces)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = PretrainedTokenizer(parse_pretrained(data, 'x.model'))
    texts = [*texts, ''.join(texts) * 30, *texts]
    assert ours.encode_batch(texts) == theirs.encode(texts)


# A step of 31 bytes has a sum below 2 ** 10, 2 ** 16 or 2 ** 17.
@pytest.mark.parametrize('factor', [1, 80, 120])
def test_a_sum_that_begins_anew_within_a_word(sentencepiece, factor):
    # Long rows of ordinary scores, whose sums have few bits left; `ab` and `a`, `b` are nearly equal.
    pieces = [('▁', -3.1), ('a', -7.3), ('b', -8.9), ('ab', -16.203), ('ba', -16.2), ('aba', -23.5)]
    data = UNKNOWN + b''.join(piece(text.encode(), factor * score) for text, score in pieces)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = PretrainedTokenizer(parse_pretrained(data, 'x.model'))
    for text in ['ababa abab ' * 3000, 'abab' * 5000, 'ab ' * 9000]:
        assert ours.encode(text) == theirs.encode(text)


def charsmap(root=0, replacements='x' * 600):
    """A normalizer with a charsmap, in which the replacement of `a` begins at byte 353."""
    import struct

    units = [root, *([0] * 255)]
    units[ord('a')] = 1 << 8 | ord('a')
    data = struct.pack('<257I', 1024, *units) + replacements.encode()
    field = b'\x12' + bytes([len(data) & 0x7F | 0x80, len(data) >> 7]) + data
    return b'\x1a' + bytes([len(field) & 0x7F | 0x80, len(field) >> 7]) + field


def test_a_charsmap_that_is_not_damaged():
    ours = PretrainedTokenizer(parse_pretrained(UNKNOWN + piece(b'x', 0) + charsmap(), 'x.model'))
    assert ours.encode('a') == [0] + [1] * 247


@pytest.mark.parametrize(
    ('data', 'said'),
    [
        (UNKNOWN + piece(b'a', 0) + b'\x0a\x7fxx', 'cut off at byte'),
        (UNKNOWN + piece(b'a', 0) + piece(b'a', 1), r"pieces\[2\] is 'a', as pieces\[1\]"),
        (UNKNOWN + piece(b'\xff', 0), 'not UTF-8 at byte 1'),
        (UNKNOWN + piece(b'a', float('nan')), 'the score nan'),
        (piece(b'a', 0), '0 pieces of the type UNKNOWN'),
        (UNKNOWN + b'\x12\x02\x18\x03', r'WORD at trainer_spec\.model_type'),
        (UNKNOWN + b'\x12\x03\x98\x02\x01', 'no piece <0x00>'),
        (UNKNOWN + b'\x12\x02\x18\x02' + piece(b'ab', 0), "'ab' without a piece for 'a'"),
        (UNKNOWN + b'\x12\x02\x18\x02' + piece(b'a', 0, 5), 'of the type UNUSED'),
        (UNKNOWN + b'\x1a\x07\x12\x05\x01\x00\x00\x00\x00', 'precompiled_charsmap is damaged'),
        (UNKNOWN + charsmap(root=1 << 31), 'precompiled_charsmap is damaged'),
        (UNKNOWN + charsmap(replacements='é' * 300), 'precompiled_charsmap is damaged'),
        (UNKNOWN + b'\x2a\x03\x12\x01x', 'a denormalizer at denormalizer_spec'),
        (UNKNOWN + b'\x0b', 'the wire type 3 at byte'),
    ],
)
def test_damaged_models(data, said):
    with pytest.raises(InputError, match=f'^x.model.*{said}'):
        parse_pretrained(data, 'x.model')


@pytest.mark.parametrize(
    ('model', 'said'),
    [
        ({'vocab': {'a': 0}}, r'\$\.model\.vocab is not a list'),
        ({'vocab': [['a', 'b']]}, r'\$\.model\.vocab\[0\] is not an entry and its score'),
        ({'vocab': [['a', 0.0], ['a', 1.0]]}, r"the entry 'a' a second time at \$\.model\.vocab\[1\]"),
        ({'vocab': [['a', 0.0]], 'unk_id': 1}, r'\$\.model\.unk_id is 1'),
    ],
)  # fmt: skip
def test_damaged_unigram(model, said):
    data = json.dumps({'model': {'type': 'Unigram', **model}}).encode()
    with pytest.raises(InputError, match=said):
        parse_pretrained(data, 'x.json')
