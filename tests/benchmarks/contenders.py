"""What is measured: a row is one task, and who does it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .inputs import Inputs

OURS = 'tokbeam'
DEFAULT_RUNS = 5


@dataclass(frozen=True)
class Outcome:
    """What a task function returns: how long the stage took, and what it found."""

    seconds: float
    facts: Mapping[str, object] = field(default_factory=dict)
    """A `digest` of the result, where contenders must agree; sizes, start-up times and the like."""


@dataclass(frozen=True)
class Contender:
    """One way to do a row's task."""

    label: str
    task: str
    """`module:function` below this package; see `task_process`."""
    options: Callable[[Inputs], dict]
    """The function's keyword arguments, made when the row is run."""
    cores: int | None = None
    """The cores it may run on; None for all."""


@dataclass(frozen=True)
class Row:
    """A task with its contenders; a ratio is a peer's time divided by ours."""

    name: str
    task: str
    corpus: str
    ours: Contender
    peers: tuple[Contender, ...] = ()
    targets: Mapping[str, float] = field(default_factory=dict)
    """The least ratio wanted, by the peer's label."""
    runs: int = DEFAULT_RUNS
    whole: bool = False
    """The peers run once, on the whole input, however long they take."""
    sizes: bool = False
    """A point of the plot of cost against size, rather than a comparison."""

    @property
    def group(self) -> str:
        return self.name.partition('/')[0]
