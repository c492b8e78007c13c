"""Kernels that are compiled for somebody else's state are neither stale nor in another's way."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tokcore.kernels import jit

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif('NUMBA_DISABLE_JIT' in os.environ, reason='nothing is compiled'),
]

ROOT = pathlib.Path(__file__).resolve().parents[2]

STATE = """
from typing import NamedTuple

class Marks(NamedTuple):
    {}: int
    {}: int
"""

SPLITTING = """
from marks import Marks
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.text.pre_tokenizer import scan_tokens

@scan_tokens.register(Marks)
@kernel_without_allocation
def scan_at_marks(rows, row, position, pre_tokenizer, tokens):
    count = 0
    while row < len(rows.starts):
        place = rows.starts[row]
        for end in range(place, rows.ends[row] + 1):
            if end == rows.ends[row] or rows.text[end] == pre_tokenizer.border:
                tokens.starts[count] = place + pre_tokenizer.skipped
                tokens.ends[count] = end
                count += 1
                place = end + 1
        row += 1
        tokens.row_tokens[row] = count
    return row, -1, count
"""

COUNTING = """
import numpy as np
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable
from tokcore.text.t2t import T2TPreTokenizer

class PreTokenizer:
    def prepare(self, rows):
        from splitting import Marks
        return Marks(**{'border': 45, 'skipped': 1}), rows.text

text = np.frombuffer(b'ab-cd ab', np.uint8)
sums = TokenAccumulator()
sums.add_rows(text, np.zeros(1, np.int64), np.full(1, len(text), np.int64), %s())
print(sorted(TokenTable(*sums.finish()).items()))
"""


def test_what_is_edited_is_compiled_again_and_processes_without_it_use_the_same_cache(tmp_path):
    if jit.CACHE_FOLDER is not None:  # kernels that are compiled already: others take long
        shutil.copytree(jit.CACHE_FOLDER, tmp_path / 'kernels' / jit.CACHE_FOLDER.name)
    marks, splitting = tmp_path / 'marks.py', tmp_path / 'splitting.py'

    def counted(pre_tokenizer):
        environment = {
            **os.environ, 'PYTHONPATH': os.pathsep.join(map(str, (tmp_path, ROOT))),
            'NUMBA_CACHE_DIR': str(tmp_path / 'kernels'), 'PYTHONDONTWRITEBYTECODE': '1',
        }  # fmt: skip
        ended = subprocess.run(
            [sys.executable, '-c', COUNTING % pre_tokenizer],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    splitting.write_text(SPLITTING)
    # numba's key has a named tuple's name and the types of its fields, and not their order.
    for fields in (('border', 'skipped'), ('skipped', 'border')):
        marks.write_text(STATE.format(*fields))
        assert counted('PreTokenizer') == "[('b', 1), ('d ab', 1)]"
    assert counted('T2TPreTokenizer') == "[('-', 1), ('ab', 2), ('cd', 1)]"
    # Nor has it the bodies.
    splitting.write_text(SPLITTING.replace('place + pre_', 'place + 2 * pre_'))
    assert counted('PreTokenizer') == "[('', 1), (' ab', 1)]"
