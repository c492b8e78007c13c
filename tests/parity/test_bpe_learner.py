"""Merges are those of Hugging Face's tokenizers and of subword-nmt."""

import collections
import io
import json
import os
import random
from pathlib import Path

import pytest

from tokcore.bpe.options import BpeOptions, BpeRules
from tokcore.bpe.plain_iteration import learn_plainly
from tokcore.bpe.trainer import learn_merges
from tokcore.counts.token_table import TokenTable
from tokcore.text.patterns import DEFINITIONS, split
from tokcore.tokenizers import learn_vocabulary

SEED = int(os.environ.get('FUZZ_SEED', '0'))
CASES = int(os.environ.get('FUZZ_CASES', '200'))
CORPORA = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora'

ALPHABETS = ['ab', 'abcé', 'abcdefgh</w>', 'aあいう中b', 'Ġ!a\U0001f600']


@pytest.fixture(scope='module')
def learn_bpe(subword_nmt):
    return subword_nmt[0].learn_bpe


def of_hugging_face(tokenizers, counts, rules):
    """Returns (entries, merges) of its trainer; words are given as often as they count."""
    parts = [tokenizers.pre_tokenizers.Split('|', 'removed')]
    initial = []
    if rules.byte_level:
        parts.append(tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
        initial = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    optional = {
        'limit_alphabet': rules.limit_alphabet, 'max_token_length': rules.max_piece_length,
    }  # fmt: skip
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=rules.vocab_size,
        min_frequency=rules.min_count,
        special_tokens=list(rules.special_tokens),
        initial_alphabet=initial,
        show_progress=False,
        **{name: value for name, value in optional.items() if value is not None},
    )
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(parts)
    rows = ('|'.join([word] * count) for word, count in counts.items())
    tokenizer.train_from_iterator(rows, trainer)
    model = json.loads(tokenizer.to_str())['model']
    entries = sorted(model['vocab'], key=model['vocab'].get)
    return tuple(entries), tuple(map(tuple, model['merges']))


def of_subword_nmt(learn_bpe, counts, rules):
    """Returns the merges of its codes."""
    codes = io.StringIO()
    lines = [f'{word} {count}' for word, count in counts.items()]
    try:
        learn_bpe(
            lines, codes, rules.merges, min_frequency=rules.min_count, is_dict=True,
            total_symbols=rules.total_symbols,
        )  # fmt: skip
    except ValueError:
        # All words are single characters: it has written its first line.
        assert all(len(word) == 1 for word in counts)
    return tuple(tuple(line.split(' ')) for line in codes.getvalue().splitlines()[1:])


def drawn_counts(dice):
    """Words of few characters, so that counts tie everywhere."""
    alphabet, most = dice.choice(ALPHABETS), dice.choice([3, 30])
    return {
        ''.join(dice.choices(alphabet, k=dice.randint(1, dice.choice([4, 12, 60])))): (
            dice.randint(1, most)
        )
        for _ in range(dice.randint(1, 30))
    }


def drawn_hugging_face_case(dice):
    counts = drawn_counts(dice)
    byte_level = dice.random() < 0.5
    characters = sorted({character for word in counts for character in word})
    totals = collections.Counter()
    for word, count in counts.items():
        totals.update({character: n * count for character, n in collections.Counter(word).items()})
    limit = None
    # Which of equally common characters stay differs there from one run to the next.
    if not byte_level and len(set(totals.values())) == len(totals):
        limit = dice.choice([None, dice.randint(1, len(totals) + 1)])
    special = {''.join(dice.choices(characters, k=dice.randint(1, 3))) for _ in range(3)}
    rules = BpeRules(
        byte_level=byte_level,
        min_count=dice.choice([0, 1, 2, 9]),
        max_piece_length=dice.choice([None, None, None, 0, 1, 2, 3, 4, 5, 9]),
        limit_alphabet=limit,
        special_tokens=tuple(sorted(special))[: dice.randint(0, 3)],
        vocab_size=dice.choice([1, 5, 40, 300]) + 256 * byte_level,
    )
    return counts, rules


def drawn_nmt_case(dice):
    rules = BpeRules(
        'largest-pair',
        byte_level=False,
        end_of_word='</w>',
        min_count=dice.choice([1, 2, 5]),
        merges=dice.choice([1, 5, 40, 300]),
        total_symbols=dice.random() < 0.3,
    )
    return drawn_counts(dice), rules


def check_hugging_face(tokenizers, seed):
    counts, rules = drawn_hugging_face_case(random.Random(seed))
    found = learn_merges(TokenTable.from_items(counts.items()), rules)
    expected = of_hugging_face(tokenizers, counts, rules)
    assert (found.entries, found.merges) == expected, (seed, counts, rules)


def check_subword_nmt(learn_bpe, seed):
    counts, rules = drawn_nmt_case(random.Random(seed))
    found = learn_merges(TokenTable.from_items(counts.items()), rules)
    assert found.merges == of_subword_nmt(learn_bpe, counts, rules), (seed, counts, rules)


@pytest.mark.fuzz
def test_any_table_as_tokenizers(tokenizers):
    for seed in range(SEED, SEED + CASES):
        check_hugging_face(tokenizers, seed)


@pytest.mark.fuzz
def test_any_table_as_subword_nmt(learn_bpe):
    for seed in range(SEED, SEED + CASES):
        check_subword_nmt(learn_bpe, seed)


def test_subword_nmt_does_not_always_merge_the_most_frequent_pair_of_a_word_with_the_suffix_inside(
    learn_bpe,
):
    # It counts a symbol again that was there before: an exception that docs/schemes.md names.
    counts = {'a</w></wa': 2}
    rules = BpeOptions(merges=20).rules('subword-nmt')
    learned = learn_merges(TokenTable.from_items(counts.items()), rules)
    entries, merges, pair_counts = learn_plainly(counts.items(), rules)
    assert [*learned.merges] == merges and learned.counts.tolist() == pair_counts
    assert of_subword_nmt(learn_bpe, counts, rules) != learned.merges


def test_the_books_code_merges_across_symbols():
    # It joins by replacing text, so `xa b` becomes `xab`: an exception that docs/schemes.md names.
    counts = {'xa': 3, 'ab': 2, 'xab': 1}
    rules = BpeRules('first', byte_level=False, merges=9)
    learned = learn_merges(TokenTable.from_items(counts.items()), rules)
    words = {' '.join(word): count for word, count in counts.items()}
    replaced = 0
    while any(' ' in word for word in words):
        pairs = collections.Counter()
        for word, count in words.items():
            symbols = word.split()
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += count
        [(pair, _)] = pairs.most_common(1)
        words = {word.replace(' '.join(pair), ''.join(pair)): n for word, n in words.items()}
        replaced += 1
    assert (replaced, len(learned.merges)) == (2, 3)


TEXTS = [
    "HelloWorld it's the helloWorld of GPT-4o, THEY'RE there: don't stop.", '漢字 と かな、 12345 678 ٣٤٥',
    'def f(x):\n\treturn x[1]  # the one\r\n', 'Größe und große Flüsse, e\u0301lan a\u0301 a\u0301', 'path/to/the/file ///\n/',
]  # fmt: skip


@pytest.mark.parametrize('pattern', ['qwen3.5', 'o200k', 'tekken', 'deepseek', 'none'])
def test_patterns_of_models_as_tokenizers(tokenizers, pattern):
    made = tokenizers.pre_tokenizers
    splits = [
        made.Split(tokenizers.Regex(expression), 'isolated')
        for expression in DEFINITIONS[pattern].expressions
    ]
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    whole = made.ByteLevel(add_prefix_space=False, use_regex=False)
    theirs.pre_tokenizer = made.Sequence([*splits, whole])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=['<|endoftext|>'],
        initial_alphabet=made.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator(TEXTS, trainer)
    # Rows of files are lines, and these texts have line feeds, which are part of tokens.
    counts = collections.Counter(token for text in TEXTS for token in split(text, pattern))
    ours = learn_vocabulary(
        TokenTable.from_items(counts.items()), 'bpe', pre_tokenizer=pattern, vocab_size=330
    )
    file = json.loads(ours.vocabulary.dump())
    expected = json.loads(theirs.to_str())
    assert file['model']['vocab'] == expected['model']['vocab']
    assert file['model']['merges'] == expected['model']['merges']
    assert file['pre_tokenizer'] == expected['pre_tokenizer']
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text).ids
