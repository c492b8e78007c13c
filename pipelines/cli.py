"""The `tokbeam` command: what was typed, as the frozen options of a stage."""

import argparse
import atexit
import gc
import importlib.metadata
import logging
import sys
from collections.abc import Sequence

from pipelines.cli_parser import parse_command
from tokcore.errors import InputError

# What Beam says, as warnings, whenever it starts and ends a job server of its own.
_JOB_SERVER_NEWS = (
    'Really starting service',
    'Really destroying service',
    'Waiting for grpc channel',
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line; returns its exit status: 0, 2 for a user's mistake, 1 for a failure.

    Other exceptions are failures of the program or the machine and keep their traceback, with
    which the interpreter ends with status 1.
    """
    _log_to_stderr()
    try:
        options, beam_flags = parse_command(sys.argv[1:] if arguments is None else arguments)
        if options.version:
            print('tokbeam', importlib.metadata.version('tokbeam'))
            return 0
        if options.command in ('tokenize', 'detokenize'):
            from pipelines import line_commands

            return getattr(line_commands, options.command)(options)
        _run(options, beam_flags)
        return 0
    except InputError as error:
        print(f'tokbeam: {error}', file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output has had enough, as `head` has; the interpreter would complain
        # once more when it flushes.
        sys.stderr.close()
        return 1


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter('tokbeam: %(message)s'))
    handler.addFilter(_is_news)
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger('pipelines').setLevel(logging.INFO)


def _is_news(record: logging.LogRecord) -> bool:
    """Leaves out what Beam logs on every import, and what is told anyway.

    A user's mistake comes to `main` as an exception too, and is told there in one sentence; worker
    processes write to stderr themselves what Beam repeats for them.
    """
    if not record.name.startswith(('apache_beam', 'root')):
        return True
    if record.exc_info and isinstance(record.exc_info[1], InputError):
        return False
    message = record.getMessage()
    if message.startswith(_JOB_SERVER_NEWS):
        return False
    chatter = ('apitools not found', 'tokcore.errors.', 'Worker: severity: ')
    return not any(each in message for each in chatter)


def _run(options: argparse.Namespace, beam_flags: Sequence[str]) -> None:
    # Beam takes seconds to import; help and a wrong option need not wait for it.
    from pipelines import commands

    # An interpreter that ends looks through all objects once more; of Beam and numba, half a second.
    atexit.register(gc.freeze)

    getattr(commands, options.command)(options, beam_flags)
