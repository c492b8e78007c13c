"""Readers of datasets that are replaced, deleted, restored and cut off at drawn moments, in rounds.

Five hundred: `FUZZ_CASES=500 pytest -n 0 tests/faults/test_replaced_under_readers.py`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SEED = int(os.environ.get('FUZZ_SEED', '0'))
ROUNDS = int(os.environ.get('FUZZ_CASES', '5'))

pytestmark = pytest.mark.skipif(not hasattr(os, 'fork'), reason='readers are forked')


def test_readers_have_rows_of_their_dataset_or_say_to_open_it_again(tmp_path):
    # Not from this process: threads that other tests have started may hold locks at the fork.
    rounds = Path(__file__).with_name('replaced_under_readers.py')
    line = [sys.executable, str(rounds), str(tmp_path), str(SEED), str(ROUNDS)]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
