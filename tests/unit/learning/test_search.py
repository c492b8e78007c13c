"""The choice of a learner by memory, and the prediction of memory."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from pipelines.artifacts.counts import CountedSize, find_counts
from pipelines.engines.machine import available_bytes, peak_bytes
from pipelines.learning.search import choose_learner, predicted_bytes, rounds_at_once
from tokcore.bpe.scheme import SCHEME

TOKENS, LENGTH = 400_000, 13

LEARN = """
import sys
import numpy as np
from pipelines.engines.machine import peak_bytes, resident_bytes
from tokcore.bpe.options import BpeOptions
from tokcore.bpe.trainer import learn_merges
from tokcore.counts.token_table import TokenTable

rules = BpeOptions(merges=2000).rules('gpt2')
learn_merges(TokenTable.from_items([('warm', 2)]), rules)
tokens, length = map(int, sys.argv[1:])
dice = np.random.Generator(np.random.PCG64(1))
letters = dice.integers(97, 123, tokens * length, np.uint8)
for position in range(5):  # all distinct
    letters[position::length] = np.arange(tokens, dtype=np.int32) // 26**position % 26 + 97
table = TokenTable(letters, length * np.arange(tokens + 1), 1 + dice.integers(0, 9, tokens))
before = resident_bytes()
learn_merges(table, rules)
print(peak_bytes() - before)
"""

GIB = 1 << 30
SMALL = CountedSize(100_000, 900_000, True)
MIDDLE = CountedSize(20_000_000, 170_000_000, True)
HUGE = CountedSize(500_000_000, 5_000_000_000, True)


@pytest.mark.slow
def test_a_large_table_takes_no_more_than_predicted():
    command = [sys.executable, '-c', LEARN, str(TOKENS), str(LENGTH)]
    used = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    nothing = predicted_bytes(CountedSize(0, 0, False), SCHEME.learner_bytes_per_character)
    size = CountedSize(TOKENS, TOKENS * LENGTH, False)
    predicted = predicted_bytes(size, SCHEME.learner_bytes_per_character) - nothing
    assert predicted / 4 < used < predicted


@pytest.mark.parametrize(
    ('learner', 'size', 'available', 'chosen'),
    [
        ('auto', SMALL, 8 * GIB, 'memory'),
        ('auto', HUGE, 64 * GIB, 'beam'),
        ('auto', MIDDLE, 64 * GIB, 'memory'),
        ('auto', MIDDLE, 4 * GIB, 'beam'),
        ('memory', HUGE, GIB, 'memory'),
        ('beam', SMALL, GIB, 'beam'),
    ],
)
def test_the_choice_depends_on_memory_unless_it_is_explicit(learner, size, available, chosen):
    assert choose_learner(learner, size, 50, available).learner == chosen


def test_the_reason_names_both_amounts_of_memory():
    choice = choose_learner('auto', SMALL, 50, 8 * GIB)
    assert choice.memory_bytes == predicted_bytes(SMALL, 50)
    for part in ('100,000 tokens', f'{choice.memory_bytes >> 20} MiB', '8,192 MiB'):
        assert part in choice.reason


def test_sizes_come_from_footers_and_stored_bytes(tmp_path):
    tokens = [f'token{i}' for i in range(5000)]
    path = tmp_path / 'counts.parquet'
    parquet.write_table(pa.table({'token': tokens, 'count': range(5000)}), path)
    size = find_counts([str(path)]).size()
    text = sum(map(len, tokens))
    assert size.tokens == 5000
    assert size.all_parquet
    assert 0.5 * text <= size.bytes <= 2 * text
    lines = tmp_path / 'counts.txt'
    lines.write_text(''.join(f'{token} 1\n' for token in tokens))
    both = find_counts([str(path), str(lines)]).size()
    assert not both.all_parquet
    assert both.bytes == size.bytes + lines.stat().st_size
    assert 5000 < both.tokens < 15_000


def test_the_memory_of_this_machine_is_known():
    assert available_bytes() > 0
    assert peak_bytes() > 10 << 20


@pytest.mark.parametrize(
    ('tokens', 'rounds'),
    [(0, 31), (80_000, 31), (81_000, 15), (166_000, 15), (357_000, 7), (833_000, 3),
     (834_000, 1), (10**8, 1)],
)  # fmt: skip
def test_a_job_takes_whole_steps_of_a_bisection(tokens, rounds):
    assert rounds_at_once(tokens) == rounds
