"""Imports run downward only: the algorithms know neither Beam nor TensorFlow, nor the pipelines."""

import ast
import functools
import json
import pathlib
import pkgutil
import subprocess
import sys

import pipelines
import tokcore
from pipelines.cli.parser import command_parser

ROOT = pathlib.Path(__file__).parents[2]

FLOORS = [
    'tokcore/errors.py',
    'tokcore/checked_json.py',
    'tokcore/format_numbers.py',
    'tokcore/regular_files.py',
    'tokcore/process_end.py',
    'tokcore/object_stores.py',
    'tokcore/options.py',
    'tokcore/keywords.py',
    'tokcore/keyword_types.py',
    'tokcore/kernels/',
    'tokcore/text/',
    'tokcore/corpus/',
    'tokcore/filters/',
    'tokcore/counts/',
    'tokcore/learning/',
    'tokcore/encoding/',
    'tokcore/records/',
    'tokcore/subword/',
    'tokcore/wordpiece/',
    'tokcore/bpe/',
    'tokcore/word/',
    'tokcore/byte/',
    'tokcore/unigram/',
    'tokcore/foreign_tokenizers/',
    'tokcore/schemes.py',
    'tokcore/learn.py',
    'tokcore/tokenizers.py',
    'tokcore/bytes_of_ids.py',
    'tokcore/reading/',
    'tokcore/warm_up.py',
    'pipelines/keyword_types.py',
    'pipelines/options/',
    'pipelines/engines/progress.py',
    'pipelines/files/',
    'pipelines/engines/',
    'pipelines/transforms/',
    'pipelines/flink/',
    'pipelines/shard_formats/',
    'pipelines/foreign_formats/',
    'pipelines/artifacts/',
    'pipelines/jobs/',
    'pipelines/shuffle/',
    'pipelines/learning/',
    'pipelines/stages/',
    'pipelines/trust/',
    'pipelines/cli/',
    'pipelines/export/',
    'pipelines/report/',
    'pipelines/calls.py',
]
"""From the ground up: a module imports from its own floor and from those before it."""

PACKAGES = {'tokcore/__init__.py', 'pipelines/__init__.py', 'pipelines/__main__.py'}

# The only folder of tokcore with TensorFlow: it reads results as `tf.data`.
MAY_USE_TENSORFLOW = ('tokcore.reading',)

IMPORT_ALL = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""


def modules_of(package):
    """The names of a package's modules, without importing more than its packages."""
    modules = pkgutil.walk_packages(package.__path__, f'{package.__name__}.')
    return [package.__name__, *(module.name for module in modules)]


def imported_by(names):
    """The top-level packages that a fresh interpreter has loaded after importing these modules."""
    process = subprocess.run(
        [sys.executable, '-c', IMPORT_ALL, json.dumps(names)],
        check=True,
        capture_output=True,
        text=True,
    )
    return {name.split('.')[0] for name in json.loads(process.stdout)}


def test_the_algorithms_import_neither_beam_nor_tensorflow_nor_the_pipelines():
    names = [name for name in modules_of(tokcore) if not name.startswith(MAY_USE_TENSORFLOW)]
    assert {'tokcore.counts.tables', 'tokcore.subword.learner', 'tokcore.records.tfrecord'} < set(
        names
    )
    assert imported_by(names).isdisjoint(
        {'apache_beam', 'tensorflow', 'tensor2tensor', 'pipelines'}
    )


def test_the_pipelines_do_not_import_tensorflow():
    names = [name for name in modules_of(pipelines) if not name.endswith('__main__')]
    assert 'pipelines.stages.build' in names
    assert imported_by(names).isdisjoint({'tensorflow', 'tensor2tensor'})


def test_lines_are_tokenized_without_a_wait_for_beam():
    assert 'apache_beam' not in imported_by(['pipelines.cli.line_commands'])


@functools.cache
def imports():
    """By module, as a path: the modules of ours that it imports anywhere, also within functions."""
    paths = {
        '.'.join(path.relative_to(ROOT).with_suffix('').parts): path.relative_to(ROOT).as_posix()
        for package in ('tokcore', 'pipelines')
        for path in (ROOT / package).rglob('*.py')
    }
    imported = {}
    for path in paths.values():
        names = set()
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.ImportFrom):
                names |= {node.module, *(f'{node.module}.{alias.name}' for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
        imported[path] = {paths[name] for name in names & paths.keys()} - {path}
    return imported


def floor_of(path):
    """The number of a module's floor; None if it is on none."""
    for number, floor in enumerate(FLOORS):
        if path == floor or (floor.endswith('/') and path.startswith(floor)):
            return number
    return None


def test_every_module_is_on_a_floor():
    assert not {path for path in imports().keys() - PACKAGES if floor_of(path) is None}


def test_every_floor_has_modules():
    assert {floor_of(path) for path in imports().keys() - PACKAGES} == set(range(len(FLOORS)))


def test_imports_run_downward_only():
    upward = [
        (path, other)
        for path, others in imports().items()
        for other in others
        if not {path, other} & PACKAGES and floor_of(other) > floor_of(path)
    ]
    assert not upward


def test_no_imports_go_in_circles():
    left = dict(imports())
    while leaves := [path for path, others in left.items() if not others & left.keys()]:
        for path in leaves:
            del left[path]
    assert not left


HEAVY = {'apache_beam', 'numba', 'numpy', 'pyarrow', 'tensorflow'}

COMMANDS = [
    'build', 'count', 'vocab', 'encode', 'update', 'tokenize', 'detokenize', 'verify', 'where', 'index',
    'inspect', 'report', 'compare', 'card', 'convert', 'export', 'cache',
    'warm-up',
]  # fmt: skip

RUN_COMMANDS = """
import contextlib, io, json, sys
from pipelines.cli.main import main
for line in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            status = main(line.split())
        except SystemExit as end:
            status = end.code
    print(json.dumps([line, status or 0, sorted({name.split('.')[0] for name in sys.modules})]))
"""


def test_help_and_usage_errors_wait_for_nothing_heavy():
    expected = {
        **dict.fromkeys(['--help', '--version', *(f'{each} --help' for each in COMMANDS)], 0),
        **dict.fromkeys(['bild', 'build', 'encode --shards many'], 2),
        # An option that is not ours may be Beam's, and only Beam knows: it has to be asked.
    }
    process = subprocess.run(
        [sys.executable, '-c', RUN_COMMANDS, *expected], check=True, capture_output=True, text=True
    )
    found = [json.loads(each) for each in process.stdout.splitlines()]
    assert [(line, status) for line, status, _ in found] == [*expected.items()]
    for line, _, packages in found:
        assert HEAVY.isdisjoint(packages), line


def test_every_command_is_among_those_tried():
    assert sorted(COMMANDS) == sorted(command_parser()._subparsers._group_actions[0].choices)
