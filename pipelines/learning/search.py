"""Searches a vocabulary: token counts in, subtokens out, by the learner that fits into memory."""

import importlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipelines.artifacts.counts import CountedSize, CountFiles, check_recorded, read_counts
from pipelines.engines.engine import Engine
from pipelines.engines.machine import available_bytes, peak_bytes
from pipelines.engines.progress import RoundEnded, WorkDone, notify
from pipelines.learning.rounds import RoundsPlace
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned, LearningOptions, Scheme
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress
from tokcore.options import flag
from tokcore.subword.scheme import T2T_RANGE

_LOGGER = logging.getLogger(__name__)

LEARNERS = ('auto', 'memory', 'beam')

_SHARE = 0.7
"""Of the memory at hand that the learner in memory may be predicted to take: texts differ from those
measured, and other processes come and go."""

_BYTES_OF_PROCESS = 350 << 20
"""A driver with Beam, pyarrow and compiled kernels in it."""

_BYTES_PER_TOKEN = 40
"""The table itself, beside the learner."""


@dataclass(frozen=True)
class LearnerChoice:
    """A learner and why it was taken."""

    learner: str  # 'memory' or 'beam'
    reason: str
    memory_bytes: int  # what the learner in memory is predicted to take


@dataclass(frozen=True)
class VocabularySearch:
    """A search for a vocabulary.

    Attributes:
        counts: the files to learn from.
        options: what is asked for.
        label: for messages, the vocabulary's file name.
        engine: runs a learner on Beam.
        work: a folder of this run.
        place: where rounds on Beam are kept, which outlive this run.
        scheme: whose vocabulary is learned.
    """

    counts: CountFiles
    options: LearningOptions
    label: str
    engine: Engine
    work: str
    place: RoundsPlace
    scheme: Scheme

    def run(self) -> Learned:
        """Learns with the learner that fits.

        Raises:
            InputError: counts that cannot be read or were made for another scheme, a token that a
                vocabulary file cannot hold, a size below the alphabet, or another run that is at
                work on the same rounds.
            OverflowError: counts that are too large in sum.
        """
        started = time.monotonic()
        counts, options = self.counts, self.options
        self._check_recorded()
        choice = self._choice()
        where = 'in memory' if choice.learner == 'memory' else options.on_beam
        _LOGGER.info('%s: learning %s: %s', self.label, where, choice.reason)
        report = _reporter(self.label, options)
        if choice.learner == 'beam':
            learned, predicted = self._learn_on_beam(report)
        else:
            table = read_counts(counts, self.scheme.unstorable)
            if self.scheme.beam_learner is None:
                self._refuse_too_large(table)
            learned = self.scheme.learn(table, options, report)
            predicted = choice.memory_bytes
        _LOGGER.info(
            '%s: learned in %.1f s; this process has held up to %s, %s were predicted',
            self.label,
            time.monotonic() - started,
            _megabytes(peak_bytes()),
            _megabytes(predicted),
        )
        return learned

    def _check_recorded(self) -> None:
        """Refuses counts made by other rules, and logs which files record none."""
        check_recorded(self.counts, self.scheme.rules)
        paths = [file.path for file in self.counts.files if self.counts.look(file).rules is None]
        if not paths:
            return
        _LOGGER.info(
            '%s: %s how tokens were found: they are taken for those of --scheme %s (%s)',
            self.label,
            f'{paths[0]} does not record'
            if len(paths) == 1
            else f'{len(paths)} count files do not record',
            self.scheme.name,
            self.scheme.rules,
        )

    def _choice(self) -> LearnerChoice:
        size = self.counts.size()
        if self.scheme.beam_learner is not None:
            return choose_learner(
                self.options.learner, size, self.scheme.learner_bytes_per_character
            )
        reason = f'--scheme {self.scheme.name} has no other learner'
        return LearnerChoice(
            'memory', reason, predicted_bytes(size, self.scheme.learner_bytes_per_character)
        )

    def _refuse_too_large(self, table: TokenTable) -> None:
        """Refuses a table for which there is not memory enough, and no other learner."""
        per_character, option = self.scheme.learner_bytes_per_character, self.options.rarest_option
        if option is None:
            return
        at_hand = available_bytes()
        kept = self.options.kept(table)
        need = predicted_bytes(CountedSize(len(kept), len(kept.data), False), per_character)
        if need <= at_hand:
            return
        fitting = fitting_min_count(table, per_character, at_hand)
        instead = f'give {flag(option)} {fitting}' if fitting else 'take a larger machine'
        raise InputError(
            f'{len(kept)} tokens need some {need >> 20} MB to learn from, and {at_hand >> 20} MB are '
            f'at hand; {instead}'
        )

    def _learn_on_beam(self, report: Progress) -> tuple[Learned, int]:
        module, _, name = self.scheme.beam_learner.partition(':')
        learn: BeamSearch = getattr(importlib.import_module(module), name)
        return learn(self, report)


def _reporter(label: str, options: LearningOptions) -> Callable[[int, int, int], None]:
    widened = False
    rounds = 0
    started = time.monotonic()

    def report(min_count: int, size: int, target: int) -> None:
        nonlocal widened, rounds, started
        if not min_count:  # nothing is searched: so many of so many are learned
            notify(WorkDone('vocab', f'merges of {label}', min(size, target), target, 'merges'))
            return
        if not widened and options.is_beyond(min_count):
            widened = True
            _LOGGER.info(
                '%s: still above %d at min-count %d, where Tensor2Tensor ends; searching on '
                '(--min-count-range 1:1000 forbids it)',
                label,
                target,
                T2T_RANGE[1],
            )
        rounds += 1
        now = time.monotonic()
        _LOGGER.info(
            '%s: round %d: min-count %d gives %d entries of %d (%+d) in %.1f s',
            label,
            rounds,
            min_count,
            size,
            target,
            size - target,
            now - started,
        )
        notify(RoundEnded(rounds))
        started = now

    return report


def choose_learner(
    wanted: str, size: CountedSize, per_character: int, available: int | None = None
) -> LearnerChoice:
    """Returns the learner wanted, or for `auto` the one in memory if it is sure to fit.

    Args:
        wanted: one of LEARNERS.
        size: what is to be learned from.
        per_character: what the learner in memory takes for each byte of distinct tokens.
        available: bytes of memory at hand; None asks the machine.
    """
    if wanted not in LEARNERS:
        raise InputError(f'no learner {wanted!r}; there are {", ".join(LEARNERS)}')
    need = predicted_bytes(size, per_character)
    at_hand = available_bytes() if available is None else available
    compared = (
        f'{size.tokens} tokens need some {_megabytes(need)} in memory, '
        f'{_megabytes(at_hand)} are at hand'
    )
    if wanted != 'auto':
        return LearnerChoice(wanted, f'as asked for; {compared}', need)
    learner = 'memory' if need <= _SHARE * at_hand else 'beam'
    return LearnerChoice(learner, compared, need)


def predicted_bytes(size: CountedSize, per_character: int) -> int:
    """Returns the peak of a process that learns in memory; `per_character` as of `choose_learner`."""
    # Of a token's text a character is a byte or more; its end is a character too.
    characters = size.bytes + size.tokens
    return _BYTES_OF_PROCESS + per_character * characters + _BYTES_PER_TOKEN * size.tokens


def fitting_min_count(table: TokenTable, per_character: int, available: int) -> int | None:
    """Returns the smallest count such that the tokens that occur so often fit; None if none do."""
    order = np.argsort(-table.counts, kind='stable')
    counts = table.counts[order]
    ends = np.cumsum(np.diff(table.offsets)[order])
    need = _BYTES_OF_PROCESS + per_character * (ends + np.arange(1, len(ends) + 1))
    need += _BYTES_PER_TOKEN * np.arange(1, len(ends) + 1)
    fitting = int(np.searchsorted(need, available, side='right'))
    if fitting == len(counts):
        return 1
    # All tokens of one count go together.
    least = int(counts[fitting]) + 1
    return least if fitting and counts[0] >= least else None


def _megabytes(size: int) -> str:
    return f'{size >> 20} MB'


BeamSearch = Callable[[VocabularySearch, Progress], tuple[Learned, int]]
"""What a scheme's `beam_learner` names: gives what was learned, and the memory in bytes that was
predicted of this process."""
