"""What a task function reports of its one run, and how it takes its time."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

_Result = TypeVar('_Result')

Ready = Callable[[], None]
"""What a task function calls when everything is imported, read and warmed up."""


@dataclass(frozen=True)
class Outcome:
    """What a task function returns: how long the stage took, and what it found."""

    seconds: float
    facts: Mapping[str, object] = field(default_factory=dict)
    """A `digest` of the result, where contenders must agree; sizes, start-up times and the like."""


def timed(ready: Ready, stage: Callable[[], _Result]) -> tuple[_Result, float]:
    """Calls `ready` and does a stage; returns its result, and the seconds that the stage took."""
    ready()
    started = time.perf_counter()
    result = stage()
    return result, time.perf_counter() - started


def second_time(ready: Ready, stage: Callable[[], _Result]) -> tuple[_Result, float, float]:
    """Does a stage twice; returns the result, and how many seconds it took at first and again.

    For stages that take less than memory does: where the host of a virtual machine takes free
    memory away, the first use of a megabyte costs what counting it does. Workers do a stage again
    and again.
    """
    result, first = timed(ready, stage)
    del result  # what the first time took is there for the second
    result, again = timed(lambda: None, stage)
    return result, first, again
