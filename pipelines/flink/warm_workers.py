"""The process that has imported everything, from which a machine's Beam workers are forked.

A worker that is started afresh imports for seconds, and Flink starts some for every job. What Flink
starts instead is `deploy/flink/boot`, which imports nothing, hands its arguments, environment and
streams to this process through a socket, and lives as long as the worker. So all die together: where
`boot` is killed, its connection breaks and the worker is killed; where a worker or this process dies,
`boot` ends with an error, which Flink sees; and the next `boot` starts this process again.

It has one Python thread and no gRPC channel, so that forking is safe. Only for systems that can fork.
"""

import ctypes
import fcntl
import gc
import importlib
import json
import os
import random
import selectors
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

_MODULES = (
    'apache_beam.runners.worker.sdk_worker_main',
    'pyarrow.parquet',
    'pipelines.flink.probe',
    'pipelines.learning.bpe_on_beam',
    'pipelines.learning.subword_on_beam',
    'pipelines.learning.unigram_on_beam',
    'pipelines.learning.wordpiece_on_beam',
    'pipelines.stages.build',
)
"""What workers need; by name, since some are above this module. The last one imports most."""

_PARENT_DEATH_SIGNAL = 1
"""Linux's PR_SET_PDEATHSIG."""

_LENGTH = struct.Struct('!I')
_MOST_BYTES = 16 << 20
_REQUEST_SECONDS = 5
_PROVISION_SECONDS = 60
_BACKLOG = 64


def serve(listening: socket.socket, idle_seconds: float) -> None:
    """Forks a worker for each connection, until there was none for some seconds."""
    children: dict[int, socket.socket] = {}
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # or none would be written to the pipe
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    events = selectors.DefaultSelector()
    events.register(listening, selectors.EVENT_READ)
    events.register(wake, selectors.EVENT_READ)
    used = time.monotonic()
    while True:
        left = None if children else used + idle_seconds - time.monotonic()
        if left is not None and left <= 0 and _retire(events):
            return
        for key, _ in events.select(None if left is None else max(0, left)):
            if key.fileobj is listening:
                link, _ = listening.accept()
                pid = _fork(link, [listening, *children.values()], [wake, woken])
                if pid is not None:
                    children[pid] = link
                    events.register(link, selectors.EVENT_READ, pid)
            elif key.fileobj == wake:
                os.read(wake, 4096)
            elif key.data in children:  # its `boot` is gone
                os.kill(key.data, signal.SIGKILL)
                events.unregister(key.fileobj)
        for pid, status in _ended(children):
            link = children.pop(pid)
            if link in events.get_map():
                events.unregister(link)
            try:
                link.sendall(str(status).encode())
            except OSError:
                pass  # nobody waits for it any more
            link.close()
            used = time.monotonic()


def _receive(link: socket.socket) -> tuple[dict[str, Any], tuple[int, int]]:
    """Returns a `boot`'s request for a worker, and the descriptors of its standard output and error.

    The request is its `arguments` by Beam's container contract, its `environment` and its current `folder`.

    Raises:
        OSError, ValueError: it is not whole.
    """
    head, streams, _, _ = socket.recv_fds(link, _LENGTH.size, 2)
    try:
        [length] = _LENGTH.unpack(head)
        if length > _MOST_BYTES or len(streams) != 2:
            raise ValueError('it is not a request')
        body = b''
        while len(body) < length:
            part = link.recv(length - len(body))
            if not part:
                raise ValueError('it is cut off')
            body += part
        request = json.loads(body)
        if not {'arguments', 'environment', 'folder'} <= request.keys():
            raise ValueError('it lacks a field')
        output, error = streams
        return request, (output, error)
    except BaseException:
        for stream in streams:
            os.close(stream)
        raise


def _retire(events: selectors.BaseSelector) -> bool:
    """Gives the socket up, unless somebody has just connected; who connects holds the lock."""
    with open('lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if events.select(0):
            return False
        os.unlink('socket')
        os.unlink('pid')
    return True


def _ended(children: dict[int, socket.socket]) -> list[tuple[int, int]]:
    """Returns pid and exit status of the workers that have ended."""
    ended: list[tuple[int, int]] = []
    while len(ended) < len(children):
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            break
        code = os.waitstatus_to_exitcode(status)
        ended.append((pid, code if code >= 0 else 128 - code))
    return ended


def _fork(
    link: socket.socket, sockets: Sequence[socket.socket], pipes: Sequence[int]
) -> int | None:
    """Returns the pid of a new worker; None if nobody asked for one in time."""
    link.settimeout(_REQUEST_SECONDS)
    try:
        request, streams = _receive(link)
    except (OSError, ValueError, struct.error) as error:
        print(f'no request: {error}', file=sys.stderr, flush=True)
        link.close()
        return None
    parent = os.getpid()
    pid = os.fork()
    if pid:
        for stream in streams:
            os.close(stream)
        return pid
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _die_with(parent)
        for other in (*sockets, link):
            other.close()
        for pipe in pipes:
            os.close(pipe)
        _become_worker(request, streams)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _die_with(parent: int) -> None:
    if sys.platform == 'linux':
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _become_worker(request: dict[str, Any], streams: tuple[int, int]) -> None:
    output, error = streams
    # Beam's worker pool pipes stdout and never reads it; a full pipe would stop the worker.
    os.dup2(error, sys.stdout.fileno())
    os.dup2(error, sys.stderr.fileno())
    os.close(output)
    os.close(error)
    os.environ.clear()
    os.environ.update(request['environment'])
    os.chdir(request['folder'])
    random.seed()
    run_worker(request['arguments'])


def run_worker(arguments: Sequence[str]) -> None:
    """Asks for the worker's options by Beam's container contract, and runs Beam's own worker.

    Nothing staged is fetched: what a job needs is installed.
    """
    import argparse

    import grpc
    from apache_beam.portability.api import (
        beam_provision_api_pb2,
        beam_provision_api_pb2_grpc,
        endpoints_pb2,
    )
    from apache_beam.runners.worker import sdk_worker_main
    from google.protobuf import json_format, text_format

    parser = argparse.ArgumentParser(prog='boot')
    for name in ('id', 'logging_endpoint', 'artifact_endpoint', 'provision_endpoint'):
        parser.add_argument(f'--{name}', required=name in ('id', 'provision_endpoint'))
    parser.add_argument('--control_endpoint')
    typed, _ = parser.parse_known_args(list(arguments))
    with grpc.insecure_channel(typed.provision_endpoint) as channel:
        info = (
            beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
            .GetProvisionInfo(
                beam_provision_api_pb2.GetProvisionInfoRequest(),
                metadata=[('worker_id', typed.id)],
                timeout=_PROVISION_SECONDS,
                wait_for_ready=True,
            )
            .info
        )
    os.environ['WORKER_ID'] = typed.id
    os.environ['PIPELINE_OPTIONS'] = json_format.MessageToJson(info.pipeline_options)
    os.environ['RUNNER_CAPABILITIES'] = ' '.join(info.runner_capabilities)
    for name, url in (
        ('LOGGING', info.logging_endpoint.url or typed.logging_endpoint),
        ('CONTROL', info.control_endpoint.url or typed.control_endpoint),
        ('STATUS', info.status_endpoint.url),
    ):
        if url:
            endpoint = endpoints_pb2.ApiServiceDescriptor(url=url)
            variable = f'{name}_API_SERVICE_DESCRIPTOR'
            os.environ[variable] = text_format.MessageToString(endpoint)
    sdk_worker_main.main([])


def import_all() -> None:
    """Imports what workers need, and compiles or loads the kernels of the default scheme."""
    for name in _MODULES:
        importlib.import_module(name)
    from pipelines.flink.probe import own_versions
    from tokcore.schemes import find_scheme
    from tokcore.warm_up import compile_kernels, compile_learner_kernels

    compile_kernels(find_scheme())
    compile_learner_kernels()
    own_versions()  # of what was imported, whatever is installed later
    gc.collect()
    gc.freeze()  # a collection in a worker would touch, and so copy, what all of them share


def main() -> None:
    """`warm_workers IDLE_SECONDS DESCRIPTOR`: serves `socket` in the current folder.

    A byte is written to the descriptor when it does.
    """
    idle_seconds, ready = float(sys.argv[1]), int(sys.argv[2])
    started = time.monotonic()
    import_all()
    with socket.socket(socket.AF_UNIX) as listening:
        if os.path.lexists('socket'):
            os.unlink('socket')  # of one that was killed; the caller holds the lock
        listening.bind('socket')  # a path of any length: the system takes only 107 bytes
        listening.listen(_BACKLOG)
        with open('pid', 'w') as file:
            file.write(str(os.getpid()))
        print(f'ready after {time.monotonic() - started:.1f} s', file=sys.stderr, flush=True)
        os.write(ready, b'1')
        os.close(ready)
        serve(listening, idle_seconds)


if __name__ == '__main__':
    main()
