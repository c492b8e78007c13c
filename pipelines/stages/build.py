"""The main job: count, learn, encode, one after the other, into one folder."""

import time
from collections.abc import Mapping, Sequence

from pipelines.artifacts.count_files import find_counts
from pipelines.artifacts.counts_folder import CountsFolder, tell_sample
from pipelines.artifacts.manifest import (
    InputText,
    SampleRecord,
    VocabularyRecord,
    read_manifest,
)
from pipelines.artifacts.stage_output import StageKey, StageOutput, StageTask
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.work_folder import WorkFolder
from pipelines.jobs.corpus_files import Corpus
from pipelines.jobs.encode_options import EncodeOptions, VocabularyPaths
from pipelines.jobs.job import Execution, Reading
from pipelines.jobs.read_plan import plan_reading
from pipelines.jobs.shuffle_memory import refuse_too_large
from pipelines.learning.find_vocabulary import VocabularySearch
from pipelines.learning.learner_rounds import RoundsPlace
from pipelines.options.vocabulary_options import BuiltVocabularies, SampledVocabulary
from pipelines.shuffle.through_files import KeptRuns
from pipelines.stages.count import count_stage
from pipelines.stages.encode import encode_into, log_shards
from pipelines.stages.run_stage import Made, run_stage
from pipelines.stages.vocabulary import learn
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.scheme_options import LearningOptions
from tokcore.errors import InputError
from tokcore.options.option_fields import recorded


def build_stage(
    reading: Reading,
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

    rounds = {
        side: RoundsPlace.of(folder, name, execution.work) for side, name in names.items()
    }

    def make(attempt: Attempt) -> list[Made]:
        plan = plan_reading(reading, execution, attempt.path)
        if folders:
            training = plan.only('train')
            count_stage(
                training.reading, execution, list(folders.values()), training, sampling
            )
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
        return [Made(manifest, encoded.stats.rejected, seconds)]

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
        tell_sample(made.manifest)


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
