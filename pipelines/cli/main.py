"""The `tokbeam` command: runs what was typed, and turns errors into one line and an exit status.

The traceback of an unexpected failure goes to a file, and the line says where that is.
"""

import atexit
import contextlib
import gc
import importlib
import logging
import os
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Iterator, Sequence

from pipelines.cli.help import topic_help
from pipelines.cli.parser import parse_command
from pipelines.cli.plain_runs import run_plain_if_small
from pipelines.cli.printable import LogFormatter, fitted, printable, printable_lines
from pipelines.cli.terminal import (
    end_on_signals,
    flush_printed,
    print_data,
    print_lines,
    shown_progress,
)
from pipelines.engines.progress import AT_ONCE
from pipelines.files.system_errors import as_input_error
from pipelines.options.commands import JOBS, known_commands
from tokcore import __version__
from tokcore.errors import InputError
from tokcore.process_end import (
    GRACE_SECONDS,
    hold_if_interrupted,
    is_interrupted,
    temporary_folder,
)

_COLLECTION_OBJECTS = 50_000
"""New objects after which the garbage collector looks for cycles. With Python's 700 it takes a tenth of
a job of ten thousand small files. Text is in a few large objects, and in no cycles."""

# Warnings that Beam logs whenever it starts and ends a job server of its own.
_JOB_SERVER_WARNINGS = (
    'Really starting service',
    'Really destroying service',
    'Waiting for grpc channel',
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line; returns its exit status.

    That is 0, 2 for a user's mistake, 1 for a failure, or 3 where a command that looks at something
    finds it not as it should be.

    Without `arguments` it runs the command line of the process, which signals then end with a line.
    """
    began, is_process = time.monotonic(), arguments is None
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if sys.stderr is None:  # closed by the parent; a message would go to stdout
        sys.stderr = open(os.devnull, 'w')
    if sys.flags.optimize > 1:
        _import_beam_without_docstrings()
    _log_to_stderr()  # also what a signal is answered with
    if is_process:
        end_on_signals(keeps_work=arguments[:1] in ([name] for name in JOBS))
    try:
        try:
            return _run(arguments, is_process, began)
        finally:
            flush_printed()
    except InputError as error:
        return _refuse(error)
    except BrokenPipeError:
        # The reader has closed our output, as `head` does; the interpreter would report that again
        # when it flushes.
        sys.stderr.close()
        return 1
    except Exception as error:
        mistake = as_input_error(error, 'go on')
        return _fail(error, arguments) if mistake is None else _refuse(mistake)


def _import_beam_without_docstrings() -> None:
    """Imports Beam under `python -OO`, which drops docstrings; Beam parses those of pandas.

    Beam does without pandas if it cannot be imported. Processes that Beam starts keep docstrings.
    """
    os.environ['PYTHONOPTIMIZE'] = '1'
    known = sys.modules.get('pandas')
    sys.modules['pandas'] = None  # type: ignore[assignment]  # as importlib documents
    try:
        importlib.import_module('apache_beam')
    finally:
        del sys.modules['pandas']
        if known is not None:
            sys.modules['pandas'] = known


def _refuse(error: InputError) -> int:
    hold_if_interrupted()  # then files were deleted that it is about
    _say(str(error))
    return 2


def _fail(error: Exception, arguments: list[str]) -> int:
    hold_if_interrupted(GRACE_SECONDS)
    from pipelines.options.beam import text_without_secrets

    path = keep_traceback(error, arguments)
    where = f'its traceback is in {path}'
    if path is None:
        text = ''.join(traceback.format_exception(error))
        print(printable_lines(text.rstrip('\n'), sys.stderr), file=sys.stderr)
        where = 'no file could be written for its traceback'
    _say(f'failed: {text_without_secrets(in_a_line(error), arguments)}; {where}')
    return 1


def _say(message: str) -> None:
    line = printable(f'tokbeam: {message}', sys.stderr)
    print(fitted(line, sys.stderr), file=sys.stderr)


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter(sys.stderr))
    handler.addFilter(_is_shown)
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger('pipelines').setLevel(logging.INFO)


def _is_shown(record: logging.LogRecord) -> bool:
    """Hides what Beam logs on every import, and what is printed in another way.

    A user error reaches `main` as an exception too, which prints it as one sentence; worker
    processes write to stderr themselves what Beam logs again for them.
    """
    if is_interrupted():
        return False
    if record.name.startswith('urllib3'):
        # Headers that it cannot read, with the whole address; a fetch reports its own errors.
        return False
    if not record.name.startswith(('apache_beam', 'root')):
        return True
    if record.exc_info and isinstance(record.exc_info[1], InputError):
        return False
    message = record.getMessage()
    if message.startswith(_JOB_SERVER_WARNINGS):
        return False
    chatter = ('apitools not found', 'tokcore.errors.', 'Worker: severity: ')
    return not any(text in message for text in chatter)


def _run(arguments: Sequence[str], is_process: bool, began: float) -> int:
    if arguments[:1] == ['help']:
        if len(arguments) > 2:
            raise InputError('help takes one topic; `tokbeam help` lists them')
        print_lines(topic_help(*arguments[1:]).rstrip('\n').split('\n'))
        return 0
    if arguments[:1] == ['completion']:
        from pipelines.cli.completion import completion_script

        if len(arguments) != 2:
            raise InputError('completion takes a shell: bash, zsh or fish')
        print_data(completion_script(arguments[1]).rstrip('\n').split('\n'))
        return 0
    options, beam_flags = parse_command(arguments)
    if options.version:
        print('tokbeam', __version__)
        return 0
    options.began = began
    if is_process and not beam_flags and options.command != 'warm-up':
        run_plain_if_small(options)
    module, _, function = known_commands()[options.command].run.partition(':')
    run = getattr(_imported(module), function)
    # At its end the interpreter looks through all objects; for Beam and numba half a second.
    atexit.register(gc.freeze)
    progress = getattr(options, 'progress', None)
    if progress is None:  # the command ends soon, or reads standard input
        return run(options, beam_flags)

    shown: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if progress == 'none':
        logging.getLogger('pipelines').setLevel(logging.WARNING)
    else:
        shown = shown_progress(sys.stderr, progress == 'json')
    with _warnings_last(), shown, _own_temporary_files():
        return run(options, beam_flags)


@contextlib.contextmanager
def _warnings_last() -> Iterator[None]:
    """Shows this program's warnings after the block, where no other lines hide them.

    Those with `AT_ONCE` are shown when they come.
    """
    held: list[logging.LogRecord] = []

    def is_for_now(record: logging.LogRecord) -> bool:
        is_ours = record.name.startswith(('pipelines', 'tokcore'))
        if record.levelno == logging.WARNING and is_ours and not getattr(record, AT_ONCE, False):
            held.append(record)
            return False
        return True

    handlers = logging.getLogger().handlers
    for handler in handlers:
        handler.addFilter(is_for_now)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_for_now)
        for record in held:
            logging.getLogger(record.name).handle(record)


@contextlib.contextmanager
def _own_temporary_files() -> Iterator[None]:
    """Has temporary files of the block, Beam's too, in a folder that is deleted at its end, if possible."""
    before = tempfile.tempdir
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            tempfile.tempdir = stack.enter_context(temporary_folder())
        stack.callback(setattr, tempfile, 'tempdir', before)
        yield


def _imported(module: str) -> types.ModuleType:
    """Imports the module that runs a command, and lets the garbage collector ignore the imported objects.

    It would look through all of them at each collection: a third of a second until work begins.
    """
    if module in sys.modules:
        return sys.modules[module]
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        gc.freeze()
        gc.set_threshold(_COLLECTION_OBJECTS)
        gc.enable()


def keep_traceback(error: BaseException, arguments: Sequence[str]) -> str | None:
    """Writes a traceback and the command line to a new file that only this user can read.

    What looks like a secret is hidden. Returns the path, or None if no file can be written.
    """
    from pipelines.options.beam import text_without_secrets, without_secrets

    text = text_without_secrets(''.join(traceback.format_exception(error)), arguments)
    command = ' '.join(map(repr, without_secrets(arguments)))
    try:
        descriptor, path = tempfile.mkstemp('.txt', 'tokbeam-failure-', text=True)
        with os.fdopen(descriptor, 'w', encoding='utf-8', errors='backslashreplace') as file:
            file.write(f'tokbeam {command}\n\n{text}')
    except OSError:
        return None
    return path


def in_a_line(error: BaseException) -> str:
    """Returns the type of an error and the beginning of its message."""
    message = ' '.join(str(error).split())
    if len(message) > 300:
        message = message[:297] + '...'
    return f'{type(error).__name__}: {message}' if message else type(error).__name__
