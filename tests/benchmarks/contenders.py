"""What is measured: a row is one task, and who does it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .inputs import Inputs

OURS = 'tokbeam'
DEFAULT_RUNS = 5


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
    against: str | None = None
    """The contender of the same row that it is compared with, if not with the first."""
    root: Path | None = None
    """The folder of the revision whose code does it; None for this one's."""


Patience = Literal['sample', 'once', 'wait']
"""What is done about a slow peer: a single run on a sample of the text, a single run on the whole
input, or all runs however long they take."""


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
    patience: Patience = 'sample'
    size: float | None = None
    """Where it is a point of a curve: its place on the axis, in MB or millions of tokens."""
    ratio_of: str | None = None
    """The reported fact whose ratio is taken, in place of that of the times."""
    is_extra: bool = False
    """Measured only if asked for by name: long, or another row's task on another text."""

    @property
    def group(self) -> str:
        return self.name.partition('/')[0]


Peer = tuple[str, float | None] | tuple[str, float | None, Mapping[str, object]]
"""A task, the least ratio wanted if there is one, and options of this peer alone."""


def one_core_row(
    name: str,
    what: str,
    corpus: str,
    ours: tuple[str, Callable[[Inputs], dict]],
    peers: Mapping[str, Peer],
    **rest: Any,
) -> Row:
    """Returns a row of contenders on one core each, which take the options of ours.

    An option of one peer alone may be a function of the inputs. `rest` are fields of the row.
    """
    task, options = ours

    def contender(label: str, task: str, _: float | None, more: Mapping = {}) -> Contender:
        def with_more(inputs: Inputs) -> dict:
            added = {
                key: value(inputs) if callable(value) else value for key, value in more.items()
            }
            return {**options(inputs), **added}

        return Contender(label, task, with_more, cores=1)

    targets = {label: peer[1] for label, peer in peers.items() if peer[1] is not None}
    return Row(
        name,
        what,
        corpus,
        Contender(OURS, task, options, cores=1),
        tuple(contender(label, *peer) for label, peer in peers.items()),
        **{'targets': targets, **rest},
    )
