"""Code of users, which may raise anything: what it raised and returned, as a line can tell it.

`sys.exit` in a script that is imported, or a `KeyboardInterrupt` that a function raises itself, is a
mistake of that code like any other. Ctrl-C is not: it ends the job, whatever runs just then.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

_MOST_SHOWN = 200
"""Characters of what a user's code raised or returned."""


@contextlib.contextmanager
def noting_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Around code of a user; gives what tells whether SIGINT has come since.

    If it has, what the code raised is not its own. Python interrupts its main thread alone, and that
    only where SIGINT has a handler of Python's.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield lambda: False
        return
    has_come = threading.Event()

    def note(number: int, frame: object) -> None:
        has_come.set()
        handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield has_come.is_set
    finally:
        # The code may have put another handler there, which then stays.
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, handler)


def error_line(error: BaseException) -> str:
    """Returns an error's name and the first line of its text, `ValueError: no number`."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ('builtins', '__main__'):
        name = f'{kind.__module__}.{name}'
    try:
        text = str(error).strip()
    except BaseException:  # whatever its `__str__` does
        text = ''
    return _cut(f'{name}: {text.splitlines()[0]}' if text else name)


def shown_value(value: object) -> str:
    """Returns a value as Python writes it, not all of it if it is long, or what type it is of."""
    try:
        return _cut(repr(value))
    except BaseException:  # whatever its `__repr__` does
        return f'an object of the type {_cut(type(value).__qualname__)}'


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f'{text[:_MOST_SHOWN]}…'
