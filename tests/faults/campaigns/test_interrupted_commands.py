"""Commands that SIGINT or SIGHUP ends at drawn moments leave no temporary file, and keep what they say.

Twenty of each: `FUZZ_CASES=20 pytest -m fuzz tests/faults/campaigns/test_interrupted_commands.py`.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from generated_text import as_tsv, english_lines, pairs_with_gaps
from jobs import interruptible_command, succeed, write
from leftovers import final_files
from stopped_runs import SEED, cases

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]

_LONGEST = 300
_SOON = 30
_STATUSES = {signal.SIGINT: 130, signal.SIGHUP: 129}
_LEARNED = 'was learned by an earlier run'


@dataclass
class Command:
    """A command that works in a folder, with what it makes there and how long it takes.

    Attributes:
        arguments: those of the command; OUT stands for the folder.
        given: what is in the folder before.
        result: its files afterwards, and what was printed.
        seconds: of a whole run.
    """

    arguments: list[object]
    given: Path | None = None
    result: dict[str, bytes] = field(default_factory=dict, repr=False)
    seconds: float = 0

    def start(self, folder: Path) -> subprocess.Popen:
        (folder / 'tmp').mkdir(exist_ok=True)
        words = [str(word).replace('OUT', str(folder / 'out')) for word in self.arguments]
        with (folder / 'stdout').open('wb') as stdout, (folder / 'stderr').open('wb') as stderr:
            return subprocess.Popen(
                interruptible_command(*words),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, 'TMPDIR': str(folder / 'tmp')},
                start_new_session=True,
            )

    def finish(self, folder: Path) -> str:
        """Runs it to its end, and returns what was said."""
        process = self.start(folder)
        assert process.wait(_LONGEST) == 0, said_in(folder)
        return said_in(folder)

    def prepare(self, folder: Path) -> None:
        folder.mkdir()
        if self.given is not None:
            shutil.copytree(self.given, folder / 'out')


def said_in(folder: Path) -> str:
    return (folder / 'stderr').read_text()


def results_of(folder: Path) -> dict[str, bytes]:
    """What it made, but the record of the run, and what it printed."""
    out = folder / 'out'
    files = {name: data for name, data in final_files(out).items() if 'tokbeam.run' not in name}
    return {**files, 'stdout': (folder / 'stdout').read_bytes().replace(bytes(folder), b'')}


@pytest.fixture(scope='module')
def commands(tmp_path_factory) -> dict[str, Command]:
    place = tmp_path_factory.mktemp('given')
    corpus = write(place / 'pairs.tsv', as_tsv(pairs_with_gaps(20_000, 3)))
    text = ''.join(f'{line}\n' for line in english_lines(3000, 1)).encode()
    text = write(place / 'text.txt', text)
    made = place / 'made'
    build = ['build', '--scheme', 'bpe', '--vocab-size', 900, '--name', 'n', '--shards', 9]
    succeed(*build, '--text', text, '--output', made)
    others = place / 'others'
    others.mkdir()
    for shard in made.glob('n-*'):
        shutil.copy(shard, others)
    commands = {
        'build': Command(
            ['build', '--tsv', corpus, '--vocab-size', 1500, '--name', 'n', '--shards', 4,
             '@item-size', '40KiB', '--output', 'OUT'],
        ),
        'convert': Command(['convert', made, '--to', 'parquet', '--output', 'OUT']),
        'index': Command(['index', 'OUT'], others),
        'report': Command(['report', made]),
        'export': Command(['export', made / 'tokenizer.json', '--to', 'huggingface', '--output', 'OUT']),
    }  # fmt: skip
    for name, command in commands.items():
        folder = tmp_path_factory.mktemp('whole') / name
        for _ in range(2):  # the first time kernels are compiled
            shutil.rmtree(folder, ignore_errors=True)
            command.prepare(folder)
            began = time.monotonic()
            command.finish(folder)
            command.seconds = time.monotonic() - began
        assert [*(folder / 'tmp').iterdir()] == []
        command.result = results_of(folder)
    return commands


@pytest.mark.parametrize('number', cases(usual=1))
@pytest.mark.parametrize('sent', _STATUSES, ids=lambda sent: sent.name)
@pytest.mark.parametrize('name', ['build', 'convert', 'index', 'report', 'export'])
def test_it_leaves_nothing_and_the_next_run_uses_what_is_kept(
    commands, tmp_path, name, sent, number
):
    dice = random.Random(f'{SEED}-{name}-{sent}-{number}')
    command, folder = commands[name], tmp_path / 'place'
    command.prepare(folder)
    process = command.start(folder)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(command.seconds * dice.uniform(0.1, 1))
    is_running = process.poll() is None
    if is_running:
        process.send_signal(sent)
    try:
        status = process.wait(_SOON)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    said = said_in(folder)
    if status == -sent:  # the interpreter had only started
        assert said == '' or said.endswith('KeyboardInterrupt\n')
    elif status:
        assert is_running and status == _STATUSES[sent], said
        assert_told(name, said)
    assert [*(folder / 'tmp').iterdir()] == [], said
    assert_only_kept_work(folder, said)
    if name == 'export' and (folder / 'out').exists():  # the signal came after the last name
        files = {name: data for name, data in command.result.items() if name != 'stdout'}
        assert final_files(folder / 'out') == files
        return
    again = command.finish(folder)
    # What is kept is noted after it is written: a signal between finds more than it says.
    if 'kept: ' in said and 'the vocabulary' in said:
        assert _LEARNED in again, (said, again)
    assert results_of(folder) == command.result
    assert sorted(path.name for path in folder.iterdir() if path.name != 'out') == [
        'stderr', 'stdout', 'tmp'
    ]  # fmt: skip


def assert_told(name: str, said: str) -> None:
    *_, last = said.splitlines()
    outcomes = ('; kept: ', '; nothing is kept') if name == 'build' else ('',)
    assert any(f'tokbeam: {how}{outcome}' in last for how in ('interrupted', 'terminated')
               for outcome in outcomes), said  # fmt: skip
    assert 'Traceback' not in said


def assert_only_kept_work(folder: Path, said: str) -> None:
    """Next to the output nothing is left; in it are final files, and work that the line names."""
    left = [path for path in folder.rglob('*') if path.is_file() and path.parent != folder]
    names = [str(path.relative_to(folder)) for path in left]
    odd = [name for name in names if '.part' in name or '.tokbeam-' in name]
    assert not odd, (odd, said)
    runs = [name for name in names if '/run-' in name]
    assert bool(runs) == (' encoded;' in said) or 'kept: ' not in said, (runs, said)
