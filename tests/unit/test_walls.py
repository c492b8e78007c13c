"""Imports run downward only: the algorithms know neither Beam nor TensorFlow, nor the pipelines."""

import ast
import collections
import functools
import json
import pathlib
import pkgutil
import re
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


ROOT = pathlib.Path(__file__).parents[2]
PAGES = ['tokcore/README.md', 'pipelines/README.md']

MOST_MODULES = 12


def rooms_of(page):
    """The rooms that a page lists, from the ground up: folders, and modules that lie loose."""
    rows = re.findall(r'^\| (`[^|]*/[^|]*`) \|', (ROOT / page).read_text(), re.MULTILINE)
    rooms = [place for row in rows for place in re.findall(r'`([^`]+)`', row)]
    return [room for room in rooms if room.startswith(f'{page.split("/")[0]}/')]


ROOMS = [room for page in PAGES for room in rooms_of(page)]


@functools.cache
def imports():
    """For each module, by its path, the modules of ours that it imports anywhere."""
    paths = {
        '.'.join(path.relative_to(ROOT).with_suffix('').parts): path.relative_to(ROOT).as_posix()
        for package in ('tokcore', 'pipelines')
        for path in (ROOT / package).rglob('*.py')
    }
    found = {}
    for path in paths.values():
        names = set()
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.ImportFrom):
                names |= {node.module, *(f'{node.module}.{each.name}' for each in node.names)}
            elif isinstance(node, ast.Import):
                names |= {each.name for each in node.names}
        found[path] = {paths[name] for name in names & paths.keys()} - {path}
    return found


def room_of(path):
    return path if path in ROOMS else f'{path.rpartition("/")[0]}/'


def test_every_module_is_in_a_room_of_the_pages():
    loose = {'tokcore/__init__.py', 'pipelines/__init__.py', 'pipelines/__main__.py'}
    assert {room_of(path) for path in imports().keys() - loose} == set(ROOMS)


def test_no_room_has_more_modules_than_one_can_hold():
    modules = collections.Counter(
        room_of(path) for path in imports() if not path.endswith('__init__.py')
    )
    assert not {room: count for room, count in modules.items() if count > MOST_MODULES}


def test_imports_run_downward_only():
    upward = [
        (path, other)
        for path, others in imports().items()
        for other in others
        if {room_of(path), room_of(other)} <= set(ROOMS)
        and ROOMS.index(room_of(other)) > ROOMS.index(room_of(path))
    ]
    assert not upward


def test_no_imports_go_in_circles():
    left = dict(imports())
    while leaves := [path for path, others in left.items() if not others & left.keys()]:
        for path in leaves:
            del left[path]
    assert not left


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


def test_no_two_files_of_tests_have_one_name():
    """pytest imports them by their names alone, and refuses the second."""
    tests = pathlib.Path(__file__).parents[1]
    names = collections.Counter(file.name for file in tests.rglob('test_*.py'))
    assert [name for name, files in names.items() if files > 1] == []
