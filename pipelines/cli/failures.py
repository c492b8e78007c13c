"""Failures of the program itself: their traceback goes to a file, and one line says where it is."""

import os
import tempfile
import traceback
from collections.abc import Sequence

from pipelines.options.secrets import text_without_secrets, without_secrets


def keep_traceback(error: BaseException, arguments: Sequence[str]) -> str | None:
    """Writes a traceback, with what led to it, to a new file that only this user can read.

    What looks like a secret, in the arguments or in the text, is left out.

    Returns its path, or None where no file can be written.
    """
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
    """Returns what kind of error it is and the beginning of what it says."""
    said = ' '.join(str(error).split())
    if len(said) > 300:
        said = said[:297] + '...'
    return f'{type(error).__name__}: {said}' if said else type(error).__name__
