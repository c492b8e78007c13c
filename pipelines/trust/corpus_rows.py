"""The rows of a split's corpus, read once, with their order keys.

An order key is a place in the corpus and nothing else, so sorted keys are the rows of the dataset in
order. A pass holds 8 bytes for each row.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import operator
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from pipelines.engines.compiling import compile_ahead
from pipelines.engines.progress import stage_running, track_work
from pipelines.jobs.job import BuildJob, CorpusReading, EncodeJob
from pipelines.jobs.reading import ReadPlan, plan_reading
from pipelines.transforms.encode_blocks import EncodedFeature, LoadedBlockEncoder
from pipelines.transforms.read import READING, read_items
from tokcore.corpus.corpus import Block, Rows, Split, WorkItem
from tokcore.corpus.order_keys import order_keys, shard_of
from tokcore.corpus.stats import LineTally, RangeChecksum, block_stats, join_adjacent
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.filters.applying import select_rows
from tokcore.records.examples import encode_rows
from tokcore.records.tfrecord import FramedRows

_Taken = TypeVar('_Taken')

_BLOCKS_AHEAD = 2
"""Blocks of a pass that wait to be looked at, while the next one is read."""

CHANGED = 'the corpus has changed while it was read; run again'


@contextlib.contextmanager
def planned(job: BuildJob | EncodeJob) -> Iterator[DatasetCorpus]:
    """Plans the reading of a dataset's corpus, in a temporary folder for the time of the block."""
    with tempfile.TemporaryDirectory(prefix='tokbeam-') as folder, stage_running('index'):
        plan = plan_reading(job.reading, job.execution, folder)
    yield DatasetCorpus(job, plan)


def features_of(job: BuildJob | EncodeJob) -> list[EncodedFeature]:
    """Returns what an example of a dataset holds."""
    paths = job.vocabulary_paths(job.output) if isinstance(job, BuildJob) else job.vocabularies
    return job.dataset.features(paths, job.reading.corpus.format.sides)


@dataclass(frozen=True)
class CorpusRows(Generic[_Taken]):
    """What one pass over a split has found.

    Attributes:
        split: its name.
        keys: uint64[rows], ascending: the order key of each row of the split.
        tallies: of each dataset, without what only encoding counts.
        checksums: of what was read.
        taken: what `take` returned for each block, in the order of the corpus, without None.
    """

    split: str
    keys: np.ndarray
    tallies: tuple[LineTally, ...]
    checksums: tuple[RangeChecksum, ...]
    taken: tuple[_Taken, ...]

    def bounds(self, shards: int) -> list[int]:
        """Returns the number of the first row of each of so many shards, and how many rows there are."""
        return np.searchsorted(shard_of(self.keys, shards), range(shards + 1)).tolist()


Take = Callable[[Block, Rows, np.ndarray], _Taken | None]
"""Takes what is wanted of a block: its rows, and their order keys."""


def nothing(block: Block, rows: Rows, keys: np.ndarray) -> None:
    """Takes nothing: a pass gives keys and tallies."""


class DatasetCorpus:
    """The corpus of a dataset, as the job names it that made it; without a plan it encodes only."""

    def __init__(self, job: BuildJob | EncodeJob, plan: ReadPlan | None = None):
        self._job, self._plan = job, plan

    @property
    def reading(self) -> CorpusReading:
        """The corpus, and how it is read."""
        return self._job.reading if self._plan is None else self._plan.reading

    @property
    def seed(self) -> int:
        return self._job.dataset.seed

    def vocabulary(self, path: str) -> Vocabulary:
        """Returns the vocabulary of a feature by its path."""
        return self._encoder.vocabulary(path)

    def read(self, split: str, take: Take, workers: int) -> CorpusRows:
        """Reads a split once, with several threads.

        Raises:
            InputError: a file cannot be read, or has a line that cannot be used.
        """
        plan = self._plan
        assert plan is not None
        passes = plan.passes[split]
        total = sum(item.stored_bytes for items in passes for item in items)

        def read(items: Sequence[WorkItem]) -> list:
            parts = []
            looks: collections.deque[Future] = collections.deque()
            for block in read_items(items, plan.item_bytes, plan.reading.max_line_bytes):
                looks.append(lookers.submit(self._look, take, block))
                if len(looks) > _BLOCKS_AHEAD:
                    parts.append(looks.popleft().result())
            return parts + [look.result() for look in looks]

        parts = []
        with (
            stage_running('read'),
            track_work('read', READING, total),
            # A file that only one thread can unpack is looked at by others meanwhile.
            ThreadPoolExecutor(max(1, workers)) as lookers,
            ThreadPoolExecutor(max(1, workers)) as pool,
        ):
            for part in pool.map(read, passes):
                parts += part
        parts.sort(key=operator.itemgetter(0))
        keys = np.sort(np.concatenate([np.empty(0, np.uint64), *(part[1] for part in parts)]))
        if len(keys) and np.any(keys[1:] == keys[:-1]):
            raise RuntimeError('two rows have one order key')
        return CorpusRows(
            split,
            keys,
            tuple(part[2] for part in parts),
            tuple(join_adjacent(checksum for part in parts for checksum in part[3])),
            tuple(part[4] for part in parts if part[4] is not None),
        )

    def encode(self, block: Block, rows: Rows) -> FramedRows:
        """Returns rows of a block as they are written."""
        return encode_rows(block, rows, self._encoder.features(), self.seed, self._splits)

    def encode_where(self, is_wanted: Callable[[np.ndarray], np.ndarray]) -> Take[FramedRows]:
        """Returns what takes the rows of a block with wanted order keys, as they are written.

        Args:
            is_wanted: returns which of some keys are wanted: bool[keys].
        """

        def take(block: Block, rows: Rows, keys: np.ndarray) -> FramedRows | None:
            wanted = is_wanted(keys)
            return self.encode(block, rows.select(wanted)) if wanted.any() else None

        return take

    def prepare(self) -> None:
        """Loads the vocabularies, before threads need them."""
        compile_ahead(self._job.execution.engine.scheme, ['encoding', 'records'])
        self._encoder.features()

    @property
    def _splits(self) -> tuple[Split, ...]:
        return self.reading.corpus.splits

    @functools.cached_property
    def _encoder(self) -> LoadedBlockEncoder:
        return self._job.dataset.encoder(features_of(self._job), self.reading).load()

    def _look(self, take: Take, block: Block) -> tuple:
        rows = select_rows(block, self._splits, self._job.reading.scheme.normalizer)
        keys = order_keys(block.file_index, rows.identities, self.seed)
        stats = block_stats(block, rows, self._splits, self.reading.on_error)
        tally = dataclasses.replace(stats.tally, text_bytes=rows.text_bytes)
        place = block.file_index, block.offset
        return place, keys, tally, stats.checksums, take(block, rows, keys)
