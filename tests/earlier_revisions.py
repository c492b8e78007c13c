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
from dataclasses import dataclass
from pathlib import Path

# Of the tests, the benchmark: each revision's knows its own code.
_PARTS = ('tokcore', 'pipelines', 'tests')

_ROOT = Path(__file__).resolve().parents[1]

_RUN_ALL = r"""
import contextlib, io, json, os, re, sys, traceback
sys.path.append(sys.argv[1])
import faster_beam
from sizes import sizes_apart, with_sizes
faster_beam.install()
try:
    from pipelines.cli.main import main
except ModuleNotFoundError:
    from pipelines.cli import main  # before 0.1.0 had rooms
with contextlib.suppress(ModuleNotFoundError):
    import pipelines.engines.engine as engine
    # Kernels are compiled when they are called. To compile them ahead, processes would be started
    # for each of dozens of schemes and options.
    engine.missing_parts = lambda scheme, parts: []

def run(arguments, stdin):
    words, sizes = sizes_apart(arguments)
    said, printed = io.StringIO(), io.TextIOWrapper(io.BytesIO(), encoding='utf-8')
    # What this revision refused to write is nothing to read.
    sys.stdin = open(stdin if stdin and os.path.exists(stdin) else os.devnull, encoding='utf-8')
    with sys.stdin, contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
        try:
            with with_sizes(sizes):
                status = main(words)
        except SystemExit as error:
            status = error.code
        except Exception:
            traceback.print_exc()
            status = 'an exception'
        sys.stdout.flush()
    return status, printed.buffer.getvalue(), said.getvalue()

for command in json.load(sys.stdin):
    status, printed, said = run(command['arguments'], command['stdin'])
    outcome = {'status': status}
    if status:
        sentence = (said.splitlines() or [''])[-1].replace(f'{os.getcwd()}/', '')
        # Names that are drawn at random.
        sentence = re.sub('(?<=its traceback is in ).*', '(a file)', sentence)
        outcome['sentence'] = re.sub('(?<=[.]tokbeam-attempt-)[0-9a-f]+', '(random)', sentence)
    with open(os.path.join(command['folder'], 'outcome.json'), 'w') as file:
        json.dump(outcome, file)
    if printed:
        with open(os.path.join(command['folder'], 'stdout'), 'wb') as file:
            file.write(printed.replace(f'{os.getcwd()}/'.encode(), b''))
"""


@dataclass(frozen=True)
class Command:
    """A command line, and a folder for how it ends.

    `outcome.json` there has the `status` and, unless that is 0, the `sentence`: the last line of
    standard error, without random names. `stdout` is what it printed, if anything. Paths in both are
    relative.

    Attributes:
        arguments: what follows `tokbeam`.
        folder: where these files are written; it exists.
        stdin: the file on its standard input, if any.
    """

    arguments: Sequence[object]
    folder: Path
    stdin: Path | None = None


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
                # Python 3.11.3 and earlier have no such filter.
                files.extraction_filter = getattr(tarfile, 'data_filter', None)
                files.extractall(Path(new, 'packages'))
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


def run_all(packages: Path, commands: Sequence[Command], working_directory: Path) -> None:
    """Runs command lines of a revision one after another, in one process.

    Args:
        packages: the revision's.
        commands: all of them are run, however each ends.
        working_directory: where relative paths begin; it has no Python packages.

    Raises:
        AssertionError: the process ended before the last one.
    """
    listed = [
        {
            'arguments': [str(each) for each in command.arguments],
            'folder': str(command.folder),
            'stdin': command.stdin and str(command.stdin),
        }
        for command in commands
    ]
    ended = subprocess.run(
        [sys.executable, '-c', _RUN_ALL, str(Path(__file__).parent)],
        input=json.dumps(listed),
        text=True,
        capture_output=True,
        **{**in_place_of_ours(packages), 'cwd': working_directory},
    )
    if ended.returncode:
        raise AssertionError(f'the process ended with status {ended.returncode}: {ended.stderr}')
