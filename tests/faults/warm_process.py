"""A process that has run the command a few times, and forks a child for each run.

A new process takes seconds to import modules and to load kernels, and a forked child, which has them,
tenths of a second, so thousands of runs are possible. Otherwise the child is the real command: it calls
`main` without arguments and ends as the interpreter does, except that it does not clear its modules,
which takes a while, and that Beam remembers what it works out again for each transform. No thread of
its own runs commands is left when this process forks.

Started by `forked_commands`: `python warm_process.py FD...` serves one lane at each socket.
"""

import atexit
import contextlib
import faulthandler
import gc
import json
import os
import pkgutil
import resource
import select
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

_LOOK_MS = 20  # between looks at a child's memory: it can grow by some 20 MB in that time
_LAST_WORDS_SECONDS = 0.5  # for a child that hangs, to write where it is
_PAGE = os.sysconf('SC_PAGE_SIZE')

_SMALL_COMMANDS = [
    'build --text {}/text --vocab-size 100 --name n --output {}/built @shuffle files',
    'encode --text {}/text --scheme byte --name n --output {}/encoded @shuffle engine',
    'tokenize --vocab {}/vocabulary',
]
"""What the first process runs; {} is the folder of their files."""


def main(sockets: list[int]) -> int:
    """Warms up, serves its lanes until their sockets are closed; in a child, runs a command."""
    sys.path.append(str(Path(__file__).parents[1]))
    from pipelines.cli import main as command

    _warm_up(command.main)
    gc.collect()
    gc.freeze()
    lanes = []
    for number in sockets:
        lane = os.fork()
        if lane == 0:
            for other in sockets:
                if other != number:
                    os.close(other)
            if _serve(socket.socket(fileno=number)):
                return 0
            # From here on this is a child that runs a command.
            _run_to_the_end(command.main)
        lanes.append(lane)
    for number in sockets:
        os.close(number)
    for lane in lanes:
        os.waitpid(lane, 0)
    return 0


def _warm_up(command: Callable[[list[str]], int]) -> None:
    """Imports, loads and remembers what most commands need, by small ones in this process."""
    import faster_beam
    from sizes import sizes_apart, with_sizes

    from tokcore.corpus.formats import all_formats
    from tokcore.schemes import find_scheme
    from tokcore.warm_up import compile_kernels, compile_learner_kernels

    faster_beam.install()
    for scheme in ('subword', 'byte'):
        compile_kernels(find_scheme(scheme))
    compile_learner_kernels()
    for declaration in all_formats():
        if declaration.reader:
            pkgutil.resolve_name(declaration.reader)
    with tempfile.TemporaryDirectory(prefix='warm-') as folder:
        Path(folder, 'text').write_bytes(b'a line\n')
        Path(folder, 'vocabulary').write_bytes(b"'<pad>_'\n'<EOS>_'\n'a'\n")
        for words in _SMALL_COMMANDS:
            given, sizes = sizes_apart(word.format(folder) for word in words.split())
            with with_sizes(sizes):
                assert command(given) == 0, words


def _serve(lane: socket.socket) -> bool:
    """Runs the requested commands one after another; returns True at the end, False in a child."""
    requests = lane.makefile('r')
    lane.sendall(b'ready\n')
    for line in requests:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            os.close(lane.detach())
            _become(request)
            return False
        _answer(lane, {'pid': child})
        _answer(lane, _wait(child, request, lane))
    return True


def _answer(lane: socket.socket, content: dict) -> None:
    with contextlib.suppress(BrokenPipeError):
        lane.sendall(json.dumps(content).encode() + b'\n')


def _become(request: dict) -> None:
    """Gives this child the session, folder, streams and limits that a shell would give it."""
    from sizes import set_sizes, sizes_apart

    os.setsid()
    os.chdir(request['folder'])
    for number, name, flags in [
        (0, 'stdin', os.O_RDONLY),
        (1, 'stdout', os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, 'stderr', os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ]:
        if request[name] is None:
            # As after `<&-`: the interpreter then has no such stream.
            os.close(number)
            setattr(sys, name, None)
        else:
            opened = os.open(request[name], flags, 0o644)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    for name, most in request['limits'].items():
        resource.setrlimit(getattr(resource, f'RLIMIT_{name}'), (most, most))
    if request['ignores_sigint']:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if request['stderr'] is not None:
        faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
    if request['plant'] is not None:
        _plant(**request['plant'])
    if request['imports']:
        sys.path.insert(0, request['folder'])
        sys.dont_write_bytecode = True
    words, sizes = sizes_apart(request['arguments'])
    if sizes:
        set_sizes(sizes)
    sys.argv = ['tokbeam', *words]


def _plant(record: str, **options) -> None:
    """Plants a link while this child runs; at its end writes the link's path and the number of steps."""
    from planted_links import Planter

    planter, stack = Planter(**options), contextlib.ExitStack()
    stack.enter_context(planter.at_work())

    def write_record() -> None:
        stack.close()
        content = {'steps': planter.steps, 'planted': planter.planted}
        Path(record).write_text(json.dumps(content))

    atexit.register(write_record)


def _run_to_the_end(command: Callable[[], int]) -> NoReturn:
    """Does what `sys.exit(command())` does, in the interpreter's order."""
    status: object
    try:
        status = command()
    except SystemExit as end:
        status = end.code
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        status = 1
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    if status is None:
        status = 0
    elif not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError as error:
            print(f'Exception ignored in: {stream}: {error}', file=sys.stderr)
            status = 120
    os._exit(status & 0xFF)


def _wait(child: int, request: dict, lane: socket.socket) -> dict:
    """Waits for a child, kills it if it exceeds its time or memory, and returns how it ended."""
    started = time.monotonic()
    stopped = None
    poll = select.poll()
    handle = os.pidfd_open(child)
    poll.register(handle, select.POLLIN)
    poll.register(lane, select.POLLHUP)
    try:
        while True:
            events = poll.poll(_LOOK_MS)
            if any(number == handle for number, _ in events):
                break
            seconds = time.monotonic() - started
            if events:
                stopped = 'nobody waits'
            elif seconds > request['seconds']:
                stopped = 'time'
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGUSR1)
                time.sleep(_LAST_WORDS_SECONDS)
            elif _resident(child) > request['bytes']:
                stopped = 'memory'
            if stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                break
    finally:
        os.close(handle)
    _, status, used = os.wait4(child, 0)
    seconds = time.monotonic() - started
    return {
        'status': os.waitstatus_to_exitcode(status),  # minus the signal that ended it
        'seconds': seconds,
        'peak': used.ru_maxrss << 10,
        'stopped': stopped,
        'left_processes': _end_group(child),
    }


def _resident(process: int) -> int:
    try:
        return int(Path(f'/proc/{process}/statm').read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0  # it has just ended


def _end_group(leader: int) -> bool:
    """Kills the processes that a command left running; returns whether there were any."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


if __name__ == '__main__':
    sys.exit(main([int(each) for each in sys.argv[1:]]))
