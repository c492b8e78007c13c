"""The learner takes the memory that is predicted of it, and for which it is refused."""

import subprocess
import sys

from pipelines.artifacts.count_files import CountedSize
from pipelines.learning.learner_choice import predicted_bytes
from tokcore.bpe.bpe_scheme import SCHEME

TOKENS, LENGTH = 400_000, 13

LEARN = """
import sys
import numpy as np
from pipelines.machine.process_memory import peak_bytes, resident_bytes
from tokcore.bpe.learning.bpe_options import BpeOptions
from tokcore.bpe.learning.learner import learn_merges
from tokcore.counts.token_table import TokenTable

rules = BpeOptions(merges=2000).rules('gpt2')
learn_merges(TokenTable.from_items([('warm', 2)]), rules)
tokens, length = map(int, sys.argv[1:])
dice = np.random.Generator(np.random.PCG64(1))
letters = dice.integers(97, 123, tokens * length, np.uint8)
for place in range(5):  # all distinct
    letters[place::length] = np.arange(tokens, dtype=np.int32) // 26**place % 26 + 97
table = TokenTable(letters, length * np.arange(tokens + 1), 1 + dice.integers(0, 9, tokens))
before = resident_bytes()
learn_merges(table, rules)
print(peak_bytes() - before)
"""


def test_a_large_table_takes_no_more_than_is_predicted():
    command = [sys.executable, '-c', LEARN, str(TOKENS), str(LENGTH)]
    taken = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    nothing = predicted_bytes(CountedSize(0, 0, False), SCHEME.learner_bytes_per_character)
    size = CountedSize(TOKENS, TOKENS * LENGTH, False)
    predicted = predicted_bytes(size, SCHEME.learner_bytes_per_character) - nothing
    assert predicted / 4 < taken < predicted
