"""Folders that are not the core: without one of them and its registry's lines, the rest still works."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

REGISTRIES = {
    'tokcore/foreign_tokenizers': 'tokcore/schemes.py',
    'pipelines/foreign_formats': 'pipelines/options/job.py',
    'pipelines/flink': 'pipelines/engines/engine.py',
    'pipelines/report': 'pipelines/cli/folder_commands.py',
    'pipelines/export': 'pipelines/cli/folder_commands.py',
}
"""By folder the module that names what is in it, as strings."""

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


@pytest.mark.parametrize('folder', REGISTRIES)
def test_a_folder_can_be_removed(tmp_path, folder):
    for package in ('tokcore', 'pipelines'):
        ignored = shutil.ignore_patterns('__pycache__')
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    shutil.rmtree(tmp_path / folder)
    registry = tmp_path / REGISTRIES[folder]
    lines = registry.read_text().splitlines(keepends=True)
    left = [line for line in lines if f": '{folder.replace('/', '.')}." not in line]
    assert len(left) < len(lines)
    registry.write_text(''.join(left))
    (tmp_path / 'text').write_text('the cat sat on the mat ' * 20 + '\n')
    process = subprocess.run(
        [sys.executable, '-c', SCRIPT, str(tmp_path)],
        cwd=tmp_path,
        env={'PYTHONPATH': str(tmp_path), 'PATH': '/usr/bin:/bin'},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-3000:]
