"""Notebooks, run by nbclient, with pandas 3, with pandas 2 and without pandas."""

import re
import subprocess
import sys

import pytest
from environments import run_script


@pytest.mark.parametrize('pandas', [None, 'pandas>=2,<3', 'pandas>=3,<4'])
def test_calls_and_transforms_work_in_notebooks(environment, tmp_path, pandas):
    python = environment('Jupyter')
    words = ['uninstall', '--yes', 'pandas'] if pandas is None else ['install', '--quiet', pandas]
    subprocess.run([sys.executable, '-m', 'pip', '--python', python, *words], check=True)
    (tmp_path / 'lines.txt').write_text('a <b>line</b> of text\n' * 20)
    (tmp_path / 'many.txt').write_text(''.join(f'the line {each}\n' for each in range(500_000)))
    told = run_script(python, 'run_notebooks.py', tmp_path)
    outputs = [output for cells in told.values() for cell in cells for output in cell]
    displayed = [output for output in outputs if isinstance(output, dict)]
    assert not any('application/javascript' in output for output in displayed)
    _, build, result, dataset, row, bars = told['calls']
    assert build == [{'text/plain': ''}] and bars == [{'text/plain': '1'}]
    shown, of_dataset = result[0]['text/html'], dataset[0]['text/html']
    assert of_dataset in shown and '&lt;' in of_dataset and '<b>' not in of_dataset
    assert row[0]['text/plain'].startswith('[')
    assert told['transforms'][-1] == [{'text/plain': '1'}]
    *_, interrupted, again = told['interrupted']
    assert re.fullmatch('kept: .*; make the same call to continue False\n', interrupted[-1])
    assert '500000\n' in again
