"""The four commands that run pipelines: options checked, corpus looked at, stage begun."""

import argparse
import dataclasses
from collections.abc import Sequence

from pipelines.artifacts.counts import CountsFolder, count_names, find_counts, log_sample
from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.outputs import StageOutput
from pipelines.artifacts.vocabularies import needs_no_vocabulary, read_vocabulary, scheme_of
from pipelines.cli.inputs import names_files, refuse_long_names, resolve_corpus, split_paths
from pipelines.cli.job_file import job_text
from pipelines.cli.terminal import print_lines, print_toml
from pipelines.engines.engine import Engine, check_engine, choose_engine
from pipelines.engines.machine import total_bytes
from pipelines.files import filesystem
from pipelines.jobs.corpus import Corpus
from pipelines.jobs.job import CorpusReading, EncodeOptions, Execution, VocabularyPaths
from pipelines.jobs.sampling import refuse_sample, sampling_from_options
from pipelines.options.commands import known_commands
from pipelines.options.job import (
    SPLITS,
    TEXT,
    TFRECORD,
    DatasetOptions,
    LineOptions,
    RunningOptions,
    ShuffleOptions,
    split_flag,
)
from pipelines.options.reading import field_values, options_of
from pipelines.options.vocabulary import (
    BuiltVocabularies,
    GivenVocabularies,
    SampledVocabulary,
    encoding_from_options,
    learning_from_options,
    scheme_from_options,
)
from pipelines.stages.build import build_stage, dry_run
from pipelines.stages.count import count_stage, merge_stage
from pipelines.stages.encode import encode_stage, given_vocabularies
from pipelines.stages.vocabulary import pieces_stage, vocabulary_from_counts, vocabulary_from_text
from pipelines.transforms.stats import REJECTED_FOLDER
from pipelines.transforms.write_shards import converted_names
from tokcore.corpus.fields import LabelNames
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import ROW
from tokcore.errors import InputError
from tokcore.options import said_size
from tokcore.records.manifest import shard_name
from tokcore.schemes import DEFAULT_SCHEME

_BESIDE_VOCABULARY = ('.tokbeam.run.json', f'.{REJECTED_FOLDER}')


def print_job(options: argparse.Namespace) -> None:
    """Prints the job file that the options of a command stand for."""
    splits = SPLITS if options.command in ('build', 'encode') else SPLITS[:1]
    datasets = split_paths(options, splits) if names_files(options) else []
    print_toml(job_text(known_commands()[options.command], options.given, datasets))


def build(options: argparse.Namespace, beam_flags: Sequence[str]) -> None:
    engine = _engine(options, beam_flags)
    folder = filesystem.absolute(options.output)
    corpus = resolve_corpus(options, SPLITS, folder)
    if corpus is None:
        return
    scheme = scheme_from_options(options.scheme, vars(options))
    vocabulary = learning_from_options(scheme, vars(options)) if scheme.options else None
    sampling = sampling_from_options(vars(options), corpus)
    if vocabulary is None:
        refuse_sample(vars(options), f'--scheme {scheme.name} learns none')
    encoding = _encode_options(options, corpus, scheme)
    built = options_of(BuiltVocabularies, vars(options))
    names = built.names(scheme, options.name, vocabulary, corpus.format.sides)
    _refuse_long_names(folder, [*names.values(), *_longest_shards(encoding, corpus)], options)
    execution = _execution(engine, options, scheme, _shuffling(engine, options))
    reading = _reading(corpus, options, scheme)
    if options.dry_run:
        files = [*names.values(), *encoding.file_names(corpus)]
        _tell(reading, execution, files, folder, sampling)
        return
    build_stage(reading, execution, vocabulary, built, encoding, folder, sampling)


def count(options: argparse.Namespace, beam_flags: Sequence[str]) -> None:
    if options.pieces:
        _count_pieces(options, beam_flags)
        return
    schemes = [
        _learning_scheme(name, options, options.scheme) for name in dict.fromkeys(options.scheme)
    ]
    execution = _execution(_engine(options, beam_flags), options, schemes[0])
    path = filesystem.absolute(options.output)
    refuse_long_names(*_beside(path, [f'.{REJECTED_FOLDER}']), '--output')
    _refuse_long_work(options)
    if options.merge:
        _refuse_dry_run(options, '--merge')
        refuse_sample(vars(options), '--merge takes its place')
        if names_files(options) or options.side or len(schemes) > 1:
            raise InputError('--merge takes the place of text; give one of the two')
        merge_stage(options.merge, path, execution)
        return
    corpus = resolve_corpus(options, ('train',), filesystem.split_path(path)[0])
    if corpus is None:
        return
    side = _side(options, corpus)
    sampling = sampling_from_options(vars(options), corpus)
    folders = [
        CountsFolder(filesystem.join(path, each.name), side, each, root=path)
        if len(schemes) > 1
        else CountsFolder(path, side, each)
        for each in schemes
    ]
    reading = _reading(corpus, options, schemes[0])
    if any(split.max_examples for split in corpus.splits) and len(schemes) > 1:
        raise InputError(
            'max_examples with several schemes would take other lines for each, since what is empty '
            'differs; count for one after the other'
        )
    if options.dry_run:
        names = [f'{each.path}/{name}' for each in folders for name in count_names()]
        _tell(reading, execution, names, path, sampling)
        return
    rejected = count_stage(reading, execution, folders, sampling=sampling)
    outputs = [StageOutput.of_counts(folder.path) for folder in folders]
    for output, files in zip(outputs, rejected, strict=True):
        output.warn_rejected(files)
    log_sample(read_manifest(outputs[0].manifest_path))


def _count_pieces(options: argparse.Namespace, beam_flags: Sequence[str]) -> None:
    if not options.vocab:
        raise InputError('--pieces goes with --vocab, the codes that cut text into pieces; give it')
    if options.merge:
        raise InputError('--merge adds up counts of tokens; leave it out, or --pieces')
    refuse_sample(vars(options), '--pieces counts by one that is there')
    codes_path, path = map(filesystem.absolute, (options.vocab, options.output))
    asked = [name for name in dict.fromkeys(options.scheme) if name != DEFAULT_SCHEME]
    scheme = scheme_of([codes_path], asked[0] if asked else None, vars(options))
    if len(asked) > 1 or scheme.entries_name(codes_path) is None:
        raise InputError(
            f'{codes_path} has ids of its own, and --pieces is for codes, of --scheme bpe with '
            '--preset subword-nmt or textbook; leave it out'
        )
    execution = _execution(_engine(options, beam_flags), options, scheme)
    refuse_long_names(*_beside(path, _BESIDE_VOCABULARY), '--output')
    corpus = resolve_corpus(options, ('train',), filesystem.split_path(path)[0])
    if corpus is None:
        return
    if options.dry_run:
        _tell(_reading(corpus, options, scheme), execution, [path], path)
        return
    codes = read_vocabulary(codes_path, scheme)
    [record] = given_vocabularies(VocabularyPaths(codes_path, codes_path), scheme, needs_ids=False)
    pieces_stage(
        _reading(corpus, options, scheme),
        execution,
        _side(options, corpus),
        codes,
        dataclasses.replace(record, beside=()),
        options.special_tokens,
        codes_path,
        path,
    )


def vocab(options: argparse.Namespace, beam_flags: Sequence[str]) -> None:
    scheme = _learning_scheme(options.scheme, options)
    execution = _execution(_engine(options, beam_flags), options, scheme)
    path = filesystem.absolute(options.output)
    vocabulary = learning_from_options(scheme, vars(options))
    refuse_long_names(*_beside(path, _BESIDE_VOCABULARY), '--output')
    _refuse_long_work(options)
    if options.counts:
        _refuse_dry_run(options, '--counts')
        refuse_sample(vars(options), '--counts takes its place')
        if names_files(options) or options.side:
            raise InputError('--counts takes the place of text; give one of the two')
        counts = find_counts(options.counts)
        vocabulary_from_counts(counts, execution, vocabulary, scheme, path)
        return
    corpus = resolve_corpus(options, ('train',), filesystem.split_path(path)[0])
    if corpus is None:
        return
    side = _side(options, corpus)
    sampling = sampling_from_options(vars(options), corpus)
    reading = _reading(corpus, options, scheme)
    if options.dry_run:
        folder, name = filesystem.split_path(path)
        _tell(reading, execution, [name], folder, sampling)
        return
    vocabulary_from_text(reading, execution, side, vocabulary, path, sampling)


def encode(options: argparse.Namespace, beam_flags: Sequence[str]) -> None:
    engine = _engine(options, beam_flags)
    folder = filesystem.absolute(options.output)
    corpus = resolve_corpus(options, SPLITS, folder)
    if corpus is None:
        return
    vocabularies = _vocabulary_paths(options, corpus)
    scheme = scheme_of(vocabularies.given, options.scheme, vars(options))
    encoding = _encode_options(options, corpus, scheme)
    _refuse_long_names(folder, _longest_shards(encoding, corpus), options)
    execution = _execution(engine, options, scheme, _shuffling(engine, options))
    reading = _reading(corpus, options, scheme)
    if options.dry_run:
        _tell(reading, execution, encoding.file_names(corpus), folder)
        return
    encode_stage(reading, execution, vocabularies, encoding, folder)


def _tell(
    reading: CorpusReading,
    execution: Execution,
    names: Sequence[str],
    folder: str,
    sampling: SampledVocabulary = SampledVocabulary(),
) -> None:
    told = dry_run(reading, execution, names, folder, sampling)
    print_lines(told)


def _refuse_dry_run(options: argparse.Namespace, instead: str) -> None:
    if options.dry_run:
        raise InputError(f'--dry-run looks at text, and {instead} has none; leave it out')


def _engine(options: argparse.Namespace, beam_flags: Sequence[str]) -> Engine:
    engine = choose_engine(beam_flags, options.workers, options.deadline)
    check_engine(engine)
    return engine


def _reading(corpus: Corpus, options: argparse.Namespace, scheme: Scheme) -> CorpusReading:
    return CorpusReading(corpus, scheme=scheme, **field_values(LineOptions, vars(options)))


def _execution(
    engine: Engine,
    options: argparse.Namespace,
    scheme: Scheme,
    shuffling: ShuffleOptions = ShuffleOptions(),
) -> Execution:
    if options.max_rejected is not None and options.on_error != 'skip':
        raise InputError(
            '--max-rejected goes with --on-error=skip; without it the first such line ends the job'
        )
    engine = dataclasses.replace(engine, scheme=scheme)
    return Execution(
        engine,
        read_beside=_read_beside(options),
        work=filesystem.absolute(options.work) if options.work else None,
        **field_values(RunningOptions, vars(options)),
        **vars(shuffling),
    )


def _read_beside(options: argparse.Namespace) -> tuple[str, ...]:
    """The files that the options themselves were read from."""
    of_datasets = [each.options for split in options.datasets.values() for each in split]
    values = [value for each in (vars(options), *of_datasets) for value in each.values()]
    paths = [value.path for value in values if isinstance(value, LabelNames)]
    if options.job_path is not None:
        paths.append(options.job_path)
    return tuple(map(filesystem.absolute, dict.fromkeys(paths)))


def _shuffling(engine: Engine, options: argparse.Namespace) -> ShuffleOptions:
    shuffling = options_of(ShuffleOptions, vars(options))
    total = total_bytes()
    memory = shuffling.memory_bytes
    if engine.runner.is_local and memory is not None and memory > total:
        raise InputError(
            f'--memory {said_size(memory)} is more than the {total >> 20} MiB that there '
            'are here; give less, or leave it out to take what is free'
        )
    return shuffling


def _refuse_long_names(folder: str, names: Sequence[str], options: argparse.Namespace) -> None:
    refuse_long_names(folder, names, '--name')
    _refuse_long_work(options)


def _refuse_long_work(options: argparse.Namespace) -> None:
    if options.work:
        refuse_long_names(filesystem.absolute(options.work), (), '--work')


def _longest_shards(encoding: EncodeOptions, corpus: Corpus) -> list[str]:
    """The last shard's name of each split; no other is longer."""
    return [
        name
        for split in corpus.split_names
        for shards in [encoding.shards_of(split)]
        for name in converted_names(
            shard_name(encoding.name, split, shards - 1, shards),
            encoding.output_format,
            ['inputs', 'targets'],
        )
    ]


def _beside(path: str, endings: Sequence[str]) -> tuple[str, list[str]]:
    """A path's folder, and the names that are made there for it."""
    folder, name = filesystem.split_path(path)
    return folder, [name + ending for ending in endings]


def _option_of(corpus: Corpus) -> str:
    """The option that names the files of a corpus of one side."""
    return split_flag('train', corpus.format.roles[0])


def _side(options: argparse.Namespace, corpus: Corpus) -> str:
    if not corpus.is_paired:
        if options.side:
            raise InputError(f'--side is for pairs; a {_option_of(corpus)} corpus has one side')
        return 'text'
    return options.side or 'both'


def _learning_scheme(name: str, options: argparse.Namespace, among: Sequence[str] = ()) -> Scheme:
    """The scheme whose vocabulary is to be counted or learned for, `among` several perhaps."""
    scheme = scheme_from_options(name, vars(options), among)
    if scheme.options is None:
        raise InputError(
            f'--scheme {scheme.name} has nothing to learn, so there is nothing to count for it; '
            'give it to build, encode, tokenize or detokenize'
        )
    return scheme


def _encode_options(options: argparse.Namespace, corpus: Corpus, scheme: Scheme) -> EncodeOptions:
    if 'inputs' not in corpus.format.sides and options.source_prefix:
        raise InputError(
            f'--source-prefix is for pairs; a {_option_of(corpus)} corpus has targets only'
        )
    if 'targets' not in corpus.format.sides and options.target_prefix:
        raise InputError('--target-prefix is for text, and the targets are a label')
    if corpus.format.extra_fields and options.output_format != TFRECORD:
        raise InputError(
            f'--output-format={options.output_format} holds what becomes of text alone; --keep and '
            '--label need TFRecords'
        )
    encoding = encoding_from_options(scheme, vars(options))
    if options.output_format == TEXT and encoding.template is None:
        # What reads text puts marks of its own around lines.
        encoding = dataclasses.replace(encoding, template=ROW)
    return EncodeOptions(**field_values(DatasetOptions, vars(options)), encoding=encoding)


def _vocabulary_paths(options: argparse.Namespace, corpus: Corpus) -> VocabularyPaths:
    given = options_of(GivenVocabularies, vars(options))
    pair = (given.source_vocab, given.target_vocab)
    if not given.vocab and not any(pair) and needs_no_vocabulary(options.scheme):
        return VocabularyPaths('', '' if corpus.is_paired else None)
    if bool(given.vocab) == bool(any(pair)):
        raise InputError('give --vocab, or --source-vocab with --target-vocab')
    if given.vocab:
        path = filesystem.absolute(given.vocab)
        return VocabularyPaths(path, path if corpus.is_paired else None)
    if not corpus.is_paired:
        raise InputError(f'a {_option_of(corpus)} corpus has one side; give --vocab')
    if not all(pair):
        raise InputError('--source-vocab and --target-vocab go together')
    source, target = map(filesystem.absolute, pair)
    return VocabularyPaths(target, source)
