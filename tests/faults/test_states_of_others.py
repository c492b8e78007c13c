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
    FIELDS
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

OURS = """
import numpy as np
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable

def counted(pre_tokenizer):
    text = np.frombuffer(b'ab-cd ab', np.uint8)
    sums = TokenAccumulator()
    sums.add_rows(text, np.zeros(1, np.int64), np.full(1, len(text), np.int64), pre_tokenizer)
    print(sorted(TokenTable(*sums.finish()).items()))
"""

WITH_THEIRS = (
    OURS
    + """
from splitting import Marks

class PreTokenizer:
    def prepare(self, rows):
        return Marks(**{'border': 45, 'skipped': 1}), rows.text

counted(PreTokenizer())
"""
)

WITH_T2T = (
    OURS
    + """
from tokcore.text.t2t import T2TPreTokenizer
counted(T2TPreTokenizer())
"""
)


@pytest.fixture(scope='module')
def cache(tmp_path_factory):
    """A copy of the kernels that are compiled already, for all tests: others take long."""
    folder = tmp_path_factory.mktemp('kernels')
    if jit.CACHE_FOLDER is not None:
        shutil.copytree(jit.CACHE_FOLDER, folder / jit.CACHE_FOLDER.name)
    return folder


@pytest.fixture
def run(cache):
    """Runs Python in a new process, with some folders to import from."""

    def run_python(code: str, *folders: pathlib.Path) -> str:
        path = os.pathsep.join(map(str, (*folders, ROOT)))
        environment = {
            **os.environ, 'PYTHONPATH': path, 'NUMBA_CACHE_DIR': str(cache),
            'PYTHONDONTWRITEBYTECODE': '1',
        }  # fmt: skip
        ended = subprocess.run(
            [sys.executable, '-c', code], env=environment, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    return run_python


@pytest.fixture
def theirs(tmp_path):
    folder = tmp_path / 'theirs'
    folder.mkdir()
    (folder / 'splitting.py').write_text(SPLITTING)
    (folder / 'marks.py').write_text(STATE.replace('FIELDS', 'border: int\n    skipped: int'))
    return folder


def test_what_is_edited_is_compiled_again_and_processes_without_it_use_the_same_cache(run, theirs):
    expected = run(WITH_THEIRS, theirs)
    assert expected == "[('b', 1), ('d ab', 1)]"
    assert run(WITH_T2T) == "[('-', 1), ('ab', 2), ('cd', 1)]"
    # numba's key has a named tuple's name and the types of its fields, and not their order.
    (theirs / 'marks.py').write_text(STATE.replace('FIELDS', 'skipped: int\n    border: int'))
    assert run(WITH_THEIRS, theirs) == expected
    # Nor has it the bodies.
    (theirs / 'splitting.py').write_text(SPLITTING.replace('place + pre_', 'place + 2 * pre_'))
    assert run(WITH_THEIRS, theirs) == "[('', 1), (' ab', 1)]"
