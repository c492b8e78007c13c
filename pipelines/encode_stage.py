"""The stage that encodes: every split's lines in, shuffled TFRecord shards out."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam
import google_crc32c
import psutil

from pipelines import filesystem
from pipelines.corpora import Corpus
from pipelines.count_stage import ReadFacts, corpus_options, read_facts, wanted_inputs
from pipelines.encoding import (
    FACTS,
    RECORDS,
    EncodeBlocks,
    EncodedFeature,
    SplitShards,
)
from pipelines.engine import Engine
from pipelines.filesystem import Attempt
from pipelines.manifest import Manifest, OutputFile, VocabularyRecord
from pipelines.reading import ReadBlocks
from pipelines.reports import WriteReport, read_report
from pipelines.shuffling import WriteShards, shard_name
from pipelines.stages import StageOutput, Wanted, run_record
from tokcore.corpus.dataset import WorkItem
from tokcore.encoding import Feature
from tokcore.errors import InputError
from tokcore.subword.vocabulary_file import parse_vocabulary
from tokcore.unicode_tables import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)

_BUCKET_BYTES = 16 << 20
"""Planned size of a bucket: sorting it takes a few times as much, and a shard of usual size is a
handful. Half would double the elements of the shuffle, twice the memory of every writer."""

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

    def for_manifest(self, corpus: Corpus) -> dict[str, object]:
        return {
            'name': self.name,
            'seed': self.seed,
            'source_prefix': self.source_prefix,
            'target_prefix': self.target_prefix,
            **{
                ('shards' if split.name == 'train' else f'{split.name}_shards'): self.shards[
                    split.name
                ]
                for split in corpus.splits
            },
            **corpus_options(corpus),
        }


@dataclass(frozen=True)
class VocabularyPaths:
    """The vocabulary files of the two sides of a pair, or of a text as `targets`."""

    targets: str
    inputs: str | None = None


@dataclass(frozen=True)
class Encoded:
    """What an encoding pipeline read and wrote."""

    facts: ReadFacts
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
        data = filesystem.read_bytes(path)
        records.append(
            VocabularyRecord(
                'both' if len(sides) == 2 else sides[0],
                filesystem.split_path(path)[1],
                len(parse_vocabulary(data, path)),
                len(data),
                f'{google_crc32c.value(data):08x}',
            )
        )
    return tuple(records)


def encode_stage(
    corpus: Corpus,
    items: Mapping[str, Sequence[WorkItem]],
    vocabularies: VocabularyPaths,
    options: EncodeOptions,
    folder: str,
    engine: Engine,
    item_bytes: int,
    overwrite: bool,
) -> None:
    """Encodes a corpus with vocabularies that exist.

    Raises:
        InputError: a line that cannot be used, an empty split, or a folder with another result.
    """
    started = time.monotonic()
    output = StageOutput(folder)
    records = given_vocabularies(vocabularies)
    wanted = wanted_encoding(corpus, records, options)
    if output.finished(wanted, shard_names(corpus, options), overwrite) is not None:
        _LOGGER.info('encode: already done in %s', folder)
        return
    refuse_too_large(corpus, engine)
    with Attempt(folder) as attempt:
        encoded = encode_into(corpus, items, vocabularies, options, attempt.path, engine, item_bytes)
        manifest = Manifest(
            'encode',
            UNICODE_VERSION,
            wanted.options,
            encoded.facts.inputs,
            encoded.facts.lines,
            files=encoded.shards,
        )
        seconds = {'encode': time.monotonic() - started}
        run = run_record(wanted.inputs, seconds, engine.flags)
        output.publish(attempt, shard_names(corpus, options), manifest, run)
    log_shards(encoded, folder)


def wanted_encoding(
    corpus: Corpus, records: Sequence[VocabularyRecord], options: EncodeOptions
) -> Wanted:
    """Returns what the bytes of the shards depend on."""
    return Wanted(
        'encode',
        {
            **options.for_manifest(corpus),
            'vocabularies': [[each.side, each.name, each.bytes, each.crc32c] for each in records],
        },
        wanted_inputs(corpus),
    )


def encode_into(
    corpus: Corpus,
    items: Mapping[str, Sequence[WorkItem]],
    vocabularies: VocabularyPaths,
    options: EncodeOptions,
    path: str,
    engine: Engine,
    item_bytes: int,
) -> Encoded:
    """Encodes a corpus into an attempt's folder.

    Raises:
        InputError: a line that cannot be used, an empty split, or too much for the memory.
        RuntimeError: examples were lost on the way.
    """
    layout = plan_shards(corpus, options)
    features = _features(vocabularies, options)
    facts_path = filesystem.join(path, 'facts')
    shards_path = filesystem.join(path, 'shards')

    def build(pipeline: beam.Pipeline) -> None:
        blocks = pipeline | 'ReadBlocks' >> ReadBlocks(
            [item for split in corpus.splits for item in items[split.name]], item_bytes
        )
        encoded = blocks | 'EncodeBlocks' >> EncodeBlocks(
            features, corpus.splits, layout, options.seed, engine.workers
        )
        encoded[FACTS] | 'ReportFacts' >> WriteReport(facts_path)
        (
            encoded[RECORDS]
            | 'WriteShards' >> WriteShards(options.name, path, layout)
            | 'ReportShards' >> WriteReport(shards_path)
        )

    engine.run(build)
    facts = read_facts(corpus, facts_path)
    written = {row[0]: row[1:] for row in read_report(shards_path)}
    shards = []
    for name in shard_names(corpus, options):
        if name not in written:
            filesystem.write_bytes(filesystem.join(path, name), b'')
        size, crc32c, examples = written.get(name, (0, 0, 0))
        shards.append(OutputFile(name, size, f'{crc32c:08x}', examples))
    for lines in facts.lines:
        prefix = f'{options.name}-{lines.split}-'
        examples = sum(shard.rows for shard in shards if shard.name.startswith(prefix))
        if examples != lines.examples:
            raise RuntimeError(
                f'{lines.examples} examples of {lines.split} were encoded, {examples} written'
            )
    return Encoded(facts, tuple(shards))


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


def log_shards(encoded: Encoded, folder: str) -> None:
    for lines in encoded.facts.lines:
        _LOGGER.info(
            'encode: %s: %d lines, %d examples, %d empty, in %s',
            lines.split,
            lines.lines,
            lines.examples,
            lines.empty,
            folder,
        )


def _features(vocabularies: VocabularyPaths, options: EncodeOptions) -> list[EncodedFeature]:
    if vocabularies.inputs is None:
        return [EncodedFeature(Feature('targets', 0, options.target_prefix), vocabularies.targets)]
    return [
        EncodedFeature(Feature('inputs', 0, options.source_prefix), vocabularies.inputs),
        EncodedFeature(Feature('targets', 1, options.target_prefix), vocabularies.targets),
    ]


def refuse_too_large(corpus: Corpus, engine: Engine) -> None:
    """Refuses a local shuffle larger than a sixth of the free memory.

    Records are about as large as their text: subtokens take two bytes where the text took three or
    four, and each example some fifty.

    Raises:
        InputError: it would not fit.
    """
    if not engine.is_local:
        return
    size = sum(corpus.text_bytes(split.name) for split in corpus.splits)
    free = psutil.virtual_memory().available
    if size * _MEMORY_SHARE > free:
        raise InputError(
            f'shuffling about {size >> 20} MiB of records needs six times as much memory, and '
            f'{free >> 20} MiB are free; encode on a cluster (--runner), or in parts'
        )
