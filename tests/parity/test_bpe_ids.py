"""Ids and pieces of byte pair encoding equal those of `tokenizers` and of subword-nmt."""

import gzip
import io
import os
import random
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from same_encodings import assert_same_encodings

from tokcore.bpe.apply_codes import CodesSegmenter
from tokcore.bpe.codes import NmtVocabulary, parse_nmt_codes
from tokcore.bpe.options import BpeOptions
from tokcore.bpe.scheme import BpeScheme
from tokcore.counts.token_table import TokenTable
from tokcore.text.patterns import DEFINITIONS
from tokcore.tokenizers import BpeTokenizer

CORPORA = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora'

SPECIAL = ['<pad>', '<s>', '</s>']

PHRASES = [
    'the', ' the', 'and', " I'll", "don't", "'S", '    return x', '\tif a == b:', '\r', '\r\n',
    '\n', '  ', '\u00a0', '\u3000', 'naïve', 'é', 'e\u0301', 'ﬁ', '１２３', ' 12345', '日本語',
    '、', '中文文本', '🙂', '🏳️‍🌈', '<s>', '</s>', '<pad>', '...', '_', '\u2028', 'x' * 40,
]  # fmt: skip
"""Made up of what patterns, normal forms and added tokens look at."""

# Letters of Unicode's newest versions are none to one side: those are compared elsewhere.
CHARACTERS = st.characters(max_codepoint=0xFFFF, exclude_categories=['Cs', 'Cn', 'Co'])
TEXTS = st.lists(st.sampled_from(PHRASES) | CHARACTERS, max_size=40).map(''.join)


def generated_lines(count: int, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    letters = 'etaoinshrdlué中文'
    words = [''.join(chance.choices(letters, k=chance.randint(1, 8))) for _ in range(300)]
    return [
        ' '.join(chance.choice([*words, *PHRASES]) for _ in range(chance.randint(1, 20)))
        for _ in range(count)
    ]


def trained(tokenizers, *, alphabet=True, **model):
    """A tokenizer of byte-level BPE, learned by the reference from generated text."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE(**model))
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    made.pre_tokenizer = byte_level(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=900,
        show_progress=False,
        initial_alphabet=byte_level.alphabet() if alphabet else [],
        special_tokens=SPECIAL,
    )
    made.train_from_iterator(generated_lines(400), trainer)
    return made


def with_parts(tokenizers, add_tokens=False, **parts):
    made = trained(tokenizers)
    for name, part in parts.items():
        setattr(made, name, part)
    if add_tokens:
        added = tokenizers.AddedToken
        made.add_tokens([added('naïve', normalized=False), added(' the', normalized=True), '  '])
    return made


def template(tokenizers):
    return tokenizers.processors.TemplateProcessing(
        single='<s> $A </s>', special_tokens=[('<s>', 1), ('</s>', 2)]
    )


def cl100k(tokenizers):
    made = tokenizers.pre_tokenizers
    pattern = tokenizers.Regex(DEFINITIONS['cl100k'].expressions[0])
    byte_level = made.ByteLevel(add_prefix_space=False, use_regex=False)
    return made.Sequence([made.Split(pattern, 'isolated'), byte_level])


MAKERS = {
    'plain': trained,
    'prefixed': lambda t: with_parts(
        t, pre_tokenizer=t.pre_tokenizers.ByteLevel(add_prefix_space=True)
    ),
    'NFC': lambda t: with_parts(t, normalizer=t.normalizers.NFC()),
    'NFKC and template': lambda t: with_parts(
        t, normalizer=t.normalizers.NFKC(), post_processor=template(t)
    ),
    'cl100k': lambda t: with_parts(t, pre_tokenizer=cl100k(t)),
    'added tokens': lambda t: with_parts(t, True),
    'added tokens and NFKC': lambda t: with_parts(t, True, normalizer=t.normalizers.NFKC()),
    'without some bytes': lambda t: trained(t, alphabet=False),
    'unknown': lambda t: trained(t, alphabet=False, unk_token='<pad>'),
    'fused unknown': lambda t: trained(t, alphabet=False, unk_token='<pad>', fuse_unk=True),
}


@pytest.fixture(scope='module', params=MAKERS.values(), ids=MAKERS)
def pair(request, tokenizers, tmp_path_factory):
    """A tokenizer of the reference and ours of its file, special tokens allowed."""
    made = request.param(tokenizers)
    path = tmp_path_factory.mktemp('bpe') / 'tokenizer.json'
    made.save(str(path))
    return made, BpeTokenizer.load(path, allow_special_tokens=True), path


@given(text=TEXTS)
def test_any_text_has_the_same_ids(pair, text):
    theirs, ours, _ = pair
    found = theirs.encode(text)
    assert ours.encode(text) == found.ids
    assert ours.tokenize(text) == theirs.encode(text, add_special_tokens=False).tokens


@given(text=TEXTS.map(lambda text: text.replace('<', '')))
def test_so_has_text_without_special_tokens_where_they_are_text(pair, text):
    theirs, _, path = pair
    assert BpeTokenizer.load(path).encode(text) == theirs.encode(text).ids


@pytest.mark.parametrize('form', ['NFC', None])
def test_special_tokens_that_are_text_hide_the_tokens_in_them(tokenizers, tmp_path, form):
    theirs = trained(tokenizers)
    if form:
        theirs.normalizer = tokenizers.normalizers.NFC()
    special = tokenizers.AddedToken('né', special=True, normalized=True)
    theirs.add_special_tokens([special])
    raw = [tokenizers.AddedToken(each, normalized=False) for each in ('s', 'd>\u00a0', '</s', '<')]
    theirs.add_tokens([*raw, tokenizers.AddedToken('é', normalized=True)])
    theirs.save(str(tmp_path / 'tokenizer.json'))
    theirs.encode_special_tokens = True
    ours = BpeTokenizer.load(tmp_path / 'tokenizer.json')

    @given(TEXTS)
    @example('<s>s</s></s<pad>\u00a0néé')
    def same(text):
        assert_same_encodings(ours, theirs, text)

    same()


def test_the_file_that_is_written_is_theirs(pair):
    _, ours, path = pair
    assert ours.vocabulary.dump() == path.read_bytes()


@given(data=st.data())
def test_any_ids_are_the_same_text(pair, data):
    theirs, ours, _ = pair
    ids = data.draw(st.lists(st.integers(3, 800), max_size=30))
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize('fuse_unk', [False, True])
@pytest.mark.parametrize('byte_fallback', [False, True])
@pytest.mark.parametrize('ignore_merges', [False, True])
@pytest.mark.parametrize('byte_level', [False, True])
def test_models_of_any_options(
    tokenizers, tmp_path, fuse_unk, byte_fallback, ignore_merges, byte_level
):
    chance = random.Random(f'{fuse_unk}{byte_fallback}{ignore_merges}{byte_level}')
    path = tmp_path / 'tokenizer.json'
    pre_tokenizers = tokenizers.pre_tokenizers
    split = pre_tokenizers.Split(tokenizers.Regex(DEFINITIONS['cl100k'].expressions[0]), 'isolated')
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for _ in range(12):
        letters = list('abcÃ©Ġ中é')
        entries = ['<unk>', *chance.sample(letters, 6), *('<0xC3>', '<0xA9>', '<0x62>', '<0x83>')]
        merges = []
        for _ in range(15):
            left, right = chance.choices(entries[1:7] + [a + b for a, b in merges], k=2)
            if (left, right) not in merges:
                merges.append((left, right))
        chance.shuffle(merges)
        entries = [*dict.fromkeys([*entries, *(a + b for a, b in merges), 'abc', 'bé'])]
        model = tokenizers.models.BPE(
            {each: id_ for id_, each in enumerate(entries)}, merges, unk_token='<unk>',
            fuse_unk=fuse_unk, byte_fallback=byte_fallback, ignore_merges=ignore_merges,
        )  # fmt: skip
        theirs = tokenizers.Tokenizer(model)
        theirs.pre_tokenizer = pre_tokenizers.Sequence([split, whole] if byte_level else [split])
        theirs.save(str(path))
        ours = BpeTokenizer.load(path)
        for _ in range(40):
            text = ''.join(chance.choices('abcé中x ', k=chance.choice([1, 3, 9, 120])))
            assert ours.encode(text) == theirs.encode(text).ids, text


@pytest.mark.parametrize('seed', range(4))
def test_lines_of_pieces_equal_those_of_apply_bpe(subword_nmt, seed):
    learn, apply, _ = subword_nmt
    lines = [line.replace('\n', ' ') for line in generated_lines(300, seed)]
    codes = io.StringIO()
    learn.learn_bpe(io.StringIO('\n'.join(lines)), codes, 300)
    text = codes.getvalue()
    if seed % 2:
        # Codes in another order make pairs whose merges come before their parts'.
        first, *rest = text.splitlines()
        random.Random(seed).shuffle(rest)
        text = '\n'.join([first, *rest, ''])
    theirs = apply.BPE(io.StringIO(text))
    ours = CodesSegmenter(NmtVocabulary(parse_nmt_codes(text.encode(), 'codes')))
    chance = random.Random(seed)
    unseen = [''.join(chance.choices('etaoé中文@</w> \t\u00a0x', k=60)) for _ in range(200)]
    tried = [*lines, *(f' {line}\r\n' for line in unseen), '', '\n', 'x' * 3_000]
    assert ours.lines(tried) == [theirs.process_line(line) for line in tried]


@pytest.mark.corpora
@pytest.mark.parametrize('name', ['docs.en.txt.gz', 'enzh.tsv.gz', 'poetry.zh.txt.gz'])
def test_anthropics_vocabulary_on_real_text(tokenizers, name):
    """ANTHROPIC_TOKENIZER names the tokenizer.json of the package anthropic 0.34.2."""
    path = os.environ.get('ANTHROPIC_TOKENIZER')
    if not path or not (CORPORA / name).exists():
        pytest.skip('ANTHROPIC_TOKENIZER is not set, or there are no corpora')
    theirs = tokenizers.Tokenizer.from_file(path)
    ours = BpeTokenizer.load(path)
    with gzip.open(CORPORA / name, 'rt', encoding='utf-8', newline='\n') as lines:
        for number, line in enumerate(lines):
            if number == 20_000:
                break
            text = line.removesuffix('\n')
            assert ours.encode(text) == theirs.encode(text).ids, text


@pytest.mark.parametrize('pattern', ['gpt2', 'cl100k'])
def test_what_is_learned_here_is_loaded_by_others(tokenizers, transformers, tmp_path, pattern):
    scheme = BpeScheme(preset=pattern)
    lines = generated_lines(300)
    table = TokenTable.from_items((token, 1) for line in lines for token in scheme.tokens(line))
    options = BpeOptions(vocab_size=500, special_tokens=('<pad>', '</s>'))
    ours = BpeTokenizer(scheme.learn(table, options, lambda *_: None).vocabulary)
    path = tmp_path / 'tokenizer.json'
    ours.save(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
    assert (ours.vocab_size, theirs.get_vocab_size(), len(fast)) == (500, 500, 500)
    for line in generated_lines(100, seed=1):
        text = line.replace('</s>', '').replace('<pad>', '')
        assert ours.encode(text) == theirs.encode(text).ids == fast(text)['input_ids']
        assert ours.decode(ours.encode(text)) == text
    theirs.save(str(tmp_path / 'again.json'))
    assert (tmp_path / 'again.json').read_bytes() == path.read_bytes()
