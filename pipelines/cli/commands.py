"""The four commands that run pipelines: options become a job, and a stage runs the job.

Each option is read once, here. What does not go together, or cannot be, is refused before any work.
"""

import argparse
import dataclasses
import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from pipelines.artifacts.counts import CountFiles, CountsFolder, find_weighted_counts
from pipelines.artifacts.dev_texts import DevText, read_dev_texts
from pipelines.artifacts.manifest import RUN_NAME, read_dataset_manifest, read_run
from pipelines.artifacts.vocabularies import (
    needs_no_vocabulary,
    scheme_of,
)
from pipelines.cli.inputs import (
    InputsToFetch,
    names_files,
    refuse_long_names,
    resolve_corpus,
    split_paths,
)
from pipelines.cli.job_file import job_text, read_job
from pipelines.cli.summary import summary
from pipelines.cli.terminal import print_lines, print_toml
from pipelines.engines.engine import Engine, check_engine, choose_engine
from pipelines.engines.machine import total_bytes
from pipelines.files import filesystem
from pipelines.files.hub import forget_commits
from pipelines.files.vocabulary_files import find_vocabulary, vocabulary_path
from pipelines.jobs.corpus import Corpus, SplitPaths
from pipelines.jobs.job import (
    BuildJob,
    CorpusReading,
    CountJob,
    EncodeJob,
    EncodeOptions,
    Execution,
    Job,
    MergeJob,
    PiecesJob,
    PreviousDataset,
    TextToCount,
    VocabJob,
    VocabularyPaths,
)
from pipelines.jobs.reading import refuse_unfit
from pipelines.jobs.recorded import read_corpus_index, recorded_corpus, with_added
from pipelines.options.beam import url_without_secrets
from pipelines.options.commands import known_commands
from pipelines.options.job import (
    JOINED,
    NANOGPT,
    SPLITS,
    TAKE_ROWS_AWAY,
    TEXT,
    TFRECORD,
    DatasetOptions,
    EndOptions,
    LineOptions,
    MemoryOptions,
    UnknownOptions,
    check_pack,
    one_shard,
    rejection_limit,
)
from pipelines.options.reading import field_values, options_from
from pipelines.options.vocabulary import (
    SampleOptions,
    VocabularyFiles,
    VocabularyLayout,
    WeightOptions,
    encoding_from_options,
    learning_from_options,
    scheme_from_options,
)
from pipelines.shard_formats.formats import shard_format
from pipelines.stages.build import build_stage
from pipelines.stages.count import count_stage, merge_stage
from pipelines.stages.dry_run import dry_run
from pipelines.stages.encode import encode_stage
from pipelines.stages.vocabulary import pieces_stage, vocabulary_stage
from pipelines.transforms.stats import REJECTED_FOLDER
from tokcore.bpe.codes import SPECIAL_TOKENS
from tokcore.corpus.fields import LabelNames
from tokcore.counts.weights import reason_against
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import ROW
from tokcore.errors import InputError
from tokcore.filters.leaving_out import Address, AddressedFiles
from tokcore.options import flag, format_size, recorded
from tokcore.records.manifest import ROOT_STAGES, Manifest, shard_name
from tokcore.schemes import DEFAULT_SCHEME

_LOGGER = logging.getLogger(__name__)

_ENDINGS_OF_SCHEMES = {
    '.json': 'bpe', '.codes': 'bpe', '/vocab.txt': 'wordpiece', '.model': 'unigram',
}  # fmt: skip

_BESIDE_VOCABULARY = ('.tokbeam.run.json', f'.{REJECTED_FOLDER}')


def _named(options: argparse.Namespace) -> list[SplitPaths]:
    """Returns the datasets whose files are named, by options or in a job file."""
    splits = SPLITS if options.command in ('build', 'encode', 'update') else SPLITS[:1]
    datasets = split_paths(options, splits) if names_files(options) else []
    return [dataset for dataset in datasets if not dataset.is_cut_off]


def _text_of_job(options: argparse.Namespace) -> str:
    """Returns the job file of a dataset, for the record of its run; '' if none can stand for it."""
    if options.command not in ROOT_STAGES:
        return ''
    datasets = _named(options)
    paths = [path for dataset in datasets for of_role in dataset.paths.values() for path in of_role]
    if any('://' in path and url_without_secrets(path) != path for path in paths):
        return ''
    try:
        return job_text(known_commands()[options.command], options.given, datasets)
    except InputError:  # a path that is not UTF-8
        return ''


def run_command(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Runs the job that options ask for, or prints it, or what it would read and write; returns 0."""
    if vars(options).get('print_job'):
        print_toml(job_text(known_commands()[options.command], options.given, _named(options)))
        return 0
    try:
        job = make_job(options, beam_flags)
    except InputsToFetch as missing:
        print_lines(missing.lines)
        return 0
    if vars(options).get('dry_run'):
        print_lines(dry_run(job))
    elif made := run_job(job):
        for line in summary(job, made, time.monotonic() - options.began):
            _LOGGER.info('%s', line)
    return 0


def run_job(job: Job) -> Manifest | None:
    """Runs the stage of a job; returns the manifest of what was made, None if it was there.

    Raises:
        InputError: what the stage refuses.
    """
    stages: dict[type, Callable[[Any], Manifest | None]] = {
        BuildJob: build_stage,
        CountJob: count_stage,
        MergeJob: merge_stage,
        PiecesJob: pieces_stage,
        VocabJob: vocabulary_stage,
        EncodeJob: encode_stage,
    }
    return stages[type(job)](job)


def make_job(options: argparse.Namespace, beam_flags: Sequence[str]) -> Job:
    """Returns the job that options ask for.

    Raises:
        InputError: options that do not go together, inputs that cannot be found, or an engine that
            cannot run.
        InputsToFetch: it is a dry run, and some inputs are not fetched.
    """
    forget_commits()
    makers: dict[str, Callable[[argparse.Namespace, Engine, str], Job]] = {
        'build': _build_job,
        'count': _count_job,
        'vocab': _vocab_job,
        'encode': _encode_job,
        'update': _update_job,
    }
    engine = check_engine(choose_engine(beam_flags, options.workers))
    output = filesystem.absolute(options.output)
    given = vars(options).get('work')
    work = filesystem.absolute(given) if given else None
    for option, path in (('--output', output), ('--work', work)):
        if path is not None:
            engine.runner.refuse_place(option, path)
    if work is not None:
        refuse_long_names(work, (), '--work')
    return makers[options.command](options, engine, output)


def _build_job(options: argparse.Namespace, engine: Engine, output: str) -> BuildJob:
    corpus = resolve_corpus(options, SPLITS, output, engine)
    scheme = scheme_from_options(options.scheme, vars(options))
    learning = None
    if scheme.options:
        scheme, learning = learning_from_options(scheme, vars(options))
    sample = _sample(options, corpus)
    if learning is None:
        _refuse_sample(options, f'--scheme {scheme.name} learns none')
        if options.temperature is not None:
            raise InputError(
                f'--temperature is of learning, and --scheme {scheme.name} learns nothing'
            )
    dataset = _dataset(options, corpus, scheme)
    if learning is not None:
        for name, size in recorded(learning).items():
            if name in ('vocab_size', 'merges') and isinstance(size, int):
                shard_format(dataset.output_format).require_ids(size)
    layout = options_from(VocabularyLayout, vars(options))
    names = layout.names(scheme, options.name, learning, corpus.format.sides)
    refuse_long_names(output, [*names.values(), *_longest_shards(dataset, corpus)], '--name')
    return BuildJob(
        reading=_reading(options, corpus, scheme),
        dataset=dataset,
        output=output,
        execution=_execution(options, engine, output, scheme),
        learning=learning,
        vocabularies=layout,
        sample=sample,
        weights=WeightOptions() if learning is None else _weights(options, corpus),
    )


def _count_job(
    options: argparse.Namespace, engine: Engine, output: str
) -> CountJob | MergeJob | PiecesJob:
    if options.pieces:
        return _pieces_job(options, engine, output)
    names = list(dict.fromkeys(options.scheme))
    schemes = [_learning_scheme(options, name, names) for name in names]
    execution = _execution(options, engine, output, schemes[0])
    _refuse_long_endings(output, f'.{REJECTED_FOLDER}')
    if options.counts:
        _refuse_text(options)
        if len(schemes) > 1:
            raise InputError('--counts adds up counts of one scheme; give one --scheme')
        return MergeJob(folders=options.counts, output=output, execution=execution)
    corpus = resolve_corpus(options, ('train',), os.path.dirname(output), engine)
    side, sample = _side(options, corpus), _sample(options, corpus)
    if any(split.max_examples for split in corpus.splits) and len(schemes) > 1:
        raise InputError(
            'max_examples with several schemes would take other lines for each, since their empty '
            'lines differ; count for one after the other'
        )
    folders = [CountsFolder(output, side, schemes[0])]
    if len(schemes) > 1:
        folders = [
            CountsFolder(os.path.join(output, scheme.name), side, scheme, root=output)
            for scheme in schemes
        ]
    if corpus.datasets:
        folders = [folder.within(name) for name in corpus.datasets for folder in folders]
    return CountJob(
        reading=_reading(options, corpus, schemes[0]),
        folders=folders,
        execution=execution,
        sample=sample,
    )


def _pieces_job(options: argparse.Namespace, engine: Engine, output: str) -> PiecesJob:
    if not options.vocab:
        raise InputError('--pieces goes with --vocab, the codes that cut text into pieces; give it')
    if options.counts:
        raise InputError('--counts adds up counts of tokens; leave it out, or --pieces')
    _refuse_sample(options, '--pieces counts by one that exists')
    codes_path = vocabulary_path(options.vocab)
    names = [name for name in dict.fromkeys(options.scheme) if name != DEFAULT_SCHEME]
    scheme = scheme_of([codes_path], names[0] if names else None, vars(options))
    if len(names) > 1 or scheme.entries_name(codes_path) is None:
        raise InputError(
            f'{codes_path} has ids of its own, and --pieces is for codes, of --scheme bpe with '
            '--preset subword-nmt or textbook; leave it out'
        )
    _refuse_long_endings(output, *_BESIDE_VOCABULARY)
    corpus = resolve_corpus(options, ('train',), os.path.dirname(output), engine)
    special_tokens = options.special_tokens
    return PiecesJob(
        reading=_reading(options, corpus, scheme),
        side=_side(options, corpus),
        codes_path=codes_path,
        special_tokens=SPECIAL_TOKENS if special_tokens is None else special_tokens,
        threshold=options.vocabulary_threshold,
        output=output,
        execution=_execution(options, engine, output, scheme),
    )


def _vocab_job(options: argparse.Namespace, engine: Engine, output: str) -> VocabJob:
    scheme, learning = learning_from_options(
        _learning_scheme(options, options.scheme), vars(options)
    )
    if scheme.name == DEFAULT_SCHEME and 'scheme' not in options.given:
        for ending, other in _ENDINGS_OF_SCHEMES.items():
            if output.endswith(ending):
                raise InputError(
                    f'{output} is named like a file of --scheme {other}, and the default is --scheme '
                    f'{DEFAULT_SCHEME}; give the scheme of the vocabulary, or another --output'
                )
    execution = _execution(options, engine, output, scheme)
    _refuse_long_endings(output, *_BESIDE_VOCABULARY)
    source: TextToCount | CountFiles
    parity: tuple[DevText, ...] = ()
    if options.counts:
        _refuse_text(options)
        source = find_weighted_counts(options.counts, options.temperature)
        if options.parity:
            parity = read_dev_texts(options.parity, source, scheme, learning)
    else:
        corpus = resolve_corpus(options, ('train',), os.path.dirname(output), engine)
        if any(corpus.weights) or options.temperature is not None:
            raise InputError(
                'vocab weights datasets by their counts: count the text, and give --counts en=0.7 zh=0.3; '
                'or build, which weights the datasets of a job file'
            )
        reading = _reading(options, corpus, scheme)
        source = TextToCount(reading, _side(options, corpus), _sample(options, corpus))
    return VocabJob(
        source=source, scheme=scheme, learning=learning, output=output, execution=execution,
        parity=parity,
    )  # fmt: skip


def _encode_job(options: argparse.Namespace, engine: Engine, output: str) -> EncodeJob:
    corpus = resolve_corpus(options, SPLITS, output, engine)
    vocabularies = _vocabulary_paths(options, corpus)
    scheme = scheme_of(vocabularies.by_side.values(), options.scheme, vars(options))
    dataset = _dataset(options, corpus, scheme)
    refuse_long_names(output, _longest_shards(dataset, corpus), '--name')
    return EncodeJob(
        reading=_reading(options, corpus, scheme),
        vocabularies=vocabularies,
        dataset=dataset,
        output=output,
        execution=_execution(options, engine, output, scheme),
        unknown=options_from(UnknownOptions, vars(options)),
        states_special_tokens='allow_special_tokens' in options.given,
    )


def _update_job(options: argparse.Namespace, engine: Engine, output: str) -> EncodeJob:
    folder = filesystem.absolute(options.path)
    manifest = read_dataset_manifest(folder)
    output_format = manifest.options.get('output_format', TFRECORD)
    if output_format != TFRECORD:
        raise InputError(
            f'{folder} holds its rows as {output_format:.60}, and TFRecords are updated; update the folder of '
            'these, and convert the result'
        )
    newlines = read_corpus_index(folder, manifest)
    before, listed = _recorded(folder, manifest)
    if any(split.max_examples for split in before.splits):
        raise InputError(
            f'{folder} has a dataset with max_examples, of which other rows might be taken then; encode '
            'the whole corpus again'
        )
    options = _recorded_options(options, folder, manifest)
    if options.job is not None:
        values, options.datasets = read_job(options.job, 'update')
        for key in TAKE_ROWS_AWAY:
            if values.get(key) not in (None, getattr(options, key)):
                raise InputError(
                    f'{options.job}: update leaves out rows by --remove LIST, and keeps to the shares of '
                    f'{folder}; leave {key} out'
                )
    reads = [each.key for each in known_commands()['update'].options if each.option.reads]
    has_files = bool(options.datasets or any(getattr(options, key) for key in reads))
    if not has_files and options.remove is None:
        raise InputError('give files to add, or rows to remove with --remove LIST')
    added = Corpus((), ())
    if has_files:
        added = resolve_corpus(options, SPLITS, output, engine, before)
    whole = with_added(before, added)
    files = AddressedFiles(whole.splits)
    listed, asked = files.relabelled(listed), set[Address]()
    if options.remove is not None:
        asked = files.read(filesystem.read_bytes(options.remove), options.remove) - listed
    whole = whole.without(listed | asked)
    job = _recorded_job(options, manifest, whole, engine, output)
    before = before.without(asked - whole.added().left_out)
    return dataclasses.replace(job, previous=PreviousDataset(folder, manifest, before, newlines))


def job_of_record(
    folder: str, manifest: Manifest, workers: int | None, beam_flags: Sequence[str]
) -> EncodeJob:
    """Returns a job that makes the rows of a dataset, from its manifest and the files that its last run read.

    No file of the corpus is looked for.

    Raises:
        InputError: a file of the folder is missing or damaged.
    """
    corpus, _ = _recorded(folder, manifest)
    options = argparse.Namespace(command='update', datasets={}, job_path=None, workers=workers)
    options = _recorded_options(options, folder, manifest)
    engine = check_engine(choose_engine(beam_flags, workers))
    return _recorded_job(options, manifest, corpus, engine, folder)


def _recorded(folder: str, manifest: Manifest) -> tuple[Corpus, set[Address]]:
    """Returns the corpus of a dataset as it was read, without the rows that were removed, and these."""
    corpus = recorded_corpus(manifest, read_run(os.path.join(folder, RUN_NAME)))
    removed = set[Address]()
    for path in (os.path.join(folder, file.name) for file in manifest.removed):
        removed |= AddressedFiles(corpus.splits).read(filesystem.read_bytes(path), path)
    return corpus.without(removed), removed


def _recorded_options(
    options: argparse.Namespace, folder: str, manifest: Manifest
) -> argparse.Namespace:
    """Returns options of `encode` with those of a dataset, whose vocabularies are in its folder."""
    known = known_commands()
    values = {each.key: each.default for each in known['encode'].options}
    of_files = {each.key for each in known['update'].options}
    values |= {
        key: manifest.options[key] for key in values.keys() - of_files & manifest.options.keys()
    }
    values['vocab'] = tuple(os.path.join(folder, own.name) for own in manifest.vocabularies)
    values['leave_out'] = None  # the manifest has a digest of the list
    return argparse.Namespace(**values | vars(options))


def _recorded_job(
    options: argparse.Namespace, manifest: Manifest, corpus: Corpus, engine: Engine, output: str
) -> EncodeJob:
    """Returns the job that encodes a corpus as a dataset's was."""
    values, vocabularies = manifest.options, _vocabulary_paths(options, corpus)
    scheme = scheme_of(vocabularies.by_side.values(), options.scheme, values)
    fields = field_values(DatasetOptions, vars(options)) | field_values(EndOptions, values)
    return EncodeJob(
        reading=_reading(options, corpus, scheme),
        vocabularies=vocabularies,
        dataset=EncodeOptions(**fields, encoding=options_from(scheme.encoding, values)),
        output=output,
        execution=_execution(options, engine, output, scheme),
        unknown=options_from(UnknownOptions, vars(options)),
    )


def _reading(options: argparse.Namespace, corpus: Corpus, scheme: Scheme) -> CorpusReading:
    lines = options_from(LineOptions, vars(options))
    if rejection_limit(lines.on_error) is not None:
        lines = dataclasses.replace(lines, on_error='skip')
    return CorpusReading(corpus, scheme=scheme, **vars(lines))


def _execution(
    options: argparse.Namespace, engine: Engine, output: str, scheme: Scheme
) -> Execution:
    memory = options_from(MemoryOptions, vars(options)).memory_bytes  # not of `count`
    if engine.runner.is_local and memory is not None and memory > total_bytes():
        raise InputError(
            f'--memory {format_size(memory)} is more than the {total_bytes() >> 20} MiB of this '
            'machine; give less, or leave it out to take what is free'
        )
    return Execution(
        dataclasses.replace(engine, scheme=scheme, output=output),
        work=filesystem.absolute(options.work) if options.work else None,
        overwrite=options.overwrite,
        read_beside=_read_beside(options),
        text=_text_of_job(options),
        max_rejected=rejection_limit(options.on_error),
        memory_bytes=memory,
    )


def _read_beside(options: argparse.Namespace) -> tuple[str, ...]:
    """The files that the options themselves were read from."""
    of_datasets = [dataset.options for split in options.datasets.values() for dataset in split]
    values = [value for mapping in (vars(options), *of_datasets) for value in mapping.values()]
    paths = [value.path for value in values if isinstance(value, LabelNames)]
    paths += [path for path in (options.job_path, getattr(options, 'leave_out', None)) if path]
    paths += [path for path in map(vars(options).get, ('job', 'remove')) if path]
    return tuple(map(filesystem.absolute, dict.fromkeys(paths)))


def _sample(options: argparse.Namespace, corpus: Corpus) -> SampleOptions:
    sample = options_from(SampleOptions, vars(options))
    refuse_unfit(sample.vocab_sample, corpus)
    return sample


def _weights(options: argparse.Namespace, corpus: Corpus) -> WeightOptions:
    """Returns how the training datasets are weighted; refuses weights that do not go together."""
    weights = options_from(WeightOptions, vars(options))
    if any(corpus.weights) or weights.temperature is not None:
        if not corpus.datasets:
            raise InputError(
                'weights are of several datasets, and the training corpus is one; name the datasets in '
                'tables [[train]] of a job file, or leave the weights out'
            )
        if reason := reason_against(corpus.weights, weights.temperature):
            raise InputError(f'[[train]]: {reason}')
    return weights


def _refuse_sample(options: argparse.Namespace, why: str) -> None:
    """Refuses a sample where no vocabulary is learned from text."""
    if options.vocab_sample is not None:
        raise InputError(
            f'--vocab-sample is of text that a vocabulary is learned from, and {why}; leave it out'
        )


def _refuse_text(options: argparse.Namespace) -> None:
    """Refuses text next to the counts that take its place."""
    _refuse_sample(options, '--counts takes its place')
    if names_files(options) or options.side:
        raise InputError('--counts takes the place of text; give one of the two')


def _refuse_long_endings(path: str, *endings: str) -> None:
    """Refuses an output if the names of files next to it, which end so, would be too long."""
    folder, name = os.path.split(path)
    refuse_long_names(folder, [name + ending for ending in endings], '--output')


def _longest_shards(dataset: EncodeOptions, corpus: Corpus) -> list[str]:
    """The last shard's name of each split; no other is longer."""
    return [
        name
        for split in corpus.split_names
        for shards in [dataset.shards_of(split)]
        for name in shard_format(dataset.output_format).file_names(
            shard_name(dataset.name, split, shards - 1, shards), ['inputs', 'targets']
        )
    ]


def _corpus_option(corpus: Corpus) -> str:
    """The option that names the files of a corpus of one side."""
    return flag(corpus.format.roles[0])


def _side(options: argparse.Namespace, corpus: Corpus) -> str:
    if not corpus.is_paired:
        if options.side:
            raise InputError(f'--side is for pairs; a {_corpus_option(corpus)} corpus has one side')
        return 'text'
    return options.side or 'both'


def _learning_scheme(options: argparse.Namespace, name: str, among: Sequence[str] = ()) -> Scheme:
    """The scheme whose vocabulary is counted or learned for, perhaps one `among` several."""
    scheme = scheme_from_options(name, vars(options), among)
    if scheme.options is None:
        raise InputError(
            f'--scheme {scheme.name} has nothing to learn, so there is nothing to count for it; '
            'give it to build, encode, tokenize or detokenize'
        )
    return scheme


def _dataset(options: argparse.Namespace, corpus: Corpus, scheme: Scheme) -> EncodeOptions:
    sides = corpus.format.sides
    if 'inputs' not in sides and options.source_prefix:
        raise InputError(
            f'--source-prefix is for pairs; a {_corpus_option(corpus)} corpus has targets only'
        )
    if 'targets' not in sides and options.target_prefix:
        raise InputError('--target-prefix is for text, and the targets are a label')
    if corpus.format.extra_fields and options.output_format != TFRECORD:
        raise InputError(
            f'--output-format={options.output_format} holds only what is made of text; --keep and '
            '--label need TFRecords'
        )
    check_pack(options.output_format, options.pack, '--output-format')
    shard_format(options.output_format).require(sides)
    encoding = encoding_from_options(scheme, vars(options))
    if options.output_format == JOINED and encoding.template not in (None, ROW):
        raise InputError('--output-format joined puts ids around rows itself; leave --template out')
    if options.output_format in (TEXT, JOINED) and encoding.template is None:
        # Readers of text put marks of their own around lines.
        encoding = dataclasses.replace(encoding, template=ROW)
    ending = options_from(EndOptions, vars(options))
    ending.check(options.output_format)
    fields = field_values(DatasetOptions, vars(options))
    if options.output_format == NANOGPT:
        fields |= one_shard(options.given)
    return EncodeOptions(**fields, **vars(ending), encoding=encoding)


def _vocabulary_paths(options: argparse.Namespace, corpus: Corpus) -> VocabularyPaths:
    files = options_from(VocabularyFiles, vars(options)).vocab
    if not files and needs_no_vocabulary(options.scheme):
        return VocabularyPaths('', '' if corpus.is_paired else None)
    if not files:
        raise InputError('give --vocab, one vocabulary, or one of the source and one of the target')
    if len(files) == 1:
        found = find_vocabulary(files[0], 'targets' if corpus.is_paired else None)
        inputs = found.path
        if found.record is not None and found.record.side == 'targets':
            inputs = vocabulary_path(files[0], 'inputs')
        return VocabularyPaths(found.path, inputs if corpus.is_paired else None)
    if not corpus.is_paired:
        raise InputError(f'a {_corpus_option(corpus)} corpus has one side; give one --vocab')
    if len(files) > 2:
        raise InputError(f'--vocab names {len(files)} vocabularies, and pairs have two sides')
    return VocabularyPaths(
        vocabulary_path(files[1], 'targets'), vocabulary_path(files[0], 'inputs')
    )
