"""The search for a vocabulary, with whichever learner fits: token counts in, subtokens out."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipelines import filesystem
from pipelines.count_files import CountFiles, read_counts, recorded_unicode
from pipelines.counting import write_counts_file
from pipelines.engine import Engine
from pipelines.learner_choice import LearnerChoice, choose_learner, counted_size
from pipelines.learning import PackedLearner
from pipelines.memory import peak_bytes
from pipelines.substrings import BeamLearner
from tokcore.counts import TokenTable
from tokcore.learner_warm_up import compile_learner_kernels
from tokcore.subword.learner import MemoryLearner
from tokcore.subword.search import SearchResult, search_vocabulary

_LOGGER = logging.getLogger(__name__)

T2T_RANGE = (1, 1000)
"""The min-counts between which Tensor2Tensor's `build_from_generator` searches."""

SUBSTRING_COUNTINGS = ('packed', 'plain')


@dataclass(frozen=True)
class VocabularyOptions:
    """How a vocabulary is learned; each field is an option of `tokbeam vocab`."""

    vocab_size: int
    search: str = 't2t'
    min_count_range: tuple[int, int] | None = None
    max_subtoken_length: int | None = 200
    reserved_tokens: tuple[str, ...] = ()
    learner: str = 'auto'
    substring_counting: str = 'packed'
    work: str | None = None
    """Where a learner on Beam keeps its rounds; None is `.tokbeam` beside the output."""

    def for_manifest(self) -> dict[str, object]:
        """Returns what the vocabulary's bytes depend on; all learners give the same."""
        return {
            'vocab_size': self.vocab_size,
            'search': self.search,
            'min_count_range': self.min_count_range,
            'max_subtoken_length': self.max_subtoken_length,
            'reserved_token': self.reserved_tokens,
        }


@dataclass(frozen=True)
class FoundVocabulary:
    """A vocabulary and what it took."""

    result: SearchResult
    smallest_size: int  # that was possible
    rounds: str | None = None
    """A folder with the rounds of a learner on Beam, of no use when the output is whole."""


def find_vocabulary(
    counts: CountFiles,
    options: VocabularyOptions,
    label: str,
    engine: Engine,
    work: str,
    rounds: str,
) -> FoundVocabulary:
    """Searches for the vocabulary asked for.

    Args:
        counts: the files.
        options: what is asked for.
        label: for messages, the vocabulary's file name.
        engine: runs a learner on Beam.
        work: a folder of this run.
        rounds: a folder that outlives this run, where the rounds of a learner on Beam are kept.

    Raises:
        InputError: counts that cannot be read, or a size below the alphabet.
        OverflowError: counts that are too large in sum.
    """
    started = time.monotonic()
    recorded_unicode(counts)
    choice = choose_learner(
        options.learner, counted_size([file.path for file in counts.files])
    )
    _LOGGER.info('%s: learning %s: %s', label, _where(choice, options), choice.reason)
    if choice.learner == 'beam' and options.substring_counting == 'packed':
        learner = _packed_learner(counts, options, label, engine, work, rounds)
        largest_count, folder = learner.largest_count, learner.folder
        predicted = learner.predicted_peak
    else:
        table = read_counts(counts)
        largest_count, folder = _largest_count(table), None
        predicted = choice.memory_bytes
        learned = {
            'max_subtoken_length': options.max_subtoken_length,
            'reserved_tokens': options.reserved_tokens,
        }
        if choice.learner == 'memory':
            learner = MemoryLearner(table, **learned)
        else:
            paths = _parquet_paths(counts, work, table)
            learner = BeamLearner(paths, work, engine.run, **learned)
    result = search_vocabulary(
        learner.build,
        options.vocab_size,
        strategy=options.search,
        min_count_range=options.min_count_range,
        smallest_size=learner.smallest_size,
        largest_count=largest_count,
        report=_reporter(label, options),
    )
    _LOGGER.info(
        '%s: learned in %.1f s; this process has held up to %d MB, %d MB were predicted',
        label,
        time.monotonic() - started,
        peak_bytes() >> 20,
        predicted >> 20,
    )
    return FoundVocabulary(result, learner.smallest_size, folder)


def _where(choice: LearnerChoice, options: VocabularyOptions) -> str:
    if choice.learner == 'memory':
        return 'in memory'
    return f'on Beam ({options.substring_counting})'


def _packed_learner(
    counts: CountFiles,
    options: VocabularyOptions,
    label: str,
    engine: Engine,
    work: str,
    rounds: str,
) -> PackedLearner:
    if not engine.in_process:
        compile_learner_kernels()
    # The original's path may leave the range by one.
    lowest = options.min_count_range[0] - 1 if options.min_count_range else 1
    return PackedLearner(
        _parquet_paths(counts, work),
        rounds,
        engine.run,
        max_subtoken_length=options.max_subtoken_length,
        reserved_tokens=options.reserved_tokens,
        counted=[
            (text.bytes, text.crc32c)
            for text in (each.checksum() for each in counts.wanted_inputs())
        ],
        lowest=max(1, lowest),
        workers=engine.workers,
        label=label,
    )


def _parquet_paths(counts: CountFiles, work: str, table: TokenTable | None = None) -> list[str]:
    """The count files as Parquet, which is what workers read."""
    paths = [file.path for file in counts.files]
    if counted_size(paths).all_parquet:
        return paths
    name, *_ = write_counts_file(work, 0, read_counts(counts) if table is None else table)
    return [filesystem.join(work, name)]


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
