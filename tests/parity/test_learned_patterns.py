"""Patterns of one's own, Digits and a space before texts: merges and ids are those of tokenizers."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.tokenizers import learn_vocabulary, load_tokenizer

END = '<|endoftext|>'
ROOT = Path(__file__).parents[2]
REAL = [
    line
    for name in ('README.md', 'docs/schemes.md', 'tokcore/text/patterns.py')
    for line in (ROOT / name).read_text().splitlines()
    if line.strip() and END not in line  # tokenizers finds special tokens in text
]
MORE = ['漢字12 と かな、3', '١٢٣ ½Ⅻ ²', "  don't  ", '\t12\t 3', 'Größe e\u0301lan 🙂👍🏽7']

WORDS = r' ?\p{L}+| ?\p{N}{1,2}| ?[^\s\p{L}\p{N}]+|\s+'
CASES = {
    'words': ([WORDS], False),
    'parts of words': ([r'\p{Lu}?\p{Ll}+|\d'], False),
    'look-around': ([r'(?<=\p{L})\p{N}+|\s+(?!\S)|\p{P}{2,}'], False),
    'digits': (['individual-digits', 'gpt2'], False),
    'numbers': (['digits', 'gpt2'], False),
    'after a pattern': (['gpt2', 'digits'], False),
    'a sequence': ([r'\s?\p{L}+', r'\s?\p{P}+', 'individual-digits'], False),
    'a space before': (['gpt2'], True),
    'a space before lines': (['none'], True),
}


def pre_tokenizer_of(tokenizers, patterns, add_prefix_space):
    """The same by the library, which has a pattern of its own in ByteLevel."""
    made = tokenizers.pre_tokenizers
    has_own = patterns[-1] == 'gpt2'
    parts = []
    for pattern in patterns[: len(patterns) - has_own]:
        if pattern.endswith('digits'):
            parts.append(made.Digits(pattern == 'individual-digits'))
        elif pattern == 'gpt2':
            expression = (
                r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
            )
            parts.append(made.Split(tokenizers.Regex(expression), 'isolated'))
        elif pattern != 'none':
            parts.append(made.Split(tokenizers.Regex(pattern), 'isolated'))
    parts.append(made.ByteLevel(add_prefix_space=add_prefix_space, use_regex=has_own))
    return made.Sequence(parts) if len(parts) > 1 or not has_own else parts[0]


def check(tokenizers, case, texts, others, size=300):
    patterns, add_prefix_space = CASES[case]
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = pre_tokenizer_of(tokenizers, patterns, add_prefix_space)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator(texts, trainer)
    ours = learn_vocabulary(
        texts, 'bpe', pattern=patterns, add_prefix_space=add_prefix_space, vocab_size=size
    )
    file, expected = json.loads(ours.vocabulary.dump()), json.loads(theirs.to_str())
    for name in ('merges', 'vocab'):
        assert file['model'][name] == expected['model'][name], name
    assert file['pre_tokenizer'] == expected['pre_tokenizer']
    reopened = tokenizers.Tokenizer.from_str(ours.vocabulary.dump().decode())
    for text in (*texts, *others):
        assert ours.encode(text) == theirs.encode(text).ids == reopened.encode(text).ids, text


@pytest.mark.parametrize('case', CASES)
def test_real_text(tokenizers, case, tmp_path):
    check(tokenizers, case, REAL, MORE, 600)


lines = st.lists(
    st.text("ab Zé'5٣½字,.\t\n🙂", min_size=1, max_size=16).filter(str.strip),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize('case', CASES)
@given(texts=lines, others=lines)
def test_random_text(tokenizers, case, texts, others):
    check(tokenizers, case, texts, others)


def test_a_file_alone_gives_the_same_ids(tokenizers, tmp_path):
    """By the scheme `pretrained`, which its form tells; `bpe` needs the record."""
    ours = learn_vocabulary(REAL, 'bpe', pattern=WORDS, vocab_size=400)
    ours.save(tmp_path / 'tokenizer.json')
    for options in ({}, {'scheme': 'bpe'}):
        again = load_tokenizer(tmp_path / 'tokenizer.json', **options)
        assert again.encode_batch(REAL + MORE) == ours.encode_batch(REAL + MORE)
