"""The main job: count, learn and encode, one after the other, into one folder."""

import dataclasses
import os
import time

from pipelines.artifacts.counts import CountFiles, CountsFolder, find_counts, log_sample
from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.outputs import StageOutput, StageTask
from pipelines.artifacts.vocabularies import folder_for_side, warn_of_missing_tokens
from pipelines.engines.progress import stage_running
from pipelines.files.attempts import Attempt, WorkFolder
from pipelines.jobs.job import BuildJob, CountJob
from pipelines.jobs.reading import plan_reading
from pipelines.learning.rounds import OutputRounds
from pipelines.learning.search import VocabularySearch
from pipelines.options.job import STREAM_FORMATS
from pipelines.shard_formats.formats import shard_format
from pipelines.shard_formats.shard_format import most_ids
from pipelines.shuffle.plan import KeptRuns, refuse_too_little_memory
from pipelines.stages.count import count_folders
from pipelines.stages.encode import dataset_manifest, encode_into
from pipelines.stages.run_stage import StageResult, run_stage
from pipelines.stages.vocabulary import learn
from tokcore.encoding.document_ends import listed_ends, unknown_end
from tokcore.errors import InputError
from tokcore.process_end import keep
from tokcore.records.manifest import Manifest, SampleRecord

_LEARNED = 'the vocabulary to be learned'


def build_stage(job: BuildJob) -> Manifest | None:
    """Counts the training lines, learns the vocabularies and encodes all splits.

    A scheme that learns nothing only encodes. With a sample, only the vocabularies are learned from
    it; all lines are encoded. Returns the manifest of what was made; None if it was there.

    Raises:
        InputError: whatever the three stages refuse.
    """
    started = time.monotonic()
    reading, dataset, learning = job.reading, job.dataset, job.learning
    if learning is not None and (tokens := learning.first_entries) is not None:
        ids = {token: id_ for id_, token in enumerate(tokens)}
        warn_of_missing_tokens(reading.scheme, ids.get, dataset.encoding, _LEARNED)
        is_needed = dataset.output_format in STREAM_FORMATS and not dataset.has_no_end
        if is_needed and dataset.end is None and not listed_ends(ids):
            raise unknown_end(_LEARNED, {})
    execution, names, folders = job.execution, job.vocabulary_names, job.counts_folders
    output = StageOutput.of_dataset(job.output)
    key = job.key()
    rounds = {
        side: OutputRounds.of(job.output, name, execution.work) for side, name in names.items()
    }

    def make(attempt: Attempt) -> list[StageResult]:
        plan = plan_reading(reading, execution, attempt.path)
        counts: dict[str, Manifest | None] = {}
        if folders:
            for apart in job.weighted or [None]:
                part, of_part = plan.only('train', apart), execution
                if apart:  # a limit is of all lines, and encoding keeps it
                    part = dataclasses.replace(part, max_rejected=None)
                    of_part = dataclasses.replace(execution, max_rejected=None)
                counting = CountJob(
                    reading=reading.only('train', apart),
                    folders=[each.within(apart) if apart else each for each in folders.values()],
                    execution=of_part,
                    sample=job.sample,
                )
                counted = count_folders(counting, part)
                for folder, result in zip(counting.folders, counted, strict=True):
                    manifest_path = StageOutput.of_counts(folder.path).manifest_path
                    counts[folder.path] = (
                        result.manifest if result else read_manifest(manifest_path)
                    )
            keep('the counts')
        counted_at = time.monotonic()
        records = []
        for side, name in names.items():
            assert learning is not None  # a scheme that learns nothing has no such names
            search = VocabularySearch(
                _counts_of(job, folders[side]),
                learning,
                name,
                execution.engine,
                os.path.join(attempt.path, f'learner.{side}'),
                rounds[side],
                reading.scheme,
                execution.memory_bytes,
            )
            records.append(learn(search, side, attempt.path, folder_for_side(side), with_ids=True))
        vocabularies = tuple(records)
        learned_at = time.monotonic()
        paths = job.vocabulary_paths(attempt.path)
        features = dataset.features(paths, reading.corpus.format.sides)
        layout = dataset.layout(reading.corpus)
        ends = dataset.ends(features, reading.scheme)
        shard_format(dataset.output_format).require_ids(most_ids(vocabularies, ends))
        with stage_running('encode'):
            made = encode_into(
                plan, execution, dataset, features, layout, vocabularies, ends,
                attempt.path, job.output,
            )  # fmt: skip
        stats = made[0]
        trained_on = [text for text in stats.inputs if text.split == 'train']
        samples: list[SampleRecord] = []
        for folder in folders.values():
            paths_of_side = [folder.within(name).path for name in job.weighted] or [folder.path]
            made_of_side = [each for path in paths_of_side if (each := counts[path])]
            if [text for each in made_of_side for text in each.inputs] != trained_on:
                raise InputError(
                    f'the training files have changed since {folder.path} was counted; run again '
                    'with --overwrite when nothing writes to them any more'
                )
            samples += [record for each in made_of_side for record in each.sample]
        manifest = dataset_manifest(
            key,
            reading.corpus,
            made,
            attempt.path,
            vocabularies=vocabularies,
            end_of_document=ends,
            sample=tuple(samples),
        )
        seconds = {
            'count': counted_at - started,
            'vocab': learned_at - counted_at,
            'encode': time.monotonic() - learned_at,
        }
        return [StageResult(manifest, stats.rejected, seconds)]

    work = WorkFolder(execution.work, job.output)
    learns = ['counting', 'learning'] if folders else []
    [result] = run_stage(
        [StageTask(key, output, job.file_names)],
        make,
        execution,
        kernels=[*learns, 'encoding', 'records'],
        parts=['count', 'vocab', 'encode'] if folders else [],
        work=work,
        kept=[KeptRuns(work.path, job.output), *rounds.values()],
        check=lambda: refuse_too_little_memory(reading, execution, len(names)),
    )
    if result is None:
        return None
    output.warn_rejected(result.rejected)
    log_sample(result.manifest)
    return result.manifest


def _counts_of(job: BuildJob, folder: CountsFolder) -> CountFiles:
    """Returns the counts of a side; of each dataset if these have weights."""
    if not job.weighted:
        return find_counts([folder.path])
    paths = [folder.within(name).path for name in job.weighted]
    return find_counts(paths, [*job.weighted.values()], job.weights.temperature)
