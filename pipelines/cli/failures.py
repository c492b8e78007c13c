"""Failures of the program itself: their traceback goes to a file, and one line says where it is."""

import os
import tempfile
import traceback


def keep_traceback(error: BaseException, arguments: list[str]) -> str | None:
    """Writes a traceback, with what led to it, to a new file that only this user can read.

    Returns its path, or None where no file can be written.
    """
    text = ''.join(traceback.format_exception(error))
    try:
        descriptor, path = tempfile.mkstemp('.txt', 'tokbeam-failure-', text=True)
        with os.fdopen(descriptor, 'w', encoding='utf-8', errors='backslashreplace') as file:
            file.write(f'tokbeam {" ".join(map(repr, arguments))}\n\n{text}')
    except OSError:
        return None
    return path


def in_a_line(error: BaseException) -> str:
    """Returns what kind of error it is and the beginning of what it says."""
    said = ' '.join(str(error).split())
    if len(said) > 300:
        said = said[:297] + '...'
    return f'{type(error).__name__}: {said}' if said else type(error).__name__
