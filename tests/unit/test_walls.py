"""Imports run downward only: the algorithms know neither Beam nor TensorFlow, nor the pipelines."""

import json
import pkgutil
import subprocess
import sys

import pytest

import pipelines
import tokcore

# Rooms that read results with TensorFlow.
MAY_USE_TENSORFLOW = ('tokcore.reading',)

IMPORT_ALL = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""


def modules_of(package):
    """The names of a package's modules, without importing more than its packages."""
    found = pkgutil.walk_packages(package.__path__, f'{package.__name__}.')
    return [package.__name__, *(module.name for module in found)]


def imported_by(names):
    """All modules that a fresh interpreter holds after importing these."""
    ended = subprocess.run(
        [sys.executable, '-c', IMPORT_ALL, json.dumps(names)],
        check=True,
        capture_output=True,
        text=True,
    )
    return {name.split('.')[0] for name in json.loads(ended.stdout)}


def test_the_algorithms_import_neither_beam_nor_tensorflow_nor_the_pipelines():
    names = [name for name in modules_of(tokcore) if not name.startswith(MAY_USE_TENSORFLOW)]
    assert {'tokcore.counts', 'tokcore.subword.learner', 'tokcore.records.framing'} < set(names)
    assert imported_by(names).isdisjoint(
        {'apache_beam', 'tensorflow', 'tensor2tensor', 'pipelines'}
    )


def test_the_pipelines_do_not_import_tensorflow():
    names = [name for name in modules_of(pipelines) if not name.endswith('__main__')]
    assert 'pipelines.build_stage' in names
    assert imported_by(names).isdisjoint({'tensorflow', 'tensor2tensor'})


@pytest.mark.parametrize('arguments', [['--help'], ['build', '--help'], ['--version'], ['bild']])
def test_help_does_not_wait_for_beam(arguments):
    program = """
import contextlib, io, sys
from pipelines.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    try:
        main(sys.argv[1:])
    except SystemExit:
        pass
sys.exit('apache_beam' in sys.modules)
"""
    assert subprocess.run([sys.executable, '-c', program, *arguments]).returncode == 0
