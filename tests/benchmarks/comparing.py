"""Interleaved runs of a row's contenders, and the ratios of their medians.

Interleaved, so that what slows the machine down for a while slows all of them. A peer that takes too
long is compared on a sample of the text, in one run.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from .contenders import Contender, Row
from .inputs import Inputs, Materials
from .running import Run, run_task

SLOW_SECONDS = 20.0
SAMPLE_BYTES = 20_000_000


@dataclass(frozen=True)
class Figure:
    """A contender's median, and where it comes from."""

    label: str
    seconds: float | None
    all_seconds: tuple[float, ...]
    peak_bytes: int
    facts: Mapping[str, object]
    problem: str = ''


@dataclass(frozen=True)
class Comparison:
    """This project's figure and a peer's, on the same text; without a peer, the figure alone."""

    ours: Figure
    peer: Figure | None
    text_bytes: int
    target: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times as long the peer takes."""
        if self.peer is None or not self.peer.seconds or not self.ours.seconds:
            return None
        return self.peer.seconds / self.ours.seconds

    @property
    def agrees(self) -> bool | None:
        """Whether both results are the same; None where they are not comparable."""
        if self.peer is None:
            return None
        both = self.ours.facts.get('digest'), self.peer.facts.get('digest')
        return None if None in both else both[0] == both[1]


@dataclass(frozen=True)
class RowResult:
    """What came out of a row."""

    row: Row
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


def measure(row: Row, materials: Materials, runs: int) -> RowResult:
    """Runs a row: `runs` rounds, fewer for a row that asks for fewer."""
    inputs = Inputs(materials, row.corpus)
    runs = min(runs, row.runs)
    rounds: dict[str, list[Run]] = {row.ours.label: []}
    rounds.update((peer.label, []) for peer in row.peers)
    waiting = [row.ours, *row.peers]
    for _ in range(runs):
        for contender in list(waiting):
            limit = None if contender is row.ours or row.whole else SLOW_SECONDS
            run = _run(contender, inputs, limit)
            rounds[contender.label].append(run)
            done_after_one = row.whole and contender is not row.ours
            if run.problem or done_after_one:
                waiting.remove(contender)
    ours = _figure(row.ours.label, rounds[row.ours.label])
    comparisons = []
    slow = []
    for peer in row.peers:
        if any(run.too_slow for run in rounds[peer.label]):
            slow.append(peer)
            continue
        figure = _figure(peer.label, rounds[peer.label])
        comparisons.append(Comparison(ours, figure, inputs.bytes, row.targets.get(peer.label)))
    if slow:
        comparisons += _on_a_sample(row, slow, materials, runs)
    if not row.peers:
        comparisons.append(Comparison(ours, None, inputs.bytes))
    return RowResult(row, tuple(comparisons), tuple(inputs.notes))


def _on_a_sample(
    row: Row, slow: list[Contender], materials: Materials, runs: int
) -> list[Comparison]:
    inputs = Inputs(materials, row.corpus, SAMPLE_BYTES)
    ours = _figure(row.ours.label, [_run(row.ours, inputs, None) for _ in range(runs)])
    return [
        Comparison(
            ours,
            _figure(peer.label, [_run(peer, inputs, None)]),
            inputs.bytes,
            row.targets.get(peer.label),
        )
        for peer in slow
    ]


def _run(contender: Contender, inputs: Inputs, limit: float | None) -> Run:
    try:
        options = contender.options(inputs)
    except LookupError as error:
        return Run(problem=str(error.args[0]))
    return run_task(contender.task, options, contender.cores, limit)


def _figure(label: str, runs: list[Run]) -> Figure:
    times = tuple(run.seconds for run in runs if run.seconds is not None)
    problem = next((run.problem for run in runs if run.problem), '')
    peak = max((run.peak_bytes for run in runs), default=0)
    facts = next((run.facts for run in runs if run.facts), {})
    seconds = statistics.median(times) if times and not problem else None
    return Figure(label, seconds, times, peak, facts, problem)
