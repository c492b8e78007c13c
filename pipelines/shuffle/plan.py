"""The plan of a shuffle through files: written to disk before any work, and what a rerun goes by.

A run's bytes depend on the plan alone. Its fingerprint names the folder of the runs, so a rerun
with the same plan finds what is finished, and any other leaves it aside.
"""

import dataclasses
import functools
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import google_crc32c

from pipelines.files import filesystem
from pipelines.files.claims import CLAIM_NAME, sweep_claim
from pipelines.files.work_folder import delete_own_if_empty
from pipelines.jobs.corpus_files import Corpus, Job, checksum_input
from pipelines.jobs.shuffle_options import ShuffleMemory, processes_of
from pipelines.transforms.encode_blocks import BlockEncoder, EncodedFeature, SplitShards
from tokcore.compiled.compilation import earlier_digests, source_digest
from tokcore.corpus.dataset import MAX_LINE_BYTES, WorkItem
from tokcore.corpus.formats.registry import read_blocks
from tokcore.errors import FullDiskError
from tokcore.shuffle.run_file import FORMAT
from tokcore.text.unicode_tables import UNICODE_VERSION

_PLAN_NAME = 'plan.json'
_FOLDER_PREFIX = 'shuffle-'
_RUN_PREFIX = 'run-'

_FOLDER = re.compile(rf'{_FOLDER_PREFIX}[0-9a-f]{{32}}')
_RUN = re.compile(rf'{_RUN_PREFIX}\d{{6,}}-\d{{4,}}')
# Of 6b30307 a half file has the whole one's name in its own.
_HALF = re.compile(rf'\.tokbeam-attempt-((plan\.json|{_RUN.pattern})-)?[0-9a-f]+')
_MADE = re.compile(f'{_RUN.pattern}|{_HALF.pattern}')

_RUN_PARTS = 4
"""Buffers' worth of text in a run item: its last part is seldom full, and one of several parts
wastes less. Larger items would leave a cluster's last workers waiting."""

_ITEMS_PER_PROCESS = 4

_GZIP_LEAST = 2
"""Chinese poetry compresses twofold; nothing is refused for want of room that it may not need."""


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
    needed_bytes: int  # on disk, by a guess from the text's size
    max_line_bytes: int

    def run_path(self, name: str) -> str:
        return filesystem.join(self.folder, name)


@dataclass(frozen=True)
class PlannedShuffle:
    plan: ShufflePlan
    items: tuple[RunItem, ...]
    content: dict


def run_name(run: int, part: int) -> str:
    return f'{_RUN_PREFIX}{run:06d}-{part:04d}'


def plan_shuffle(
    job: Job,
    layout: Sequence[SplitShards],
    features: Sequence[EncodedFeature],
    seed: int,
    memory: ShuffleMemory,
    work: str,
    output: str,
) -> PlannedShuffle:
    """Returns the plan of a job that is cut into work items; goes on with an earlier one's runs.

    An earlier plan that differs in the size of its runs alone, and not to the larger, is taken up:
    what is free changes from day to day.

    Args:
        job: the corpus, its work items and its engine.
        layout: for each split its shards and buckets.
        features: what an example holds.
        seed: of the order keys.
        memory: the largest runs that may be.
        work: the folder that the folder of the runs is in.
        output: the folder that the shards are for at last: no other output's runs are touched.
    """
    content = {**_content(job, layout, features, seed), 'output': output}
    content |= _cut(job, memory.run_bytes)
    fingerprint = _fingerprint(content)
    for earlier in _plans(work):
        run_bytes = earlier.content.get('run_bytes')
        if isinstance(run_bytes, int) and 0 < run_bytes <= memory.run_bytes:
            cut = {**content, **_cut(job, run_bytes)}
            if any(earlier.content == {**cut, 'code': code} for code in _codes()):
                content, fingerprint = earlier.content, earlier.fingerprint
                break
    run_bytes = content['run_bytes']
    items = _run_items(job, run_bytes)
    plan = ShufflePlan(
        filesystem.join(work, f'{_FOLDER_PREFIX}{fingerprint.hex()}'),
        fingerprint,
        tuple(layout),
        run_bytes,
        job.item_bytes,
        _needed(_least_text(job.corpus)),
        job.max_line_bytes,
    )
    return PlannedShuffle(plan, tuple(items), content)


def begin_shuffle(planned: PlannedShuffle, job: Job, encoder: BlockEncoder) -> None:
    """Sweeps what is left of other plans for an output, looks for room, and writes the plan down.

    Raises:
        FullDiskError: there is surely too little room.
    """
    plan = planned.plan
    sweep_shuffles(
        filesystem.split_path(plan.folder)[0], planned.content['output'], keep=plan.folder
    )
    filesystem.delete_known(plan.folder, _HALF.fullmatch)
    _check_free_space(plan, job, encoder)
    filesystem.write_bytes(filesystem.join(plan.folder, _PLAN_NAME), _json(planned.content))


def sweep_shuffles(work: str, output: str, keep: str | None = None) -> None:
    """Deletes the folders of runs for an output, but for one, and a work folder left empty."""
    for plan in list(_plans(work)):
        if plan.folder != keep and plan.content.get('output') == output:
            _delete_shuffle(plan.folder)
    _sweep_unplanned(work)
    delete_own_if_empty(work)


def sweep_unbegun(work: str, output: str) -> None:
    """Deletes the folders for an output that have no finished run."""
    for plan in list(_plans(work)):
        if plan.content.get('output') == output:
            if not any(map(_RUN.fullmatch, filesystem.names_below(plan.folder))):
                _delete_shuffle(plan.folder)
    delete_own_if_empty(work)


def _sweep_unplanned(work: str) -> None:
    """Deletes folders that have no plan yet: a run was killed when it had its claim at most."""
    if not filesystem.is_local(work) or not os.path.isdir(work):
        return
    for name in filter(_FOLDER.fullmatch, os.listdir(work)):
        folder = filesystem.join(work, name)
        if not os.path.islink(folder) and os.path.isdir(folder):
            left = os.listdir(folder)
            if left == [CLAIM_NAME]:
                sweep_claim(filesystem.join(folder, CLAIM_NAME))
            if not left or left == [CLAIM_NAME]:
                filesystem.delete_if_empty(folder)


def _delete_shuffle(folder: str) -> None:
    """Deletes a folder of runs: what this tool makes there, and the plan when all else is gone."""
    filesystem.delete_known(folder, _MADE.fullmatch)
    filesystem.delete_known(folder, {_PLAN_NAME, CLAIM_NAME}.__contains__)


@dataclass(frozen=True)
class _EarlierPlan:
    """A plan as it lies in its folder, whose name is the fingerprint of what the plan says."""

    folder: str
    fingerprint: bytes
    content: dict


def _plans(work: str) -> Iterator[_EarlierPlan]:
    """The folders of runs in a work folder, with what their plans say.

    A folder counts only if its plan has the fingerprint that is its name: nobody else's has.
    """
    if not filesystem.is_folder(work):
        return
    for file in filesystem.list_folder(work):
        folder, _, name = file.name.partition('/')
        if not _FOLDER.fullmatch(folder) or name != _PLAN_NAME:
            continue
        try:
            content = json.loads(filesystem.read_bytes(file.path))
        except (ValueError, RecursionError):
            continue
        if not isinstance(content, dict):
            continue
        fingerprint = bytes.fromhex(folder.removeprefix(_FOLDER_PREFIX))
        # That of 6b30307 left out the output.
        without_output = {name: value for name, value in content.items() if name != 'output'}
        if fingerprint in (_fingerprint(content), _fingerprint(without_output)):
            yield _EarlierPlan(filesystem.join(work, folder), fingerprint, content)


def _fingerprint(content: dict) -> bytes:
    return hashlib.sha256(_json(content)).digest()[:16]


def _cut(job: Job, run_bytes: int) -> dict[str, object]:
    """What a plan says of how the corpus is cut into runs."""
    sizes = [len(each.items) for each in _run_items(job, run_bytes)]
    return {'run_bytes': run_bytes, 'items': sizes}


@functools.cache
def _codes() -> tuple[str, ...]:
    """The digests of sources that give the same runs: these, and earlier ones."""
    return (source_digest(), *earlier_digests())


def _content(
    job: Job, layout: Sequence[SplitShards], features: Sequence[EncodedFeature], seed: int
) -> dict:
    """All that the bytes of the runs depend on, but for how large they are."""
    vocabularies = {each.vocabulary: filesystem.read_bytes(each.vocabulary) for each in features}
    items = _json([dataclasses.astuple(item) for item in _items(job)])
    return {
        'format': FORMAT,
        'code': _codes()[0],
        'unicode': UNICODE_VERSION,
        'seed': seed,
        'on_error': job.on_error,
        'block_bytes': job.item_bytes,
        'work_items': hashlib.sha256(items).hexdigest(),
        'layout': [list(dataclasses.astuple(each)) for each in layout],
        'features': [
            [
                *dataclasses.astuple(each.feature),
                len(vocabularies[each.vocabulary]),
                google_crc32c.value(vocabularies[each.vocabulary]),
            ]
            for each in features
        ],
        'inputs': [
            [
                each.split, each.role, each.place, each.side, each.file.path, each.file.size,
                each.stored.modified or checksum_input(each).crc32c,
            ]
            for each in job.corpus.inputs
        ],
        # A newer option: by default plans stay what they were before it.
        **({} if job.max_line_bytes == MAX_LINE_BYTES else {'max_line_bytes': job.max_line_bytes}),
    }  # fmt: skip


def _items(job: Job) -> list[WorkItem]:
    return [item for split in job.corpus.splits for item in job.items[split.name]]


def _run_items(job: Job, run_bytes: int) -> list[RunItem]:
    """Cuts each split's work items into runs; a gzip file is one item and its run has parts."""
    limit = _RUN_PARTS * run_bytes
    processes = processes_of(job.engine)
    if processes > 1:
        text = sum(job.corpus.text_bytes(split.name) for split in job.corpus.splits)
        limit = min(limit, text // (_ITEMS_PER_PROCESS * processes))
    runs: list[RunItem] = []
    for number, split in enumerate(job.corpus.splits):
        held: list[WorkItem] = []
        size = 0
        for item in job.items[split.name]:
            if held and size + _stored_bytes(item) > limit:
                runs.append(RunItem(len(runs), number, tuple(held)))
                held, size = [], 0
            held.append(item)
            size += _stored_bytes(item)
        if held:
            runs.append(RunItem(len(runs), number, tuple(held)))
    return runs


def _stored_bytes(item: WorkItem) -> int:
    sides = [item.source, item.target] if item.target else [item.source]
    return sum(side.end - side.start for side in sides)


def _least_text(corpus: Corpus) -> int:
    return sum(
        each.file.size * (_GZIP_LEAST if each.file.compressed else 1) for each in corpus.inputs
    )


def _needed(records: int) -> int:
    """Room for runs and shards: twice the output and a tenth."""
    return records * 21 // 10


def _check_free_space(plan: ShufflePlan, job: Job, encoder: BlockEncoder) -> None:
    if not filesystem.is_local(plan.folder):
        return
    there = 0
    if os.path.isdir(plan.folder):
        there = sum(entry.stat().st_size for entry in os.scandir(plan.folder))
    free = shutil.disk_usage(_existing(plan.folder)).free + there
    # Short lines double, and no corpus seen comes near that; where it would not matter, it is not
    # worth encoding a block to know better.
    if free > 2 * plan.needed_bytes:
        return
    needed = round(plan.needed_bytes * _records_per_text(plan, job, encoder))
    if free < needed:
        raise FullDiskError(
            f'about {needed >> 20} MiB are needed in {plan.folder} for the shuffle and the result, '
            f'and {free >> 20} MiB are free; make room, or give another --output'
        )


def _existing(folder: str) -> str:
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def _records_per_text(plan: ShufflePlan, job: Job, encoder: BlockEncoder) -> float:
    """Encodes the first block of the corpus."""
    encoder.set_up()
    for item in _items(job):
        for block in read_blocks(
            item, filesystem.open_binary, plan.block_bytes, plan.max_line_bytes
        ):
            if block.long_lines:
                continue
            text = len(block.data) + len(block.target or b'')
            return len(encoder.encode(block).rows.records) / max(1, text)
    return 1.0


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
