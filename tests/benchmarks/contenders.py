"""Rows of the table: each is one task and the contenders that do it."""

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
    """`module:function` in this package; see `task_process`."""
    options: Callable[[Inputs], dict]
    """Returns the function's keyword arguments when the row runs."""
    cores: int | None = None
    """The cores it may run on; None for all."""
    against: str | None = None
    """The contender of the row that it is compared with; None for ours."""
    root: Path | None = None
    """The folder with the revision that runs; None for this one."""


Patience = Literal['sample', 'once', 'wait']
"""How a slow peer runs: once on a sample of the text, once on the whole input, or in all rounds."""


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
    """MB or millions of tokens, for a row that is a point of a curve."""
    ratio_of: str | None = None
    """The reported fact that is compared; None for the time."""
    is_extra: bool = False
    """Measured only if named, because it takes long or repeats another row's task on another text."""

    @property
    def group(self) -> str:
        return self.name.partition('/')[0]


Peer = tuple[str, float | None] | tuple[str, float | None, Mapping[str, object]]
"""A task, the least ratio wanted or None, and options for this peer only."""


def one_core_row(
    name: str,
    what: str,
    corpus: str,
    ours: tuple[str, Callable[[Inputs], dict]],
    peers: Mapping[str, Peer],
    **rest: Any,
) -> Row:
    """Returns a row whose contenders have one core each and take the options of ours.

    An option for one peer may be a function of the inputs. `rest` are fields of the row.
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
