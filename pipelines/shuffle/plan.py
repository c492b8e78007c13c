"""The plan of a shuffle through files: written to disk before any work, and read by a rerun.

The bytes of a run depend on the plan alone. The plan's fingerprint names the folder of the runs, so
a rerun with the same plan finds what is finished, and one with another plan ignores it. A shuffle does
not begin without room on disk for its runs and shards.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.artifacts.vocabularies import VocabularyReader, vocabulary_reader
from pipelines.files import filesystem
from pipelines.files.attempts import delete_own_if_empty
from pipelines.files.claims import CLAIM_NAME, Claim
from pipelines.files.filesystem import delete_if_empty, delete_known, names_below
from pipelines.jobs.corpus import input_checksums
from pipelines.jobs.job import CorpusReading, Execution
from pipelines.jobs.reading import ReadPlan
from pipelines.shuffle.encoded_sample import DiskNeed
from pipelines.transforms.encode_blocks import BlockEncoder, SplitShards
from pipelines.transforms.read import MOST_AHEAD
from tokcore.corpus.corpus import Split, WorkItem, split_of
from tokcore.encoding.encoder import DEFAULT_CACHE_BYTES
from tokcore.encoding.kernels import cache_memory
from tokcore.errors import FullDiskError, InputError
from tokcore.format_numbers import SHUFFLE
from tokcore.kernels.cache_folder import source_digest
from tokcore.options import recorded
from tokcore.text.unicode import UNICODE_VERSION

_RUN_PARTS = 4
"""Buffers' worth of text in a run item: its last part is seldom full, and one of several parts
wastes less. Larger items would leave a cluster's last workers waiting."""

_ITEMS_PER_PROCESS = 4

PLAN_NAME = 'plan.json'
FOLDER_PREFIX = 'shuffle-'
_RUN_PREFIX = 'run-'

_FOLDER = re.compile(rf'{FOLDER_PREFIX}[0-9a-f]{{32}}')
_RUN = re.compile(rf'{_RUN_PREFIX}\d{{6,}}-\d{{4,}}')
_HALF = re.compile(r'\.tokbeam-attempt-[0-9a-f]{32}')
_RUN_FILES = re.compile(f'{_RUN.pattern}|{_HALF.pattern}')


@dataclass(frozen=True)
class ShuffleMemory:
    """Sizes that keep every process of a job below its share of the memory."""

    run_bytes: int  # of a part of a run, in memory
    group_bytes: int  # of the buckets merged at once
    workers: int  # threads in a process
    processes: int
    needed: int = 0  # in a process without these buffers


@dataclass(frozen=True)
class RunItem:
    """Consecutive work items of one split, which become one sorted run."""

    run: int  # counts through all splits
    split: int
    items: tuple[WorkItem, ...]


@dataclass(frozen=True)
class ShufflePlan:
    """What the makers and the readers of runs go by."""

    folder: str
    fingerprint: bytes  # 16
    layout: tuple[SplitShards, ...]
    run_bytes: int  # of a part of a run, in memory
    block_bytes: int
    max_line_bytes: int
    needed_bytes: int = 0  # on disk, with the shards

    def run_path(self, name: str) -> str:
        return os.path.join(self.folder, name)


@contextlib.contextmanager
def begun_shuffle(
    read_plan: ReadPlan,
    encoder: BlockEncoder,
    layout: Sequence[SplitShards],
    memory: ShuffleMemory,
    need: DiskNeed,
    work: str,
    output: str,
) -> Iterator[tuple[ShufflePlan, list[RunItem]]]:
    """Plans a shuffle, claims its folder for a block, and writes the plan down; gives it and the run items.

    A plan on disk whose runs can be used is resumed. Such a plan may differ in the size of its runs
    alone, and only to a smaller one: how much memory is free changes from day to day. What is left of
    other plans for the output is deleted.

    Args:
        read_plan: what is read, as work items.
        encoder: of its blocks.
        layout: for each split its shards and buckets.
        memory: the largest runs that may be, and for how many processes.
        need: what the job takes on disk.
        work: the folder that the folder of the runs is in.
        output: the folder that the shards are for at last: no other output's runs are touched.

    Raises:
        FullDiskError: there is far too little room.
        InputError: another run has claimed the folder.
    """
    items = _run_items(read_plan, memory.run_bytes, memory.processes)
    content = _content(read_plan, encoder, layout, items, memory.run_bytes, output)
    for _, earlier in stored_plans(work):
        run_bytes = earlier.get('run_bytes')
        if isinstance(run_bytes, int) and 0 < run_bytes <= memory.run_bytes:
            smaller = _run_items(read_plan, run_bytes, memory.processes)
            cut = {'run_bytes': run_bytes, 'items': [len(run.items) for run in smaller]}
            if plan_json(earlier) == plan_json({**content, **cut}):
                content, items = earlier, smaller
                break
    fingerprint = fingerprint_of(content)
    folder = os.path.join(work, f'{FOLDER_PREFIX}{fingerprint.hex()}')
    with Claim(os.path.join(folder, CLAIM_NAME), folder) as claim:
        claim.require()
        _sweep_except(folder, work, output)
        # What a killed run has written by half.
        delete_known(folder, lambda name: _HALF.fullmatch(name) is not None)
        refuse_too_little_room(need, folder, output)
        filesystem.write_bytes(os.path.join(folder, PLAN_NAME), plan_json(content))
        yield (
            ShufflePlan(
                folder,
                fingerprint,
                tuple(layout),
                content['run_bytes'],
                read_plan.item_bytes,
                read_plan.reading.max_line_bytes,
                need.bytes,
            ),
            items,
        )


def _content(
    read_plan: ReadPlan,
    encoder: BlockEncoder,
    layout: Sequence[SplitShards],
    runs: Sequence[RunItem],
    run_bytes: int,
    output: str,
) -> dict:
    """Returns what a plan says: all that the bytes of the runs depend on, and whose they are."""
    reading = read_plan.reading
    checksum = input_checksums(reading.corpus.inputs)
    inputs = [
        [
            *(each.split, each.role, each.file_index, each.side, each.file.path, each.file.size),
            each.stored.modified or checksum(each).crc32c,
        ]
        for each in reading.corpus.inputs
    ]
    scheme, read = reading.scheme, vocabulary_reader(reading.scheme)
    features = [
        [*dataclasses.astuple(each.feature), *_vocabulary_content(each.vocabulary, read)]
        for each in encoder.features
    ]
    items = plan_json([item.key for item in read_plan.all_items])
    return {
        'format': SHUFFLE,
        'code': source_digest(),
        'unicode': UNICODE_VERSION,
        'seed': encoder.seed,
        'on_error': reading.on_error,
        'block_bytes': read_plan.item_bytes,
        'work_items': hashlib.sha256(items).hexdigest(),
        'layout': [list(dataclasses.astuple(split_shards)) for split_shards in layout],
        'features': features,
        'inputs': inputs,
        'max_line_bytes': reading.max_line_bytes,
        'scheme': [scheme.name, recorded(scheme)],
        'rules': scheme.rules.metadata(),
        'datasets': [_dataset_content(split) for split in reading.corpus.splits],
        'encoding': recorded(encoder.options),
        'output': output,
        'run_bytes': run_bytes,
        'items': [len(run.items) for run in runs],
    }


def _vocabulary_content(path: str, read: VocabularyReader) -> list[object]:
    """Returns the size and the checksum of each file that a vocabulary is read from."""
    if not path:
        return []
    files = [[file.bytes, file.crc32c] for file in read(path).beside]
    return [len(read(path).data), read(path).crc32c, *files]


def _dataset_content(split: Split) -> list[object]:
    filters = [[row_filter.spec, row_filter.stamp] for row_filter in split.filters]
    return [
        split.name,
        split.dataset,
        split.first_file_index,
        split.prefixes,
        split.max_examples,
        filters,
        split.keeps_dropped,
        *([dataclasses.astuple(split.key_range)] if split.key_range else []),
        *([hashlib.sha256(split.left_out).hexdigest()] if split.left_out else []),
    ]


def _run_items(read_plan: ReadPlan, run_bytes: int, processes: int) -> list[RunItem]:
    """Cuts each split's work items into runs.

    A gzip file is one item, and its run has parts; so it is with all members of a tar.gz.
    """
    corpus = read_plan.reading.corpus
    limit = _RUN_PARTS * run_bytes
    if processes > 1:
        text = sum(map(corpus.text_bytes, corpus.split_names))
        limit = min(limit, text // (_ITEMS_PER_PROCESS * processes))
    runs: list[RunItem] = []
    for number, name in enumerate(corpus.split_names):
        held: list[WorkItem] = []
        size = 0
        dataset: Split | None = None
        for items in read_plan.passes[name]:
            # A run is of one dataset, and its numbers are those of that dataset.
            before, dataset = dataset, split_of(corpus.splits, name, items[0].file_index)
            stored_bytes = sum(item.stored_bytes for item in items)
            if held and (before is not dataset or size + stored_bytes > limit):
                runs.append(RunItem(len(runs), number, tuple(held)))
                held, size = [], 0
            held += items
            size += stored_bytes
        if held:
            runs.append(RunItem(len(runs), number, tuple(held)))
    return runs


def run_name(run: int, part: int) -> str:
    return f'{_RUN_PREFIX}{run:06d}-{part:04d}'


@dataclass(frozen=True)
class KeptRuns:
    """The sorted runs for an output in a work folder, which a rerun continues with."""

    work: str
    output: str

    def sweep(self, keep_begun: bool = False) -> None:
        """Deletes all folders of runs for the output, and a work folder left empty.

        Args:
            keep_begun: keep folders that have a finished run, and those without a sound plan.
        """
        if not keep_begun:
            _sweep_except(None, self.work, self.output)
        else:
            for folder, plan in list(stored_plans(self.work)):
                if plan.get('output') == self.output:
                    if not any(map(_RUN.fullmatch, names_below(folder))):
                        _delete_shuffle(folder)
        delete_own_if_empty(self.work)


def _sweep_except(keep: str | None, work: str, output: str) -> None:
    """Deletes all folders of runs for an output except one, and those that have no sound plan."""
    outputs = {folder: plan.get('output') for folder, plan in stored_plans(work)}
    for name in filter(_FOLDER.fullmatch, filesystem.entries(work)):
        folder = os.path.join(work, name)
        if folder in outputs:
            if folder != keep and outputs[folder] == output:
                _delete_shuffle(folder)
        elif folder != keep:
            # Another run may be about to write its plan there.
            claim_path = os.path.join(folder, CLAIM_NAME)
            with contextlib.suppress(InputError), Claim(claim_path, folder) as claim:
                claim.require()
                _delete_shuffle(folder)
            delete_if_empty(folder)


def _delete_shuffle(folder: str) -> None:
    """Deletes a folder of runs: what this tool makes there, and the plan when all else is gone."""
    delete_known(folder, lambda name: _RUN_FILES.fullmatch(name) is not None)
    delete_known(folder, {PLAN_NAME, CLAIM_NAME}.__contains__)


def stored_plans(work: str) -> Iterator[tuple[str, dict]]:
    """Yields the folders of runs in a work folder, with what their plans say.

    A folder counts only if its plan has the fingerprint that is its name: nobody else's has.
    """
    if not filesystem.is_folder(work):
        return
    for file in filesystem.list_folder(work):
        folder, _, name = file.name.partition('/')
        if not _FOLDER.fullmatch(folder) or name != PLAN_NAME:
            continue
        try:
            content = json.loads(filesystem.read_bytes(file.path))
        except (ValueError, RecursionError):
            continue
        except InputError:
            if filesystem.exists(file.path):
                raise
            continue  # another run has ended
        is_plan = isinstance(content, dict)
        if is_plan and folder == f'{FOLDER_PREFIX}{fingerprint_of(content).hex()}':
            yield os.path.join(work, folder), content


def fingerprint_of(content: dict) -> bytes:
    return hashlib.sha256(plan_json(content)).digest()[:16]


def plan_json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


_LEAST_SHARE = 0.5
"""Of what a sample says is needed: with less free a job is refused, with more it begins. Later text
may be so much shorter, or more is left out of it; a job that would fit must not be refused, and one
that does not fit after all ends with a sentence and keeps what is finished."""


def refuse_too_little_room(need: DiskNeed, runs_folder: str, output: str) -> None:
    """Refuses a job for which there is far too little room.

    Args:
        need: what it takes, by a sample of its text.
        runs_folder: where the runs go; those that are there already need no room.
        output: the folder of the shards, perhaps on another disk.

    Raises:
        FullDiskError: there is less than half of what the job seems to need.
    """
    there = 0
    if not filesystem.is_shared(runs_folder) and os.path.isdir(runs_folder):
        there = sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(runs_folder))
    runs = max(0, need.runs - there)
    uses = [
        (runs_folder, 'the shuffle', '--work', runs),
        (output, 'the result', '--output', need.result),
    ]
    uses = [use for use in uses if not filesystem.is_shared(use[0])]  # stores are never full
    if len(uses) == 2 and len({os.stat(_existing(folder)).st_dev for folder, *_ in uses}) == 1:
        uses = [(output, 'the shuffle and the result', '--output', runs + need.result)]
    for folder, what, option, size in uses:
        free = shutil.disk_usage(_existing(folder)).free
        if free < _LEAST_SHARE * size:
            raise FullDiskError(
                f'about {_mib(size)} MiB are needed in {folder} for {what}, by a sample '
                f'of the text, and {free >> 20} MiB are free; make room, or give another {option}'
            )


def _existing(folder: str) -> str:
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def _mib(size: int) -> int:
    return -(-size >> 20)


_LEAST_RUN_BYTES = 4 << 20
"""Less memory than for this is refused: the merge of that many runs would do nothing but seek."""

_LARGEST_GROUP = 32 << 20
"""Buckets that are read together from each run. Twice as much takes twice the time to merge, because
from there on the allocator returns pages each time and gets them again."""

_BLOCK_FACTOR = 8
"""Memory of a thread for a block, as a multiple of its text: normalized text, ids, records, and what
the allocator keeps; measured."""

_LINE_FACTOR = 16
"""Memory of a thread for a line much longer than an item, at most, as a multiple of its text; measured
with 16 MiB. It is more only for characters that no vocabulary has, which are spelled in digits."""


def fit_memory(
    execution: Execution, longest_line: int, vocabularies: int, reads_ahead: bool = False
) -> ShuffleMemory:
    """Returns the largest buffers, and with them the most threads, that fit.

    Args:
        execution: the requested threads, the limit, and the sizes of buffers and work items.
        longest_line: the most bytes that a line can have; one line at a time has that many.
        vocabularies: how many; each thread caches tokens of each.
        reads_ahead: whether parts of compressed files may be read ahead.

    Raises:
        InputError: not even one thread with the least buffer fits.
    """
    runner, item_bytes = execution.engine.runner, execution.item_bytes
    share = runner.memory_share(execution.memory_bytes)
    least = min(_LEAST_RUN_BYTES, execution.buffer_bytes // 2)
    # The memory of the longest line, beyond that of the block in its place.
    line = max(0, _LINE_FACTOR * longest_line - _BLOCK_FACTOR * item_bytes)
    needed = 0
    for workers in range(execution.engine.workers, 0, -1):
        # A block for each thread, one that is being read and one that waits.
        threads = workers * vocabularies * cache_memory(DEFAULT_CACHE_BYTES)
        blocks = (workers + 2) * item_bytes * _BLOCK_FACTOR // 2
        if reads_ahead and workers > 1:
            blocks += (workers + 1) * MOST_AHEAD * item_bytes
        needed = threads + blocks + line + 2 * least
        if share is None or needed <= share:
            buffers = execution.buffer_bytes
            if share is not None:
                buffers = min(buffers, share - threads - blocks - line)
            # Each thread, and the reader, holds a group as it was read and as it is written.
            group = min(_LARGEST_GROUP, max(1, buffers // (2 * (workers + 1))))
            fixed = threads + blocks + line
            return ShuffleMemory(max(1, buffers // 2), group, workers, runner.processes, fixed)
    assert share is not None
    raise InputError(
        f'encoding takes at least {_mib(needed)} MiB of memory beside the program, and '
        f'{_mib(share)} are left of --memory or free; give more'
        + (', or a smaller --max-line-size' if line > blocks else '')
    )


def refuse_too_little_memory(
    reading: CorpusReading, execution: Execution, vocabularies: int
) -> None:
    """Refuses a shuffle through files whose least buffers do not fit, before anything is read for it.

    Raises:
        InputError: they would not fit.
    """
    if execution.engine.runner.through_files:
        fit_memory(execution, reading.longest_line, vocabularies, reading.corpus.may_have_parts)
