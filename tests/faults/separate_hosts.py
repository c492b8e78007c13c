"""Hosts of one cluster on this machine: a network namespace each, on a bridge without a way out.

What runs on a host has its own name, process ids, /tmp, /dev/shm and cache; all else is read-only. So hosts
share nothing but software: inputs, outputs and the work folder are objects of the store. Needs Linux, the root
user, `ip`, `iptables` and `unshare`. With `zookeeper` there is a second JobManager, for high availability,
and one folder that all share, as Flink wants it then.
"""

import contextlib
import dataclasses
import json
import os
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from object_store import KEYS

from tokcore.kernels.jit import CACHE_FOLDER

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'tokbeam'

HOSTS = ('driver', 'jobmanager', 'taskmanager1', 'taskmanager2', 'store')
MORE_HOSTS = ('zookeeper', 'jobmanager2')
NETWORK = '10.77.0'
START_SECONDS = 180
LOOK_SECONDS = 0.3

ZOOKEEPER = (
    ('org.apache.zookeeper', 'zookeeper', '3.8.4'),
    ('io.dropwizard.metrics', 'metrics-core', '4.1.12.1'),
    ('org.xerial.snappy', 'snappy-java', '1.1.10.5'),
)

_LEADS = 'DefaultDispatcherRunner was granted leadership'
"""In the log of a JobManager, after the time."""

_GET = (
    'import sys, urllib.request as u; '
    'print(u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=5).read().decode())'
)

_STORE = """
import json, sys
from object_store import Store, BUCKET
store, verb = Store('http://store:5000'), sys.argv[1]
client = store.client()
if verb == 'bucket':
    client.create_bucket(Bucket=BUCKET)
elif verb == 'put':
    store.upload(*sys.argv[2:])
else:
    uploads = client.list_multipart_uploads(Bucket=BUCKET).get('Uploads', [])
    pages = client.get_paginator('list_objects_v2').paginate(Bucket=BUCKET, Prefix=sys.argv[2] + '/')
    keys = [each['Key'] for page in pages for each in page.get('Contents', [])]
    print(json.dumps([keys, [each['Key'] for each in uploads]]))
"""


def missing() -> list[str]:
    """Returns what this machine lacks for such hosts."""
    programs = ('ip', 'iptables', 'unshare', 'java', 'mvn')
    lacking = [name for name in programs if shutil.which(name) is None]
    return lacking + ([] if hasattr(os, 'getuid') and os.getuid() == 0 else ['the root user'])


def flink_home() -> Path:
    """Fetches Flink and Beam's jars, if they are not here yet."""
    return runpy.run_path(str(REPOSITORY / 'deploy' / 'flink' / 'cluster'))['flink_home']()


def zookeeper_jars(scratch: Path) -> Path:
    """Fetches ZooKeeper, if it is not here yet; returns the folder of its jars."""
    folder = CACHE / 'zookeeper-3.8.4'
    if not folder.exists():
        needed = ''.join(
            f'<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>'
            f'<version>{version}</version></dependency>'
            for group, name, version in ZOOKEEPER
        )
        pom = scratch / 'pom.xml'
        pom.write_text(
            '<project><modelVersion>4.0.0</modelVersion><groupId>t</groupId><artifactId>t</artifactId>'
            f'<version>1</version><dependencies>{needed}</dependencies></project>'
        )
        command = ['mvn', '--batch-mode', '--quiet', '-f', pom, 'dependency:copy-dependencies']
        partial = scratch / 'jars'
        subprocess.run(
            [*command, f'-DoutputDirectory={partial}'],
            check=True,
            timeout=900,
            stdin=subprocess.DEVNULL,
        )
        shutil.move(partial, folder)
    return folder


@dataclasses.dataclass(frozen=True)
class Hosts:
    """Running hosts.

    Attributes:
        folder: has a folder and a log for each.
        names: of the hosts, in the order of their addresses.
        software: folders that all may read.
    """

    folder: Path
    names: tuple[str, ...]
    software: tuple[Path, ...]

    @property
    def has_zookeeper(self) -> bool:
        return 'zookeeper' in self.names

    @property
    def shared(self) -> Path:
        return self.folder / 'shared'

    def space(self, host: str) -> str:
        """Returns the name of a host's network namespace."""
        return f'tokbeam-{os.getpid()}-{host}'

    def address(self, host: str) -> str:
        return f'{NETWORK}.{self.names.index(host) + 1}'

    def command(self, host: str, command: str) -> list[str]:
        """Returns the command line that runs a command of the shell on a host."""
        home = self.folder / host
        inside = home / 'tmp'
        inside.mkdir(parents=True, exist_ok=True)
        names = [f'{self.address(name)} {name}' for name in self.names]
        (home / 'hosts').write_text('\n'.join(['127.0.0.1 localhost', *names, '']))
        setup = [f'hostname {host}', 'mount --make-rprivate /']
        hidden = [path for path in self.software if path.is_relative_to('/tmp')]
        for path in [*hidden, *([self.shared] if self.has_zookeeper else [])]:
            target = inside / path.relative_to('/tmp')
            target.mkdir(parents=True, exist_ok=True)
            setup.append(f'mount --bind {path} {target}')
            if path != self.shared:
                setup.append(f'mount -o remount,ro,bind {target}')
        setup += [
            f'mount --bind {home}/hosts /etc/hosts',
            'mount -t tmpfs tmpfs /dev/shm',
            f'mount --rbind {inside} /tmp',
            'mount -o remount,ro,bind /',
            'cd /tmp',
            command,
        ]
        variables = {
            'HOME': '/tmp/home',
            'XDG_CACHE_HOME': '/tmp/cache',
            'TMPDIR': '/tmp',
            'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}',
            'PYTHONPATH': f'{REPOSITORY}:{REPOSITORY}/tests:{REPOSITORY}/tests/engines',
            'LANG': 'C.UTF-8',
            'AWS_ACCESS_KEY_ID': KEYS[0],
            'AWS_SECRET_ACCESS_KEY': KEYS[1],
            'AWS_REGION': 'us-east-1',
            'AWS_ENDPOINT_URL': 'http://store:5000',
        }
        return [
            *('ip', 'netns', 'exec', self.space(host), 'env', '-i'),
            *(f'{name}={value}' for name, value in variables.items()),
            *('unshare', '--mount', '--uts', '--pid', '--fork', '--kill-child', '--mount-proc'),
            *('bash', '-c', ' && '.join(setup)),
        ]

    def start(self, host: str, command: str, log: Path | None = None) -> subprocess.Popen:
        with open(log or self.folder / f'{host}.log', 'ab') as stream:
            return subprocess.Popen(
                self.command(host, command),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )

    def tokbeam(self, arguments: Sequence[object], log: Path) -> subprocess.Popen:
        """Starts the command on the driver's host."""
        words = shlex.join(map(str, arguments))
        return self.start('driver', f'exec {sys.executable} -m pipelines {words}', log)

    def output(self, host: str, *command: object) -> str:
        """Returns what a command without an environment of the host's own prints there."""
        return subprocess.run(
            ['ip', 'netns', 'exec', self.space(host), *map(str, command)],
            capture_output=True, text=True, check=True, timeout=60, stdin=subprocess.DEVNULL,
        ).stdout  # fmt: skip

    def store(self, *arguments: object) -> str:
        """Runs a verb of `_STORE` next to the store, where no cut is."""
        words = shlex.join([sys.executable, '-c', _STORE, *map(str, arguments)])
        return subprocess.run(
            self.command('store', words), capture_output=True, text=True, check=True, timeout=120
        ).stdout

    def objects(self, prefix: str) -> tuple[list[str], list[str]]:
        """Returns the keys of objects below a prefix, and of all uploads that are open."""
        keys, uploads = json.loads(self.store('list', prefix))
        return keys, uploads

    def get(self, path: str) -> dict | None:
        """Returns what a JobManager answers to itself; None if none serves."""
        for host in self.names:
            if host.startswith('jobmanager'):
                url = f'http://{self.address(host)}:8081/v1/{path}'
                with contextlib.suppress(subprocess.SubprocessError, ValueError):
                    return json.loads(self.output(host, sys.executable, '-S', '-c', _GET, url))
        return None

    def jobs(self) -> list[dict]:
        return (self.get('jobs/overview') or {}).get('jobs', [])

    def slots(self) -> int:
        return (self.get('overview') or {}).get('slots-total', 0)

    def busy_taskmanager(self) -> str:
        """Returns the TaskManager that has no free slot, or any."""
        managers = (self.get('taskmanagers') or {}).get('taskmanagers', [])
        busy = [each['id'].partition(':')[0] for each in managers if not each['freeSlots']]
        return (busy or ['taskmanager1'])[0]

    def leader(self) -> str:
        """Returns the JobManager that was the last one to be given the lead; each has its own log."""
        granted = {
            line[:23]: host
            for host in self.names
            if host.startswith('jobmanager')
            for line in (self.folder / f'{host}.log').read_text(errors='replace').splitlines()
            if _LEADS in line
        }
        return granted[max(granted)]

    def cut(self, host: str, *peers: str) -> None:
        """Drops all that goes between a host and peers, or everybody."""
        for chain, flag, all_ in (('INPUT', '-s', '-i'), ('OUTPUT', '-d', '-o')):
            for rule in [(flag, self.address(peer)) for peer in peers] or [(all_, 'eth0')]:
                self.output(host, 'iptables', '-A', chain, *rule, '-j', 'DROP')

    def heal(self, host: str) -> None:
        self.output(host, 'iptables', '-F')

    def kill(self, host: str, words: str) -> list[int]:
        """Kills the processes of a host that have words in their command line; returns their ids."""
        killed = []
        for pid in map(int, self.output_of_pids(host)):
            with contextlib.suppress(OSError):
                line = Path(f'/proc/{pid}/cmdline').read_bytes().replace(b'\0', b' ').decode()
                if words in line and not line.startswith(('bash', 'unshare', 'ip ', 'env ')):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
        return killed

    def output_of_pids(self, host: str) -> list[str]:
        listed = subprocess.run(
            ['ip', 'netns', 'pids', self.space(host)], capture_output=True, text=True, timeout=60
        )
        return listed.stdout.split()

    def _start_flink(self, host: str, home: Path) -> None:
        """Starts a process of Flink, and again when it ends, as a supervisor does."""
        is_manager = host.startswith('jobmanager')
        manager = host if is_manager else 'jobmanager'
        values: dict[str, object] = {
            'rest.address': manager, 'rest.bind-address': '0.0.0.0', 'rest.port': 8081,
            'jobmanager.rpc.address': manager, 'jobmanager.bind-host': '0.0.0.0',
            'jobmanager.rpc.port': 6123, 'taskmanager.bind-host': '0.0.0.0',
            'taskmanager.memory.process.size': '1200m', 'io.tmp.dirs': '/tmp/scratch',
            'web.tmpdir': '/tmp/scratch', 'tokbeam.worker': REPOSITORY / 'deploy/flink/boot',
            'tokbeam.runner-jar': CACHE / 'flink-job-server' / 'runner.jar',
        }  # fmt: skip
        if not is_manager:
            values['taskmanager.host'] = host
        if self.has_zookeeper:
            values |= {
                'high-availability.type': 'zookeeper',
                'high-availability.zookeeper.quorum': 'zookeeper:2181',
                'high-availability.cluster-id': '/tokbeam',
                'high-availability.storageDir': f'file://{self.shared}',
            }
        dynamic = ' '.join(f'-D {key}={value}' for key, value in values.items())
        script = 'jobmanager' if is_manager else 'taskmanager'
        self.start(
            host,
            f'mkdir -p conf log pid scratch && cp {REPOSITORY}/deploy/flink/config.yaml '
            f'{home}/conf/log4j-console.properties {home}/conf/log4j.properties conf/ && '
            'export FLINK_CONF_DIR=/tmp/conf FLINK_LOG_DIR=/tmp/log FLINK_PID_DIR=/tmp/pid && '
            f'while true; do {home}/bin/{script}.sh start-foreground {dynamic}; sleep 1; done',
        )


@contextlib.contextmanager
def separate_hosts(folder: Path, has_zookeeper: bool = False) -> Iterator[Hosts]:
    """Starts hosts with a Flink and a store on them; ends all that runs there after the block."""
    home = flink_home()
    software = [REPOSITORY, Path(sys.prefix), home, CACHE / 'flink-job-server']
    if has_zookeeper:
        software.append(zookeeper := zookeeper_jars(folder))
    names = (*HOSTS, *(MORE_HOSTS if has_zookeeper else ()))
    hosts = Hosts(folder, names, tuple(software))
    hosts.shared.mkdir()
    try:
        _make_network(hosts)
        for host in ('driver', 'taskmanager1', 'taskmanager2'):
            # As `tokbeam warm-up` on each machine would.
            target = folder / host / 'tmp' / 'cache' / 'tokbeam' / Path(CACHE_FOLDER).name
            shutil.copytree(CACHE_FOLDER, target)
        hosts.start(
            'store', f'exec {sys.executable} -m moto.server -H 0.0.0.0 -p 5000 > moto.log 2>&1'
        )
        _wait(lambda: _is_done(hosts, 'bucket'), 'the store')
        if has_zookeeper:
            hosts.start('zookeeper', _zookeeper_command(zookeeper))
        for host in names:
            if host.startswith(('jobmanager', 'taskmanager')):
                hosts._start_flink(host, home)
        _wait(lambda: hosts.slots() == 2, 'the cluster')
        yield hosts
    finally:
        for host in names:
            for pid in hosts.output_of_pids(host):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        for host in (*names, 'net'):
            subprocess.run(['ip', 'netns', 'del', hosts.space(host)], capture_output=True)


def _is_done(hosts: Hosts, verb: str) -> bool:
    try:
        hosts.store(verb)
        return True
    except subprocess.CalledProcessError:
        return False


def _make_network(hosts: Hosts) -> None:
    net = hosts.space('net')
    commands = [
        f'ip netns add {net}',
        f'ip -n {net} link add br0 type bridge',
        f'ip -n {net} link set br0 up',
    ]
    for number, host in enumerate(hosts.names):
        space = hosts.space(host)
        commands += [
            f'ip netns add {space}',
            f'ip -n {net} link add v{number} type veth peer name eth0 netns {space}',
            f'ip -n {net} link set v{number} master br0 up',
            f'ip -n {space} addr add {hosts.address(host)}/24 dev eth0',
            f'ip -n {space} link set eth0 up',
            f'ip -n {space} link set lo up',
        ]
    for command in commands:
        subprocess.run(command.split(), check=True, capture_output=True)


def _zookeeper_command(jars: Path) -> str:
    settings = 'tickTime=2000\\ndataDir=/tmp/zk\\nclientPort=2181\\nadmin.enableServer=false\\n'
    main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
    return f"printf '{settings}' > zk.cfg && exec java -Xmx256m -cp '{jars}/*' {main} zk.cfg"


def _wait(is_there, what: str) -> None:
    end = time.monotonic() + START_SECONDS
    while not is_there():
        assert time.monotonic() < end, f'{what} did not come within {START_SECONDS} s'
        time.sleep(LOOK_SECONDS)
