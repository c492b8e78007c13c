"""The search for a vocabulary: from token counts, in memory, in rounds, or by the learner on Beam."""

import contextlib
import dataclasses
import logging
import os
import pkgutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pipelines.artifacts.counts import (
    CountedSize,
    CountFiles,
    check_recorded,
    read_counts,
    read_counts_apart,
    read_new_batches,
    weighted_tables,
)
from pipelines.artifacts.dev_texts import DevText
from pipelines.engines.engine import Engine
from pipelines.engines.machine import available_bytes, peak_bytes, return_freed_memory
from pipelines.engines.progress import ON_BAR, RoundEnded, WorkDone, notify
from pipelines.files import filesystem
from pipelines.learning.rounds import OutputRounds, SearchRounds
from pipelines.transforms.count_tokens import write_counts_file
from tokcore.bpe.options import BpeOptions
from tokcore.bpe.scheme import BpeScheme
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned, LearningOptions, Scheme
from tokcore.errors import InputError
from tokcore.kernels.cache_folder import source_digest
from tokcore.learning.size_search import Progress
from tokcore.options import recorded
from tokcore.process_end import keep
from tokcore.subword.scheme import T2T_RANGE
from tokcore.text.unicode import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)

_SHARE = 0.7
"""Of the available memory that the learner in memory may be predicted to take: texts differ from
those measured, and other processes need memory too."""

_UNNOTICED_BYTES = 2 << 30
"""A learner in memory that takes no more is not worth a line: most machines have twice as much."""

_BYTES_OF_PROCESS = 350 << 20
"""A driver with Beam, pyarrow and compiled kernels."""

_BYTES_PER_TOKEN = 40
"""The table itself, in addition to the learner."""

TOKENS_AT_ONCE = 2_500_000
"""Most tokens, times rounds in one job: what may turn out not to be needed is learned in some three
seconds of a worker, and a cluster takes some four for each job."""

MOST_AT_ONCE = 31
"""Most rounds in one job: five steps of a bisection, so that Tensor2Tensor's ten take two jobs."""


@dataclass(frozen=True)
class LearnerChoice:
    """The learner to be used, and why."""

    learner: str  # 'memory', 'rounds' or 'beam'
    reason: str
    memory_bytes: int  # predicted for the learner in memory


OptionsT = TypeVar('OptionsT', bound=LearningOptions)


@dataclass(frozen=True)
class VocabularySearch(Generic[OptionsT]):
    """A search for a vocabulary.

    Attributes:
        counts: the files to learn from.
        options: of learning and of the search.
        label: begins messages: the vocabulary's file name.
        engine: runs a learner on Beam.
        work: a folder of this run.
        rounds: of learners on Beam for this output; they outlive a run that is killed.
        scheme: the scheme of the vocabulary.
        memory_bytes: that learning should keep within; None: what is free.
        parity: the development texts for parity-aware BPE.
    """

    counts: CountFiles
    options: OptionsT
    label: str
    engine: Engine
    work: str
    rounds: OutputRounds
    scheme: Scheme
    memory_bytes: int | None = None
    parity: tuple[DevText, ...] = ()

    def run(self) -> Learned:
        """Chooses a learner by the available memory, and learns the vocabulary.

        Raises:
            InputError: counts cannot be read or were made for another scheme, a token cannot be
                stored in a vocabulary file, the size is below the alphabet, or another run uses the
                rounds.
            OverflowError: the sum of the counts is too large.
        """
        self._check_rules()
        rounds = self.search_rounds(
            code=source_digest(),
            scheme=[self.scheme.name, recorded(self.scheme), self.scheme.rules.metadata()],
            learning=self.options.for_manifest(),
            **({'parity': [text.record for text in self.parity]} if self.parity else {}),
        )
        learned = rounds.kept(self.scheme)
        if learned is None:
            learned = self._learn()
            try:
                rounds.keep(learned)
            except ValueError as error:  # an entry cannot be in its file
                raise InputError(f'{self.label}: {error}') from error
        else:
            _LOGGER.info('%s: was learned by an earlier run', self.label)
        keep('the vocabulary')
        return learned

    def _learn(self) -> Learned:
        started = time.monotonic()
        counts, options = self.counts, self.options
        choice = self._choose_learner()
        if choice.learner != 'memory' or choice.memory_bytes > _UNNOTICED_BYTES:
            where = {'memory': 'in memory', 'rounds': 'in rounds, with words in files'}.get(
                choice.learner, options.on_beam
            )
            _LOGGER.info('%s: learning %s: %s', self.label, where, choice.reason)
        report = _reporter(self.label, options, self.scheme.learner_steps)
        if self.parity:
            assert isinstance(self.scheme, BpeScheme) and isinstance(options, BpeOptions)
            tables = read_counts_apart(counts, self.scheme.unstorable)
            texts = [text.table for text in self.parity]
            learned = self.scheme.learn_with_parity(tables, texts, options, report)
            predicted = choice.memory_bytes
        elif choice.learner == 'beam':
            learned, predicted = self._learn_on_beam(report)
        elif choice.learner == 'rounds':
            learned, predicted = self._learn_in_rounds(report), 0
        else:
            return_freed_memory()
            tables = [read_counts(counts, self.scheme.unstorable)]
            return_freed_memory()  # what reading has left
            is_too_large = self._learner == 'auto' and self._is_too_large(tables[0])
            if is_too_large and self._in_parts == 'beam':
                learned, predicted = self._learn_on_beam(report)
            elif is_too_large:
                learned, predicted = self._learn_in_rounds(report, tables[0]), 0
            else:
                # Without a name for it here, so that the learner can free it.
                learned = self.scheme.learn_in_threads(
                    tables.pop(), options, report, self.engine.workers
                )
                predicted = choice.memory_bytes
        held = ''
        if predicted > _UNNOTICED_BYTES:
            peak, expected = _megabytes(peak_bytes()), _megabytes(predicted)
            held = f'; the peak memory was {peak}, and {expected} were predicted'
        _LOGGER.info('%s: learned in %.1f s%s', self.label, time.monotonic() - started, held)
        return learned

    def _check_rules(self) -> None:
        """Refuses counts that were made by other rules, and logs which files record none."""
        check_recorded(self.counts, self.scheme.rules)
        paths = [file.path for file in self.counts.files if self.counts.look(file).rules is None]
        if not paths:
            return
        which = f'{paths[0]} does' if len(paths) == 1 else f'{len(paths)} count files do'
        _LOGGER.info(
            '%s: %s not record by which rules tokens were made; assuming those of --scheme %s (%s)',
            self.label,
            which,
            self.scheme.name,
            self.scheme.rules,
        )

    def _choose_learner(self) -> LearnerChoice:
        size, per_character = self.counts.size(), self.scheme.learner_bytes_per_character
        if self.parity:
            return choose_learner('memory', size, 2 * per_character, self.available_bytes())
        if not self.scheme.learns_in_rounds:
            choice = choose_learner(self._learner, size, per_character, self.available_bytes())
            if self.scheme.beam_learner is None:
                return dataclasses.replace(choice, learner='memory')
            return choice
        choice = choose_learner(self._learner, size, per_character, self.available_bytes(), share=1)
        if self._learner != 'auto':
            return choice
        is_too_large = choice.learner != 'memory' or self._is_beyond_learner(size)
        in_parts = is_too_large and self.scheme.reason_against_rounds(self.options) is None
        return dataclasses.replace(choice, learner=self._in_parts if in_parts else 'memory')

    def _is_beyond_learner(self, size: CountedSize) -> bool:
        """Whether the learner in memory cannot take so much, whatever memory there is."""
        most = self.scheme.learner_most_characters
        return most is not None and size.bytes + size.tokens > most

    @property
    def _learner(self) -> str:
        """The learner that is asked for; schemes without one on Beam have no such option."""
        return getattr(self.options, 'learner', 'auto')

    @property
    def _in_parts(self) -> str:
        """The learner of tokens that do not fit in memory, where it learns in rounds."""
        return 'rounds' if self.engine.runner.is_local else 'beam'

    def available_bytes(self) -> int:
        """Returns the memory that learning should keep within, in bytes."""
        available = available_bytes()
        return available if self.memory_bytes is None else min(available, self.memory_bytes)

    def _learn_in_rounds(self, report: Progress, table: TokenTable | None = None) -> Learned:
        paths = self.parquet_paths(table)

        def tables() -> Iterator[TokenTable]:
            for path in paths:
                for data, offsets, counts in read_new_batches(path, self.scheme.unstorable):
                    tokens = data[offsets[0] : offsets[-1]]
                    yield TokenTable(tokens, offsets - offsets[0], counts)

        memory = max(0, self.available_bytes() - _BYTES_OF_PROCESS)
        with contextlib.ExitStack() as stack:
            if filesystem.is_shared(self.work):
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix='tokbeam-words-'))
                size = self.counts.size()
                # A byte of a token is a symbol of three bytes.
                most = 3 * size.bytes + 18 * size.tokens
                said = '%s: words are in files of this machine, in %s, of at most %d MiB'
                _LOGGER.info(said, self.label, folder, -(-most >> 20))
            else:
                folder = os.path.join(self.work, 'words')
                filesystem.make_folders(folder)
            return self.scheme.learn_in_rounds(tables, self.options, report, folder, memory)

    def _is_too_large(self, table: TokenTable) -> bool:
        """Whether a table is to be learned from in rounds, for a scheme that learns so.

        The size of the files is not exact: they may be text, or have tokens in common.

        Raises:
            InputError: it does not fit in memory, and cannot be learned from in rounds.
        """
        if not self.scheme.learns_in_rounds:
            return False
        available = self.available_bytes()
        size = CountedSize(len(table), len(table.data), False)
        need = predicted_bytes(size, self.scheme.learner_bytes_per_character)
        if need <= available and not self._is_beyond_learner(size):
            return False
        reason = self.scheme.reason_against_rounds(self.options)
        if reason is None:
            return True
        if need <= available:
            return False  # the learner in memory says how much it takes
        raise InputError(
            f'{len(table)} tokens need some {need >> 20} MB to learn from, and {available >> 20} MB are at '
            f'hand; take a larger machine (merges cannot be learned in rounds: {reason})'
        )

    def parquet_paths(self, table: TokenTable | None = None) -> list[str]:
        """Returns the paths of the counts, written as Parquet for the workers if necessary.

        Args:
            table: the counts, if they have been read.
        """
        counts = self.counts
        if counts.size().all_parquet and not counts.has_weights:
            counts.let_go(*counts.files)  # only the workers read them
            return [file.path for file in counts.files]
        tables = [table] if table is not None else weighted_tables(counts, self.scheme.unstorable)
        return [
            os.path.join(
                self.work, write_counts_file(self.work, number, each, self.scheme.rules).name
            )
            for number, each in enumerate(tables)
        ]

    def search_rounds(self, **description: object) -> SearchRounds:
        """Returns the rounds of learning on Beam from these counts.

        Args:
            description: what else their files depend on, as JSON values.
        """
        texts = [counts.checksum() for counts in self.counts.wanted_inputs()]
        counts = [(text.bytes, text.crc32c) for text in texts]
        return SearchRounds(
            self.rounds,
            {'unicode': UNICODE_VERSION, 'counts': counts, **self.counts.weighting, **description},
        )

    def _learn_on_beam(self, report: Progress) -> tuple[Learned, int]:
        assert self.scheme.beam_learner is not None
        keep('the rounds that are finished')
        learn: BeamSearch = pkgutil.resolve_name(self.scheme.beam_learner)
        return learn(self, report)


def _reporter(label: str, options: LearningOptions, steps: str) -> Callable[[int, int, int], None]:
    widened = False
    rounds = 0
    started = time.monotonic()

    def report(min_count: int, size: int, target: int) -> None:
        nonlocal widened, rounds, started
        if not min_count:  # of a learner without a search
            notify(WorkDone('vocab', f'{steps} of {label}', min(size, target), target, steps))
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
            extra={ON_BAR: True},
        )
        notify(RoundEnded(rounds, size, target))
        started = now

    return report


def choose_learner(
    learner: str,
    size: CountedSize,
    per_character: int,
    available: int,
    share: float = _SHARE,
) -> LearnerChoice:
    """Returns the learner of the option `--learner`; for `auto`, the one in memory if it fits.

    Args:
        learner: 'auto', 'memory' or 'beam'.
        size: of the counts to learn from.
        per_character: memory of the learner in memory, in bytes per byte of distinct tokens.
        available: bytes of memory.
        share: of the available memory that the learner in memory may be predicted to take.
    """
    need = predicted_bytes(size, per_character)
    reason = (
        f'{size.tokens:,} tokens need about {_megabytes(need)} of memory, of which '
        f'{_megabytes(available)} are free'
    )
    if learner != 'auto':
        return LearnerChoice(learner, f'by --learner; {reason}', need)
    fits = need <= share * available
    return LearnerChoice('memory' if fits else 'beam', reason, need)


def predicted_bytes(size: CountedSize, per_character: int) -> int:
    """Returns the predicted peak memory of a process that learns in memory, in bytes."""
    # A character has at least one byte; the end of a token is a character too.
    characters = size.bytes + size.tokens
    return _BYTES_OF_PROCESS + per_character * characters + _BYTES_PER_TOKEN * size.tokens


def _megabytes(size: int) -> str:
    return f'{size >> 20:,} MiB'


def rounds_at_once(tokens: int, budget: int = TOKENS_AT_ONCE) -> int:
    """Returns how many rounds of learning from so many tokens a job of a cluster may learn.

    It is a number of whole steps of a bisection: 1, 3, 7, 15 or 31.
    """
    most = min(MOST_AT_ONCE, budget // max(1, tokens))
    return max(1, (1 << ((most + 1).bit_length() - 1)) - 1)


class RoundsAhead:
    """Chooses the min-counts that the job of each round learns, with those that may come next.

    Args:
        label: begins log messages.
        most: min-counts of a job at most.
        is_learned: whether a min-count has been learned, by any run.
        ahead: takes the sizes of the vocabularies so far by min-count, and a number; returns at most so
            many min-counts that the search may come to, by how soon. None: that is not known.
    """

    def __init__(
        self,
        label: str,
        most: int,
        is_learned: Callable[[int], bool],
        ahead: Callable[[Mapping[int, int], int], Sequence[int]] | None,
    ):
        self._label, self._most, self._is_learned, self._ahead = label, most, is_learned, ahead
        self._number = 0
        self._sizes: dict[int, int] = {}
        self._together: set[int] = set()

    def begin_round(self, min_count: int) -> list[int]:
        """Returns the min-counts to learn in the job of a round; [] if its own has been learned."""
        self._number += 1
        if self._is_learned(min_count):
            if min_count not in self._together:
                _LOGGER.info(
                    '%s: round %d at min-count %d was finished by an earlier run',
                    self._label,
                    self._number,
                    min_count,
                )
            return []
        if self._ahead is None or self._most == 1:
            return [min_count]
        ahead = self._ahead(self._sizes, self._most)
        together = [
            candidate
            for candidate in dict.fromkeys([min_count, *ahead])
            if not self._is_learned(candidate)
        ]
        if len(together) > 1:
            _LOGGER.info(
                '%s: round %d learns %d min-counts at once, which the search may come to',
                self._label,
                self._number,
                len(together),
            )
        self._together.update(together)
        return together

    def end_round(self, min_count: int, size: int) -> None:
        """Takes the size of a min-count's vocabulary."""
        self._sizes[min_count] = size


BeamSearch = Callable[[VocabularySearch, Progress], tuple[Learned, int]]
"""The function that a scheme's `beam_learner` names: returns the result, and the predicted memory
of this process in bytes."""
