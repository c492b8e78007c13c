"""The search for a vocabulary, with whichever learner fits: token counts in, subtokens out."""

import importlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.artifacts.count_files import CountFiles, check_recorded
from pipelines.artifacts.count_tables import read_counts
from pipelines.engines.engine import Engine
from pipelines.learning.learner_choice import LearnerChoice, choose_learner, predicted_bytes
from pipelines.learning.learner_rounds import RoundsPlace
from pipelines.machine.process_memory import peak_bytes
from pipelines.options.choices import MinCountSearch, SubstringCounting, WantedLearner
from tokcore.encoding.scheme import Learned, Scheme
from tokcore.errors import InputError
from tokcore.learning.size_search import Report

_LOGGER = logging.getLogger(__name__)

T2T_RANGE = (1, 1000)
"""The min-counts between which Tensor2Tensor's `build_from_generator` searches."""


@dataclass(frozen=True)
class VocabularyOptions:
    """How a vocabulary is learned; each field is an option of `tokbeam vocab`."""

    vocab_size: int
    search: MinCountSearch = 't2t'
    min_count_range: tuple[int, int] | None = None
    max_subtoken_length: int | None = 200
    reserved_tokens: tuple[str, ...] = ()
    learner: WantedLearner = 'auto'
    substring_counting: SubstringCounting = 'packed'

    def for_manifest(self) -> dict[str, object]:
        """Returns what the vocabulary's bytes depend on; all learners give the same."""
        return {
            'vocab_size': self.vocab_size,
            'search': self.search,
            'min_count_range': self.min_count_range,
            'max_subtoken_length': self.max_subtoken_length,
            'reserved_token': self.reserved_tokens,
        }

    @property
    def learned(self) -> dict[str, object]:
        """What every learner takes."""
        return {
            'max_subtoken_length': self.max_subtoken_length,
            'reserved_tokens': self.reserved_tokens,
        }

    @property
    def lowest_min_count(self) -> int:
        """The lowest that a search can ask for: the original's path may leave the range by one."""
        return max(1, self.min_count_range[0] - 1) if self.min_count_range else 1


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
    options: VocabularyOptions
    label: str
    engine: Engine
    work: str
    place: RoundsPlace
    scheme: Scheme

    def run(self) -> Learned:
        """Learns with the learner that fits.

        Raises:
            InputError: counts that cannot be read or were made for another scheme, a size below
                the alphabet, or another run that is at work on the same rounds.
            LineEndError: a token that a vocabulary file cannot hold.
            OverflowError: counts that are too large in sum.
        """
        started = time.monotonic()
        counts, options = self.counts, self.options
        self._check_recorded()
        choice = self._choice()
        where = 'in memory' if choice.learner == 'memory' else f'on Beam ({options.substring_counting})'
        _LOGGER.info('%s: learning %s: %s', self.label, where, choice.reason)
        report = _reporter(self.label, options)
        if choice.learner == 'beam':
            learned, predicted = self._learn_on_beam(report)
        else:
            learned = self.scheme.learn(read_counts(counts), options, report)
            predicted = choice.memory_bytes
        _LOGGER.info(
            '%s: learned in %.1f s; this process has held up to %d MB, %d MB were predicted',
            self.label,
            time.monotonic() - started,
            peak_bytes() >> 20,
            predicted >> 20,
        )
        return learned

    def _check_recorded(self) -> None:
        """Refuses counts made by other rules, and tells of those that record none."""
        check_recorded(self.counts, self.scheme.rules)
        foreign = [file.path for file in self.counts.files if self.counts.look(file).rules is None]
        if foreign:
            _LOGGER.info(
                '%s: %s how tokens were found: they are taken for those of --scheme %s (%s)',
                self.label,
                f'{foreign[0]} does not record'
                if len(foreign) == 1
                else f'{len(foreign)} count files do not record',
                self.scheme.name,
                self.scheme.rules,
            )

    def _choice(self) -> LearnerChoice:
        size = self.counts.size()
        if self.scheme.beam_learner is not None:
            return choose_learner(self.options.learner, size)
        if self.options.learner == 'beam':
            raise InputError(
                f'--scheme {self.scheme.name} has no learner on Beam; leave --learner out'
            )
        reason = f'--scheme {self.scheme.name} has no other learner'
        return LearnerChoice('memory', reason, predicted_bytes(size))

    def _learn_on_beam(self, report: Report) -> tuple[Learned, int]:
        module, _, name = self.scheme.beam_learner.partition(':')
        learn: BeamSearch = getattr(importlib.import_module(module), name)
        return learn(self, report)


def _reporter(label: str, options: VocabularyOptions) -> Callable[[int, int, int], None]:
    widened = False
    rounds = 0
    started = time.monotonic()

    def report(min_count: int, size: int, target: int) -> None:
        nonlocal widened, rounds, started
        beyond = options.min_count_range is None and min_count > T2T_RANGE[1]
        if beyond and not widened and options.search == 't2t':
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
        started = now

    return report


BeamSearch = Callable[[VocabularySearch, Report], tuple[Learned, int]]
"""What a scheme's `beam_learner` names: gives what was learned, and the memory in bytes that was
predicted of this process."""
