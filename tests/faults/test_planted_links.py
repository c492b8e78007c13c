"""Whatever of a job's own files and folders somebody replaces by a link, and whenever: nothing that
the link leads to is written or deleted, and the job ends right or in a sentence.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import types

import google_crc32c
import pytest
from attempts import attempt_at
from jobs import run, write
from planted_links import Planter, make_victim, state_of

from pipelines.artifacts.outputs import StageKey, StageOutput, StageTask
from pipelines.files import filesystem
from pipelines.files.attempts import WorkFolder
from pipelines.files.claims import CLAIM_NAME, Claim
from pipelines.jobs.job import Execution
from pipelines.learning.rounds import LearnerFiles, OutputRounds, SearchRounds, write_json
from pipelines.shuffle.plan import PLAN_NAME, KeptRuns, fingerprint_of, plan_json
from pipelines.stages.run_stage import StageResult, run_stage
from tokcore.errors import InputError
from tokcore.records.manifest import OutputFile
from tokcore.schemes import find_scheme

pytestmark = pytest.mark.slow


def make_result(folder, shards, seed):
    """Runs a stage without a pipeline, which makes and sweeps all that the stages do."""
    output = StageOutput.of_dataset(folder)
    key = StageKey('encode', {'seed': seed}, (), find_scheme('subword').rules)
    names = [f'n-train-{number:05d}-of-{shards:05d}' for number in range(shards)]
    work = WorkFolder(None, folder)
    place = OutputRounds.of(folder, 'vocabulary')

    def entry(attempt, name):
        data = f'{name} of seed {seed}'.encode()
        filesystem.write_bytes(os.path.join(attempt.path, name), data)
        return OutputFile(name, len(data), f'{google_crc32c.value(data):08x}', 1)

    def make(attempt):
        content = {'output': folder, 'seed': seed}
        runs = os.path.join(work.path, f'shuffle-{fingerprint_of(content).hex()}')
        with Claim(os.path.join(runs, CLAIM_NAME), runs) as claim:
            claim.require()
            filesystem.write_bytes(os.path.join(runs, PLAN_NAME), plan_json(content))
            filesystem.write_bytes(os.path.join(runs, 'run-000000-0000'), b'sorted')
        rounds = SearchRounds(place, {'seed': seed})
        with rounds.claimed():
            write_json(LearnerFiles(rounds.folder).round(3).sizes_path, [[1, 2]])
        files = tuple(entry(attempt, name) for name in names)
        rejected = entry(attempt, 'rejected/train.invalid_utf8.jsonl')
        return [StageResult(key.manifest((), files=files), (rejected,))]

    engine = types.SimpleNamespace(flags=(), scheme=None)
    execution = Execution(engine, overwrite=True)
    kept = [KeptRuns(work.path, folder), place]
    run_stage([StageTask(key, output, names)], make, execution, work=work, kept=kept)


def assert_whole(folder, planted):
    """All that the manifest lists is as it says, except a link in its place."""
    if (folder / 'tokbeam.json').is_symlink():
        return
    manifest = json.loads((folder / 'tokbeam.json').read_bytes())
    for each in manifest['files'] + manifest.get('index', []) + manifest['rejected']:
        path = folder / each['name']
        if not str(path).startswith(planted) and not path.is_symlink():
            assert f'{google_crc32c.value(path.read_bytes()):08x}' == each['crc32c']


def test_a_stage_follows_no_link_that_is_planted_at_any_of_its_steps(tmp_path):
    victim = make_victim(tmp_path / 'victim')
    before = state_of(victim)

    def play(number, step, seed):
        folder = tmp_path / str(number) / 'out'
        make_result(str(folder), 2, 'of an earlier run')
        planter = Planter(str(folder), str(victim), str(folder.parent / 'gone'), step, seed)
        with planter.at_work(), contextlib.suppress(InputError):
            make_result(str(folder), 1, 'new')
            if planter.planted:
                assert_whole(folder, planter.planted)
        assert state_of(victim) == before, (step, seed, planter.planted)
        return planter

    steps = play('first', None, '').steps
    assert steps > 100
    played = [play(number, number % steps, str(number)) for number in range(0, steps, 2)]
    planted = {os.path.relpath(each.planted, each.folder) for each in played if each.planted}
    kinds = {name.partition('-')[0] for path in planted for name in path.split('/')}
    assert kinds >= {'.tokbeam', 'n', 'tokbeam.json', 'rejected', 'shuffle', 'learner', 'run'}


@pytest.fixture
def material(tmp_path):
    """What the jobs read, and somebody's folder."""
    write(tmp_path / 'text', b'a line of text\nanother \xff line\nmore of it\n' * 3)
    write(tmp_path / 'counts.txt', b''.join(b'word%d %d\n' % (n, n % 9 + 1) for n in range(60)))
    make_victim(tmp_path / 'victim')
    return tmp_path


def commands(material):
    text = ['--text', material / 'text', '--on-error', 'skip']
    dataset = ['--name', 'n', '--shards', 1, '--overwrite']
    return {
        'encode': ['encode', *text, '--scheme', 'byte', *dataset, '--output', 'OUT'],
        'build': ['build', *text, '--scheme', 'word', '--vocab-size', 20, *dataset, '--output', 'OUT'],
        'count': ['count', *text, '--output', 'OUT/counts', '--overwrite'],
        'vocab': [
            'vocab', '--counts', material / 'counts.txt', '--scheme', 'word', '--vocab-size', 30,
            '--output', 'OUT/vocabulary', '--overwrite',
        ],
    }  # fmt: skip


@pytest.mark.parametrize('command', ['encode', 'build', 'count', 'vocab'])
def test_a_command_follows_no_link_that_is_planted_while_it_runs(material, command):
    before = state_of(material / 'victim')
    steps = None
    for number, share in enumerate([1, 0.1, 0.35, 0.6, 0.8, 0.95]):
        folder = material / str(number)
        words = [str(each).replace('OUT', str(folder)) for each in commands(material)[command]]
        step = None if steps is None else int(steps * share)
        planter = Planter(
            str(folder), str(material / 'victim'), str(material / f'gone{number}'), step, str(number)
        )  # fmt: skip
        with planter.at_work():
            ended = run(*words)
        steps = steps or planter.steps
        assert ended.status in (0, 2), ended.said
        assert state_of(material / 'victim') == before, (command, step, planter.planted)


def test_an_attempt_that_was_replaced_by_a_link_is_not_followed_to_be_deleted(material):
    """As A3 of the attack: with the command itself, and the link in the attempt's place for good."""
    before = state_of(material / 'victim')
    out = material / 'out'
    stopped = [
        sys.executable, '-c',
        'import os, signal, sys\n'
        'from pipelines.stages import encode\n'
        'from pipelines.cli.main import main\n'
        'whole = encode.encode_into\n'
        'def stop(*arguments):\n'
        '    os.kill(os.getpid(), signal.SIGSTOP)\n'
        '    return whole(*arguments)\n'
        'encode.encode_into = stop\n'
        'sys.exit(main(sys.argv[1:]))',
        *(str(each).replace('OUT', str(out)) for each in commands(material)['encode']),
    ]  # fmt: skip
    process = subprocess.Popen(stopped, stderr=subprocess.PIPE, text=True)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    [attempt] = out.glob('.tokbeam-attempt-*')
    attempt.rename(material / 'gone')
    attempt.symlink_to(material / 'victim')
    os.kill(process.pid, signal.SIGCONT)
    _, said = process.communicate()
    assert process.returncode in (0, 2), said
    with attempt_at(out):  # of the next run
        assert not os.path.lexists(attempt)
    assert state_of(material / 'victim') == before
