"""The main job: count, learn and encode, one after the other, into one folder."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence

from pipelines.artifacts.counts import CountsFolder, find_counts, log_sample
from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.outputs import StageOutput, StageTask
from pipelines.artifacts.vocabularies import folder_for_side, warn_of_missing_tokens
from pipelines.engines.progress import stage_running
from pipelines.files.attempts import Attempt
from pipelines.files.work_folder import WorkFolder
from pipelines.jobs.job import BuildJob, CountJob
from pipelines.jobs.read_plan import ReadPlan, plan_reading
from pipelines.jobs.shuffle_memory import refuse_too_little_memory
from pipelines.learning.rounds import OutputRounds
from pipelines.learning.search import VocabularySearch
from pipelines.options.job import STREAM_FORMATS, PairSide
from pipelines.shuffle.merge_runs import KeptRuns
from pipelines.stages.count import count_folders
from pipelines.stages.encode import encode_into
from pipelines.stages.run_stage import StageResult, run_stage
from pipelines.stages.vocabulary import learn
from tokcore.encoding.document_ends import listed_ends, unknown_end
from tokcore.errors import InputError
from tokcore.process_end import keep
from tokcore.records.manifest import InputText, Manifest, VocabularyRecord

_LEARNED = 'the vocabulary to be learned'


def build_stage(job: BuildJob) -> Manifest | None:
    """Counts the training lines, learns the vocabularies and encodes all splits.

    A scheme that learns nothing only encodes. Of a sample only the vocabularies are learned; all
    lines are encoded. Returns the manifest of what was made; None if it was there.

    Raises:
        InputError: whatever the three stages refuse.
    """
    started = time.monotonic()
    if job.learning is not None and (tokens := job.learning.first_entries) is not None:
        ids = {token: id_ for id_, token in enumerate(tokens)}
        warn_of_missing_tokens(job.reading.scheme, ids.get, job.dataset.encoding, _LEARNED)
        is_needed = job.dataset.output_format in STREAM_FORMATS and not job.dataset.has_no_end
        if is_needed and job.dataset.end is None and not listed_ends(ids):
            raise unknown_end(_LEARNED, {})
    execution, names, folders = job.execution, job.vocabulary_names, job.counts_folders
    output = StageOutput.of_dataset(job.output)
    key = job.key()
    rounds = {
        side: OutputRounds.of(job.output, name, execution.work) for side, name in names.items()
    }

    def make(attempt: Attempt) -> list[StageResult]:
        plan = plan_reading(job.reading, execution, attempt.path)
        counted = _count(job, plan) if folders else []
        counted_at = time.monotonic()
        vocabularies = _learn(job, rounds, attempt.path)
        learned_at = time.monotonic()
        paths = job.vocabulary_paths(attempt.path)
        features = job.dataset.features(paths, job.reading.corpus.format.sides)
        ends = job.dataset.ends(features, job.reading.scheme)
        with stage_running('encode'):
            encoded = encode_into(
                plan, execution, paths, vocabularies, ends, job.dataset, attempt.path, job.output
            )
        counts = _counts_manifests(folders.values(), counted, encoded.stats.inputs)
        manifest = key.manifest(
            encoded.stats.inputs,
            encoded.stats.lines,
            vocabularies=vocabularies,
            files=encoded.shards,
            index=encoded.index,
            end_of_document=ends,
            datasets=encoded.stats.datasets,
            sample=tuple(sample for manifest in counts for sample in manifest.sample),
        )
        seconds = {
            'count': counted_at - started,
            'vocab': learned_at - counted_at,
            'encode': time.monotonic() - learned_at,
        }
        return [StageResult(manifest, encoded.stats.rejected, seconds)]

    work = WorkFolder(execution.work, job.output)
    [result] = run_stage(
        [StageTask(key, output, job.file_names)],
        make,
        execution,
        kernels=['counting', 'learning', 'encoding', 'records']
        if folders
        else ['encoding', 'records'],
        parts=['count', 'vocab', 'encode'] if folders else [],
        work=work,
        kept=[KeptRuns(work.path, job.output), *rounds.values()],
        check=lambda: refuse_too_little_memory(job.reading, execution, len(names)),
    )
    if result is None:
        return None
    output.warn_rejected(result.rejected)
    log_sample(result.manifest)
    return result.manifest


def _count(job: BuildJob, plan: ReadPlan) -> list[Manifest | None]:
    """Counts into the COUNTS folders; returns the manifests of those that were not there."""
    training = plan.only('train')
    folders = list(job.counts_folders.values())
    results = count_folders(
        CountJob(
            reading=training.reading, folders=folders, execution=job.execution, sample=job.sample
        ),
        training,
    )
    keep('the counts')
    return [result.manifest if result else None for result in results]


def _learn(
    job: BuildJob, rounds: Mapping[PairSide, OutputRounds], path: str
) -> tuple[VocabularyRecord, ...]:
    """Learns the vocabularies from their COUNTS folders into an attempt's folder."""
    records = []
    learning = job.learning
    for side, name in job.vocabulary_names.items():
        assert learning is not None  # a scheme that learns nothing has no such names
        search = VocabularySearch(
            find_counts([job.counts_folders[side].path]),
            learning,
            name,
            job.execution.engine,
            os.path.join(path, f'learner.{side}'),
            rounds[side],
            job.reading.scheme,
            job.execution.memory_bytes,
        )
        records.append(learn(search, side, path, folder_for_side(side), with_ids=True))
    return tuple(records)


def _counts_manifests(
    folders: Iterable[CountsFolder],
    counted: Iterable[Manifest | None],
    inputs: Sequence[InputText],
) -> list[Manifest]:
    """Returns the manifests of counts, which must be of the training lines that were encoded."""
    encoded = tuple(text for text in inputs if text.split == 'train')
    manifests = []
    for folder, made in zip(folders, counted, strict=True):
        manifest = made or read_manifest(StageOutput.of_counts(folder.path).manifest_path)
        if manifest is None or manifest.inputs != encoded:
            raise InputError(
                f'the training files have changed since {folder.path} was counted; run again '
                'with --overwrite when nothing writes to them any more'
            )
        manifests.append(manifest)
    return manifests
