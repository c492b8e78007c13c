"""Imports run downward only: the algorithms know neither Beam nor TensorFlow, nor the pipelines."""

import json
import pkgutil
import subprocess
import sys

import pytest

import pipelines
import tokcore
from pipelines.cli.parser import command_parser

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
    assert {'tokcore.counts.merging', 'tokcore.subword.learner', 'tokcore.records.framing'} < set(names)
    assert imported_by(names).isdisjoint(
        {'apache_beam', 'tensorflow', 'tensor2tensor', 'pipelines'}
    )


def test_the_pipelines_do_not_import_tensorflow():
    names = [name for name in modules_of(pipelines) if not name.endswith('__main__')]
    assert 'pipelines.stages.build' in names
    assert imported_by(names).isdisjoint({'tensorflow', 'tensor2tensor'})


HEAVY = {'apache_beam', 'numba', 'pyarrow', 'tensorflow'}

COMMANDS = ['build', 'count', 'vocab', 'encode', 'tokenize', 'detokenize']

RUN_COMMAND = """
import contextlib, io, json, sys
from pipelines.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    try:
        status = main(sys.argv[1:])
    except SystemExit as end:
        status = end.code
print(json.dumps([status or 0, sorted(sys.modules)]))
"""


@pytest.mark.parametrize(
    ('line', 'expected'),
    [
        ('--help', 0),
        ('--version', 0),
        *((f'{command} --help', 0) for command in COMMANDS),
        ('bild', 2),
        ('build', 2),
        ('encode --shards many', 2),
        # An option that is not ours may be Beam's, and only Beam knows: it has to be asked.
    ],
)
def test_help_and_usage_errors_wait_for_nothing_heavy(line, expected):
    ended = subprocess.run(
        [sys.executable, '-c', RUN_COMMAND, *line.split()],
        check=True,
        capture_output=True,
        text=True,
    )
    status, modules = json.loads(ended.stdout)
    assert status == expected
    assert {name.split('.')[0] for name in modules}.isdisjoint(HEAVY)


def test_every_command_is_among_those_tried():
    assert sorted(COMMANDS) == sorted(command_parser()._subparsers._group_actions[0].choices)
