"""The command as it was at another revision, from the history of this repository."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

# Of the tests, the benchmark: each revision's knows its own code.
_PARTS = ('tokcore', 'pipelines', 'tests')

_ROOT = Path(__file__).resolve().parents[1]

_RUN_ALL = """
import json, sys
try:
    from pipelines.cli.main import main
except ModuleNotFoundError:
    from pipelines.cli import main  # before 0.1.0 had rooms
exec(sys.argv[1])
for arguments in json.load(sys.stdin):
    status = main(arguments)
    if status:
        sys.exit(f'status {status}: {arguments}')
"""


class MissingRevisionError(Exception):
    """There is no such revision here, or no git."""


def packages_of(revision: str) -> Path:
    """Returns a folder with the packages of a revision and its tests, the same at every call.

    numba finds compiled kernels by the path of their source, and compiling them takes minutes; so
    the folder stays, beside the kernels.

    Raises:
        MissingRevisionError: they cannot be had here.
    """
    commit = _git('rev-parse', '--verify', '--end-of-options', f'{revision}^{{commit}}')
    home = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    folder = Path(home, 'tokbeam', 'revisions', f'{commit.decode().strip()}-tests')
    if not folder.is_dir():
        archive = _git('archive', commit.decode().strip(), *_PARTS)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as new:
            with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                files.extractall(Path(new, 'packages'), filter='data')
            # Another process may have been faster; then this one fails, and that is as good.
            with contextlib.suppress(OSError):
                Path(new, 'packages').rename(folder)
    return folder


def _git(*arguments: str) -> bytes:
    try:
        return subprocess.run(
            ['git', '-C', str(_ROOT), *arguments], capture_output=True, check=True
        ).stdout
    except FileNotFoundError as error:
        raise MissingRevisionError('there is no git here') from error
    except subprocess.CalledProcessError as error:
        raise MissingRevisionError(error.stderr.decode().strip()) from error


def in_place_of_ours(packages: Path) -> dict[str, object]:
    """Returns what a process is started with so that it imports these packages and no others."""
    # `-m` and `-c` look into the working directory before anything else.
    return {'cwd': packages, 'env': {**os.environ, 'PYTHONPATH': str(packages)}}


def run_all(packages: Path, commands: Sequence[Sequence[object]], patch: str = '') -> str:
    """Runs command lines of a revision one after another, in one process.

    Args:
        packages: the revision's.
        commands: what follows `tokbeam`.
        patch: Python that is run before them.

    Returns:
        What they said on stderr.
    """
    ended = subprocess.run(
        [sys.executable, '-c', _RUN_ALL, patch],
        input=json.dumps([[str(each) for each in command] for command in commands]),
        text=True,
        capture_output=True,
        **in_place_of_ours(packages),
    )
    if ended.returncode:
        raise AssertionError(ended.stderr)
    return ended.stderr
