"""Interleaved runs of a row's contenders, and the ratios of their medians.

Runs are interleaved so that whatever slows the machine down for a while slows all contenders. A peer
that takes too long is compared by one run on a sample of the text.
"""

import contextlib
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from .contenders import DEFAULT_RUNS, Contender, Row
from .inputs import Inputs, Materials
from .running import Run, run_task
from .stages.written import remove

SLOW_SECONDS = 20.0
SAMPLE_BYTES = 20_000_000


@dataclass(frozen=True)
class Figure:
    """A contender's median time, and the runs that it comes from."""

    label: str
    seconds: float | None
    all_seconds: tuple[float, ...]
    peak_bytes: int
    facts: Mapping[str, object]
    problem: str = ''


@dataclass(frozen=True)
class Comparison:
    """Our figure and a peer's on the same text, or only ours."""

    ours: Figure
    peer: Figure | None
    text_bytes: int
    target: float | None = None
    ratio_of: str | None = None

    @property
    def ratio(self) -> float | None:
        """The peer's time, or fact, divided by ours; None if one is missing or not positive.

        A time above start-up can be negative if the command has almost nothing to do.
        """
        ours, theirs = (self._figure(each) for each in (self.ours, self.peer))
        if ours is None or theirs is None or min(ours, theirs) <= 0:
            return None
        return theirs / ours

    def _figure(self, figure: Figure | None) -> float | None:
        if figure is None:
            return None
        return figure.seconds if self.ratio_of is None else figure.facts.get(self.ratio_of)

    @property
    def agrees(self) -> bool | None:
        """Whether both results are the same; None if they are not comparable."""
        if self.peer is None:
            return None
        both = self.ours.facts.get('digest'), self.peer.facts.get('digest')
        return None if None in both else both[0] == both[1]


@dataclass(frozen=True)
class RowResult:
    """The comparisons of a row, and notes about its inputs."""

    row: Row
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


def prepare(row: Row, materials: Materials) -> None:
    """Makes the inputs that a row's contenders may need; `measure` reports those that fail."""
    for limit in (None, SAMPLE_BYTES) if row.patience == 'sample' else (None,):
        inputs = Inputs(materials, row.corpus, row.name, limit)
        for contender in (row.ours, *row.peers):
            with contextlib.suppress(LookupError):
                contender.options(inputs)


def measure(row: Row, materials: Materials, runs: int, lane: int = 0) -> RowResult:
    """Runs a row for `runs` rounds; by default, for fewer if the row asks for fewer.

    Rows that run at the same time have different lanes, and so different cores.
    """
    inputs = Inputs(materials, row.corpus, row.name)
    if runs <= DEFAULT_RUNS:
        runs = min(runs, row.runs)
    rounds: dict[str, list[Run]] = {each.label: [] for each in (row.ours, *row.peers)}
    waiting = [row.ours, *row.peers]
    for _ in range(runs):
        for contender in list(waiting):
            is_peer = contender is not row.ours
            limit = SLOW_SECONDS if is_peer and row.patience == 'sample' else None
            run = _run(contender, inputs, lane, limit)
            rounds[contender.label].append(run)
            if run.problem or (is_peer and row.patience == 'once'):
                waiting.remove(contender)
    slow = [peer for peer in row.peers if any(run.too_slow for run in rounds[peer.label])]
    figures = {label: _figure(label, each) for label, each in rounds.items()}
    comparisons = [_compare(row, peer, figures, inputs) for peer in row.peers if peer not in slow]
    if not comparisons:
        comparisons.append(Comparison(figures[row.ours.label], None, inputs.bytes))
    if slow:
        sample = Inputs(materials, row.corpus, row.name, SAMPLE_BYTES)
        if sample.text != inputs.text:
            ours = [_run(row.ours, sample, lane) for _ in range(runs)]
            figures[row.ours.label] = _figure(row.ours.label, ours)
        for peer in slow:
            figures[peer.label] = _figure(peer.label, [_run(peer, sample, lane)])
            comparisons.append(_compare(row, peer, figures, sample))
    return RowResult(row, tuple(comparisons), tuple(inputs.notes))


def _compare(
    row: Row, peer: Contender, figures: Mapping[str, Figure], inputs: Inputs
) -> Comparison:
    ours = figures[peer.against or row.ours.label]
    return Comparison(
        ours, figures[peer.label], inputs.bytes, row.targets.get(peer.label), row.ratio_of
    )


def _run(contender: Contender, inputs: Inputs, lane: int, limit: float | None = None) -> Run:
    try:
        options = contender.options(inputs)
    except LookupError as error:
        return Run(problem=str(error.args[0]))
    output = options.get('output')
    remove(output)  # left by a benchmark that was killed, if the scratch folder is kept
    run = run_task(contender.task, options, contender.cores, lane, limit, contender.root)
    remove(output)  # left by a run that failed or was stopped
    return run


def _figure(label: str, runs: list[Run]) -> Figure:
    times = tuple(run.seconds for run in runs if run.seconds is not None)
    problem = next((run.problem for run in runs if run.problem), '')
    peak = max((run.peak_bytes for run in runs), default=0)
    facts = next((run.facts for run in runs if run.facts), {})
    seconds = statistics.median(times) if times and not problem else None
    return Figure(label, seconds, times, peak, facts, problem)
