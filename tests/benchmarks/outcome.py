"""What a task function reports of its one run."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Outcome:
    """What a task function returns: how long the stage took, and what it found."""

    seconds: float
    facts: Mapping[str, object] = field(default_factory=dict)
    """A `digest` of the result, where contenders must agree; sizes, start-up times and the like."""
