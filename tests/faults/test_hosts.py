"""A Flink on several hosts that share nothing, with cut networks and kills: every byte as from the local run.

`-k in_short` is one build with a cut and a kill. HOSTS_FAULTS has how many random faults there are (1), each in
a build, HOSTS_SEED their seed; `-s` shows what became of each fault. Needs Linux, the root user, iptables, Java
and Maven, and on a machine's first run some minutes to fetch Flink.
"""

import contextlib
import dataclasses
import json
import os
import random
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable

import psutil
import pytest
from generated_text import english_lines
from separate_hosts import Hosts, missing, separate_hosts
from sizes import command_of

pytestmark = pytest.mark.hosts

LINES, COPIES = 40_000, 24
COMMAND_SECONDS, JOB_SECONDS, WHOLE_SECONDS = 900, 300, 180
LEASE_SECONDS = 310
LOOK_SECONDS = 0.3
AFTER_SECONDS = 3
FAULTS = int(os.environ.get('HOSTS_FAULTS', '1'))
SEED = os.environ.get('HOSTS_SEED', '1')


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault while a command works.

    Attributes:
        name: says what it is.
        do: makes it.
        seconds: that it lasts.
        undo: ends it.
        ends_with: a part of the sentence with which it may end the command; None: it may not.
        arguments: more options of the command.
    """

    name: str
    do: Callable[[Hosts], object]
    seconds: float = 0
    undo: Callable[[Hosts], object] = lambda hosts: None
    ends_with: str | None = None
    arguments: tuple[str, ...] = ()


def cut(host: str, *peers: str, seconds: float, **more) -> Fault:
    name = f'{host} cut from {" and ".join(peers) or "all"} for {seconds:.0f} s'
    return Fault(
        name, lambda hosts: hosts.cut(host, *peers), seconds, lambda hosts: hosts.heal(host), **more
    )


def kill(what: str, host: str, words: str, **more) -> Fault:
    def do(hosts: Hosts):
        assert hosts.kill(host, words), f'there is no {what} on {host}'

    return Fault(f'{what} on {host} killed', do, **more)


def kill_workers(host: str) -> Fault:
    def do(hosts: Hosts):
        for worker in workers(hosts, host):
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()

    return Fault(f'workers on {host} killed', do)


def workers(hosts: Hosts, host: str) -> list[psutil.Process]:
    """Returns the workers of a host, whose parent has the same command line; waits for the first one."""
    end = time.monotonic() + JOB_SECONDS
    while True:
        forked = [
            process
            for process in processes(hosts, host)
            if (parent := process.parent()) and 'warm_workers' in ' '.join(parent.cmdline())
        ]
        if forked:
            return forked
        assert time.monotonic() < end, f'no worker came on {host}'
        time.sleep(LOOK_SECONDS)


def processes(hosts: Hosts, host: str) -> list[psutil.Process]:
    return [
        psutil.Process(int(pid))
        for pid in hosts.output_of_pids(host)
        if psutil.pid_exists(int(pid))
    ]


busy: list[str] = []


def cut_busy(hosts: Hosts) -> None:
    busy.append(hosts.busy_taskmanager())
    hosts.cut(busy[-1], 'jobmanager')


PAGE = [
    cut('taskmanager1', seconds=60),
    cut('driver', 'jobmanager', seconds=30),
    cut('driver', 'jobmanager', seconds=120),
    cut('store', 'taskmanager1', seconds=60),
    cut('store', seconds=30),
    cut('store', seconds=60),
    Fault(
        'busy TaskManager cut from the JobManager for 60 s',
        cut_busy,
        60,
        lambda hosts: hosts.heal(busy[-1]),
        arguments=('--parallelism=1',),
    ),
    kill_workers('taskmanager1'),
    kill('TaskManager', 'taskmanager2', 'TaskManagerRunner'),
    kill('JobManager', 'jobmanager', 'StandaloneSession', ends_with='is lost'),
]
"""The one that may end the command comes last: without high availability jobs die with the JobManager."""


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp('corpus')
    text = ''.join(f'{line}\n' for line in english_lines(LINES, seed=1)).encode()
    (folder / 'small.txt').write_bytes(text)
    (folder / 'docs.txt').write_bytes(text * COPIES)
    return folder


@pytest.fixture(scope='module')
def local(corpus):
    """The roots of the local runs, which also compile all kernels."""
    build = command_of(*BUILD, '--text', corpus / 'small.txt', '--output', corpus / 'build')
    subprocess.run(build, check=True, timeout=COMMAND_SECONDS)
    # Next to the dataset, its manifest would be part of the root.
    vocabulary = shutil.copy(corpus / 'build' / 'vocab.docs.2000.subwords', corpus)
    words = [*ENCODE, '--text', corpus / 'docs.txt', '--vocab', vocabulary]
    subprocess.run(
        command_of(*words, '--output', corpus / 'encode'), check=True, timeout=COMMAND_SECONDS
    )
    return {
        name: json.loads((corpus / name / 'tokbeam.json').read_text())['root']
        for name in ('build', 'encode')
    }


BUILD = ('build', '--name', 'docs', '--vocab-size', '2000', '--min-count-range', '2:500')
ENCODE = ('encode', '--name', 'docs')
SMALL, DOCS = '--text=s3://corpora/in/small.txt', '--text=s3://corpora/in/docs.txt'
VOCABULARY = '--vocab=s3://corpora/in/vocab.docs.2000.subwords'


ON_FIVE = pytest.mark.parametrize('hosts', ['five'], indirect=True)
WITH_ZOOKEEPER = pytest.mark.parametrize('hosts', ['zookeeper'], indirect=True)
"""Of one fixture, so that the first hosts have ended when the others start."""


@pytest.fixture(scope='module')
def hosts(request, corpus, local, tmp_path_factory):
    folder = tmp_path_factory.mktemp('hosts')
    lacking = missing()
    if lacking:
        warnings.warn(f'NOTHING WAS TESTED ON SEVERAL HOSTS: no {", ".join(lacking)}', stacklevel=2)
        pytest.skip(f'no {", ".join(lacking)}')
    with separate_hosts(folder, request.param == 'zookeeper') as hosts:
        inputs = folder / 'store' / 'tmp' / 'in'
        inputs.mkdir()
        for name in ('small.txt', 'docs.txt', 'vocab.docs.2000.subwords'):
            shutil.copy(corpus / name, inputs)
            hosts.store('put', f'/tmp/in/{name}', f'in/{name}')
        yield hosts


class Run:
    """A command on the driver's host, which is given again until it ends well."""

    def __init__(self, hosts: Hosts, key: str, *arguments: object, asked: str = 'jobmanager:8081'):
        self.hosts, self.key, self.log = hosts, key, hosts.folder / f'{key}.log'
        self.arguments = [*arguments, '--output', f's3://corpora/{key}']
        self.arguments += ['--runner=FlinkRunner', f'--flink_master={asked}']
        wait_for(lambda: hosts.slots() == 2, WHOLE_SECONDS)
        self.known = {job['jid'] for job in hosts.jobs()}
        self.began = time.monotonic()
        self.process = hosts.tokbeam(self.arguments, self.log)

    def wait_for_job(self, stage: str) -> None:
        """Waits until a job of a stage runs; it is an error if the command ends before."""
        wait_for(lambda: self._has_job(stage) or self.process.poll() is not None, JOB_SECONDS)
        assert self.process.poll() is None, f'no job of {stage} was seen:\n{self.log.read_text()}'

    def _has_job(self, stage: str) -> bool:
        return any(
            job['name'].startswith(f'tokbeam-{stage}-') and job['state'] == 'RUNNING'
            for job in self.hosts.jobs()
            if job['jid'] not in self.known
        )

    def suffer(self, fault: Fault) -> str:
        """Makes a fault and ends it; returns what became of the command, which has ended well."""
        fault.do(self.hosts)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(fault.seconds)
        fault.undo(self.hosts)
        ended = time.monotonic()
        status = self.process.wait(COMMAND_SECONDS)
        said = self.log.read_text()
        outcome = f'went on, {time.monotonic() - ended:.0f} s after its end' if status == 0 else ''
        if status != 0:
            assert fault.ends_with is not None and fault.ends_with in said, said
            wait_for(lambda: self.hosts.slots() == 2, WHOLE_SECONDS)
            if 'killed' in fault.name and 'driver' in fault.name:
                time.sleep(LEASE_SECONDS)
            again = self.hosts.tokbeam(self.arguments, self.log).wait(COMMAND_SECONDS)
            assert again == 0, self.log.read_text()
            outcome = f'ended with status {status}, and went on when given again'
        total = time.monotonic() - self.began
        print(
            f'\n| {fault.name} | {outcome} | {total:.0f} s | {os.getloadavg()[0]:.1f} |', flush=True
        )
        return said

    def check(self, root: str) -> None:
        """Whether the result is the local one, and nothing is left in the store or on the cluster."""
        log = self.hosts.folder / f'{self.key}.verify'
        url = f's3://corpora/{self.key}'
        assert self.hosts.tokbeam(['verify', '--json', url], log).wait(COMMAND_SECONDS) == 0
        [verified] = [line for line in log.read_text().splitlines() if line.startswith('{')]
        assert json.loads(verified)['root'] == root
        assert json.loads(verified)['findings'] == []
        keys, uploads = self.hosts.objects(self.key)
        assert keys and not [key for key in keys if '/.tokbeam' in key]
        assert uploads == []
        jobs = [job for job in self.hosts.jobs() if job['jid'] not in self.known]
        assert not [job for job in jobs if job['end-time'] == -1]
        times = sorted((job['start-time'], job['end-time']) for job in jobs)
        assert all(end <= begin for (_, end), (begin, _) in zip(times, times[1:])), times


def wait_for(is_there: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_there():
        assert time.monotonic() < end, 'it did not come'
        time.sleep(LOOK_SECONDS)


@ON_FIVE
def test_in_short_a_build_goes_on_after_a_cut_and_a_kill(hosts, local):
    run = Run(hosts, 'short', *BUILD, SMALL)
    run.wait_for_job('count')
    hosts.cut('driver', 'jobmanager')
    time.sleep(AFTER_SECONDS)
    hosts.heal('driver')
    run.wait_for_job('encode')
    run.suffer(kill_workers('taskmanager1'))
    run.check(local['build'])


@ON_FIVE
@pytest.mark.parametrize('fault', PAGE, ids=lambda fault: fault.name)
def test_an_encode_goes_on_after_a_fault(hosts, local, fault):
    key = f'encode-{PAGE.index(fault)}'
    run = Run(hosts, key, *ENCODE, DOCS, VOCABULARY, *fault.arguments)
    run.wait_for_job('encode')
    time.sleep(AFTER_SECONDS)
    run.suffer(fault)
    run.check(local['encode'])


@WITH_ZOOKEEPER
@pytest.mark.parametrize('asked', ['leader', 'standby', 'both'])
def test_with_zookeeper_a_job_outlives_its_jobmanager(hosts, local, asked):
    """It begins anew with the other one, whichever the command asks."""
    leader = hosts.leader()
    standby = 'jobmanager' if leader == 'jobmanager2' else 'jobmanager2'
    addresses = {'leader': [leader], 'standby': [standby], 'both': [leader, standby]}[asked]
    master = ','.join(f'{address}:8081' for address in addresses)
    run = Run(hosts, f'zookeeper-{asked}', *ENCODE, DOCS, VOCABULARY, asked=master)
    run.wait_for_job('encode')
    time.sleep(AFTER_SECONDS)
    run.suffer(kill(f'leading JobManager (the command asks: {asked})', leader, 'StandaloneSession'))
    wait_for(lambda: hosts.leader() == standby, WHOLE_SECONDS)
    run.check(local['encode'])


@ON_FIVE
@pytest.mark.parametrize('number', range(FAULTS))
def test_a_build_goes_on_after_a_random_fault(hosts, local, number):
    chance = random.Random(f'{SEED} {number}')
    fault = random_fault(chance)
    run = Run(hosts, f'random-{number}', *BUILD, SMALL)
    run.wait_for_job(chance.choice(['count', 'encode']))
    time.sleep(chance.random() * AFTER_SECONDS)
    run.suffer(fault)
    run.check(local['build'])


def random_fault(chance: random.Random) -> Fault:
    if chance.random() < 0.6:
        host, peer = chance.sample(
            ['driver', 'jobmanager', 'taskmanager1', 'taskmanager2', 'store'], 2
        )
        return cut(host, peer, seconds=chance.uniform(10, 180))
    manager = chance.choice(['taskmanager1', 'taskmanager2'])
    return chance.choice(
        [
            kill_workers(manager),
            kill('process for warm workers', manager, 'warm_workers'),
            kill('TaskManager', manager, 'TaskManagerRunner'),
            kill('JobManager', 'jobmanager', 'StandaloneSession', ends_with='is lost'),
            kill('driver', 'driver', '-m pipelines', ends_with=''),
        ]
    )
