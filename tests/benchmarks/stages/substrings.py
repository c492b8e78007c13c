"""Whole searches on Beam from generated counts: the bytes that are shuffled, and the jobs."""

import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow.parquet as parquet
from apache_beam.runners.portability.fn_api_runner.execution import GroupingBuffer

from pipelines.learning.subword_on_beam import PackedLearner
from tests.plain_learner import BeamLearner
from tokcore.learning.size_search import search_vocabulary
from tokcore.subword.text_encoder import dump_vocabulary

from ..generated_counts import generated_table
from ..outcome import Outcome, Ready
from .blocks import get_ready
from .counting import MAX_SUBTOKEN_LENGTH, MIN_COUNTS

_LEARNERS = {'packed': PackedLearner, 'plain': BeamLearner}
_FILES = 4


def search_on_beam(ready: Ready, *, form: str, tokens: int, vocabulary_size: int) -> Outcome:
    """Searches a vocabulary from a generated table in files, by packed or by plain counting."""
    table = generated_table(tokens)
    get_ready()
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number in range(_FILES):
            paths.append(str(Path(folder, f'counts-{number}.parquet')))
            part = table.pick(np.arange(number, len(table), _FILES))
            parquet.write_table(part.to_arrow(), paths[-1])
        run = _ObservedRuns()
        ready()
        started = time.perf_counter()
        learner = _LEARNERS[form](
            paths, str(Path(folder, 'work')), run, max_subtoken_length=MAX_SUBTOKEN_LENGTH
        )
        result = search_vocabulary(
            learner.build,
            vocabulary_size,
            min_count_range=MIN_COUNTS,
            smallest_size=learner.smallest_size,
            largest_count=int(table.counts.max()),
        )
        seconds = time.perf_counter() - started
    facts = {
        'digest': hashlib.sha256(dump_vocabulary(result.subtokens)).hexdigest()[:16],
        'size': len(result.subtokens),
        'rounds': len(result.tried),
        'jobs': run.jobs,
        'shuffled_bytes': run.shuffled_bytes,
        'shuffled_elements': run.shuffled_elements,
    }
    return Outcome(seconds, facts)


class _ObservedRuns:
    """Runs pipelines, and adds up the input of their shuffles."""

    def __init__(self) -> None:
        self.jobs = 0
        self.shuffled_bytes = 0
        self.shuffled_elements = 0
        self._observe()

    def __call__(self, build_pipeline: Callable[[beam.Pipeline], None]) -> None:
        self.jobs += 1
        with beam.Pipeline(runner='FnApiRunner') as pipeline:
            build_pipeline(pipeline)

    def _observe(self) -> None:
        append, partition = GroupingBuffer.append, GroupingBuffer.partition

        def observed_append(buffer: GroupingBuffer, data: bytes) -> None:
            self.shuffled_bytes += len(data)
            append(buffer, data)

        def observed_partition(buffer: GroupingBuffer, parts: int) -> list:
            # The first call of `partition` empties the table.
            self.shuffled_elements += sum(map(len, buffer._table.values()))
            return partition(buffer, parts)

        # Not undone, because the process ends after this run.
        GroupingBuffer.append, GroupingBuffer.partition = observed_append, observed_partition
