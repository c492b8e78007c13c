"""What docstrings show is what happens, and every public name shows something.

Examples find `tokcore`, `pipelines`, `beam` and `os` imported, and in their folder the files of
`pipelines/sample`, `pairs.tsv` with the same pairs, a vocabulary `words.txt`, and `data/enzh`, which the
README's first command built with two shards.
"""

import doctest
import importlib
import os
import pathlib
import pkgutil
import re
import shutil
import subprocess
import sys

import apache_beam as beam
import pytest

import pipelines
import tokcore

ROOT = pathlib.Path(__file__).parents[2]
SAMPLE = ROOT / 'pipelines' / 'sample'

NAMES = {'tokcore': tokcore, 'pipelines': pipelines, 'beam': beam, 'os': os}


def modules_with_examples():
    for package in (tokcore, pipelines):
        for found in pkgutil.walk_packages(package.__path__, f'{package.__name__}.'):
            if '>>>' in (found.module_finder.find_spec(found.name).loader.get_source(found.name)):
                yield found.name


EXAMPLES = list(modules_with_examples())


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp('examples')
    for path in SAMPLE.glob('*.??'):
        shutil.copy(path, folder)
    sides = [(SAMPLE / f'train.{side}').read_text().splitlines() for side in ('en', 'zh')]
    (folder / 'pairs.tsv').write_text(''.join(f'{en}\t{zh}\n' for en, zh in zip(*sides)))
    (folder / 'words.txt').write_text('<unk>\n<s>\n</s>\nthe\ncat\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        pipelines.build(
            source='train.en', target='train.zh', dev_source='dev.en', dev_target='dev.zh',
            name='enzh', vocab_size=2048, shared_vocab=True, shards=2, output='data/enzh',
        )  # fmt: skip
    return folder


@pytest.mark.parametrize('name', EXAMPLES)
def test_examples_give_what_they_show(name, files, tmp_path, monkeypatch, request):
    if name == 'tokcore.reading.tensorflow':
        request.getfixturevalue('tensorflow')
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), extraglobs=NAMES)
    assert result.attempted > 0
    assert result.failed == 0


HELP = """
import sys
sys.modules['tensorflow'] = None  # as if it were not installed
import {package}
help({package})
from {package} import *
print(*sorted(set(dir()) & set({package}.__all__)))
"""


@pytest.mark.parametrize('package', [tokcore, pipelines])
def test_help_of_a_package_is_an_overview(package):
    command = [sys.executable, '-c', HELP.format(package=package.__name__)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    *shown, imported = process.stdout.splitlines()
    assert len(shown) <= 80
    assert all(len(line) <= 80 or str(ROOT) in line for line in shown)
    words = set(re.findall(r'\w+', process.stdout.partition('PACKAGE CONTENTS')[0]))
    assert words >= set(package.__all__)
    needs_tensorflow = {'inference_batches', 'training_batches'}
    assert set(imported.split()) == set(package.__all__) - needs_tensorflow
    assert f'    {package.__version__}' in shown


@pytest.mark.parametrize('package', [tokcore, pipelines])
def test_every_public_name_has_an_example(package):
    for name in package.__all__:
        value = getattr(package, name)
        assert '>>> ' in value.__doc__ and value.__module__ in EXAMPLES, name
