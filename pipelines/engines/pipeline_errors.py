"""What a pipeline failed with: a user's mistake is found however deep a runner has wrapped it.

And what Beam says of it in its logs, which it tells too much: whole tracebacks of what will be told
in a sentence, and options as they were given.
"""

import logging
import re

import tokcore.errors
from pipelines.files.system_errors import as_input_error, as_input_error_from_text
from pipelines.options.secrets import text_without_secrets, without_secrets
from tokcore.errors import InputError

_USER_ERROR = re.compile(r'tokcore\.errors\.(\w+): (.*)')
_STEP_NOTE = re.compile(r" \[while running '.*")

# Beam's modules that log options as they were given.
_TELLING_LOGGERS = (
    'apache_beam.options.pipeline_options',
    'apache_beam.utils.subprocess_server',
)

# Beam's module that logs what a step raised, with its traceback, and raises it too.
_RAISING_LOGGER = 'apache_beam.runners.common'


def users_mistake(error: BaseException) -> InputError | None:
    """Returns what the user or the system is to blame for, however a runner has wrapped it."""
    if isinstance(error, InputError):
        return type(error)(_STEP_NOTE.sub('', str(error)))
    # From a worker process the exception comes as the text of its traceback.
    found = _USER_ERROR.findall(str(error))
    if found:
        name, message = found[-1]
        kind = getattr(tokcore.errors, name, InputError)
        return kind(_STEP_NOTE.sub('', message))
    text = _STEP_NOTE.sub('', str(error))
    if isinstance(error, OSError) and error.errno is None:
        error = OSError(text)
    doing = 'run the job'
    return as_input_error(error, doing) or as_input_error_from_text(text, doing)


def filter_beam_logs() -> None:
    """Keeps secrets out of what Beam logs, and what it raises besides."""
    for name in _TELLING_LOGGERS:
        logging.getLogger(name).addFilter(_hide_secrets)
    logging.getLogger(_RAISING_LOGGER).addFilter(_is_no_mistake)


def _hide_secrets(record: logging.LogRecord) -> bool:
    """Takes secrets out of a log record; a filter that lets all records through."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            list(without_secrets([*map(str, each)])) if isinstance(each, (list, tuple)) else each
            for each in record.args
        )
    record.msg, record.args = text_without_secrets(record.getMessage()), None
    return True


def _is_no_mistake(record: logging.LogRecord) -> bool:
    """Lets log records through, but for what will be told in a sentence."""
    return not (record.exc_info and record.exc_info[1] and users_mistake(record.exc_info[1]))
