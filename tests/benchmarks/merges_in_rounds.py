"""What it takes to learn merges in rounds on Beam, and in memory: lines of a Markdown table.

    tokbeam count --text corpus.txt --scheme bpe --output counts
    python -m tests.benchmarks.merges_in_rounds counts

The fragments of a round take at most a share of the cells of all words: a cell is a byte of a token
or the end of one. Each line is measured in a process of its own, which is driver, runner and worker.
The lines must have learned the same, or this ends with an error.
"""

import argparse
import dataclasses
import hashlib
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from pipelines.artifacts.counts import counts_parts, find_counts, read_counts
from pipelines.engines.machine import peak_bytes
from pipelines.learning.bpe_on_beam import BeamMerges
from pipelines.learning.rounds import MergeFiles
from tokcore.bpe.options import PRESETS, BpeRules
from tokcore.bpe.trainer import LearnedMerges, learn_merges
from tokcore.warm_up import compile_cutting_kernels

_ROWS_IN_PART = 1 << 20
_COLUMNS = (
    'share', 'rounds', 'most fragments', 'their cells', 'MB shuffled', 's', 's of a core', 'MB',
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('counts', nargs='+', help='as of tokbeam vocab --counts')
    parser.add_argument('--preset', choices=[*PRESETS], default='gpt2')
    parser.add_argument('--merges', type=int, default=32_000)
    parser.add_argument('--percent', type=float, nargs='+', default=[100, 10, 2])
    parser.add_argument('--workers', type=int, default=1, help='threads')
    given = parser.parse_args()
    rules = dataclasses.replace(PRESETS[given.preset], merges=given.merges)
    paths = [file.path for file in find_counts(given.counts).files]
    tokens, cells = _size(paths)
    print(f'{tokens} distinct tokens, {cells} cells', flush=True)
    print(f'| {" | ".join(_COLUMNS)} |', '| --- ' * len(_COLUMNS) + '|', sep='\n', flush=True)
    digests = set()
    # A process for each line: its peak of memory is of that line alone.
    with multiprocessing.get_context('spawn').Pool(1, maxtasksperchild=1) as pool:
        for percent in given.percent:
            if percent == 100:
                measured = pool.apply(_in_memory, (given.counts, rules))
            else:
                most_cells = int(cells * percent / 100)
                measured = pool.apply(_in_rounds, (paths, rules, most_cells, given.workers))
            digests.add(measured.pop())
            print('|', ' | '.join(map(str, [f'{percent:g} %', *measured])), '|', flush=True)
    if len(digests) > 1:
        raise SystemExit('the lines have learned different merges')


def _size(paths: Sequence[str]) -> tuple[int, int]:
    """Returns the number of tokens in files, and of their cells."""
    tokens = cells = 0
    for path in paths:
        for batch in parquet.ParquetFile(path).iter_batches(columns=['token']):
            tokens += len(batch)
            cells += len(batch) + compute.sum(compute.binary_length(batch['token'])).as_py()
    return tokens, cells


def _in_memory(counts: Sequence[str], rules: BpeRules) -> list:
    learn_merges(read_counts(find_counts(counts)).part(0, 2), rules)  # compiles
    started = time.perf_counter(), time.process_time()
    learned = learn_merges(read_counts(find_counts(counts)), rules)
    return [*['–'] * 4, *_seconds(started), peak_bytes() // 1_000_000, _digest(learned)]


def _in_rounds(paths: Sequence[str], rules: BpeRules, most_cells: int, workers: int) -> list:
    compile_cutting_kernels()
    with tempfile.TemporaryDirectory() as folder:
        files = MergeFiles(str(Path(folder, 'files')))
        started = time.perf_counter(), time.process_time()
        parts = counts_parts(paths, _ROWS_IN_PART)
        work = str(Path(folder, 'work'))
        learner = BeamMerges(parts, files, work, _run, rules, workers=workers)
        learner.learn(most_cells)
        return [
            len(learner.rounds),
            max(each.fragments for each in learner.rounds),
            learner.largest_cells,
            round(learner.shuffled_bytes / 1e6, 1),
            *_seconds(started),
            peak_bytes() // 1_000_000,
            _digest(learner.learning.learned()),
        ]


def _run(build: Callable[[beam.Pipeline], None]) -> None:
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        build(pipeline)


def _seconds(started: tuple[float, float]) -> list[float]:
    wall, core = started
    return [round(time.perf_counter() - wall, 1), round(time.process_time() - core, 1)]


def _digest(learned: LearnedMerges) -> str:
    listed = json.dumps([learned.entries, learned.merges]).encode()
    return hashlib.sha256(listed + learned.counts.astype(np.int64).tobytes()).hexdigest()


if __name__ == '__main__':
    main()
