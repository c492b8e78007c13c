"""A killed encode goes on: finished runs are not made again, all else is swept."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from generated_text import as_tsv, pairs_with_gaps
from jobs import interruptible_command, refuse, run, succeed, write
from leftovers import final_files, result_files
from sizes import command_of, program_of, sizes_apart

from pipelines.files.claims import CLAIM_NAME, Claim
from pipelines.shuffle.plan import KeptRuns

pytestmark = pytest.mark.slow

CUT = ['@item-size', '10KiB', '@buffer', '16KiB']


@pytest.fixture(scope='module')
def arguments(tmp_path_factory):
    folder = tmp_path_factory.mktemp('corpus')
    corpus = write(folder / 'pairs.tsv', as_tsv(pairs_with_gaps(12_000, 6)))
    succeed('vocab', '--tsv', corpus, '--vocab-size', 1000, '--output', folder / 'vocab')
    return [
        'encode', '--tsv', corpus, '--dev', corpus, '--vocab', folder / 'vocab',
        '--name', 'x', '--shards', 3,
    ]  # fmt: skip


@pytest.fixture(scope='module')
def whole(arguments, tmp_path_factory):
    folder = tmp_path_factory.mktemp('whole') / 'out'
    succeed(*arguments, '--output', folder, '@shuffle', 'engine')
    return result_files(folder)


@pytest.fixture(scope='module')
def killed_once(arguments, tmp_path_factory):
    """The output folder of a killed encode, and a copy of what it left there."""
    folder, left = (
        tmp_path_factory.mktemp('killed') / 'out',
        tmp_path_factory.mktemp('left') / 'out',
    )
    assert len(kill_after([*arguments, *CUT, '--workers', 2], folder, runs=20)) >= 20
    shutil.copytree(folder, left)
    return folder, left


@pytest.fixture
def killed(killed_once):
    """The output folder of a killed encode, as the kill left it."""
    folder, left = killed_once
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(left, folder)
    return folder


@pytest.fixture
def keeping_runs(monkeypatch):
    """Leaves the runs where they are when the output is whole, to be looked at."""
    monkeypatch.setattr('pipelines.shuffle.plan.KeptRuns.sweep', lambda *_, **__: None)


def runs_of(folder: Path) -> dict[str, tuple[int, int]]:
    """The finished runs of an output, with what changes when a file is written again."""
    return {
        path.name: (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in sorted((folder / '.tokbeam').glob('shuffle-*/run-*'))
    }


def kill_after(arguments, folder: Path, runs: int) -> dict[str, tuple[int, int]]:
    """Runs a command until it has finished some runs; returns them as they are then."""
    process = subprocess.Popen(
        command_of(*arguments, '--output', folder),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None and len(runs_of(folder)) < runs:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    return runs_of(folder)


@pytest.mark.parametrize('workers', [1, 3])
def test_finished_runs_are_not_written_again(arguments, whole, killed, keeping_runs, workers):
    folder, before = killed, runs_of(killed)
    [shuffle] = (folder / '.tokbeam').iterdir()
    (shuffle / f'.tokbeam-attempt-{"0123456789abcdef" * 2}').write_bytes(b'half')
    succeed(*arguments, *CUT, '--workers', workers, '--output', folder)
    after = runs_of(folder)
    assert {name: after[name] for name in before} == before
    assert len(after) > len(before)
    assert {path.name for path in shuffle.iterdir()} == {'plan.json', *after}
    assert shards_of(result_files(folder)) == shards_of(whole)


@pytest.mark.parametrize(
    'sent',
    [[signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP] * 2],
    ids=['INT', 'TERM', 'HUP twice'],
)
def test_a_signal_keeps_what_is_encoded_and_the_next_run_uses_it(
    arguments, whole, tmp_path, keeping_runs, sent
):
    """With one run that would be written only at its end: all that is kept of it was in memory."""
    folder = tmp_path / 'out'
    line = [*arguments, '@item-size', '10KiB', '--workers', 2, '--output', folder]
    process = subprocess.Popen(
        interruptible_command(*line, '--progress', 'json'), stderr=subprocess.PIPE, text=True
    )
    for said in process.stderr:
        if '"work": "reading"' in said and json.loads(said)['done'] > 200_000:
            process.send_signal(sent[0])
            break
    for number in sent[1:]:  # as when a terminal is closed
        next(said for said in process.stderr if 'a second signal stops at once' in said)
        process.send_signal(number)
    *_, last = process.stderr.read().splitlines()
    assert process.wait() == 128 + sent[0]
    match = re.search(r'; kept: ([\d,]+) of ([\d,]+) kB encoded; run the same command', last)
    assert match, last
    kept, total = (int(number.replace(',', '')) for number in match.groups())
    assert 100 < kept <= total
    before = runs_of(folder)
    assert before and not [*folder.glob('.tokbeam-*')]
    succeed(*line)
    after = runs_of(folder)
    assert {name: after[name] for name in before} == before
    assert shards_of(result_files(folder)) == shards_of(whole)


def test_a_second_signal_does_not_wait(arguments, tmp_path, monkeypatch):
    """As a disk that does not answer while the first one has what is in memory written."""
    stuck = (
        'import sys, time\n'
        'from pipelines.shuffle.write_runs import RunWriter\n'
        'RunWriter._write = lambda *_: time.sleep(60)\n'
        'from pipelines.cli.main import main\n'
        'sys.exit(main())'
    )
    line = [*arguments, '@item-size', '10KiB', '--output', tmp_path / 'out', '--progress', 'json']
    words, sizes = sizes_apart(line)
    process = subprocess.Popen(
        [*program_of(stuck, sizes), *words], stderr=subprocess.PIPE, text=True
    )
    for said in process.stderr:
        if '"work": "reading"' in said and json.loads(said)['done']:
            process.send_signal(signal.SIGTERM)
        if 'a second signal stops at once' in said:
            process.send_signal(signal.SIGTERM)
            break
    began = time.monotonic()
    rest = process.stderr.read().splitlines()
    assert process.wait() == 143 and time.monotonic() - began < 5
    assert rest[-1] == 'tokbeam: terminated; nothing is kept'


def shards_of(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if '.tokbeam' not in name}


def test_killed_before_there_was_a_plan(arguments, whole, tmp_path):
    # With the claim on the runs' folder, or with the folder alone.
    folder = tmp_path / 'out'
    for number in range(2):
        (folder / '.tokbeam' / f'shuffle-{number:032x}').mkdir(parents=True)
    (folder / '.tokbeam' / f'shuffle-{0:032x}' / '.tokbeam-lock').write_text('of a killed run')
    succeed(*arguments, *CUT, '--output', folder)
    assert not (folder / '.tokbeam').exists()
    assert shards_of(result_files(folder)) == shards_of(whole)


def test_a_run_that_is_not_whole_is_made_again(arguments, whole, killed, keeping_runs):
    folder, before = killed, runs_of(killed)
    [shuffle] = (folder / '.tokbeam').iterdir()
    first, second, *others = sorted(before)
    data = (shuffle / first).read_bytes()
    (shuffle / first).write_bytes(data[:-1])
    (shuffle / second).write_bytes((shuffle / others[0]).read_bytes())
    succeed(*arguments, *CUT, '--output', folder)
    assert (shuffle / first).read_bytes() == data
    after = runs_of(folder)
    later_parts = {name for name in before if name[:10] in (first[:10], second[:10])}
    kept = before.keys() - later_parts
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert shards_of(result_files(folder)) == shards_of(whole)


def test_a_damaged_record_is_found_and_the_next_run_mends_it(arguments, whole, killed):
    folder = killed
    [shuffle] = (folder / '.tokbeam').iterdir()
    damaged = shuffle / min(runs_of(folder))
    data = bytearray(damaged.read_bytes())
    data[20] ^= 1
    damaged.write_bytes(data)
    sentence = refuse(*arguments, *CUT, '--output', folder)
    assert f'{damaged} is damaged' in sentence and 'run again' in sentence
    succeed(*arguments, *CUT, '--output', folder)
    assert result_files(folder) == whole


def test_a_larger_buffer_goes_on_with_the_smaller_runs(arguments, killed, keeping_runs):
    before = runs_of(killed)
    succeed(*arguments, '@item-size', '10KiB', '@buffer', '1MiB', '--output', killed)
    after = runs_of(killed)
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize(
    'changed', [['--seed', 1], ['--target-prefix', 'to: '], ['@buffer', '8KiB']]
)
def test_runs_of_another_plan_are_swept(arguments, killed, keeping_runs, changed):
    [stale] = (killed / '.tokbeam').iterdir()
    succeed(*arguments, *CUT, *changed, '--output', killed)
    assert not stale.exists()
    [used] = (killed / '.tokbeam').iterdir()
    assert used != stale


RANKS = [*(bytes([byte]) for byte in range(256)), b'12', b'34', b'1234']

TOKENIZERS = {
    'another pattern of ranks': (
        {
            'x.tiktoken': b''.join(
                base64.b64encode(each) + b' %d\n' % n for n, each in enumerate(RANKS)
            )
        },
        ('--pattern', 'gpt2'),
        {},
        ('--pattern', 'cl100k'),
    ),
    'other ids next to codes': (
        {'x.codes': b'#version: 0.2\n1 2\n', 'x.vocab': b'<unk>\n12@@\n3@@\n4\n'},
        (),
        {'x.vocab': b'<unk>\n4\n12@@\n3@@\n'},
        (),
    ),
}
"""Files of a tokenizer and its options; and what is another one, of which the first file is the same."""


@pytest.mark.parametrize('case', TOKENIZERS)
def test_runs_of_another_tokenizer_are_swept(tmp_path, keeping_runs, case):
    files, options, changed, other_options = TOKENIZERS[case]
    text, folder = write(tmp_path / 'text', b'1234\n' * 9), tmp_path / 'out'
    for name, data in files.items():
        write(tmp_path / name, data)
    encode = ['encode', '--text', text, '--vocab', tmp_path / min(files), '--name', 'x']
    succeed(*encode, *options, '--output', folder)
    [stale] = (folder / '.tokbeam').iterdir()
    made = shards_of(result_files(folder))
    for name in final_files(folder):  # as a kill leaves it
        (folder / name).unlink()
    for name, data in changed.items():
        write(tmp_path / name, data)
    succeed(*encode, *other_options, '--output', folder)
    assert not stale.exists()
    succeed(*encode, *other_options, '--output', tmp_path / 'anew')
    after = shards_of(result_files(folder))
    assert after == shards_of(result_files(tmp_path / 'anew')) != made


DAMAGES = {
    'longer': lambda data: data + b'x\n',
    'shorter': lambda data: data[:-10],
    'cut off early': lambda data: data[:9],
    'empty': lambda data: b'',
    'of zeros': lambda data: bytes(len(data)),
    'with another number': lambda data: data.replace(b'"seed": 0', b'"seed": 7'),
    'no text': lambda data: data[:40] + b'\xff\xfe' + data[42:],
}


@pytest.mark.parametrize('damage', DAMAGES)
def test_runs_whose_plan_is_damaged_are_swept(killed, damage):
    [shuffle] = (killed / '.tokbeam').iterdir()
    plan = shuffle / 'plan.json'
    plan.write_bytes(DAMAGES[damage](plan.read_bytes()))
    (shuffle / f'.tokbeam-attempt-{"0123456789abcdef" * 2}').write_bytes(b'half')
    assert runs_of(killed)
    KeptRuns(str(killed / '.tokbeam'), str(killed)).sweep()
    assert not (killed / '.tokbeam').exists()


def test_runs_whose_plan_is_damaged_are_gone_on_with_by_the_same_run(
    arguments, killed, keeping_runs
):
    before = runs_of(killed)
    [plan] = (killed / '.tokbeam').glob('*/plan.json')
    sound = plan.read_bytes()
    plan.write_bytes(sound + b'x\n')
    succeed(*arguments, *CUT, '--output', killed)
    after = runs_of(killed)
    assert {name: after[name] for name in before} == before
    assert plan.read_bytes() == sound


def test_what_is_not_the_tools_stays_where_a_plan_is_damaged(killed, tmp_path):
    [shuffle] = (killed / '.tokbeam').iterdir()
    (shuffle / 'plan.json').write_bytes(b'')
    (shuffle / 'notes').write_bytes(b'precious')
    linked = write(tmp_path / 'linked', b'precious')
    (shuffle / 'run-999999-0000').symlink_to(linked)
    KeptRuns(str(killed / '.tokbeam'), str(killed)).sweep()
    assert linked.read_bytes() == b'precious'
    assert [path.name for path in shuffle.iterdir()] == ['notes']


def test_a_folder_that_another_run_is_at_work_on_is_left_alone(killed):
    [shuffle] = (killed / '.tokbeam').iterdir()
    (shuffle / 'plan.json').write_bytes(b'')
    before = sorted(path.name for path in shuffle.iterdir())
    with Claim(str(shuffle / CLAIM_NAME), str(shuffle)):
        KeptRuns(str(killed / '.tokbeam'), str(killed)).sweep()
        assert sorted({CLAIM_NAME, *before}) == sorted(path.name for path in shuffle.iterdir())
    KeptRuns(str(killed / '.tokbeam'), str(killed)).sweep()
    assert not (killed / '.tokbeam').exists()


def test_what_is_left_beside_a_finished_result_is_swept(arguments, whole, tmp_path, monkeypatch):
    folder = tmp_path / 'out'
    with monkeypatch.context() as patched:
        patched.setattr('pipelines.shuffle.plan.KeptRuns.sweep', lambda *_, **__: None)
        succeed(*arguments, '--output', folder)
    assert runs_of(folder)
    assert 'already done' in succeed(*arguments, '--output', folder)
    assert not (folder / '.tokbeam').exists()
    assert result_files(folder) == whole


class TestFullDisk:
    def test_it_is_told_in_a_sentence_and_the_next_run_goes_on(
        self, arguments, tmp_path, small_disk, keeping_runs
    ):
        disk = small_disk(1 << 20)
        # So repetitive that its compressed size tells nothing of what it needs.
        data = as_tsv(pairs_with_gaps(200, 6)) * 50
        corpus = write(tmp_path / 'pairs.tsv.gz', data)
        command = ['encode', '--tsv', corpus, *arguments[5:], *CUT]
        succeed(*command, '--output', tmp_path / 'whole')
        ended = run(*command, '--output', disk / 'out')
        assert ended.status == 2, ended.said
        assert 'No space left on device' in ended.said and 'MiB are needed in' in ended.said
        assert 'Traceback' not in ended.said
        before = runs_of(disk / 'out')
        assert before
        assert [path.name for path in (disk / 'out').iterdir()] == ['.tokbeam']
        subprocess.run(['mount', '-o', 'remount,size=40m', disk], check=True)
        succeed(*command, '--output', disk / 'out')
        after = runs_of(disk / 'out')
        assert {name: after[name] for name in before} == before
        assert shards_of(result_files(disk / 'out')) == shards_of(result_files(tmp_path / 'whole'))
