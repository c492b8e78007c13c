"""A whole `build` with inputs, work and output on an object store of this machine, or on its disk.

The store is moto, in another process. It keeps all objects in memory and takes more processor time
than the command, so the memory and processor time of the command are facts of their own.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tokcore.object_stores import bucket_of

from ..outcome import Outcome, Ready
from .written import files_digest

_BUCKET = 's3://bench'

_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer('127.0.0.1', 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


def build(ready: Ready, *, text: str, vocabulary_size: int, output: str, on_store: bool) -> Outcome:
    """Builds shards of a text, with one command."""
    with contextlib.ExitStack() as stack:
        source, target = text, output
        facts: dict[str, object] = {}
        if on_store:
            server = stack.enter_context(_store())
            source, target = f'{_BUCKET}/in.txt', f'{_BUCKET}/out'
            _upload(text, source)
            before = _processor_seconds(server)
        ready()
        started = time.perf_counter()
        command = [
            *(sys.executable, '-m', 'pipelines', 'build', '--text', source, '--output', target),
            *('--vocab-size', str(vocabulary_size), '--name', 'bench', '--shards', '10'),
        ]
        pid = os.posix_spawn(sys.executable, command, os.environ)
        _, status, used = os.wait4(pid, 0)
        seconds = time.perf_counter() - started
        if status:
            sys.exit(os.waitstatus_to_exitcode(status))  # its message is on stderr
        if on_store:
            facts['store_processor_seconds'] = _processor_seconds(server) - before
            _download(target, Path(output))
    shards = sorted(Path(output).glob('*-train-*'))
    record = json.loads((Path(output) / 'tokbeam.run.json').read_bytes())
    facts |= {
        'digest': files_digest(shards),
        'command_peak_bytes': used.ru_maxrss * 1024,
        'command_processor_seconds': used.ru_utime + used.ru_stime,
        'requests': record.get('requests', {}),
    }
    shutil.rmtree(output)
    return Outcome(seconds, facts)


def _processor_seconds(process: int) -> float:
    times = psutil.Process(process).cpu_times()
    return times.user + times.system


@contextlib.contextmanager
def _store() -> Iterator[int]:
    """Starts a store with a bucket, which this process and its children use; yields its process id."""
    import boto3

    server = subprocess.Popen(
        [sys.executable, '-c', _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None and server.stdout is not None
    try:
        port = server.stdout.readline().strip()
        os.environ.update(
            AWS_ENDPOINT_URL=f'http://127.0.0.1:{port}',
            AWS_ACCESS_KEY_ID='bench',
            AWS_SECRET_ACCESS_KEY='bench',
            AWS_REGION='us-east-1',
        )
        boto3.client('s3', region_name='us-east-1').create_bucket(Bucket='bench')
        yield server.pid
    finally:
        server.kill()
        server.communicate()


def _upload(path: str, address: str) -> None:
    bucket, key = bucket_of(address)
    with open(path, 'rb') as file, bucket.writer(key) as stream:
        shutil.copyfileobj(file, stream, 8 << 20)


def _download(address: str, folder: Path) -> None:
    bucket, key = bucket_of(address)
    for stored in bucket.list_all(key):
        path = folder / stored.key[len(key) + 1 :]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bucket.read(stored.key, 0, stored.size))
