"""What a task function reports of its one run."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

_Result = TypeVar('_Result')


@dataclass(frozen=True)
class Outcome:
    """What a task function returns: how long the stage took, and what it found."""

    seconds: float
    facts: Mapping[str, object] = field(default_factory=dict)
    """A `digest` of the result, where contenders must agree; sizes, start-up times and the like."""


def second_time(stage: Callable[[], _Result]) -> tuple[_Result, float, float]:
    """Does a stage twice; returns the result, and how many seconds it took at first and again.

    For stages that take less than memory does: where the host of a virtual machine takes free
    memory away, the first use of a megabyte costs what counting it does. Workers do a stage again
    and again.
    """
    seconds = []
    for _ in range(2):
        result = None  # what the first time took is there for the second
        started = time.perf_counter()
        result = stage()
        seconds.append(time.perf_counter() - started)
    return result, *seconds
