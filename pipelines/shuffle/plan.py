"""The plan of a shuffle through files: written to disk before any work, and what a rerun goes by.

A run's bytes depend on the plan alone. Its fingerprint names the folder of the runs, so a rerun
with the same plan finds what is finished, and any other leaves it aside.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c

from pipelines.artifacts.recorded_rules import earlier_rules
from pipelines.files import filesystem
from pipelines.jobs.corpus_files import InputChecksums
from pipelines.jobs.encode_options import EncodeOptions
from pipelines.jobs.read_plan import ReadPlan
from pipelines.jobs.shuffle_memory import ShuffleMemory
from pipelines.shuffle.disk_room import find_room
from pipelines.shuffle.plan_folders import (
    FOLDER_PREFIX,
    PLAN_NAME,
    delete_half_files,
    fingerprint_of,
    plan_json,
    stored_plans,
    sweep_shuffles,
)
from pipelines.transforms.encode_blocks import BlockEncoder, EncodedFeature, SplitShards
from tokcore.compiled.compilation import earlier_digests, source_digest
from tokcore.corpus.dataset import MAX_LINE_BYTES, Split, WorkItem, split_of
from tokcore.options.option_fields import recorded
from tokcore.schemes import DEFAULT_SCHEME
from tokcore.shuffle.run_file import FORMAT
from tokcore.text.unicode_tables import UNICODE_VERSION

_RUN_PARTS = 4
"""Buffers' worth of text in a run item: its last part is seldom full, and one of several parts
wastes less. Larger items would leave a cluster's last workers waiting."""

_ITEMS_PER_PROCESS = 4

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
        return filesystem.join(self.folder, name)


@dataclass(frozen=True)
class PlannedShuffle:
    plan: ShufflePlan
    items: tuple[RunItem, ...]
    content: dict


def plan_shuffle(
    read_plan: ReadPlan,
    layout: Sequence[SplitShards],
    features: Sequence[EncodedFeature],
    options: EncodeOptions,
    memory: ShuffleMemory,
    work: str,
    output: str,
) -> PlannedShuffle:
    """Returns the plan of a shuffle; goes on with an earlier one's runs.

    An earlier plan that differs in the size of its runs alone, and not to the larger, is taken up:
    what is free changes from day to day.

    Args:
        read_plan: what is read, as work items.
        layout: for each split its shards and buckets.
        features: what an example holds.
        options: the seed of the order keys, and what is asked of the encoder.
        memory: the largest runs that may be, and for how many processes.
        work: the folder that the folder of the runs is in.
        output: the folder that the shards are for at last: no other output's runs are touched.
    """
    content = {**_content(read_plan, layout, features, options), 'output': output}
    content |= _cut(read_plan, memory.run_bytes, memory.processes)
    fingerprint = fingerprint_of(content)
    for earlier in stored_plans(work):
        run_bytes = earlier.content.get('run_bytes')
        if isinstance(run_bytes, int) and 0 < run_bytes <= memory.run_bytes:
            cut = {**content, **_cut(read_plan, run_bytes, memory.processes)}
            if any(earlier.content == {**cut, 'code': code} for code in _codes()):
                content, fingerprint = earlier.content, earlier.fingerprint
                break
    run_bytes = content['run_bytes']
    items = _run_items(read_plan, run_bytes, memory.processes)
    plan = ShufflePlan(
        filesystem.join(work, f'{FOLDER_PREFIX}{fingerprint.hex()}'),
        fingerprint,
        tuple(layout),
        run_bytes,
        read_plan.item_bytes,
        read_plan.reading.max_line_bytes,
    )
    return PlannedShuffle(plan, tuple(items), content)


def begin_shuffle(
    planned: PlannedShuffle, read_plan: ReadPlan, encoder: BlockEncoder
) -> ShufflePlan:
    """Sweeps what is left of other plans for an output, looks for room, and writes the plan down.

    Returns the plan with what it needs on disk.

    Raises:
        FullDiskError: there is far too little room.
        InputError: as `disk_room.measure_need`.
    """
    plan, output = planned.plan, planned.content['output']
    sweep_shuffles(filesystem.split_path(plan.folder)[0], output, keep=plan.folder)
    delete_half_files(plan.folder)
    need = find_room(read_plan, encoder, plan.folder, output)
    filesystem.write_bytes(filesystem.join(plan.folder, PLAN_NAME), plan_json(planned.content))
    return dataclasses.replace(plan, needed_bytes=need.bytes)


def _cut(read_plan: ReadPlan, run_bytes: int, processes: int) -> dict[str, object]:
    """What a plan says of how the corpus is cut into runs."""
    sizes = [len(each.items) for each in _run_items(read_plan, run_bytes, processes)]
    return {'run_bytes': run_bytes, 'items': sizes}


@functools.cache
def _codes() -> tuple[str, ...]:
    """The digests of sources that give the same runs: these, and earlier ones."""
    return (source_digest(), *earlier_digests())


def _content(
    read_plan: ReadPlan,
    layout: Sequence[SplitShards],
    features: Sequence[EncodedFeature],
    options: EncodeOptions,
) -> dict:
    """All that the bytes of the runs depend on, but for how large they are."""
    reading = read_plan.reading
    vocabularies = {
        path: filesystem.read_bytes(path) if path else b''
        for path in (each.vocabulary for each in features)
    }
    items = plan_json([item.key for item in read_plan.all_items])
    checksums = InputChecksums(reading.corpus.inputs)
    content = {
        'format': FORMAT,
        'code': _codes()[0],
        'unicode': UNICODE_VERSION,
        'seed': options.seed,
        'on_error': reading.on_error,
        'block_bytes': read_plan.item_bytes,
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
                each.stored.modified or checksums.of(each).crc32c,
            ]
            for each in reading.corpus.inputs
        ],
    }  # fmt: skip
    # Newer options: by default plans stay what they were before them.
    if reading.max_line_bytes != MAX_LINE_BYTES:
        content['max_line_bytes'] = reading.max_line_bytes
    if reading.scheme.name != DEFAULT_SCHEME:
        content['scheme'] = reading.scheme.name
    if reading.scheme.rules != earlier_rules():
        content['rules'] = reading.scheme.rules.metadata()
    if datasets := [each for each in map(_dataset_content, reading.corpus.splits) if each]:
        content['datasets'] = datasets
    if asked := recorded(options.encoding):
        content['encoding'] = asked
    return content


def _dataset_content(split: Split) -> list[object] | None:
    plain = dataclasses.replace(split, dataset='', prefixes=(), max_examples=None, filters=())
    if split == dataclasses.replace(plain, keeps_dropped=False):
        return None
    content = [split.name, split.dataset, split.first_place, split.prefixes, split.max_examples]
    if split.filters:
        content += [[[each.spec, each.stamp] for each in split.filters], split.keeps_dropped]
    return content


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
        dataset = None
        for items in read_plan.passes(name):
            # A run is of one dataset, whose numbers it tells.
            before, dataset = dataset, split_of(corpus.splits, name, items[0].place)
            stored_bytes = sum(each.stored_bytes for each in items)
            if held and (before is not dataset or size + stored_bytes > limit):
                runs.append(RunItem(len(runs), number, tuple(held)))
                held, size = [], 0
            held += items
            size += stored_bytes
        if held:
            runs.append(RunItem(len(runs), number, tuple(held)))
    return runs
