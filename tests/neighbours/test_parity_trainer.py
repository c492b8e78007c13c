"""Merges of parity-aware BPE are those of `ParityBpeTrainer` of tokenizers 0.23.3."""

import gzip
import json
import os
import random
from itertools import islice
from pathlib import Path

import pytest
from environments import run_script

from tokcore.bpe.options import BpeRules
from tokcore.bpe.parity import learn_parity_merges
from tokcore.counts.token_table import TokenTable
from tokcore.learn import count_tokens
from tokcore.schemes import find_scheme
from tokcore.text.patterns import DEFINITIONS

SEED = int(os.environ.get('FUZZ_SEED', '0'))
CASES = int(os.environ.get('FUZZ_CASES', '200'))
CORPORA = Path(__file__).resolve().parents[3] / 'shared' / 'corpora'
LINES, DEV_LINES = 20_000, 1_000

ALPHABETS = ['ab', 'abcé', 'abcdefgh ', 'aあいう中b', 'Ġ!a\U0001f600', 'ba']


def of_tokenizers(python, cases, folder):
    """Returns (entries, merges) of each case."""
    (folder / 'cases').write_text(''.join(json.dumps(case) + '\n' for case in cases))
    arguments = (folder / 'cases', folder / 'results')
    assert run_script(python, 'parity_by_tokenizers.py', *arguments) == '0.23.3'
    results = map(json.loads, (folder / 'results').read_text().splitlines())
    return [(tuple(entries), [tuple(pair) for pair in merges]) for entries, merges in results]


def without_repeated(merges):
    """The merges as a tokenizer.json of tokenizers has them: of equal pairs the last one."""
    last = {pair: index for index, pair in enumerate(merges)}
    return [pair for index, pair in enumerate(merges) if last[pair] == index]


def drawn_languages(dice):
    """For each language, counts of words to learn from and of its development text."""
    languages = []
    for _ in range(dice.randint(1, 4)):
        alphabet, most = dice.choice(ALPHABETS), dice.choice([3, 30])
        tables = []
        for size in (30, 12):
            words = (
                ''.join(dice.choices(alphabet, k=dice.randint(1, dice.choice([4, 12, 40]))))
                for _ in range(dice.randint(1, size))
            )
            tables.append({word: dice.randint(1, most) for word in words})
        languages.append(tables)
    return languages


def drawn_rules(dice):
    special = {''.join(dice.choices('ab<Ġ', k=dice.randint(1, 3))) for _ in range(3)}
    return BpeRules(
        min_count=dice.choice([0, 1, 2, 9]),
        max_piece_length=dice.choice([None, None, None, 0, 1, 2, 3, 4, 5, 9]),
        special_tokens=tuple(sorted(special))[: dice.randint(0, 3)],
        merges=dice.choice([1, 5, 40, 300]),
    )


def case_of(texts, rules, expressions, removed=False):
    training, development = zip(*texts)
    options = {
        'num_merges': rules.merges,
        'min_frequency': rules.min_count,
        'special_tokens': list(rules.special_tokens),
        'max_token_length': rules.max_piece_length,
    }
    return {
        'training': training, 'development': development, 'expressions': expressions,
        'removed': removed, 'options': options,
    }  # fmt: skip


def learned(tables, rules):
    found = learn_parity_merges(*zip(*tables), rules)
    return found.entries, without_repeated(found.merges)


def test_any_tables(environment, tmp_path):
    drawn = []
    for seed in range(SEED, SEED + CASES):
        dice = random.Random(seed)
        drawn.append((drawn_languages(dice), drawn_rules(dice)))
    cases = [
        case_of(
            [
                [['|'.join([word] * count) for word, count in counts.items()] for counts in tables]
                for tables in languages
            ],
            rules,
            ['\\|'],
            removed=True,
        )
        for languages, rules in drawn
    ]
    expected = of_tokenizers(environment('tokenizers 0.23'), cases, tmp_path)
    assert len(expected) == len(drawn) > 0
    for number, (languages, rules) in enumerate(drawn):
        tables = [[TokenTable.from_items(each.items()) for each in pair] for pair in languages]
        assert learned(tables, rules) == expected[number], (SEED + number, languages, rules)


def lines_of(*names):
    """For each file of the corpora, lines to learn from and others of development."""
    texts = []
    for name, column in names:
        path = CORPORA / name
        if not path.exists():
            pytest.skip(f'{path} is not there')
        with gzip.open(path, 'rt', encoding='utf-8', newline='\n') as lines:
            rows = [line.rstrip('\n') for line in islice(lines, LINES + DEV_LINES)]
        if column is not None:
            rows = [row.split('\t')[column] for row in rows]
        texts.append((rows[DEV_LINES:], rows[:DEV_LINES]))
    return texts


@pytest.mark.corpora
@pytest.mark.parametrize('pattern', ['gpt2', 'o200k'])
@pytest.mark.parametrize(
    'names',
    [
        [('enzh.tsv.gz', 0), ('enzh.tsv.gz', 1)],
        [('docs.en.txt.gz', None), ('poetry.zh.txt.gz', None)],
    ],
    ids=['enzh', 'docs and poetry'],
)
def test_corpora(environment, names, pattern, tmp_path):
    texts, rules = lines_of(*names), BpeRules(merges=8_000, special_tokens=('<|endoftext|>',))
    case = case_of(texts, rules, DEFINITIONS[pattern].expressions)
    [expected] = of_tokenizers(environment('tokenizers 0.23'), [case], tmp_path)
    scheme = find_scheme('bpe', pre_tokenizer=pattern)
    tables = [[count_tokens(scheme, lines) for lines in pair] for pair in texts]
    found = learned(tables, rules)
    assert found == expected
    assert len(found[1]) == rules.merges
