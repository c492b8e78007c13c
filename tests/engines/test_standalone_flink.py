"""A Flink cluster on this machine, as `deploy/flink/cluster` starts it: every byte as from the local run.

With kills of whatever can be killed, at a random moment of a random stage; CLUSTER_KILLS has how many
of each kind (1), CLUSTER_SEED the seed of the moments. `-k in_short` is the same in two commands. Needs Java and Maven,
and on a machine's first run some minutes to fetch Flink.
"""

import dataclasses
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import warnings
from pathlib import Path

import psutil
import pytest
from dataset_files import shards_and_vocabularies
from deadlines import free_port
from generated_text import as_bitext, english_lines
from jobs import succeed, write
from sizes import command_of
from worker_processes import DEPLOY_FLINK, worker_environment

pytestmark = pytest.mark.cluster

UP_SECONDS = 1800
BUILD_SECONDS = 900
WAIT_SECONDS = 300
LOOK_SECONDS = 0.02
LINES = 4000
KILLS = int(os.environ.get('CLUSTER_KILLS', '1'))
SEED = int(os.environ.get('CLUSTER_SEED', '1'))
STAGES = ('count', 'vocab', 'encode')
KINDS = ('worker', 'pool', 'TaskManager', 'JobManager', 'driver')
ENDS_THE_COMMAND = ('JobManager', 'driver')
MOST_SECONDS = 1.5
MOST_COMMANDS = 6


def environment() -> dict[str, str]:
    """That of commands and workers; the process that these are forked from ends with the cluster."""
    return {**worker_environment(), 'TOKBEAM_WORKERS_IDLE': '600'}


@dataclasses.dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        folder: its folder.
        port: of its REST interface.
    """

    folder: Path
    port: int

    def command(self, *arguments: object) -> list[str]:
        return [
            sys.executable,
            *map(str, [DEPLOY_FLINK / 'cluster', '--folder', self.folder, *arguments]),
        ]

    def run(self, *arguments: object) -> str:
        ended = subprocess.run(
            self.command(*arguments),
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=UP_SECONDS,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    @property
    def flags(self) -> list[str]:
        """All that a user types."""
        return ['--runner=FlinkRunner', f'--flink_master=localhost:{self.port}']

    def get(self, path: str) -> dict:
        with urllib.request.urlopen(f'http://localhost:{self.port}/{path}', timeout=10) as answer:
            return json.load(answer)

    def jobs(self) -> list[dict]:
        return self.get('jobs/overview')['jobs']

    def running(self) -> list[dict]:
        return [job for job in self.jobs() if job['state'] in ('RUNNING', 'CREATED', 'RESTARTING')]

    def is_whole(self) -> bool:
        try:
            return self.get('overview')['slots-total'] == 2
        except OSError:
            return False

    def keeper(self) -> psutil.Process:
        return psutil.Process(int((self.folder / 'keeper.pid').read_text()))

    def java(self, entry: str) -> list[psutil.Process]:
        return [each for each in self.keeper().children() if entry in ' '.join(each.cmdline())]

    @property
    def disk(self) -> Path:
        """The first TaskManager's temporary files."""
        return self.folder / 'tmp' / 'taskmanager-1'

    def warm(self) -> psutil.Process:
        return psutil.Process(int((self.folder / 'workers' / 'pid').read_text()))

    def victims(self, kind: str, driver: subprocess.Popen) -> list[psutil.Process]:
        """The processes of a kind that can be killed now."""
        if kind == 'driver':
            return [psutil.Process(driver.pid)]
        if kind == 'TaskManager':
            return self.java('TaskManagerRunner')
        if kind == 'JobManager':
            return self.java('StandaloneSessionClusterEntrypoint')
        try:
            return [self.warm()] if kind == 'pool' else self.warm().children()
        except (OSError, psutil.NoSuchProcess):
            return []


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    """Two TaskManagers of one slot; afterwards nothing of them is left."""
    missing = [name for name in ('java', 'mvn') if shutil.which(name) is None]
    if missing:
        _skip(f'{" and ".join(missing)} not on the PATH')
    cluster = Cluster(tmp_path_factory.mktemp('cluster') / 'flink', free_port())
    cluster.disk.mkdir(parents=True)
    mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', cluster.disk])
    try:
        cluster.run('up', '--port', cluster.port, '--taskmanagers', 2, '--memory', '1024m')
        yield cluster
    finally:
        for process in started:  # of a test that has failed
            process.kill()
        cluster.run('down')
        assert processes_of(cluster.folder) == []
        if mounted.returncode == 0:
            subprocess.run(['umount', cluster.disk], check=True)
        cluster.run('clean')
        assert not cluster.folder.exists()


def _skip(reason: str):
    warnings.warn(f'NOTHING WAS TESTED ON A CLUSTER: {reason}', stacklevel=2)
    pytest.skip(reason)


def processes_of(folder: Path) -> list[str]:
    """The command lines of processes that were started for a cluster's folder."""
    left = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and str(folder) in str(process.environ().values()):
                left.append(' '.join(process.cmdline()))
        except psutil.Error:
            continue  # it is another user's, or has just ended
    return left


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    source, target = as_bitext(
        list(zip(english_lines(LINES, seed=1), english_lines(LINES, seed=2), strict=True))
    )
    folder = tmp_path_factory.mktemp('corpus')
    return ['--source', write(folder / 'a.en', source), '--target', write(folder / 'a.de', target)]


SCHEMES = {
    'subword': ['--vocab-size', 1500, '--min-count-range', '19:23'],
    'wordpiece': ['--scheme', 'wordpiece', '--vocab-size', 600, '--min-count-range', '20:23'],
    'bpe': ['--scheme', 'bpe', '--vocab-size', 1000],
}


def build_arguments(corpus, scheme: str) -> list[object]:
    return [
        *('build', *corpus, '--name', 'small', '--shards', 3, '--shared-vocab'),
        *(*SCHEMES[scheme], '@item-size', '32KiB'),
    ]


@pytest.fixture(scope='module')
def local(corpus, tmp_path_factory):
    """The files that the local engine makes with a scheme."""
    made: dict[str, dict] = {}

    def files(scheme: str) -> dict:
        if scheme not in made:
            folder = tmp_path_factory.mktemp('local') / scheme
            succeed(*build_arguments(corpus, scheme), '--output', folder)
            made[scheme] = shards_and_vocabularies(folder)
        return made[scheme]

    return files


started: list[subprocess.Popen] = []


def start(arguments, log: Path) -> subprocess.Popen:
    with log.open('ab') as stream:
        process = subprocess.Popen(
            command_of(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=environment(),
            start_new_session=True,
        )
    started.append(process)
    return process


def run(arguments, log: Path) -> int:
    return start(arguments, log).wait(BUILD_SECONDS)


def wait_for(what, seconds=WAIT_SECONDS):
    """Returns what a function returns, as soon as it is something."""
    end = time.monotonic() + seconds
    while not (seen := what()):
        assert time.monotonic() < end, 'it did not come'
        time.sleep(LOOK_SECONDS)
    return seen


def job_of(cluster, stage: str, process, known=frozenset()) -> dict | None:
    """The job of a stage that runs and was not known, or an empty one if the command has ended."""
    if process.poll() is not None:
        return {'jid': ''}
    try:
        running = [job for job in cluster.running() if job['jid'] not in known]
    except OSError:
        return None
    named = [job for job in running if job['name'].startswith(f'tokbeam-{stage}-')]
    return named[0] if named else None


def has_reached(cluster, stage: int, process) -> bool:
    """Whether a job of a stage or of a later one runs, or the command has ended."""
    later = STAGES[stage:]
    return any(job_of(cluster, each, process) is not None for each in later)


def wait_for_victims(cluster, kind: str, process) -> list[psutil.Process]:
    """Returns processes of a kind; none if the command has ended before there were any."""
    while process.poll() is None:
        if victims := cluster.victims(kind, process):
            return victims
        time.sleep(LOOK_SECONDS)
    return []


def test_in_short_another_learner_and_shuffle_give_the_same_bytes(cluster, corpus, local, tmp_path):
    output, log = tmp_path / 'out', tmp_path / 'log'
    arguments = [*build_arguments(corpus, 'subword'), '--output', output, *cluster.flags]
    assert run([*arguments, '--learner=memory', '@shuffle=engine'], log) == 0, log.read_text()
    assert shards_and_vocabularies(output) == local('subword')
    assert cluster.running() == []


def test_in_short_one_build_outlives_a_kill_of_each_kind(cluster, corpus, local, tmp_path):
    """The first two end the command, which is given again; the others do not."""
    output, log = tmp_path / 'out', tmp_path / 'log'
    arguments = [*build_arguments(corpus, 'subword'), '--output', output, *cluster.flags]
    arguments += ['--learner', 'beam']
    kills = [[('driver', 'count')], [('JobManager', 'count')]]
    kills += [[('worker', 'vocab'), ('pool', 'vocab'), ('TaskManager', 'encode')]]
    for number, of_command in enumerate(kills):
        known = {job['jid'] for job in cluster.jobs()}  # one may be of the driver that was killed
        process = start(arguments, log)
        for kind, stage in of_command:
            job = wait_for(functools.partial(job_of, cluster, stage, process, known))
            assert job['jid'], f'no {stage} was seen:\n{log.read_text()}'
            victims = wait_for_victims(cluster, kind, process)
            random.Random(kind).choice(victims).kill()
        status = process.wait(BUILD_SECONDS)
        assert (status == 0) == (number == 2), log.read_text()
        wait_for(cluster.is_whole)
    assert shards_and_vocabularies(output) == local('subword')
    assert cluster.running() == []
    assert not [path for path in output.iterdir() if path.name.startswith('.tokbeam')]


@pytest.mark.parametrize('learner', ['beam', 'memory'])
@pytest.mark.parametrize('scheme', SCHEMES)
def test_build_gives_the_same_bytes(cluster, corpus, local, tmp_path, scheme, learner):
    output, log = tmp_path / 'out', tmp_path / 'log'
    arguments = [*build_arguments(corpus, scheme), '--output', output, '--learner', learner]
    shuffle = 'engine' if learner == 'memory' else 'files'
    arguments += ['@shuffle', shuffle, *cluster.flags]
    assert run(arguments, log) == 0, log.read_text()
    assert shards_and_vocabularies(output) == local(scheme)
    assert cluster.running() == []


def test_the_streaming_translator_gives_the_same_bytes(cluster, corpus, local, tmp_path):
    """The only one that Beam has for Flink 2."""
    output, log = tmp_path / 'out', tmp_path / 'log'
    arguments = [*build_arguments(corpus, 'subword'), '--output', output, '--learner', 'beam']
    assert run([*arguments, *cluster.flags, '--streaming'], log) == 0, log.read_text()
    assert shards_and_vocabularies(output) == local('subword')
    assert cluster.running() == []


@pytest.mark.parametrize('number', range(KILLS))
def test_kills_at_random_moments_change_no_byte(cluster, corpus, local, tmp_path, number):
    """One of each kind, each in a random stage; the same command again where it ended."""
    chance = random.Random(f'{SEED} {number}')
    kills = sorted(
        (chance.randrange(len(STAGES)), chance.random() * MOST_SECONDS, kind) for kind in KINDS
    )
    output, log = tmp_path / 'out', tmp_path / 'log'
    arguments = [*build_arguments(corpus, 'subword'), '--output', output, *cluster.flags]
    arguments += ['--learner', 'beam']
    commands, process = 0, None
    for stage, delay, kind in kills:
        if process is None or process.poll() is not None:
            print(f'{number}: status {process and process.returncode}')
            wait_for(cluster.is_whole)
            process, commands = start(arguments, log), commands + 1
        wait_for(functools.partial(has_reached, cluster, stage, process))
        threading.Event().wait(delay)
        victims = wait_for_victims(cluster, kind, process)
        if victims:
            chance.choice(victims).kill()
        if kind in ENDS_THE_COMMAND:
            process.wait(BUILD_SECONDS)
        print(
            f'{number}: {kind}: {STAGES[stage]} +{delay:.1f} s: {"killed" if victims else "too late"}'
        )
    status = process.wait(BUILD_SECONDS)
    while status != 0 and commands < MOST_COMMANDS:
        print(f'{number}: status {status}')
        assert status in (1, 2, -signal.SIGKILL), log.read_text()
        wait_for(cluster.is_whole)
        status, commands = run(arguments, log), commands + 1
    print(f'{number}: status {status} after {commands} commands')
    assert status == 0, log.read_text()
    assert shards_and_vocabularies(output) == local('subword')
    assert cluster.running() == []
    assert not [path for path in output.iterdir() if path.name.startswith('.tokbeam')]
    wait_for(cluster.is_whole)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_job_and_sees_it_end(cluster, corpus, tmp_path, number):
    output, log = tmp_path / 'out', tmp_path / 'log'
    process = start(
        [
            *build_arguments(corpus, 'subword'),
            '--output',
            output,
            '--learner',
            'beam',
            *cluster.flags,
        ],
        log,
    )
    job = wait_for(lambda: job_of(cluster, 'vocab', process))
    process.send_signal(number)
    assert process.wait(WAIT_SECONDS) == 128 + number, log.read_text()
    assert cluster.get(f'jobs/{job["jid"]}')['state'] in ('CANCELED', 'FINISHED')
    assert cluster.running() == []


def test_a_users_mistake_ends_the_command_without_restarts(cluster, tmp_path):
    text = write(tmp_path / 'bad', b'good\n' * 100 + b'bad \xff\n')
    log = tmp_path / 'log'
    assert run(['count', '--text', text, '--output', tmp_path / 'out', *cluster.flags], log) == 2
    assert 'the cluster goes on' not in log.read_text()
    assert 'UTF-8' in log.read_text()
    assert cluster.running() == []


def test_a_full_disk_of_a_taskmanager_is_told_and_with_room_the_command_goes_on(
    cluster, corpus, local, tmp_path
):
    if not cluster.disk.is_mount():
        _skip('only root can mount a disk that is full')
    wait_for(cluster.is_whole)
    filler = cluster.disk / 'filler'
    with filler.open('wb') as file:
        room = shutil.disk_usage(cluster.disk).free
        os.posix_fallocate(file.fileno(), 0, room)
    output, log = tmp_path / 'out', tmp_path / 'log'
    arguments = [*build_arguments(corpus, 'subword'), '--output', output, *cluster.flags]
    try:
        assert run(arguments, log) == 2, log.read_text()
        assert 'is full (java.io.IOException: No space left on device)' in log.read_text()
        assert cluster.running() == []
        process = start(arguments, again := tmp_path / 'again')
        wait_for(lambda: 'No space left' in again.read_text())
    finally:
        filler.unlink()
    assert process.wait(BUILD_SECONDS) == 0, again.read_text()
    assert shards_and_vocabularies(output) == local('subword')
    assert not [path for path in output.iterdir() if path.name.startswith('.tokbeam')]


def test_of_two_commands_at_once_one_says_that_the_other_works(cluster, corpus, local, tmp_path):
    output, log, other = tmp_path / 'out', tmp_path / 'log', tmp_path / 'other'
    arguments = [*build_arguments(corpus, 'subword'), '--output', output, *cluster.flags]
    process = start(arguments, log)
    wait_for(lambda: job_of(cluster, 'count', process))
    assert run(arguments, other) == 2
    assert f'is being written by process {process.pid} ' in other.read_text()
    assert process.wait(BUILD_SECONDS) == 0, log.read_text()
    assert shards_and_vocabularies(output) == local('subword')


def test_a_taskmanager_that_does_not_start_is_reported_by_its_last_error(tmp_path):
    cluster = Cluster(tmp_path / 'flink', free_port())
    command = cluster.command('up', '--port', cluster.port, '--taskmanagers', 1, '--memory', '10m')
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as up:
        said = next(line for line in up.stdout if 'ended' in line)
        up.kill()
    cluster.run('down')
    assert 'taskmanager-1 ended: ' in said and 'IllegalConfigurationException: ' in said
    kept = (cluster.folder / 'log' / 'keeper.log').read_text()
    assert kept.splitlines()[-1].endswith('jobmanager ended with status 143')
    assert processes_of(cluster.folder) == []


def test_it_is_shown_and_a_second_start_changes_nothing(cluster):
    wait_for(cluster.is_whole)
    keeper = cluster.keeper()
    assert '2 of 2 TaskManagers, 2 of 2 slots free, 0 jobs' in cluster.run('status')
    assert 'runs already' in cluster.run('up', '--port', cluster.port)
    assert cluster.keeper() == keeper
    size = sum(
        path.stat().st_size for path in (cluster.folder / 'tmp').rglob('*') if path.is_file()
    )
    assert size < 500 << 20
