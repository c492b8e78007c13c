"""The stage that encodes: the lines of all splits in, shuffled shards out."""

import dataclasses
import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import google_crc32c
import numpy as np

from pipelines.artifacts.outputs import StageKey, StageOutput, StageTask
from pipelines.artifacts.vocabularies import (
    VocabularyReader,
    file_entry,
    name_of_copy,
    recorded_manifest,
    stated_licence,
    vocabulary_reader,
    warn_of_missing_tokens,
)
from pipelines.engines.progress import AT_ONCE
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt, WorkFolder
from pipelines.files.hub import address_in_cache
from pipelines.jobs.corpus import Corpus, input_checksums
from pipelines.jobs.job import EncodeJob, EncodeOptions, Execution, VocabularyPaths
from pipelines.jobs.reading import (
    ReadPlan,
    ReadStats,
    plan_reading,
    read_job_stats,
    read_shard_stats,
    write_shard_stats,
    write_stats,
)
from pipelines.options.job import JOINED, TFRECORD
from pipelines.shard_formats.formats import convert_shards, converted_format, shard_format
from pipelines.shard_formats.shard_format import Column, most_ids
from pipelines.shard_formats.tfrecord import ids_around
from pipelines.shuffle.encoded_sample import EncodedSample, encode_sample
from pipelines.shuffle.merge_runs import encode_through_files
from pipelines.shuffle.plan import KeptRuns, refuse_too_little_memory
from pipelines.stages.run_stage import StageResult, run_stage
from pipelines.stages.update import EncodedFiles, merge_previous, refuse_impossible
from pipelines.transforms.encode_blocks import (
    RECORDS,
    EncodedFeature,
    SplitShards,
    encode_blocks,
)
from pipelines.transforms.read import read_items
from pipelines.transforms.stats import WrittenFile
from pipelines.transforms.write_shards import IndexFile, write_shards
from tokcore.corpus.order_keys import OFFSET_BITS, is_among, row_places
from tokcore.corpus.stretches import CORPUS_INDEX, corpus_index
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.encoding.scheme import EncodingOptions, Scheme
from tokcore.encoding.vocabulary import NO_TEMPLATE
from tokcore.errors import InputError
from tokcore.filters.applying import select_rows
from tokcore.filters.leaving_out import Place, list_of, refuse_missing
from tokcore.options import recorded, shown
from tokcore.reading.record_index import index_name
from tokcore.records.manifest import (
    REMOVED_NAME,
    Manifest,
    OutputFile,
    VocabularyRecord,
    shard_name,
)

_LOGGER = logging.getLogger(__name__)

_SHOWN_WORDS, _SHOWN_CHARACTERS = 5, 40
"""Unknown words that an error names, and of each its beginning."""


def encode_stage(job: EncodeJob) -> Manifest | None:
    """Encodes a corpus with vocabularies that exist; returns as `build_stage`.

    Raises:
        InputError: a line that cannot be used, an empty split, or a folder with another result.
    """
    execution, dataset, scheme = job.execution, job.dataset, job.reading.scheme
    read, corpus = vocabulary_reader(scheme), job.reading.corpus
    previous, reading = job.previous, job.reading
    if previous is not None:
        reading = dataclasses.replace(reading, corpus=corpus.added())
    if previous is not None and previous.manifest.stage == 'encode':
        records = previous.manifest.vocabularies  # with their origin
    else:
        records = vocabulary_records(job.vocabularies, read, scheme, encoding=dataset.encoding)
    copies: list[tuple[str, OutputFile | VocabularyRecord]] = []  # a file, and its entry
    for path, record in zip(job.vocabularies.by_side.values(), records, strict=True):
        files: tuple[OutputFile | VocabularyRecord, ...] = (record, *record.beside)
        for file in files:
            own = os.path.join(os.path.dirname(path), os.path.basename(file.name))
            copies.append((own, file))
    features = dataset.features(job.vocabularies, corpus.format.sides)
    layout = dataset.layout(corpus)
    ends = dataset.ends(features, scheme, read)
    shard_format(dataset.output_format).require_ids(most_ids(records, ends))
    key = job.key(records)
    output = StageOutput.of_dataset(job.output)
    work = WorkFolder(execution.work, job.output)

    def make(attempt: Attempt) -> list[StageResult]:
        path = attempt.path if previous is None else os.path.join(attempt.path, 'added')
        made: EncodedFiles = ReadStats((), ()), (), ()
        if reading.corpus.inputs:
            plan = plan_reading(reading, execution, path)
            made = encode_into(
                plan, execution, dataset, features, layout, records, ends, path, job.output,
                lambda sample: check_sample(dataclasses.replace(job, reading=reading), sample),
            )  # fmt: skip
        if previous is not None:
            made = merge_previous(job, features, made, attempt.path, path)
        for path, file in copies:
            data = filesystem.read_bytes(path)
            if f'{google_crc32c.value(data):08x}' != file.crc32c:
                raise InputError(
                    f'{path} was changed while this run worked; run again when nothing writes to it'
                )
            filesystem.write_bytes(os.path.join(attempt.path, file.name), data)
        manifest = dataset_manifest(
            key, corpus, made, attempt.path, vocabularies=records, end_of_document=ends
        )
        return [StageResult(manifest, made[0].rejected)]

    def check() -> None:
        refuse_too_little_memory(reading, execution, len(records))
        if previous is not None:
            refuse_impossible(job)

    stored = previous.manifest.outputs if previous else ()
    names = dict.fromkeys([*(file.name for _, file in copies), *job.file_names])
    [result] = run_stage(
        [StageTask(key, output, [*names])],
        make,
        execution,
        kernels=['encoding', 'records'],
        work=work,
        kept=[KeptRuns(work.path, job.output)],
        read=[
            *dict.fromkeys(own for own, _ in copies),
            *(os.path.join(previous.folder, file.name) for file in stored if previous),
        ],
        check=check,
    )
    if result is None:
        return None
    output.warn_rejected(result.rejected)
    return result.manifest


def vocabulary_records(
    paths: VocabularyPaths,
    read: VocabularyReader,
    scheme: Scheme,
    needs_ids: bool = True,
    encoding: EncodingOptions | None = None,
) -> tuple[VocabularyRecord, ...]:
    """Reads vocabulary files of a scheme; returns their entries for a dataset that has copies of them.

    Special tokens that they lack for `encoding` are warned of.

    Raises:
        InputError: a file is missing or is not a vocabulary, or has no ids and these are needed.
    """
    records = []
    for side, path in paths.by_side.items():
        vocabulary = read(path)
        around = NO_TEMPLATE
        if encoding is not None:
            warn_of_missing_tokens(scheme, vocabulary.entries.id_of, encoding, path)
            around = scheme.template(vocabulary.entries, encoding.template)
        if needs_ids and not vocabulary.beside and scheme.entries_name(path):
            vocabulary.entries.model  # noqa: B018 - it refuses to be made
        beside = {file.name: file for file in vocabulary.beside}
        for name in scheme.configs_beside:
            config = filesystem.read_if_there(os.path.join(os.path.dirname(path), name))
            if config is not None:
                beside[name] = file_entry(name, config)
        records.append(
            VocabularyRecord(
                side=side,
                name=name_of_copy(side, path),
                size=1 + max(vocabulary.entries.vocab_size - 1, *around.before, *around.after, 0),
                bytes=len(vocabulary.data),
                crc32c=vocabulary.crc32c,
                scheme=scheme.name,
                special_ids=vocabulary.entries.special_ids._asdict(),
                unicode=vocabulary.unicode,
                rules=scheme.rules,
                scheme_options=recorded(scheme) or None,
                beside=tuple(
                    dataclasses.replace(file, name=name_of_copy(side, file.name))
                    for file in beside.values()
                ),
                sha256=hashlib.sha256(vocabulary.data).hexdigest(),
                licence=vocabulary.licence or stated_licence(path),
                origin=address_in_cache(path),
            )
        )
    return tuple(records)


def encode_into(
    plan: ReadPlan,
    execution: Execution,
    options: EncodeOptions,
    features: Sequence[EncodedFeature],
    layout: Sequence[SplitShards],
    records: Sequence[VocabularyRecord],
    ends: Sequence[EndOfDocument],
    path: str,
    output: str,
    check: Callable[[EncodedSample], None] | None = None,
) -> EncodedFiles:
    """Encodes a corpus into an attempt's folder, for an output's.

    Returns the stats of what was read, the files of the shards, and those of their indexes.

    Args:
        plan: what is read.
        execution: how that is run.
        options: of the dataset.
        features: of an example.
        layout: for each split its shards.
        records: of the vocabularies, in the order in which the features first name them.
        ends: of documents.
        path: of the attempt's folder.
        output: the folder that the shards are for.
        check: refuses what a sample of the text became.

    Raises:
        InputError: what `check` refuses of a sample, a line that cannot be used, an empty split, or too
            much for memory or disk.
        RuntimeError: examples were lost on the way.
    """
    reading = plan.reading
    corpus, scheme, engine = reading.corpus, reading.scheme, execution.engine
    columns = columns_of(scheme, features, records, ends)
    if options.output_format == JOINED:
        ids_around(columns)
    encoder = options.encoder(features, reading)
    sample = encode_sample(plan, encoder)
    if check is not None:
        check(sample)
    with plan.tracked('encode'):
        if engine.runner.through_files:
            encode_through_files(
                plan, encoder, sample.need, layout, options, execution, path, output
            )
        else:

            def build(pipeline: beam.Pipeline) -> None:
                """Adds the steps that encode with the runner's own shuffle."""
                blocks = plan.read(pipeline)
                encoded = encode_blocks(blocks, encoder, layout, engine.workers, plan.budget)
                shards = write_shards(encoded[RECORDS], options.name, path, layout, index=True)
                write_stats(encoded, path)
                write_shard_stats(shards, path)

            engine.run(build, path)
    stats = read_job_stats(corpus, path, execution.max_rejected)
    if sum(lines.removed for lines in stats.lines) < len(corpus.left_out):
        refuse_missing(corpus.left_out, {*_left_out_rows(plan)})
    written = {file.name: file for file in read_shard_stats(path)}
    shards, index = [], []
    for split, lines in zip(layout, stats.lines, strict=True):
        examples = 0
        for number in range(split.shards):
            name = shard_name(options.name, split.split, number, split.shards)
            if name not in written:
                filesystem.write_bytes(os.path.join(path, name), b'')
                written[name] = WrittenFile(name, 0, 0, 0, hashlib.sha256().hexdigest())
                with IndexFile(path, name, len(features)) as file:
                    written[index_name(name)] = file.end(written[name])
            shards.append(written[name].listed())
            examples += shards[-1].rows
            index.append(written[index_name(name)].listed())
        if examples != lines.examples:
            raise RuntimeError(
                f'{lines.examples} examples of {lines.split} were encoded, {examples} written'
            )
    if options.output_format != TFRECORD:
        output_format = converted_format(options.output_format, options.pack)
        shards, index = convert_shards(shards, output_format, columns, scheme, engine.run, path)
    return stats, tuple(shards), tuple(index)


def columns_of(
    scheme: Scheme,
    features: Sequence[EncodedFeature],
    records: Sequence[VocabularyRecord],
    ends: Sequence[EndOfDocument],
) -> list[Column]:
    """Returns the columns of features; `records` are in the order in which these first name them."""
    fixed, paths = scheme.fixed, dict.fromkeys(encoded.vocabulary for encoded in features)
    path_to_record = dict(zip(paths, records, strict=fixed is None))
    columns = []
    for encoded in features:
        name, vocabulary = encoded.feature.name, encoded.vocabulary
        if fixed is None:
            column = Column.recorded(name, path_to_record[vocabulary], vocabulary)
        else:
            column = Column.of(name, fixed.vocab_size, fixed.special_ids, vocabulary)
        columns.append(column.with_end(ends))
    return columns


def dataset_manifest(
    key: StageKey, corpus: Corpus, made: EncodedFiles, path: str, **fields: Any
) -> Manifest:
    """Returns the manifest of a dataset, and writes what it has of its corpus to an attempt's folder."""
    stats, shards, index = made
    of_corpus = {CORPUS_INDEX: corpus_index(stats.newlines)}
    if corpus.left_out:
        of_corpus[REMOVED_NAME] = list_of(corpus.left_out)
    for name, data in of_corpus.items():
        filesystem.write_bytes(os.path.join(path, name), data)
    newlines, *removed = (file_entry(name, data) for name, data in of_corpus.items())
    fields |= {'files': shards, 'index': (*index, newlines), 'removed': tuple(removed)}
    return key.manifest(stats.inputs, stats.lines, datasets=stats.datasets, **fields)


def _left_out_rows(plan: ReadPlan) -> Iterator[Place]:
    """Yields the places of the rows that are left out: reads the files that have some."""
    corpus = plan.reading.corpus
    bare = [dataclasses.replace(split, left_out=b'') for split in corpus.splits]
    for name, left_out in {split.name: split.left_out for split in corpus.splits}.items():
        listed = np.frombuffer(left_out, '<u8')
        files = {*(listed >> np.uint64(OFFSET_BITS)).tolist()}
        items = [item for item in plan.items[name] if item.file_index in files]
        for block in read_items(items, plan.item_bytes, plan.reading.max_line_bytes):
            rows = select_rows(block, bare, plan.reading.scheme.normalizer)
            places = row_places(block.file_index, rows.identities)
            yield from ((name, place) for place in places[is_among(places, listed)].tolist())


def check_sample(job: EncodeJob, sample: EncodedSample) -> None:
    """Checks a sample of the text; raises InputError as `refuse_unknown`."""
    refuse_unknown(job, sample)
    special = [(rows, token) for tally in sample.ids for token, rows in tally.special.items()]
    if special and not job.states_special_tokens:
        rows, token = max(special)
        _LOGGER.warning(
            f'{rows:,} rows of a sample of {sample.text_bytes:,} bytes have the special token '
            f'{shown(token.decode("utf-8", "replace"))} in their text, which becomes ordinary pieces; give '
            '--allow-special-tokens to encode it as the token, or allow_special_tokens = false in a '
            'job file to keep it so',
            extra={AT_ONCE: True},
        )


def refuse_unknown(job: EncodeJob, sample: EncodedSample) -> None:
    """Refuses a vocabulary that does not know the text, by a sample of it.

    One that was learned from this text is not refused: the text has nothing better to offer it.

    Raises:
        InputError: more of the ids of a feature than the job allows are unknown tokens, or bytes in no
            token.
    """
    features = job.dataset.features(job.vocabularies, job.reading.corpus.format.sides)
    # There are no ids if no block was read; the job says why.
    for encoded, tally in zip(features, sample.ids, strict=False):
        lost = (tally.unknown or 0) + tally.dropped_bytes
        ids = tally.ids + tally.dropped_bytes
        path, side = encoded.vocabulary, encoded.feature.side
        if lost <= job.unknown.unknown_share * ids or _is_learned_from(
            path, job.reading.corpus, side
        ):
            continue
        kinds = {'unknown tokens': tally.unknown, 'bytes that become no id': tally.dropped_bytes}
        what = ' or '.join(kind for kind, count in kinds.items() if count)
        words = [repr(word[:_SHOWN_CHARACTERS]) for word in tally.words][:_SHOWN_WORDS]
        # Of a longer token there is none.
        such_as = f', such as {", ".join(words)}' if words else ''
        raise InputError(
            f'{path}: {lost:,} of {ids:,} ids of {encoded.feature.name} in a sample of '
            f'{sample.text_bytes:,} bytes are {what} ({lost / ids:.1%}), more than --max-unknown '
            f'{job.unknown.max_unknown}{such_as}; give a vocabulary for this text, or '
            '--max-unknown 100% to encode it with this one'
        )


def _is_learned_from(path: str, corpus: Corpus, side: int) -> bool:
    """Whether a vocabulary's manifest says that it was learned from the training text of a side.

    Files are read for that only if their names, and sizes where these are known, are the same.
    """
    manifest = recorded_manifest(path)
    if manifest is not None and manifest.stage == 'encode':  # it only has a copy
        return False
    training = [file for file in corpus.inputs if file.split == 'train']
    files = [file for file in training if file.side == side] or training
    read = {(text.name, text.bytes, text.crc32c) for text in (manifest.inputs if manifest else ())}
    for file in files:
        size = None if file.file.compressed else file.file.size
        if not any(name == file.file.name and size in (None, own) for name, own, _ in read):
            return False
    texts = map(input_checksums(corpus.inputs), files)
    return bool(files) and all((text.name, text.bytes, text.crc32c) in read for text in texts)
