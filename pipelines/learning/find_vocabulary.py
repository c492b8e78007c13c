"""The search for a vocabulary, with whichever learner fits: token counts in, subtokens out."""

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.artifacts.count_files import CountFiles, check_recorded_unicode
from pipelines.artifacts.count_tables import read_counts
from pipelines.engines.engine import Engine
from pipelines.files import filesystem
from pipelines.files.claims import Claim
from pipelines.learning.learner_choice import LearnerChoice, choose_learner
from pipelines.learning.learner_rounds import KeptRounds, RoundsPlace
from pipelines.learning.packed_learner import Limits, PackedLearner
from pipelines.learning.plain_learner import BeamLearner
from pipelines.machine.process_memory import peak_bytes
from pipelines.options.choices import (
    LearnerPlace,
    MinCountSearch,
    SubstringCounting,
    WantedLearner,
)
from pipelines.transforms.count_tokens import write_counts_file
from tokcore.counts.merging import TokenTable
from tokcore.learner_warm_up import compile_learner_kernels
from tokcore.learning.size_search import SearchResult, search_vocabulary
from tokcore.subword.learner import RESERVED_TOKENS, MemoryLearner, longest_candidate
from tokcore.text.unicode_tables import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)

T2T_RANGE = (1, 1000)
"""The min-counts between which Tensor2Tensor's `build_from_generator` searches."""

_ROUNDS_FORMAT = 1
"""Goes up when files of a learner's rounds change their meaning: then nothing old is taken up."""


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
class FoundVocabulary:
    """A vocabulary and what it took."""

    result: SearchResult
    smallest_size: int  # that was possible


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
    """

    counts: CountFiles
    options: VocabularyOptions
    label: str
    engine: Engine
    work: str
    place: RoundsPlace

    def run(self) -> FoundVocabulary:
        """Searches with the learner that fits.

        Raises:
            InputError: counts that cannot be read, a size below the alphabet, or another run that
                is at work on the same rounds.
            LineEndError: a token that a vocabulary file cannot hold.
            OverflowError: counts that are too large in sum.
        """
        started = time.monotonic()
        counts, options = self.counts, self.options
        check_recorded_unicode(counts)
        choice = choose_learner(options.learner, counts.size())
        _LOGGER.info('%s: learning %s: %s', self.label, _where(choice, options), choice.reason)
        if choice.learner == 'beam':
            counts.let_go(*counts.files)  # the workers read them
        with contextlib.ExitStack() as stack:
            if choice.learner == 'beam' and options.substring_counting == 'packed':
                kept = self._kept_rounds()
                claim = stack.enter_context(kept.claimed())
                learner = self._packed_learner(kept.folder)
                build = _claimed(learner.build, claim)
                largest_count, predicted = learner.largest_count, learner.predicted_peak
            else:
                table = read_counts(counts)
                learner = self._table_learner(table, choice.learner)
                build = learner.build
                largest_count, predicted = _largest_count(table), choice.memory_bytes
            result = search_vocabulary(
                build,
                options.vocab_size,
                strategy=options.search,
                min_count_range=options.min_count_range,
                smallest_size=learner.smallest_size,
                largest_count=largest_count,
                report=_reporter(self.label, options),
            )
        _LOGGER.info(
            '%s: learned in %.1f s; this process has held up to %d MB, %d MB were predicted',
            self.label,
            time.monotonic() - started,
            peak_bytes() >> 20,
            predicted >> 20,
        )
        return FoundVocabulary(result, learner.smallest_size)

    def _kept_rounds(self) -> KeptRounds:
        options = self.options
        content = {
            'format': _ROUNDS_FORMAT,
            'unicode': UNICODE_VERSION,
            'counts': [
                (text.bytes, text.crc32c)
                for text in (each.checksum() for each in self.counts.wanted_inputs())
            ],
            'longest': longest_candidate(options.max_subtoken_length),
            'reserved': RESERVED_TOKENS + options.reserved_tokens,
            'lowest': options.lowest_min_count,
            'group_bytes': Limits().group_bytes,
        }
        search = {
            'vocab_size': options.vocab_size,
            'search': options.search,
            'min_count_range': options.min_count_range,
        }
        return KeptRounds(self.place, content, search)

    def _packed_learner(self, folder: str) -> PackedLearner:
        self.engine.compile_first(compile_learner_kernels)
        return PackedLearner(
            self._parquet_paths(),
            folder,
            self.engine.run,
            **self.options.learned,
            lowest=self.options.lowest_min_count,
            workers=self.engine.workers,
            label=self.label,
        )

    def _table_learner(self, table: TokenTable, place: LearnerPlace) -> MemoryLearner | BeamLearner:
        if place == 'memory':
            return MemoryLearner(table, **self.options.learned)
        paths = self._parquet_paths(table)
        return BeamLearner(paths, self.work, self.engine.run, **self.options.learned)

    def _parquet_paths(self, table: TokenTable | None = None) -> list[str]:
        """The count files as Parquet, which is what workers read."""
        counts = self.counts
        if counts.size().all_parquet:
            return [file.path for file in counts.files]
        written = write_counts_file(self.work, 0, read_counts(counts) if table is None else table)
        return [filesystem.join(self.work, written.name)]


def _where(choice: LearnerChoice, options: VocabularyOptions) -> str:
    if choice.learner == 'memory':
        return 'in memory'
    return f'on Beam ({options.substring_counting})'


def _claimed(build: Callable[[int], Sequence[str]], claim: Claim) -> Callable[[int], Sequence[str]]:
    def build_claimed(min_count: int) -> Sequence[str]:
        claim.check()
        return build(min_count)

    return build_claimed


def _largest_count(table: TokenTable) -> int:
    """No substring can be counted more often than there are characters."""
    return int(np.dot(table.counts.astype(np.float64), np.diff(table.offsets) + 1))


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
