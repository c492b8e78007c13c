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

import google_crc32c

from pipelines.files import filesystem
from pipelines.files.claims import CLAIM_NAME, Claim
from pipelines.files.filesystem import delete_if_empty, delete_known, names_below
from pipelines.files.work_folder import delete_own_if_empty
from pipelines.jobs.corpus import InputChecksums
from pipelines.jobs.read_plan import ReadPlan
from pipelines.jobs.shuffle_memory import ShuffleMemory
from pipelines.shuffle.encoded_sample import DiskNeed
from pipelines.transforms.encode_blocks import BlockEncoder, SplitShards
from tokcore.corpus.corpus import Split, WorkItem, split_of
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
    needed_bytes: int = 0  # on disk, with the shards; known when the shuffle has begun

    def run_path(self, name: str) -> str:
        return os.path.join(self.folder, name)


@dataclass(frozen=True)
class PlannedShuffle:
    plan: ShufflePlan
    items: tuple[RunItem, ...]
    content: dict


def plan_shuffle(
    read_plan: ReadPlan,
    encoder: BlockEncoder,
    layout: Sequence[SplitShards],
    memory: ShuffleMemory,
    work: str,
    output: str,
) -> PlannedShuffle:
    """Returns the plan of a shuffle; a plan on disk whose runs can be used is resumed.

    Such a plan may differ in the size of its runs alone, and only to a smaller one: how much memory is
    free changes from day to day.

    Args:
        read_plan: what is read, as work items.
        encoder: of its blocks.
        layout: for each split its shards and buckets.
        memory: the largest runs that may be, and for how many processes.
        work: the folder that the folder of the runs is in.
        output: the folder that the shards are for at last: no other output's runs are touched.
    """
    content = {**_content(read_plan, encoder, layout), 'output': output}
    items = _run_items(read_plan, memory.run_bytes, memory.processes)
    content |= _cut(items, memory.run_bytes)
    fingerprint = fingerprint_of(content)
    for earlier in stored_plans(work):
        run_bytes = earlier.content.get('run_bytes')
        if isinstance(run_bytes, int) and 0 < run_bytes <= memory.run_bytes:
            smaller = _run_items(read_plan, run_bytes, memory.processes)
            cut = {**content, **_cut(smaller, run_bytes)}
            if plan_json(earlier.content) == plan_json(cut):
                content, fingerprint, items = earlier.content, earlier.fingerprint, smaller
                break
    plan = ShufflePlan(
        os.path.join(work, f'{FOLDER_PREFIX}{fingerprint.hex()}'),
        fingerprint,
        tuple(layout),
        content['run_bytes'],
        read_plan.item_bytes,
        read_plan.reading.max_line_bytes,
    )
    return PlannedShuffle(plan, tuple(items), content)


def begin_shuffle(planned: PlannedShuffle, need: DiskNeed) -> ShufflePlan:
    """Sweeps what is left of other plans for an output, looks for room, and writes the plan down.

    Returns the plan with what it needs on disk.

    Raises:
        FullDiskError: there is far too little room.
    """
    plan, output = planned.plan, planned.content['output']
    _sweep_except(plan.folder, os.path.dirname(plan.folder), output)
    delete_half_files(plan.folder)
    refuse_too_little_room(need, plan.folder, output)
    filesystem.write_bytes(os.path.join(plan.folder, PLAN_NAME), plan_json(planned.content))
    return dataclasses.replace(plan, needed_bytes=need.bytes)


def _cut(items: Sequence[RunItem], run_bytes: int) -> dict[str, object]:
    """What a plan says of how the corpus is cut into runs."""
    return {'run_bytes': run_bytes, 'items': [len(run.items) for run in items]}


def _content(read_plan: ReadPlan, encoder: BlockEncoder, layout: Sequence[SplitShards]) -> dict:
    """All that the bytes of the runs depend on, except their size."""
    reading = read_plan.reading
    vocabularies = {
        path: filesystem.read_bytes(path) if path else b''
        for path in (encoded_feature.vocabulary for encoded_feature in encoder.features)
    }
    items = plan_json([item.key for item in read_plan.all_items])
    checksums = InputChecksums(reading.corpus.inputs)
    return {
        'format': SHUFFLE,
        'code': source_digest(),
        'unicode': UNICODE_VERSION,
        'seed': encoder.seed,
        'on_error': reading.on_error,
        'block_bytes': read_plan.item_bytes,
        'work_items': hashlib.sha256(items).hexdigest(),
        'layout': [list(dataclasses.astuple(split_shards)) for split_shards in layout],
        'features': [
            [
                *dataclasses.astuple(encoded_feature.feature),
                len(vocabularies[encoded_feature.vocabulary]),
                google_crc32c.value(vocabularies[encoded_feature.vocabulary]),
            ]
            for encoded_feature in encoder.features
        ],
        'inputs': [
            [
                corpus_input.split, corpus_input.role, corpus_input.file_index, corpus_input.side,
                corpus_input.file.path, corpus_input.file.size,
                corpus_input.stored.modified or checksums.of(corpus_input).crc32c,
            ]
            for corpus_input in reading.corpus.inputs
        ],
        'max_line_bytes': reading.max_line_bytes,
        'scheme': reading.scheme.name,
        'rules': reading.scheme.rules.metadata(),
        'datasets': [_dataset_content(split) for split in reading.corpus.splits],
        'encoding': recorded(encoder.options),
    }  # fmt: skip


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
            # A run is of one dataset, whose numbers it tells.
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


def sweep_shuffles(work: str, output: str, keep_begun: bool = False) -> None:
    """Deletes all folders of runs for an output, and a work folder left empty.

    Args:
        work: the work folder.
        output: whose runs these are.
        keep_begun: keep folders that have a finished run, and those without a sound plan.
    """
    if not keep_begun:
        _sweep_except(None, work, output)
    else:
        for plan in list(stored_plans(work)):
            if plan.content.get('output') == output:
                if not any(map(_RUN.fullmatch, names_below(plan.folder))):
                    _delete_shuffle(plan.folder)
    delete_own_if_empty(work)


def _sweep_except(keep: str | None, work: str, output: str) -> None:
    """Deletes all folders of runs for an output except one, and those that have no sound plan."""
    plans = list(stored_plans(work))
    for plan in plans:
        if plan.folder != keep and plan.content.get('output') == output:
            _delete_shuffle(plan.folder)
    planned = {keep, *(plan.folder for plan in plans)}
    for name in filter(_FOLDER.fullmatch, filesystem.entries(work)):
        folder = os.path.join(work, name)
        if folder not in planned:
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


@dataclass(frozen=True)
class StoredPlan:
    """A plan as it lies in its folder, whose name is the fingerprint of what the plan says."""

    folder: str
    fingerprint: bytes
    content: dict


def stored_plans(work: str) -> Iterator[StoredPlan]:
    """The folders of runs in a work folder, with what their plans say.

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
        if not isinstance(content, dict):
            continue
        fingerprint = bytes.fromhex(folder.removeprefix(FOLDER_PREFIX))
        if fingerprint == fingerprint_of(content):
            yield StoredPlan(os.path.join(work, folder), fingerprint, content)


def fingerprint_of(content: dict) -> bytes:
    return hashlib.sha256(plan_json(content)).digest()[:16]


def plan_json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def delete_half_files(folder: str) -> None:
    """Deletes the half-written files of a killed run."""
    delete_known(folder, lambda name: _HALF.fullmatch(name) is not None)


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
    for use in _uses(need, runs_folder, output):
        if use.free < _LEAST_SHARE * use.bytes:
            raise FullDiskError(
                f'about {_mib(use.bytes)} MiB are needed in {use.folder} for {use.what}, by a sample '
                f'of the text, and {use.free >> 20} MiB are free; make room, or give another '
                f'{use.option}'
            )


@dataclass(frozen=True)
class _Use:
    """Bytes that are needed on the disk of a folder, and that are free there."""

    folder: str
    what: str
    option: str
    bytes: int

    @property
    def free(self) -> int:
        return shutil.disk_usage(_existing(self.folder)).free


def _uses(need: DiskNeed, runs_folder: str, output: str) -> list[_Use]:
    """Returns what is needed of each disk of this machine."""
    there = 0
    if not filesystem.is_shared(runs_folder) and os.path.isdir(runs_folder):
        there = sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(runs_folder))
    runs = _Use(runs_folder, 'the shuffle', '--work', max(0, need.runs - there))
    shards = _Use(output, 'the result', '--output', need.result)
    local = [use for use in (runs, shards) if not filesystem.is_shared(use.folder)]
    if len({os.stat(_existing(use.folder)).st_dev for use in local}) == 2 or len(local) < 2:
        return local
    both = 'the shuffle and the result'
    return [_Use(output, both, '--output', runs.bytes + shards.bytes)]


def _existing(folder: str) -> str:
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def _mib(size: int) -> int:
    return -(-size >> 20)
