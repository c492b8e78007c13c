"""The search for a vocabulary, with whichever learner fits: token counts in, subtokens out."""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.artifacts.count_files import CountedSize, CountFiles, check_recorded
from pipelines.artifacts.count_tables import read_counts
from pipelines.engines.engine import Engine
from pipelines.engines.progress import WorkDone, tell
from pipelines.engines.progress_events import (
    LearnerChosen,
    RoundEnded,
    RulesAssumed,
    SearchWidened,
    VocabularyLearned,
)
from pipelines.learning.learner_choice import (
    LearnerChoice,
    choose_learner,
    fitting_min_count,
    predicted_bytes,
)
from pipelines.learning.learner_rounds import RoundsPlace
from pipelines.machine.process_memory import available_bytes, peak_bytes
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned, Scheme
from tokcore.encoding.scheme_options import LearningOptions
from tokcore.errors import InputError
from tokcore.learning.size_search import Report
from tokcore.options.option_fields import flag
from tokcore.subword.subword_options import T2T_RANGE


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
        tell(LearnerChosen(self.label, where, choice.reason))
        report = _reporter(self.label, options)
        if choice.learner == 'beam':
            learned, predicted = self._learn_on_beam(report)
        else:
            table = read_counts(counts, self.scheme.unstorable)
            if self.scheme.beam_learner is None:
                self._refuse_too_large(table)
            learned = self.scheme.learn(table, options, report)
            predicted = choice.memory_bytes
        tell(VocabularyLearned(self.label, time.monotonic() - started, peak_bytes(), predicted))
        return learned

    def _check_recorded(self) -> None:
        """Refuses counts made by other rules, and tells of those that record none."""
        check_recorded(self.counts, self.scheme.rules)
        foreign = [file.path for file in self.counts.files if self.counts.look(file).rules is None]
        if foreign:
            tell(RulesAssumed(self.label, tuple(foreign), self.scheme.name, str(self.scheme.rules)))

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

    def _learn_on_beam(self, report: Report) -> tuple[Learned, int]:
        module, _, name = self.scheme.beam_learner.partition(':')
        learn: BeamSearch = getattr(importlib.import_module(module), name)
        return learn(self, report)


BeamSearch = Callable[[VocabularySearch, Report], tuple[Learned, int]]
"""What a scheme's `beam_learner` names: gives what was learned, and the memory in bytes that was
predicted of this process."""


def _reporter(label: str, options: LearningOptions) -> Callable[[int, int, int], None]:
    widened = False
    rounds = 0
    started = time.monotonic()

    def report(min_count: int, size: int, target: int) -> None:
        nonlocal widened, rounds, started
        if not min_count:  # nothing is searched: so many of so many are learned
            tell(WorkDone('vocab', f'merges of {label}', min(size, target), target, 'merges'))
            return
        if not widened and options.is_beyond(min_count):
            widened = True
            tell(SearchWidened(label, target, T2T_RANGE[1]))
        rounds += 1
        now = time.monotonic()
        tell(RoundEnded(label, rounds, min_count, size, target, now - started))
        started = now

    return report
