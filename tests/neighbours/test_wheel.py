"""The wheel and the source archive, installed on other Pythons, run the README's first command."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import tokcore

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.large  # Beam and pyarrow are installed once for each Python


@pytest.fixture(scope='module')
def distributions(tmp_path_factory) -> dict[str, Path]:
    """The files that `python -m build` makes of a clean copy, by their endings."""
    folder = tmp_path_factory.mktemp('distributions')
    copy, made = folder / 'copy', folder / 'dist'
    shutil.copytree(
        ROOT,
        copy,
        ignore=shutil.ignore_patterns('.*', 'build', 'dist', '*.egg-info', '__pycache__'),
    )
    command = [sys.executable, '-m', 'build', '--outdir', str(made), str(copy)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    return {path.suffix: path for path in made.iterdir()}


def test_both_have_the_sample_the_licence_the_version_and_the_marks_of_types(distributions):
    with zipfile.ZipFile(distributions['.whl']) as wheel:
        names = wheel.namelist()
    with tarfile.open(distributions['.gz']) as source:
        source_names = [name.partition('/')[2] for name in source.getnames()]
    for name in (
        'pipelines/sample/train.en',
        'pipelines/py.typed',
        'pipelines/export/playground.html',
        'tokcore/py.typed',
    ):
        assert name in names and name in source_names
    assert any(name.endswith('LICENSE') for name in names)
    assert {'LICENSE', 'CITATION.cff', 'CHANGELOG.md'} <= set(source_names)
    assert all(f'-{tokcore.__version__}' in path.name for path in distributions.values())
    assert not [name for name in names if name.startswith('tests')]


@pytest.mark.parametrize(('version', 'ending'), [('3.10', '.whl'), ('3.13', '.gz')])
def test_both_run_the_readmes_first_command(distributions, version, ending, tmp_path):
    python = _python(version)
    environment = tmp_path / 'environment'
    subprocess.run([python, '-m', 'venv', environment], check=True)
    install = [environment / 'bin' / 'pip', 'install', '--quiet', distributions[ending]]
    alone = {**os.environ, 'PYTHONPATH': ''}
    installed = subprocess.run(install, capture_output=True, text=True, env=alone)
    assert installed.returncode == 0, installed.stderr
    [sample] = environment.glob('lib/python*/site-packages/pipelines/sample')
    code = (ROOT / 'README.md').read_text()
    build = code[code.index('tokbeam build') :].partition('--output')[0].replace('\\\n', ' ')
    build = build.replace('pipelines/sample/', '')
    process = subprocess.run(
        [environment / 'bin' / 'tokbeam', *build.split()[1:], '--output', tmp_path / 'enzh'],
        cwd=sample,
        capture_output=True,
        text=True,
        env={**alone, 'XDG_CACHE_HOME': str(tmp_path / 'cache')},
    )
    assert process.returncode == 0, process.stderr
    shown = subprocess.run(
        [environment / 'bin' / 'tokbeam', '--version'], capture_output=True, text=True, env=alone
    )
    assert shown.stdout == f'tokbeam {tokcore.__version__}\n'
    assert len(list((tmp_path / 'enzh').glob('enzh-train-*-of-00004'))) == 4


def _python(version: str) -> str:
    """Returns an interpreter of this version that starts; a shim may stand for one that is not there."""
    pyenv = Path(os.environ.get('PYENV_ROOT', '~/.pyenv')).expanduser()
    folders = [*os.environ['PATH'].split(os.pathsep), *pyenv.glob(f'versions/{version}.*/bin')]
    for folder in folders:
        path = Path(folder) / f'python{version}'
        if (
            path.exists()
            and not subprocess.run([path, '--version'], capture_output=True).returncode
        ):
            return str(path)
    pytest.skip(f'there is no python{version}')
