"""The main job: count, learn, encode, one after the other, into one folder."""

import time
from collections.abc import Mapping, Sequence

from pipelines.artifacts.count_files import find_counts
from pipelines.artifacts.manifest import InputText, Manifest, VocabularyRecord, read_manifest
from pipelines.artifacts.run_stage import Made, run_stage
from pipelines.artifacts.stage_output import StageKey, StageOutput
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.work_folder import WorkFolder
from pipelines.jobs.corpus_files import Corpus, Job
from pipelines.jobs.read_stats import wanted_inputs
from pipelines.learning.learner_rounds import RoundsPlace
from pipelines.shuffle.through_files import KeptRuns
from pipelines.stages.count import CountsFolder, count_stage
from pipelines.stages.encode import (
    EncodeOptions,
    VocabularyPaths,
    encode_into,
    log_shards,
    refuse_too_large,
    shard_names,
)
from pipelines.stages.vocabulary import VocabularyOptions, learn
from tokcore.errors import InputError
from tokcore.text.unicode_tables import UNICODE_VERSION


def vocabulary_names(corpus: Corpus, name: str, size: int, shared: bool) -> dict[str, str]:
    """Returns the file name of each side's vocabulary: `both`, or `inputs` and `targets`."""
    stem = f'vocab.{name}.{size}.subwords'
    if shared or corpus.splits[0].kind == 'text':
        return {'both': stem}
    return {side: f'{stem}.{side}' for side in ('inputs', 'targets')}


def build_stage(
    job: Job, vocabulary: VocabularyOptions, shared: bool, encoding: EncodeOptions, folder: str
) -> None:
    """Counts the training lines, learns the vocabularies and encodes all splits.

    Raises:
        InputError: whatever the three stages refuse.
    """
    started = time.monotonic()
    corpus = job.corpus
    output = StageOutput.of_dataset(folder)
    names = vocabulary_names(corpus, encoding.name, vocabulary.vocab_size, shared)
    key = StageKey(
        'build',
        {
            **encoding.for_manifest(job),
            **vocabulary.for_manifest(),
            'shared_vocab': shared,
        },
        wanted_inputs(corpus),
    )
    is_text = corpus.splits[0].kind == 'text'
    folders = {
        side: CountsFolder(
            filesystem.join(folder, 'counts' if side == 'both' else f'counts.{side}'),
            'text' if is_text else side,
        )
        for side in names
    }

    def make(attempt: Attempt) -> Made:
        planned = job.planned(attempt.path)
        count_stage(planned.only('train'), list(folders.values()), keep_rejected=False)
        counted = time.monotonic()
        records: list[VocabularyRecord] = []
        for side, name in names.items():
            learned = learn(
                find_counts([folders[side].path]),
                vocabulary,
                name,
                job.engine,
                filesystem.join(attempt.path, f'learner.{side}'),
                folder,
            )
            filesystem.write_bytes(filesystem.join(attempt.path, name), learned.data)
            records.append(learned.record(name, side))
        learned_at = time.monotonic()
        paths = _vocabulary_paths(names, attempt.path, is_text)
        encoded = encode_into(planned, paths, encoding, attempt.path, folder)
        _refuse_changed(folders, encoded.stats.inputs)
        manifest = Manifest(
            'build',
            UNICODE_VERSION,
            key.options,
            encoded.stats.inputs,
            encoded.stats.lines,
            vocabularies=tuple(records),
            files=encoded.shards,
            rejected=output.rejected_files(encoded.stats.rejected),
        )
        seconds = {
            'count': counted - started,
            'vocab': learned_at - counted,
            'encode': time.monotonic() - learned_at,
        }
        return Made(manifest, encoded.stats.rejected, seconds)

    rounds = [RoundsPlace.of(folder, name, vocabulary.work) for name in names.values()]
    made = run_stage(
        output,
        key,
        [*names.values(), *shard_names(corpus, encoding)],
        make,
        overwrite=job.overwrite,
        flags=job.engine.flags,
        kept=[WorkFolder(job.work, folder), KeptRuns(job, folder), *rounds],
        check=lambda: refuse_too_large(job, len(names)),
    )
    if made is not None:
        log_shards(made, output)


def _vocabulary_paths(names: Mapping[str, str], folder: str, is_text: bool) -> VocabularyPaths:
    paths = {side: filesystem.join(folder, name) for side, name in names.items()}
    targets = paths.get('targets', paths.get('both'))
    return VocabularyPaths(targets, None if is_text else paths.get('inputs', targets))


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
