"""The stage that encodes: every split's lines in, shuffled TFRecord shards out."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.artifacts.manifest import (
    Manifest,
    OutputFile,
    VocabularyRecord,
)
from pipelines.artifacts.run_stage import Made, run_stage
from pipelines.artifacts.stage_output import StageKey, StageOutput
from pipelines.artifacts.vocabulary_reading import read_vocabulary
from pipelines.engines.process_memory import available_bytes
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.work_folder import WorkFolder
from pipelines.jobs.corpus_files import Corpus, Job
from pipelines.jobs.read_stats import (
    ReadStats,
    read_job_stats,
    reading_options,
    report_stats,
    wanted_inputs,
)
from pipelines.jobs.shuffle_options import fit_memory
from pipelines.shuffle.through_files import KeptRuns, encode_through_files
from pipelines.transforms.encode_blocks import RECORDS, EncodeBlocks, EncodedFeature, SplitShards
from pipelines.transforms.write_report import WriteReport, WrittenFile, read_report
from pipelines.transforms.write_shards import WriteShards, shard_name
from tokcore.errors import InputError
from tokcore.records.example_encoding import Feature
from tokcore.text.unicode_tables import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)

_BUCKET_BYTES = 16 << 20
"""Planned size of a bucket: sorting it takes a few times as much, and a shard of usual size is a
handful. Half would double the elements of the shuffle, twice the memory of every writer."""

_SLOT_BYTES = 512 << 20
"""Flink 1.x stops for ever, without an error, where one bundle puts out more than about 1 GB, and
batch there makes one bundle of all that a slot does."""

_MEMORY_SHARE = 6
"""Beam's local runner holds a shuffle in memory at four to six times its size."""


@dataclass(frozen=True)
class EncodeOptions:
    """What the shards depend on, beside the corpus and the vocabularies."""

    name: str
    shards: Mapping[str, int]  # of each split
    seed: int = 0
    source_prefix: str = ''
    target_prefix: str = ''

    def for_manifest(self, job: Job) -> dict[str, object]:
        return {
            'name': self.name,
            'seed': self.seed,
            'source_prefix': self.source_prefix,
            'target_prefix': self.target_prefix,
            **{
                ('shards' if split.name == 'train' else f'{split.name}_shards'): self.shards[
                    split.name
                ]
                for split in job.corpus.splits
            },
            **reading_options(job),
        }


@dataclass(frozen=True)
class VocabularyPaths:
    """The vocabulary files of the two sides of a pair, or of a text as `targets`."""

    targets: str
    inputs: str | None = None


@dataclass(frozen=True)
class Encoded:
    """What an encoding pipeline read and wrote."""

    stats: ReadStats
    shards: tuple[OutputFile, ...]


def shard_names(corpus: Corpus, options: EncodeOptions) -> list[str]:
    """Returns the names of all shards of all splits."""
    return [
        shard_name(options.name, split.name, shard, options.shards[split.name])
        for split in corpus.splits
        for shard in range(options.shards[split.name])
    ]


def given_vocabularies(paths: VocabularyPaths) -> tuple[VocabularyRecord, ...]:
    """Returns the manifest's entries of vocabulary files that were given.

    Raises:
        InputError: a file that is missing or no vocabulary.
    """
    by_path: dict[str, list[str]] = {}
    for side, path in (('inputs', paths.inputs), ('targets', paths.targets)):
        if path is not None:
            by_path.setdefault(path, []).append(side)
    records = []
    for path, sides in by_path.items():
        vocabulary = read_vocabulary(path)
        records.append(
            VocabularyRecord(
                'both' if len(sides) == 2 else sides[0],
                filesystem.split_path(path)[1],
                len(vocabulary.subtokens),
                len(vocabulary.data),
                vocabulary.crc32c,
                vocabulary.unicode,
            )
        )
    return tuple(records)


def encode_stage(
    job: Job, vocabularies: VocabularyPaths, options: EncodeOptions, folder: str
) -> None:
    """Encodes a corpus with vocabularies that exist.

    Raises:
        InputError: a line that cannot be used, an empty split, or a folder with another result.
    """
    output = StageOutput.of_dataset(folder)
    records = given_vocabularies(vocabularies)
    key = wanted_encoding(job, records, options)

    def make(attempt: Attempt) -> Made:
        planned = job.planned(attempt.path)
        encoded = encode_into(planned, vocabularies, options, attempt.path, folder)
        manifest = Manifest(
            'encode',
            UNICODE_VERSION,
            key.options,
            encoded.stats.inputs,
            encoded.stats.lines,
            vocabularies_used=records,
            files=encoded.shards,
            rejected=output.rejected_files(encoded.stats.rejected),
        )
        return Made(manifest, encoded.stats.rejected)

    made = run_stage(
        output,
        key,
        shard_names(job.corpus, options),
        make,
        overwrite=job.overwrite,
        flags=job.engine.flags,
        kept=[WorkFolder(job.work, folder), KeptRuns(job, folder)],
        given=[path for path in (vocabularies.inputs, vocabularies.targets) if path is not None],
        check=lambda: refuse_too_large(job, len(records)),
    )
    if made is not None:
        log_shards(made, output)


def wanted_encoding(
    job: Job, records: Sequence[VocabularyRecord], options: EncodeOptions
) -> StageKey:
    """Returns what the bytes of the shards depend on."""
    return StageKey(
        'encode',
        {
            **options.for_manifest(job),
            'vocabularies': [[each.side, each.name, each.bytes, each.crc32c] for each in records],
        },
        wanted_inputs(job.corpus),
    )


def encode_into(
    job: Job, vocabularies: VocabularyPaths, options: EncodeOptions, path: str, output: str
) -> Encoded:
    """Encodes a corpus into an attempt's folder, for an output's.

    Raises:
        InputError: a line that cannot be used, an empty split, or too much for memory or disk.
        RuntimeError: examples were lost on the way.
    """
    corpus = job.corpus
    layout = plan_shards(corpus, options)
    features = _features(vocabularies, options)
    shards_path = filesystem.join(path, 'shards')

    def build(pipeline: beam.Pipeline) -> None:
        encoded = job.read(pipeline) | 'EncodeBlocks' >> EncodeBlocks(
            features,
            corpus.splits,
            layout,
            options.seed,
            job.engine.workers,
            on_error=job.on_error,
        )
        report_stats(encoded, path)
        (
            encoded[RECORDS]
            | 'WriteShards' >> WriteShards(options.name, path, layout)
            | 'ReportShards' >> WriteReport(shards_path)
        )

    if job.shuffle.through_files(job.engine):
        encode_through_files(
            job, features, layout, options.name, options.seed, path, output, shards_path
        )
    else:
        job.engine.run(build)
    stats = read_job_stats(corpus, path)
    written = {each.name: each for each in read_report(shards_path, WrittenFile)}
    shards = []
    for name in shard_names(corpus, options):
        if name not in written:
            filesystem.write_bytes(filesystem.join(path, name), b'')
        shards.append(OutputFile.of(written.get(name, WrittenFile(name, 0, 0, 0))))
    for lines in stats.lines:
        prefix = f'{options.name}-{lines.split}-'
        examples = sum(shard.rows for shard in shards if shard.name.startswith(prefix))
        if examples != lines.examples:
            raise RuntimeError(
                f'{lines.examples} examples of {lines.split} were encoded, {examples} written'
            )
    return Encoded(stats, tuple(shards))


def plan_shards(corpus: Corpus, options: EncodeOptions) -> list[SplitShards]:
    """Returns each split's shards and buckets; buckets follow the size and change no byte."""
    return [
        SplitShards(
            split.name,
            options.shards[split.name],
            max(1, -(-corpus.text_bytes(split.name) // options.shards[split.name] // _BUCKET_BYTES)),
        )
        for split in corpus.splits
    ]


def log_shards(made: Made, output: StageOutput) -> None:
    """Tells what was read and written of each split."""
    for lines in made.manifest.lines:
        _LOGGER.info(
            'encode: %s: %d lines, %d examples, %d empty, in %s',
            lines.split,
            lines.lines,
            lines.examples,
            lines.empty,
            output.folder,
        )
    output.warn_rejected(made.rejected)


def _features(vocabularies: VocabularyPaths, options: EncodeOptions) -> list[EncodedFeature]:
    if vocabularies.inputs is None:
        return [EncodedFeature(Feature('targets', 0, options.target_prefix), vocabularies.targets)]
    return [
        EncodedFeature(Feature('inputs', 0, options.source_prefix), vocabularies.inputs),
        EncodedFeature(Feature('targets', 1, options.target_prefix), vocabularies.targets),
    ]


def refuse_too_large(job: Job, vocabularies: int) -> None:
    """Refuses a shuffle that the memory given cannot hold, before anything is read for it.

    Locally that is more than a sixth of the free memory, and on Flink more than 0.5 GB a slot.
    Records are about as large as their text: subtokens take two bytes where the text took three or
    four, and each example some fifty.

    Raises:
        InputError: it would not fit.
    """
    if job.shuffle.through_files(job.engine):
        fit_memory(
            job.shuffle, job.engine, job.item_bytes, vocabularies, job.longest_line
        )
        return
    size = sum(job.corpus.text_bytes(split.name) for split in job.corpus.splits)
    if job.engine.flink_slots is not None:
        _refuse_for_slots(job, size, job.engine.flink_slots)
    if not job.engine.is_local:
        return
    free = available_bytes()
    if size * _MEMORY_SHARE > free:
        raise InputError(
            f'shuffling about {size >> 20} MiB of records needs six times as much memory, and '
            f'{free >> 20} MiB are free; shuffle through files (--shuffle=files), or on a cluster'
        )


def _refuse_for_slots(job: Job, size: int, slots: int) -> None:
    # A work item is not cut further, and a gzip file is one; slots beyond the items stay empty.
    items = sum(
        1 if each.file.compressed else -(-each.file.size // job.item_bytes)
        for each in job.corpus.inputs
        if each.side == 0
    )
    if size // max(1, min(slots, items)) <= _SLOT_BYTES:
        return
    needed = -(-size // _SLOT_BYTES)
    too_few = f' with at least as many work items, which are {items} now,' if items < needed else ''
    raise InputError(
        f'about {size >> 20} MiB of records would go through {min(slots, items)} Flink slots, and '
        f'more than {_SLOT_BYTES >> 20} MiB through one can stop the job for ever; give '
        f'--parallelism={needed} or more{too_few} on a cluster with as many slots'
    )
