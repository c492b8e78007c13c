"""Virtual environments with packages that exclude each other, made once and kept in a folder.

The folder is that of the variable TOKBEAM_NEIGHBOURS, else pytest's cache. An environment is named by
its packages, so that other ones make another; those of two test runs do not meet half-made, because
the folder gets its name when it is whole.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

try:
    import tomllib
except ImportError:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]

READING = ('google-crc32c', 'numba', 'numpy', 'pyarrow', 'regex')
"""What `tokcore` needs to read datasets, with the ranges that pyproject.toml has for them."""

RUNNING = (*READING, 'psutil', 'requests', 'tomli-w', 'tqdm', 'zstandard')
"""What commands need too, likewise; Beam apart."""

REQUIREMENTS = {
    'transformers 5': ['transformers>=5,<6'],
    'tokenizers 0.23': ['tokenizers==0.23.3'],
    'tokenizers 1.0.0rc3': ['tokenizers==1.0.0rc3'],
    'datasets 5': ['datasets>=5,<6'],
    'grain': ['grain==0.2.18', *READING],
    'datatrove': ['datatrove==0.10.1', 'tokenizers', 'numpy'],
    'Megatron': ['megatron-core>=0.12,<0.20'],
    'PyTorch': ['torch>=2.3,<3', 'torchdata', *READING],
    'Jupyter': [
        'apache-beam>=2.70,<3',
        'ipykernel',
        'ipywidgets',
        'nbclient',
        'nbformat',
        *RUNNING,
    ],
    'Dataflow': ['apache-beam[gcp]>=2.70,<3', *RUNNING],
}


def python_of(name: str, cache: Path) -> Path:
    """Returns the interpreter of an environment, which is made if it is not there.

    Args:
        name: a key of `REQUIREMENTS`.
        cache: the folder with the environments.
    """
    requirements = [_with_range(each) for each in REQUIREMENTS[name]]
    digest = hashlib.sha256(
        json.dumps([requirements, sys.version, sys.prefix]).encode()
    ).hexdigest()
    final = cache / digest[:16]
    if not final.exists():
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f'{digest[:16]}-', dir=cache))
        try:
            _install(name, requirements, made)
            made.rename(final)
        except OSError:
            if not final.exists():  # else another process of the tests has made it meanwhile
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return final / 'bin' / 'python'


def run_script(python: Path | str, script: str, *arguments: object) -> dict:
    """Runs one of `scripts` with an interpreter, and returns the JSON of the last line it prints."""
    path = Path(__file__).parent / 'scripts' / script
    process = subprocess.run(
        [python, path, *map(str, arguments)],
        capture_output=True,
        text=True,
        # Not what the environment of the tests has on its path.
        env={**os.environ, 'PYTHONPATH': str(ROOT), 'HF_HUB_OFFLINE': '1'},
    )
    assert process.returncode == 0, process.stderr[-4000:]
    return json.loads(process.stdout.splitlines()[-1])


def _install(name: str, requirements: list[str], folder: Path) -> None:
    python = folder / 'bin' / 'python'
    # Of thousands of modules the scripts import some hundreds, which are compiled then.
    install = ['install', '--quiet', '--no-compile', *requirements]
    for command in (
        [sys.executable, '-m', 'venv', '--without-pip', folder],
        [sys.executable, '-m', 'pip', '--python', python, *install],
    ):
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            last = (process.stderr.strip() or process.stdout.strip() or 'nothing').splitlines()[-1]
            pytest.skip(f'{name} cannot be installed here: {last}')


def _with_range(requirement: str) -> str:
    if requirement not in RUNNING:
        return requirement
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']
    [found] = [each for each in project['dependencies'] if each.startswith(requirement)]
    return found
