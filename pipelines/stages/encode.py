"""The stage that encodes: the lines of all splits in, shuffled shards out."""

import dataclasses
import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam
import google_crc32c

from pipelines.artifacts.outputs import StageOutput, StageTask
from pipelines.artifacts.vocabularies import (
    VocabularyReader,
    file_entry,
    name_of_copy,
    recorded_manifest,
    stated_licence,
    vocabulary_reader,
    warn_of_missing_tokens,
)
from pipelines.engines.progress import track_work
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.hub import address_in_cache
from pipelines.files.work_folder import WorkFolder
from pipelines.jobs.corpus import Corpus, InputChecksums
from pipelines.jobs.job import EncodeJob, EncodeOptions, Execution, VocabularyPaths
from pipelines.jobs.read_plan import ReadPlan, plan_reading
from pipelines.jobs.shuffle_memory import refuse_too_little_memory
from pipelines.jobs.stats import (
    ReadStats,
    read_job_stats,
    read_shard_stats,
    rejection_budget,
    write_shard_stats,
    write_stats,
)
from pipelines.options.job import JOINED, TFRECORD
from pipelines.shard_formats.formats import ConvertShards, converted_format, shard_format
from pipelines.shard_formats.shard_format import Column, most_ids, shards_in_order
from pipelines.shard_formats.tfrecord import ids_around
from pipelines.shuffle.encoded_sample import EncodedSample, encode_sample
from pipelines.shuffle.merge_runs import KeptRuns, encode_through_files
from pipelines.stages.run_stage import StageResult, run_stage
from pipelines.transforms.encode_blocks import (
    RECORDS,
    BlockEncoder,
    EncodedFeature,
    SplitShards,
    encode_blocks,
)
from pipelines.transforms.read import READING, CreateReshuffled
from pipelines.transforms.stats import RejectionBudget, WriteStats, WrittenFile, read_stats
from pipelines.transforms.write_shards import write_shard_index, write_shards
from tokcore.corpus.corpus import ITEM_BYTES
from tokcore.corpus.stats import LineTally
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.encoding.scheme import EncodingOptions, Scheme
from tokcore.encoding.vocabulary import NO_TEMPLATE
from tokcore.errors import InputError
from tokcore.options import recorded
from tokcore.reading.record_index import index_name
from tokcore.records.manifest import Manifest, OutputFile, VocabularyRecord

_LOGGER = logging.getLogger(__name__)

_SHOWN_WORDS, _SHOWN_CHARACTERS = 5, 40
"""Unknown words that an error names, and of each its beginning."""

_LOGGED_WORDS = 10
"""Unknown words that a warning names, the most frequent ones: enough to see what is wrong."""


def encode_stage(job: EncodeJob) -> Manifest | None:
    """Encodes a corpus with vocabularies that exist; returns as `build_stage`.

    Raises:
        InputError: a line that cannot be used, an empty split, or a folder with another result.
    """
    execution, dataset, scheme = job.execution, job.dataset, job.reading.scheme
    read = vocabulary_reader(scheme)
    records = vocabulary_records(job.vocabularies, read, scheme, encoding=dataset.encoding)
    copies: list[_Copy] = []
    for path, record in zip(job.vocabularies.by_side.values(), records, strict=True):
        files: tuple[OutputFile | VocabularyRecord, ...] = (record, *record.beside)
        for file in files:
            own = os.path.join(os.path.dirname(path), os.path.basename(file.name))
            copies.append((own, file))
    features = dataset.features(job.vocabularies, job.reading.corpus.format.sides)
    ends = dataset.ends(features, scheme, read)
    shard_format(dataset.output_format).require_ids(most_ids(records, ends))
    key = job.key(records)
    output = StageOutput.of_dataset(job.output)
    work = WorkFolder(execution.work, job.output)

    def make(attempt: Attempt) -> list[StageResult]:
        plan = plan_reading(job.reading, execution, attempt.path)
        encoded = encode_into(
            plan, execution, job.vocabularies, records, ends, dataset, attempt.path, job.output,
            lambda sample: refuse_unknown(job, sample),
        )  # fmt: skip
        _copy_vocabularies(copies, attempt.path)
        manifest = key.manifest(
            encoded.stats.inputs,
            encoded.stats.lines,
            vocabularies=records,
            files=encoded.shards,
            index=encoded.index,
            end_of_document=ends,
            datasets=encoded.stats.datasets,
        )
        return [StageResult(manifest, encoded.stats.rejected)]

    names = dict.fromkeys([*(file.name for _, file in copies), *job.file_names])
    [result] = run_stage(
        [StageTask(key, output, [*names])],
        make,
        execution,
        kernels=['encoding', 'records'],
        work=work,
        kept=[KeptRuns(work.path, job.output)],
        read=[*dict.fromkeys(own for own, _ in copies)],
        check=lambda: refuse_too_little_memory(job.reading, execution, len(records)),
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


_Copy = tuple[str, OutputFile | VocabularyRecord]
"""The path of a file, and its entry in the dataset."""


def _copy_vocabularies(copies: Iterable[_Copy], folder: str) -> None:
    """Copies files into a folder; raises InputError if one has changed since its entry was made."""
    for path, file in copies:
        data = filesystem.read_bytes(path)
        if f'{google_crc32c.value(data):08x}' != file.crc32c:
            raise InputError(
                f'{path} was changed while this run worked; run again when nothing writes to it'
            )
        filesystem.write_bytes(os.path.join(folder, file.name), data)


@dataclass(frozen=True)
class Encoded:
    """What an encoding pipeline read and wrote."""

    stats: ReadStats
    shards: tuple[OutputFile, ...]
    index: tuple[OutputFile, ...]


def encode_into(
    plan: ReadPlan,
    execution: Execution,
    vocabularies: VocabularyPaths,
    records: Sequence[VocabularyRecord],
    ends: Sequence[EndOfDocument],
    options: EncodeOptions,
    path: str,
    output: str,
    check: Callable[[EncodedSample], None] | None = None,
) -> Encoded:
    """Encodes a corpus into an attempt's folder, for an output's; `records` and `ends` are of the vocabularies.

    Raises:
        InputError: what `check` refuses of a sample, a line that cannot be used, an empty split, or too
            much for memory or disk.
        RuntimeError: examples were lost on the way.
    """
    reading = plan.reading
    corpus = reading.corpus
    features = options.features(vocabularies, corpus.format.sides)
    names = options.shard_names(corpus)
    layout = options.layout(corpus)
    path_to_record = dict(zip(vocabularies.by_side.values(), records, strict=True))
    columns = [
        column.with_end(ends) for column in _columns(features, reading.scheme, path_to_record)
    ]
    if options.output_format == JOINED:
        ids_around(columns)
    shard_format(options.output_format).require_ids(most_ids(records, ends))
    encoder = BlockEncoder(
        features, corpus.splits, options.seed, reading.on_error, reading.scheme, options.encoding
    )
    sampled = plan
    if check is not None and plan.item_bytes != ITEM_BYTES:
        # The size of items is for how a job is run, and what is refused must not depend on it.
        fixed = dataclasses.replace(execution, item_bytes=ITEM_BYTES)
        sampled = plan_reading(reading, fixed, path, 'index again')
    sample = encode_sample(sampled, encoder)
    if check is not None:
        check(sample)
    budget = rejection_budget(plan, execution)
    with track_work('encode', READING, plan.stored_bytes):
        if execution.through_files:
            encode_through_files(
                plan, encoder, sample.need, layout, options, execution, budget, path, output
            )
        else:
            _encode_through_runner(plan, encoder, layout, options, execution, budget, path)
    stats = read_job_stats(corpus, path, execution.max_rejected)
    written = {file.name: file for file in read_shard_stats(path)}
    shards, index = [], []
    for name in names:
        if name not in written:
            filesystem.write_bytes(os.path.join(path, name), b'')
            written[name] = WrittenFile(name, 0, 0, 0, hashlib.sha256().hexdigest())
            if options.has_index:
                written[index_name(name)] = write_shard_index(written[name], (), path)
        shards.append(written[name].listed())
        if options.has_index:
            index.append(written[index_name(name)].listed())
    for lines in stats.lines:
        prefix = f'{options.name}-{lines.split}-'
        examples = sum(shard.rows for shard in shards if shard.name.startswith(prefix))
        if examples != lines.examples:
            raise RuntimeError(
                f'{lines.examples} examples of {lines.split} were encoded, {examples} written'
            )
    if options.output_format != TFRECORD:
        shards = _converted(shards, columns, reading.scheme, options, execution, path)
    for lines, words in zip(stats.lines, stats.unknown_words, strict=True):
        _warn_of_losses(lines, words)
    return Encoded(stats, tuple(shards), tuple(index))


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
        such_as = (
            f', such as {", ".join(words)}' if words else ''
        )  # of a longer token there is none
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
    checksums = InputChecksums(corpus.inputs)
    texts = map(checksums.of, files)
    return bool(files) and all((text.name, text.bytes, text.crc32c) in read for text in texts)


def _warn_of_losses(lines: LineTally, words: Mapping[str, int]) -> None:
    """Logs that text of a split was lost: above one in a hundred of unknown tokens, and any bytes."""
    counts = ', '.join(f'{word!r} {count}' for word, count in [*words.items()][:_LOGGED_WORDS])
    if lines.unknown and lines.ids and lines.unknown * 100 > lines.ids:
        _LOGGER.warning(
            'encode: %s: %d of %d ids are the unknown token, %s; the commonest are %s',
            lines.split,
            lines.unknown,
            lines.ids,
            f'{lines.unknown / lines.ids:.1%}',
            counts,
        )
    if lines.dropped_bytes:
        _LOGGER.warning(
            'encode: %s: %d bytes without an entry or a match became no id; the commonest are %s',
            lines.split,
            lines.dropped_bytes,
            counts,
        )


def _converted(
    shards: Sequence[OutputFile],
    columns: Sequence[Column],
    scheme: Scheme,
    options: EncodeOptions,
    execution: Execution,
    path: str,
) -> list[OutputFile]:
    """Turns the shards in an attempt's folder into what is asked for."""
    report = os.path.join(path, 'converted')
    output_format = converted_format(options.output_format, options.pack)

    def build(pipeline: beam.Pipeline) -> None:
        (
            pipeline
            | CreateReshuffled(shards_in_order(shards))
            | 'ConvertShards' >> ConvertShards(path, output_format, columns, scheme)
            | 'WriteFileStats' >> WriteStats(report)
        )

    execution.engine.run(build)
    written = {file.name: file for file in read_stats(report, WrittenFile)}
    names = [column.name for column in columns]
    converted = []
    for shard in shards:
        for name in output_format.file_names(shard.name, names):
            file = written[name]
            if file.examples != shard.rows:
                raise RuntimeError(f'{name} has {file.examples} of {shard.rows} rows')
            converted.append(file.listed())
    return converted


def _columns(
    features: Sequence[EncodedFeature],
    scheme: Scheme,
    path_to_record: Mapping[str, VocabularyRecord],
) -> list[Column]:
    """Returns the features with what is known of their vocabularies."""
    fixed, columns = scheme.fixed, []
    for encoded in features:
        name, path = encoded.feature.name, encoded.vocabulary
        if fixed is None:
            columns.append(Column.recorded(name, path_to_record[path], path))
        else:
            columns.append(Column.of(name, fixed.vocab_size, fixed.special_ids, path))
    return columns


def _encode_through_runner(
    plan: ReadPlan,
    encoder: BlockEncoder,
    layout: Sequence[SplitShards],
    options: EncodeOptions,
    execution: Execution,
    budget: RejectionBudget | None,
    path: str,
) -> None:
    """Encodes as `encode_through_files` does, with the runner's own shuffle."""
    engine = execution.engine

    def build(pipeline: beam.Pipeline) -> None:
        blocks = plan.read(pipeline)
        encoded = encode_blocks(blocks, encoder, layout, engine.workers, budget)
        write_stats(encoded, path)
        shards = write_shards(encoded[RECORDS], options.name, path, layout, options.has_index)
        write_shard_stats(shards, path)

    engine.run(build, path)
