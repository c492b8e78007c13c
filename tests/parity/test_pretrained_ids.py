"""Ids and texts of pretrained vocabularies are those of the library that the file is for.

The vocabularies are small: `tokenizers` trains them here. `test_pretrained_files` has real ones.
"""

import base64
import copy
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from same_encodings import assert_same_encodings

from tokcore.errors import InputError
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer
from tokcore.text.patterns import DEFINITIONS
from tokcore.text.regex_splits import BEHAVIORS

LINES = [
    'the quick brown fox jumps over the lazy dog', "It's a dog's life; we'll see, THEY'RE there!",
    'Größe und große Flüsse, élan, naïve, cafe\u0301', '漢字 と かな、 12345 ٣٤٥ ½', 'def f(x):\n\treturn x[1]\r\n',
    'HelloWorld  helloWorld   hello', '▁▁a ▁ b', 'ΟΔΟΣ Σ', '<s> </s> <mask>',
]  # fmt: skip
PHRASES = [
    *(word for line in LINES for word in line.split(' ')), ' ', '  ', '\n', '\r\n', '\t', '\u00a0', '\u3000',
    '<s>', '</s>', '<mask>', '<new>', '<wide>', 'New', 'x<new>y', ' <mask> ', '\u0301', '_', '.', '...', '👍🏽', 'ǅ', 'İ', 'ﬁ', '½',
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PHRASES), max_size=25).map(''.join) | st.text(
    st.characters(max_codepoint=0x3FF, exclude_categories=['Cs', 'Cn', 'Co']), max_size=20
)


def added(*tokens):
    """Added tokens: (content, flags that are true)."""
    names = ('single_word', 'lstrip', 'rstrip', 'normalized', 'special')
    return [(content, {name: name in flags for name in names}) for content, *flags in tokens]


PLAIN = added(('<s>', 'special'), ('</s>', 'special'), ('<mask>', 'special', 'lstrip'))
ALL_FLAGS = added(
    ('<s>', 'special'),
    ('</s>', 'special', 'normalized'),
    ('<mask>', 'special', 'lstrip', 'rstrip'),
    ('<new>', 'single_word'),
    ('New', 'single_word', 'normalized', 'rstrip'),
    ('hello', 'normalized', 'lstrip'),
    ('<wide>', 'rstrip'),
    ('  ',),
    ('É', 'normalized'),
)

BYTE_LEVEL = {
    'type': 'ByteLevel',
    'add_prefix_space': False,
    'trim_offsets': True,
    'use_regex': True,
}
NO_REGEX = {**BYTE_LEVEL, 'use_regex': False}
SPACE_TO_MARK = {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'}
MARK_TO_SPACE = {'type': 'Replace', 'pattern': {'String': '▁'}, 'content': ' '}
LLAMA = {'type': 'Sequence', 'normalizers': [{'type': 'Prepend', 'prepend': '▁'}, SPACE_TO_MARK]}
LLAMA_DECODER = {
    'type': 'Sequence',
    'decoders': [
        MARK_TO_SPACE, {'type': 'ByteFallback'}, {'type': 'Fuse'},
        {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0},
    ],
}  # fmt: skip


def sequence(*parts, of='pretokenizers'):
    return {'type': 'Sequence', of: [*parts]}


def split(pattern, behavior='Isolated', invert=False, kind='Regex'):
    return {'type': 'Split', 'pattern': {kind: pattern}, 'behavior': behavior, 'invert': invert}


def metaspace(scheme='always', splits=True):
    return {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': scheme, 'split': splits}


def bert(lower=True, strips=None):
    return {
        'type': 'BertNormalizer', 'clean_text': True, 'handle_chinese_chars': True,
        'strip_accents': strips, 'lowercase': lower,
    }  # fmt: skip


BYTE_CASES = {
    'gpt2': {},
    'prefix': {'pre_tokenizer': {**BYTE_LEVEL, 'add_prefix_space': True}},
    'nfc': {'normalizer': {'type': 'NFC'}},
    'nfkd': {'normalizer': {'type': 'NFKD'}},
    'several normalizers': {
        'normalizer': sequence(
            {'type': 'NFD'}, {'type': 'StripAccents'}, {'type': 'Lowercase'},
            {'type': 'Strip', 'strip_left': True, 'strip_right': False},
            {'type': 'Replace', 'pattern': {'Regex': r'\s{2,}'}, 'content': '\n'}, of='normalizers',
        )
    },
    'digits': {
        'pre_tokenizer': sequence({'type': 'Digits', 'individual_digits': True}, BYTE_LEVEL)
    },
    'runs of digits': {
        'pre_tokenizer': sequence({'type': 'Digits', 'individual_digits': False}, NO_REGEX)
    },
    'punctuation': {
        'pre_tokenizer': sequence({'type': 'Punctuation', 'behavior': 'Contiguous'}, BYTE_LEVEL)
    },
    'template': {
        'post_processor': {
            'type': 'RobertaProcessing', 'sep': ['</s>', 'ID'], 'cls': ['<s>', 'ID'],
            'trim_offsets': True, 'add_prefix_space': False,
        }
    },
    **{
        name: {
            'pre_tokenizer': sequence(*map(split, definition.expressions), NO_REGEX),
        }
        for name, definition in DEFINITIONS.items() if name != 'gpt2'
    },
    **{
        behavior: {'pre_tokenizer': sequence(split(r'\s+|é', behavior), NO_REGEX)}
        for behavior in ('Removed', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous')
    },
    'inverted': {'pre_tokenizer': sequence(split(r'\w+', 'MergedWithNext', True), NO_REGEX)},
    'a string': {'pre_tokenizer': sequence(split('e', 'MergedWithPrevious', kind='String'), NO_REGEX)},
    'whole merges': {'model': {'ignore_merges': True}},
}  # fmt: skip

MARK_CASES = {
    'llama': {'normalizer': LLAMA, 'decoder': LLAMA_DECODER},
    'gemma': {
        'normalizer': SPACE_TO_MARK,
        'pre_tokenizer': split(' ', 'MergedWithPrevious', kind='String'),
        'decoder': sequence(MARK_TO_SPACE, {'type': 'ByteFallback'}, {'type': 'Fuse'}, of='decoders'),
    },
    'no fallback': {'normalizer': LLAMA, 'model': {'byte_fallback': False}, 'decoder': LLAMA_DECODER},
    'not fused': {
        'normalizer': LLAMA, 'model': {'byte_fallback': False, 'fuse_unk': False},
        'decoder': LLAMA_DECODER,
    },
    'metaspace': {'pre_tokenizer': metaspace()},
    'metaspace first': {'pre_tokenizer': metaspace('first')},
    'metaspace never': {'pre_tokenizer': metaspace('never', False)},
}  # fmt: skip

WORD_CASES = {
    'bert': {'normalizer': bert(), 'pre_tokenizer': {'type': 'BertPreTokenizer'}},
    'cased bert': {'normalizer': bert(False), 'pre_tokenizer': {'type': 'BertPreTokenizer'}},
    'words': {'pre_tokenizer': {'type': 'Whitespace'}},
    'white space': {'pre_tokenizer': {'type': 'WhitespaceSplit'}},
    'a delimiter': {'pre_tokenizer': {'type': 'CharDelimiterSplit', 'delimiter': 'e'}},
}


@pytest.fixture(scope='module')
def files(tokenizers):
    """The files of small models, as JSON: of bytes, of marks, of pieces and of words."""
    from tokenizers import models, trainers

    def trained(model, trainer, **parts):
        made = tokenizers.Tokenizer(model)
        for name, part in parts.items():
            setattr(made, name, part)
        made.train_from_iterator(LINES * 3, trainer)
        return json.loads(made.to_str())

    made = tokenizers.pre_tokenizers
    of_bytes = trained(
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=420, initial_alphabet=made.ByteLevel.alphabet(), show_progress=False
        ),
        pre_tokenizer=made.ByteLevel(add_prefix_space=False),
    )
    of_marks = trained(
        models.BPE(unk_token='<unk>', fuse_unk=True, byte_fallback=True),
        trainers.BpeTrainer(
            vocab_size=400,
            show_progress=False,
            limit_alphabet=30,
            special_tokens=['<unk>', *(f'<0x{byte:02X}>' for byte in range(256))],
        ),
        normalizer=tokenizers.normalizers.Replace(' ', '▁'),
        pre_tokenizer=made.Split('▁', 'merged_with_next'),
    )
    words = sorted({word for line in LINES for word in line.replace(',', ' ').split()})
    pieces = [
        '[UNK]',
        *words,
        *sorted({*''.join(words).lower()}),
        *(f'##{c}' for c in 'abcdeéglnorstu字'),
    ]
    entries = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    of_pieces = {
        'type': 'WordPiece', 'unk_token': '[UNK]', 'continuing_subword_prefix': '##',
        'max_input_chars_per_word': 10, 'vocab': entries,
    }  # fmt: skip
    of_words = {'type': 'WordLevel', 'vocab': entries, 'unk_token': '[UNK]'}
    empty = {**of_bytes, 'pre_tokenizer': None, 'decoder': None}
    return {
        'bytes': {**of_bytes, 'added_tokens': [], 'decoder': BYTE_LEVEL},
        'marks': {**of_marks, 'added_tokens': [], 'normalizer': None, 'pre_tokenizer': None,
                  'decoder': {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'always', 'split': True}},
        'pieces': {**empty, 'model': of_pieces, 'added_tokens': [],
                   'decoder': {'type': 'WordPiece', 'prefix': '##', 'cleanup': True}},
        'words': {**empty, 'model': of_words, 'added_tokens': []},
    }  # fmt: skip


def with_parts(file, case, tokens):
    """A file with other parts and added tokens."""
    changed = copy.deepcopy(file)
    changed['model'].update(case.get('model', {}))
    changed.update({name: part for name, part in case.items() if name != 'model'})
    entries = changed['model']['vocab']
    next_id = len(entries)
    for content, flags in tokens:
        id_ = entries.get(content)
        if id_ is None:
            id_, next_id = next_id, next_id + 1
        changed['added_tokens'].append({'id': id_, 'content': content, **flags})
        text = json.dumps(changed['post_processor']).replace(
            f'["{content}", "ID"]', f'["{content}", {id_}]'
        )
        changed['post_processor'] = json.loads(text)
    return changed


CASES = [
    *(('bytes', name, case) for name, case in BYTE_CASES.items()),
    *(('marks', name, case) for name, case in MARK_CASES.items()),
    *(('pieces', name, case) for name, case in WORD_CASES.items()),
    *(('words', name, case) for name, case in WORD_CASES.items()),
]


def both(tokenizers, file):
    data = json.dumps(file).encode()
    ours = PretrainedTokenizer(parse_pretrained(data, 'small.json'), allow_special_tokens=True)
    return tokenizers.Tokenizer.from_str(data.decode()), ours


QUICK = {
    'gpt2',
    'several normalizers',
    'o200k',
    'llama',
    'gemma',
    'words',
}
"""The others take as long together as the whole of some files of tests."""


def kinds_of_cases():
    for model, name, case in CASES:
        for label, tokens in (('plain', PLAIN), ('flags', ALL_FLAGS)):
            # Without tokens in normalized text, spaces may stay.
            is_quick = name in QUICK and (label == 'flags' or model == 'marks')
            marks = [] if is_quick else [pytest.mark.slow]
            yield pytest.param(model, case, tokens, id=f'{model}-{name}-{label}', marks=marks)


@pytest.mark.parametrize(('model', 'case', 'tokens'), kinds_of_cases())
def test_every_part(tokenizers, files, model, case, tokens):
    theirs, ours = both(tokenizers, with_parts(files[model], case, tokens))

    @given(TEXTS)
    @settings(database=None)
    @example('x<new>y <new> New Newer  <mask>  hello   </s><s>')
    @example('')
    @example(' ▁a  ▁')
    def same(text):
        expected = theirs.encode(text)
        assert ours.encode(text) == expected.ids
        assert ours.encode_with_offsets(text).offsets == expected.offsets
        assert ours.encode_batch([text, 'the dog', text]) == [
            expected.ids, theirs.encode('the dog').ids, expected.ids
        ]  # fmt: skip
        # An added token of characters that stand for bytes is bytes to their decoder, and text here.
        if ours.id_of('É') not in expected.ids:
            decoded = theirs.decode(expected.ids, skip_special_tokens=False)
            assert ours.decode(expected.ids) == decoded

    same()


HIDING = added(
    ('<s>', 'special'),
    ('<mask> x', 'special', 'lstrip'),
    ('ss', 'special', 'normalized'),
    ('<',),
    ('s>',),
    ('x', 'single_word'),
    ('s', 'normalized', 'rstrip'),
)


@pytest.mark.parametrize('model', ['bytes', 'marks', 'pieces'])
def test_special_tokens_that_are_text_hide_the_tokens_in_them(tokenizers, files, model):
    data = json.dumps(with_parts(files[model], {}, HIDING)).encode()
    theirs = tokenizers.Tokenizer.from_str(data.decode())
    theirs.encode_special_tokens = True
    ours = PretrainedTokenizer(parse_pretrained(data, 'small.json'))

    @given(st.lists(st.sampled_from([*'<s>x é', '<s>', '<mask> x'])).map(''.join))
    @settings(database=None)
    @example('s <s>s> <mask> x x sss')
    def same(text):
        assert_same_encodings(ours, theirs, text)

    same()


@pytest.mark.parametrize('invert', [False, True])
@pytest.mark.parametrize('behavior', BEHAVIORS)
def test_a_split_at_the_empty_text_cuts_between_all_characters(tokenizers, files, behavior, invert):
    case = {'pre_tokenizer': split('', behavior, invert, 'String')}
    theirs, ours = both(tokenizers, with_parts(files['pieces'], case, ()))

    @given(TEXTS)
    @settings(database=None)
    @example('')
    def same(text):
        expected = theirs.encode(text)
        assert ours.encode_batch([text, 'the dog']) == [expected.ids, theirs.encode('the dog').ids]
        assert ours.encode_with_offsets(text).offsets == expected.offsets

    same()


@pytest.mark.parametrize('expression', ['^', '$', 'e*'])
def test_nothing_is_replaced_in_an_empty_text_or_in_an_added_token(tokenizers, files, expression):
    replace = {'type': 'Replace', 'pattern': {'Regex': expression}, 'content': '▁'}
    theirs, ours = both(tokenizers, with_parts(files['marks'], {'normalizer': replace}, ALL_FLAGS))

    @given(TEXTS)
    @settings(database=None)
    @example('')
    @example('the<new>end')
    @example('<s></s>')
    def same(text):
        expected = theirs.encode(text)
        assert ours.encode_batch(['', text]) == [theirs.encode('').ids, expected.ids]
        assert ours.encode_with_offsets(text).offsets == expected.offsets

    same()


@given(
    st.dictionaries(st.sampled_from('abcde'), st.integers(0, 9), min_size=1).filter(
        lambda entries: len({*entries.values()}) == len(entries)
    ),
    st.lists(st.sampled_from('abcdefg'), min_size=1, unique=True),
    st.data(),
)
@example({'a': 0, 'b': 9}, ['b', 'f', 'g'], None)
def test_added_tokens_must_have_the_ids_that_tokenizers_gives_them(
    tokenizers, files, entries, contents, data
):
    file = copy.deepcopy(files['words'])
    file['model'] |= {'vocab': entries, 'unk_token': [*entries][0]}
    file['added_tokens'] = [
        {'id': 0, 'content': content, **flags}
        for content, flags in added(*((content,) for content in contents))
    ]
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    for token in file['added_tokens']:
        token['id'] = theirs.token_to_id(token['content'])
    assert both(tokenizers, file)[1].encode(contents[-1]) == [file['added_tokens'][-1]['id']]
    other = data.draw(st.sampled_from(file['added_tokens'])) if data else file['added_tokens'][-1]
    other['id'] += 1
    with pytest.raises(InputError, match='the next id is'):
        both(tokenizers, file)


@pytest.mark.parametrize('pattern', ['gpt2', 'cl100k', 'o200k', 'qwen3.5', r'\w+|\s|[^\w\s]'])
def test_ranks_of_tiktoken(tiktoken, files, pattern):
    from tokcore.text.byte_level import token_bytes

    ranks = {token_bytes(entry): id_ for entry, id_ in files['bytes']['model']['vocab'].items()}
    # A token that no merges make.
    ranks[b'quick brown'] = len(ranks)
    lines = b''.join(base64.b64encode(token) + b' %d\n' % rank for token, rank in ranks.items())
    ours = PretrainedTokenizer(parse_pretrained(lines, 'small.tiktoken', pattern))
    named = DEFINITIONS.get(pattern)
    expression = named.expressions[0] if named else pattern
    theirs = tiktoken.Encoding(
        'small', pat_str=expression, mergeable_ranks=ranks, special_tokens={}
    )

    @given(TEXTS)
    @settings(database=None)
    def same(text):
        ids = theirs.encode_ordinary(text)
        assert ours.encode(text) == ids and ours.decode(ids) == theirs.decode(ids)
        offsets = ours.encode_with_offsets(text).offsets
        decoded, starts = theirs.decode_with_offsets(ids)
        if decoded == text:  # no character is left out by the pattern
            assert [start for start, _ in offsets] == starts
            assert [end for _, end in offsets] >= starts[1:]

    same()
