"""Type checkers accept a program that uses every public name, and refuse wrong uses in it."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

import pipelines
import tokcore

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = (ROOT / 'tests' / 'typed_program.py').read_text()

MISTAKES = """

dataset = tokcore.open_dataset('a')
number: int = dataset['train'][0]['inputs']
dataset['train'][0][0]
dataset.tensorflow('train', for_model='gpt', batch_size=3)
dataset.torch('train', 256, tokens_per_batch=3)
tokcore.learn_vocabulary(['x'], vocab_sise=3)
pipelines.build(tsv='a.tsv', vocab_size='32k')
pipelines.CountTokens('bpe', pre_tokenizer='gpt-2')
"""


def test_the_program_uses_every_public_name():
    used = {
        (node.value.id, node.attr)
        for node in ast.walk(ast.parse(PROGRAM))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    for package in (tokcore, pipelines):
        missing = {name for name in package.__all__ if (package.__name__, name) not in used}
        assert not missing


@pytest.mark.slow
def test_mypy_is_content_with_it_and_sees_mistakes(tmp_path):
    pytest.importorskip('mypy')
    (tmp_path / 'user.py').write_text(PROGRAM + MISTAKES)
    command = ['-m', 'mypy', '--strict', '--python-version', '3.10', '--config-file=', 'user.py']
    checked = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},  # as if it were installed
    )
    lines = [line for line in checked.stdout.splitlines() if ': error:' in line]
    first = len(PROGRAM.splitlines()) + 4
    assert sorted({int(line.split(':')[1]) for line in lines}) == [*range(first, first + 7)], (
        checked.stdout + checked.stderr
    )
