"""The main job: count, learn and encode, one after the other, into one folder; or a dry run of it."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from pipelines.artifacts.counts import CountsFolder, find_counts, log_sample
from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.outputs import StageKey, StageOutput, StageTask
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.claims import WorkFolder
from pipelines.jobs.corpus import Corpus
from pipelines.jobs.job import (
    CorpusReading,
    EncodeOptions,
    Execution,
    VocabularyPaths,
    plan_reading,
    refuse_too_large,
)
from pipelines.learning.rounds import RoundsPlace
from pipelines.learning.search import VocabularySearch
from pipelines.options.vocabulary import BuiltVocabularies, SampledVocabulary
from pipelines.shuffle.merge_runs import KeptRuns
from pipelines.stages.count import count_stage
from pipelines.stages.encode import encode_into, log_shards
from pipelines.stages.run_stage import StageResult, run_stage
from pipelines.stages.vocabulary import learn
from tokcore.corpus.archive_reading import in_passes, reading_on
from tokcore.corpus.corpus import OpenBinary, Split
from tokcore.corpus.filters.applying import select_rows
from tokcore.corpus.stats import block_stats
from tokcore.corpus.vocab_sample import UniformShare, asked_sample
from tokcore.encoding.scheme import LearningOptions, Scheme
from tokcore.errors import InputError
from tokcore.options import recorded
from tokcore.records.manifest import InputText, SampleRecord, VocabularyRecord

_FILES_TOLD = 8


def build_stage(
    reading: CorpusReading,
    execution: Execution,
    vocabulary: LearningOptions | None,
    built: BuiltVocabularies,
    encoding: EncodeOptions,
    folder: str,
    sampling: SampledVocabulary = SampledVocabulary(),
) -> None:
    """Counts the training lines, learns the vocabularies and encodes all splits.

    A scheme that learns nothing (`vocabulary` is None) only encodes. Of a sample only the
    vocabularies are; all is encoded.

    Raises:
        InputError: whatever the three stages refuse.
    """
    started = time.monotonic()
    corpus = reading.corpus
    output = StageOutput.of_dataset(folder)
    names = built.names(reading.scheme, encoding.name, vocabulary, corpus.format.sides)
    key = StageKey(
        'build',
        {
            **encoding.for_manifest(reading),
            **(vocabulary.for_manifest() if vocabulary else {}),
            **recorded(built),
            **recorded(sampling),
            'scheme': reading.scheme.name,
        },
        corpus.wanted_inputs(),
        reading.scheme.rules,
    )
    folders = {
        side: CountsFolder(
            filesystem.join(folder, f'counts.{side}' if len(names) > 1 else 'counts'),
            side if corpus.is_paired else 'text',
            root=folder,
        )
        for side in names
    }

    rounds = {side: RoundsPlace.of(folder, name, execution.work) for side, name in names.items()}

    def make(attempt: Attempt) -> list[StageResult]:
        plan = plan_reading(reading, execution, attempt.path)
        if folders:
            training = plan.only('train')
            count_stage(training.reading, execution, list(folders.values()), training, sampling)
        counted = time.monotonic()
        records: list[VocabularyRecord] = []
        for side, name in names.items():
            counts = find_counts([folders[side].path])
            work = filesystem.join(attempt.path, f'learner.{side}')
            search = VocabularySearch(
                counts, vocabulary, name, execution.engine, work, rounds[side], reading.scheme
            )
            records.append(learn(search, side, attempt.path, with_ids=True))
        learned_at = time.monotonic()
        paths = _vocabulary_paths(names, attempt.path, corpus)
        encoded = encode_into(plan, execution, paths, encoding, attempt.path, folder)
        _refuse_changed(folders, encoded.stats.inputs)
        manifest = key.manifest(
            encoded.stats.inputs,
            encoded.stats.lines,
            vocabularies=tuple(records),
            files=encoded.shards,
            datasets=encoded.stats.datasets,
            sample=_samples(folders),
        )
        seconds = {
            'count': counted - started,
            'vocab': learned_at - counted,
            'encode': time.monotonic() - learned_at,
        }
        return [StageResult(manifest, encoded.stats.rejected, seconds)]

    work = WorkFolder(execution.work, folder)
    [made] = run_stage(
        [StageTask(key, output, [*_with_ids(names, reading.scheme), *encoding.file_names(corpus)])],
        make,
        execution,
        kept=[work, KeptRuns(work.path, folder), *rounds.values()],
        check=lambda: refuse_too_large(reading, execution, len(names)),
    )
    if made is not None:
        log_shards(made, output)
        log_sample(made.manifest)


def _with_ids(names: Mapping[str, str], scheme: Scheme) -> list[str]:
    """The names of all files of the vocabularies."""
    beside = [scheme.entries_name(name) for name in names.values()]
    return [*names.values(), *(name for name in beside if name is not None)]


def _vocabulary_paths(names: Mapping[str, str], folder: str, corpus: Corpus) -> VocabularyPaths:
    paths = {side: filesystem.join(folder, name) for side, name in names.items()}
    targets = paths.get('targets', paths.get('both', ''))
    return VocabularyPaths(targets, paths.get('inputs', targets) if corpus.is_paired else None)


def _samples(folders: Mapping[str, CountsFolder]) -> tuple[SampleRecord, ...]:
    """What the vocabularies were counted from."""
    manifests = (
        read_manifest(StageOutput.of_counts(folder.path).manifest_path)
        for folder in folders.values()
    )
    return tuple(each for manifest in manifests if manifest for each in manifest.sample)


def _refuse_changed(folders: Mapping[str, CountsFolder], inputs: Sequence[InputText]) -> None:
    """The vocabulary must be counted from exactly the training lines that were encoded."""
    encoded = tuple(each for each in inputs if each.split == 'train')
    for folder in folders.values():
        counted = read_manifest(StageOutput.of_counts(folder.path).manifest_path)
        if counted is None or counted.inputs != encoded:
            raise InputError(
                f'the training files have changed since {folder.path} was counted; run again '
                'with --overwrite when nothing writes to them any more'
            )


def dry_run(
    reading: CorpusReading,
    execution: Execution,
    names: Sequence[str],
    folder: str,
    sampling: SampledVocabulary = SampledVocabulary(),
) -> Iterator[str]:
    """Yields lines about the inputs, each of which is opened and its first block read, and outputs.

    Args:
        reading: the corpus.
        execution: the size of a block.
        names: of the files that would be made.
        folder: where.
        sampling: what of the training corpus the vocabulary is counted from.

    Raises:
        InputError: a file cannot be read, or its first block has a line that cannot be used.
    """
    for split in reading.corpus.splits:
        size = sum(file.size for files in split.files for file in files)
        name = f'{split.name}, {split.dataset}' if split.dataset else split.name
        paths = sum(len(files) for files in split.files)
        limit = f', the first {split.max_examples} examples' if split.max_examples else ''
        yield f'{name}: {split.format.what}, {_many(paths, "file")}, {size} bytes as stored{limit}'
        yield from _first_blocks(reading, execution, split)
    if sampling.vocab_sample:
        yield f'vocabulary: {_sampled(sampling.vocab_sample)} (--vocab-sample {sampling.vocab_sample})'
    yield f'to be written to {folder}: {_many(len(names), "file")}'
    for name in names[:_FILES_TOLD]:
        yield f'  {name}'
    if len(names) > _FILES_TOLD:
        yield f'  … {names[-1]}'


def _sampled(how: str) -> str:
    asked = asked_sample(how)
    if isinstance(asked, UniformShare):
        return f'counted from a sample, {asked.typed} of the training rows'
    return (
        'counted from a sample, of each training file every so-manieth line until they have '
        f'{asked.size:,} characters'
    )


def _many(count: int, what: str) -> str:
    return f'{count} {what}' if count == 1 else f'{count} {what}s'


def _first_blocks(reading: CorpusReading, execution: Execution, split: Split) -> Iterator[str]:
    passes = in_passes(split.file_indexes, split.files_at, sys.maxsize)
    told: dict[int, str] = {}
    for together in passes:
        with reading_on(filesystem.open_binary, list(map(split.files_at, together))) as open_binary:
            for place in together:
                told[place] = _first_block(reading, execution, split, place, open_binary)
    for place in split.file_indexes:
        yield f'  {told[place]}'


def _first_block(
    reading: CorpusReading, execution: Execution, split: Split, place: int, open_binary: OpenBinary
) -> str:
    files = split.files_at(place)
    paths = ' and '.join(file.path for file in files)
    block = split.format.first_block(
        split, place, open_binary, execution.item_bytes, reading.max_line_bytes
    )
    if block is None:
        return f'{paths}: empty'
    rows = select_rows(block, reading.corpus.splits, reading.scheme.normalizer)
    tally = block_stats(block, rows, reading.corpus.splits, reading.on_error).tally
    left_out = ''.join(f', {count} {reason}' for reason, count in tally.left_out.items())
    left_out += ''.join(f', {count} dropped by {name}' for name, count in tally.filtered.items())
    left_out += f', {tally.added} added by filters' if tally.added else ''
    return (
        f'{paths}: in the first block {_many(tally.lines, "line")}, '
        f'{_many(tally.examples, "example")}, {tally.empty} empty{left_out}'
    )
