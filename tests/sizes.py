"""Sizes of a job that tests set: of its work items and buffers, and how it shuffles.

    succeed('build', '--text', path, …, '@item-size', '1KiB', '@buffer', '4KiB', '@shuffle', 'engine')

The words that begin with @ are not the command's. Whoever runs commands for tests takes them out of the
others, and the jobs of that process are then made with them in place of the program's constants.
"""

import contextlib
import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tokcore.options import ByteSize

_SIZE = ByteSize(1 << 50)

_FIELDS = {'item-size': 'item_bytes', 'buffer': 'buffer_bytes'}

# Threads of imported packages must not take SIGINT, for which the program waits.
_SETTING = f"""
import json, signal, sys
mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
sys.path.append({str(Path(__file__).parent)!r})
from sizes import set_sizes
set_sizes(json.loads(sys.argv.pop(1)))
signal.pthread_sigmask(signal.SIG_SETMASK, mask)
"""

_PROGRAM = """
from pipelines.cli.main import main
sys.exit(main())
"""


def sizes_apart(arguments: Iterable[object]) -> tuple[list[str], dict[str, str]]:
    """Returns the words of a command without those of sizes, and the sizes by name."""
    words: list[str] = []
    sizes: dict[str, str] = {}
    given = iter(arguments)
    for word in map(str, given):
        if word.startswith('@'):
            name, has_value, value = word[1:].partition('=')
            sizes[name] = value if has_value else str(next(given))
        else:
            words.append(word)
    return words, sizes


def command_of(*arguments: object) -> list[str]:
    """Returns the command line of a process that runs `tokbeam` with these arguments."""
    words, sizes = sizes_apart(arguments)
    if not sizes:
        return [sys.executable, '-m', 'pipelines', *words]
    return [*program_of(_PROGRAM, sizes), *words]


def program_of(code: str, sizes: Mapping[str, str]) -> list[str]:
    """Returns the command line of a process that runs code, and first sets the sizes of its jobs."""
    return [sys.executable, '-c', _SETTING + code, json.dumps(sizes)]


def set_sizes(sizes: Mapping[str, str]) -> None:
    """Makes the jobs of this process from now on with these sizes."""
    from pipelines.cli import commands
    from pipelines.jobs.job import Execution

    def execution(engine, **fields) -> Execution:
        if 'shuffle' in sizes:
            through_files = {'files': True, 'engine': False}[sizes['shuffle']]
            runner = dataclasses.replace(engine.runner, through_files=through_files)
            engine = dataclasses.replace(engine, runner=runner)
        fields |= {_FIELDS[name]: _SIZE(value) for name, value in sizes.items() if name in _FIELDS}
        return Execution(engine, **fields)

    assert set(sizes) <= {'shuffle', *_FIELDS}, sizes
    commands.Execution = execution


@contextlib.contextmanager
def with_sizes(sizes: Mapping[str, str]) -> Iterator[None]:
    """Has the jobs of a block made with these sizes."""
    if not sizes:
        yield
        return
    from pipelines.cli import commands

    before = commands.Execution
    set_sizes(sizes)
    try:
        yield
    finally:
        commands.Execution = before
