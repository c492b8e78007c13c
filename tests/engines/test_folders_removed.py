"""Folders that are not the core: without one of them and its registry's lines, the rest still works."""

import ast
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

FOLDERS = [
    'tokcore/foreign_tokenizers',
    'pipelines/foreign_formats',
    'pipelines/flink',
    'pipelines/report',
    'pipelines/export',
]

SCRIPT = """
import sys
import tokcore, pipelines
from pipelines.cli.main import main

assert tokcore.__file__.startswith(sys.argv[1])
for package in (tokcore, pipelines):
    for name in {*package.__all__} - {'inference_batches', 'training_batches'}:  # TensorFlow's
        getattr(package, name)
try:
    main(['--help'])
except SystemExit as end:
    assert not end.code
for command in (
    'build --text text --scheme bpe --vocab-size 300 --name name --output built',
    'verify built',
    'convert built --to packed --pack 64 --output packed',
):
    assert main(command.split()) == 0, command
[row] = tokcore.open_dataset('built').examples('train')
tokenizer = tokcore.load_tokenizer('built')
assert tokenizer.decode(row['targets'].tolist()).startswith('the cat sat')
assert len(tokenizer.encode_with_offsets('the cat')) == len(tokenizer.encode('the cat'))
assert tokcore.byte_lengths(tokenizer).sum() > 256
"""


def without_entries(text, package):
    """A module without the entries of its dictionaries that name a module of a package as a string."""
    spans = [
        (key.lineno - 1, value.end_lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if key and any(names_module_of(package, each) for each in ast.walk(value))
    ]
    lines = text.splitlines(keepends=True)
    for start, end in sorted(spans, reverse=True):
        del lines[start:end]
    return ''.join(lines)


def names_module_of(package, node):
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, str) and value.startswith(f'{package}.')


@pytest.mark.parametrize('folder', FOLDERS)
def test_a_folder_can_be_removed(tmp_path, folder):
    for package in ('tokcore', 'pipelines'):
        ignored = shutil.ignore_patterns('__pycache__')
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    shutil.rmtree(tmp_path / folder)
    registries = 0
    for path in [*tmp_path.glob('tokcore/**/*.py'), *tmp_path.glob('pipelines/**/*.py')]:
        text = path.read_text()
        left = without_entries(text, folder.replace('/', '.'))
        path.write_text(left)
        registries += left != text
    assert registries == 1
    (tmp_path / 'text').write_text('the cat sat on the mat ' * 20 + '\n')
    process = subprocess.run(
        [sys.executable, '-c', SCRIPT, str(tmp_path)],
        cwd=tmp_path,
        env={'PYTHONPATH': str(tmp_path), 'PATH': '/usr/bin:/bin'},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-3000:]
