"""Readers of datasets that are replaced, deleted, restored and cut off at drawn moments, in rounds.

Five hundred: `FUZZ_CASES=500 pytest -n 0 tests/faults/test_replaced_under_readers.py`.
"""

import os
import random

import pytest
from replaced_under_readers import play, write_originals

SEED = int(os.environ.get('FUZZ_SEED', '0'))
ROUNDS = int(os.environ.get('FUZZ_CASES', '12'))

pytestmark = pytest.mark.skipif(not hasattr(os, 'fork'), reason='readers are forked')


def test_readers_have_rows_of_their_dataset_or_say_to_open_it_again(tmp_path):
    originals = {
        output_format: write_originals(tmp_path / output_format, output_format)
        for output_format in ('tfrecord', 'parquet')
    }
    counts = []
    for number in range(ROUNDS):
        dice = random.Random(f'replaced-{SEED}-{number}')
        folder = tmp_path / f'round-{number}' / 'd'
        readers = 1 + number % 8
        counts.append(play(dice, folder, originals[dice.choice([*originals])], readers))
    whole, refused, absent = map(sum, zip(*counts, strict=True))
    print(f'seed {SEED}: {whole} read to the end, {refused} refused, {absent} not opened')
    assert whole and refused
