"""The commands: which dataclasses of options each has, and how its help groups them."""

import argparse
import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Any

from pipelines.options.folders import (
    CacheOptions,
    CardOptions,
    CompareOptions,
    ConvertOptions,
    IndexOptions,
    InspectOptions,
    LookingOptions,
    MakingOptions,
    ReportingOptions,
    ReportOptions,
    VerifyOptions,
    WhereOptions,
)
from pipelines.options.job import (
    CommandOptions,
    CountOptions,
    DatasetOptions,
    DatasetOutput,
    EndOptions,
    EngineOptions,
    LineOptions,
    MemoryOptions,
    OtherFiles,
    RunningOptions,
    UnknownOptions,
    VocabOptions,
    training_files,
)
from pipelines.options.reading import Parser, refuse_misplaced, refuse_unchosen
from pipelines.options.vocabulary import (
    DetokenizeOptions,
    ExportOptions,
    SampleOptions,
    TokenizeOptions,
    VocabularyFiles,
    VocabularyLayout,
    encoding_options,
    learning_options,
    scheme_option,
    schemes_option,
    token_options,
)
from tokcore.corpus.formats import CorpusFormat, all_formats
from tokcore.errors import InputError
from tokcore.options import Choice, Declared, Kind, declared, flag
from tokcore.schemes import find_scheme, scheme_names


@dataclass(frozen=True)
class Group:
    """Options that the help shows together; without a title, among those of the whole command.

    Attributes:
        kinds: dataclasses of options.
        title: the heading in the help.
        about: the text below the title.
        section: of a job file, in which they may stand; None if they may not.
        only: of the options of `kinds` those with these names; None: all.
    """

    kinds: tuple[Kind, ...]
    title: str | None = None
    about: str | None = None
    section: str | None = None
    only: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Command:
    """A command: the first line of its help, and its options in the order of the help.

    Attributes:
        summary: the first line of its help.
        groups: its options.
        examples: command lines, at the top of its help.
        essential: the names of the options that most people need, in the order of the help.
        place: how the help calls the path that the command looks at, and a second word, which may be left
            out if it is in brackets; '' if it takes none. Such a command takes no job file.
    """

    summary: str
    groups: tuple[Group, ...]
    examples: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    place: str = ''

    @property
    def options(self) -> Iterator[Declared]:
        """All options."""
        return (
            declaration
            for group in self.groups
            for kind in group.kinds
            for declaration in declared(kind)
        )

    @property
    def flags(self) -> list[str]:
        """All options as they are typed."""
        flags = []
        for declaration in self.options:
            flags.append(flag(declaration.name))
            if has_negation(declaration):
                flags.append(f'--no-{declaration.name}')
        return flags

    @property
    def takes_beam_options(self) -> bool:
        """Whether it may run pipelines on any engine."""
        return any(EngineOptions in group.kinds for group in self.groups)

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections of a job file that have options of this command."""
        return tuple(dict.fromkeys(group.section for group in self.groups if group.section))

    def of_section(self, section: str) -> list[Declared]:
        """Returns the options that a section of a job file may have."""
        kinds = [kind for group in self.groups if group.section == section for kind in group.kinds]
        return [declaration for kind in kinds for declaration in declared(kind)]


_OTHERS = """\
Another format, other options of it, and filters of its rows are for a table [[dev]] or [[test]] of a job
file; --clean is of the training corpus alone."""
_DATASET = Group((DatasetOptions, EndOptions, DatasetOutput), 'dataset', section='output')
_RUNNING = Group(
    (EngineOptions, LineOptions, RunningOptions, CommandOptions), 'running', section='running'
)
_RUNNING_IN_MEMORY = dataclasses.replace(_RUNNING, kinds=(*_RUNNING.kinds, MemoryOptions))


def known_commands() -> dict[str, Command]:
    """Returns the commands by name, with the options of all formats and schemes."""
    return {**_commands_of(all_formats(), tuple(map(find_scheme, scheme_names())))}


@functools.cache
def _commands_of(
    formats: tuple[type[CorpusFormat], ...], schemes: tuple[object, ...]
) -> dict[str, Command]:
    """Makes the classes of options once for what is registered; that takes longer than to parse."""
    *others, last = [kind.what for kind in formats if not kind.is_in_job_files_only]
    about = f'one of: {", ".join(others)}, or {last}'
    training = Group((training_files(),), 'training corpus', about)
    splits = [training, Group((OtherFiles,), 'development and test corpus', _OTHERS)]
    scheme, recorded_scheme = scheme_option(), scheme_option(None)
    tokens, learning, encoding = token_options(), learning_options(), encoding_options()
    vocabulary = Group((scheme, tokens, learning), 'vocabulary', section='vocabulary')
    return {
        'build': Command(
            'count, learn and encode: the main job, in one go',
            (
                *splits,
                _DATASET,
                vocabulary,
                Group((VocabularyLayout, SampleOptions, encoding), section='vocabulary'),
                _RUNNING_IN_MEMORY,
            ),
            (
                'tokbeam build --text corpus.txt.gz --dev-share 1% --name mine --vocab-size 32768 '
                '--output out',
                "tokbeam build --source 'train.*.en' --target 'train.*.zh' --name enzh "
                '--vocab-size 32768 --output out',
            ),
            ('text', 'source', 'target', 'dev-share', 'name', 'vocab-size', 'output'),
        ),
        'count': Command(
            'count the tokens of the training lines',
            (
                training,
                Group((CountOptions,), section='counts'),
                Group((schemes_option(), tokens, SampleOptions), section='vocabulary'),
                _RUNNING,
            ),
            (
                'tokbeam count --text corpus.txt.gz --output counts',
                'tokbeam count --counts counts.2023 counts.2024 --output counts',
            ),
            ('text', 'source', 'target', 'scheme', 'counts', 'output'),
        ),
        'vocab': Command(
            'learn a vocabulary, from text or from counts',
            (
                training,
                Group((VocabOptions, SampleOptions), section='vocabulary'),
                vocabulary,
                _RUNNING_IN_MEMORY,
            ),
            (
                'tokbeam vocab --text corpus.txt.gz --scheme wordpiece --vocab-size 30000 '
                '--output vocab.txt',
                'tokbeam vocab --counts counts --vocab-size 32768 --output vocab.subwords',
            ),
            ('text', 'counts', 'scheme', 'vocab-size', 'search', 'output'),
        ),
        'encode': Command(
            'encode a corpus with vocabularies that exist',
            (
                *splits,
                Group((VocabularyFiles, recorded_scheme, tokens, encoding), section='vocabulary'),
                _DATASET,
                dataclasses.replace(
                    _RUNNING_IN_MEMORY, kinds=(*_RUNNING_IN_MEMORY.kinds, UnknownOptions)
                ),
            ),
            (
                'tokbeam encode --text corpus.txt.gz --vocab vocab.subwords --name mine --output out',
                'tokbeam encode --source a.en --target a.zh --vocab vocab.subwords --name enzh '
                '--output out',
            ),
            ('text', 'source', 'target', 'vocab', 'name', 'output'),
        ),
        'tokenize': Command(
            'lines of text on stdin to lines of ids on stdout',
            (Group((TokenizeOptions, recorded_scheme, tokens, encoding)),),
            (
                'tokbeam tokenize --vocab vocab.subwords < text > ids',
                'tokbeam tokenize --vocab vocab.subwords --pieces < text',
            ),
            ('vocab', 'pieces', 'template', 'scheme'),
        ),
        'detokenize': Command(
            'lines of ids on stdin to text on stdout',
            (Group((DetokenizeOptions, recorded_scheme, tokens, encoding)),),
            (
                'tokbeam detokenize --vocab vocab.subwords < ids',
                'tokbeam detokenize --vocab vocab.subwords --pieces < out/enzh-dev.inputs',
            ),
            ('vocab', 'pieces', 'raw', 'scheme'),
        ),
        'verify': Command(
            'check that a dataset is what its manifest says, or what its corpus gives',
            (Group((VerifyOptions, MakingOptions, LookingOptions)),),
            ('tokbeam verify out', 'tokbeam verify out --rerun 1% --json'),
            ('rerun', 'root', 'json'),
            'DIR',
        ),
        'where': Command(
            'tell the file and line that a row of a dataset comes from, and back',
            (Group((WhereOptions, MakingOptions, LookingOptions)),),
            (
                'tokbeam where out 12345',
                'tokbeam where out corpus.en:17 --json',
            ),
            ('text', 'split', 'json'),
            'DIR [ROW|SHARD:RECORD|FILE:LINE]',
        ),
        'index': Command(
            'let rows of a dataset be read by their numbers, or as the corpus has them',
            (Group((IndexOptions, MakingOptions)),),
            ('tokbeam index out --corpus-order', 'tokbeam index tfrecords-of-others'),
            ('corpus-order',),
            'DIR',
        ),
        'inspect': Command(
            'show what a dataset, a TFRecord file, a vocabulary or counts hold',
            (Group((InspectOptions, ReportingOptions)),),
            ('tokbeam inspect out --head 5 --seed 7', 'tokbeam inspect counts --head 0'),
            ('head', 'seed', 'split', 'vocab', 'json'),
            'PATH',
        ),
        'report': Command(
            'write a page about a dataset, with its charts, to standard output',
            (Group((ReportOptions, MakingOptions, EngineOptions, ReportingOptions)),),
            (
                'tokbeam report out > report.html',
                'tokbeam report out --corpus --json > report.json',
            ),
            ('corpus', 'json'),
            'DIR',
        ),
        'compare': Command(
            'write a page about two datasets, or two vocabularies, side by side',
            (Group((CompareOptions, EngineOptions, ReportingOptions)),),
            (
                'tokbeam compare out.16k out.32k > comparison.html',
                'tokbeam compare first.subwords second.subwords --json',
            ),
            ('corpus', 'json'),
            'A B',
        ),
        'convert': Command(
            'make a dataset again in the format of another trainer, from its shards',
            (Group((ConvertOptions, EndOptions)),),
            (
                'tokbeam convert out --to megatron --output out.megatron',
                'tokbeam convert out --to packed --pack 512 --output out.512',
            ),
            ('to', 'pack', 'output', 'overwrite'),
            'DIR',
        ),
        'export': Command(
            "write a vocabulary as another tool's files, proved by that tool",
            (Group((ExportOptions, recorded_scheme, tokens)),),
            (
                'tokbeam export tokenizer.json --to tiktoken --output encoding',
                'tokbeam export vocab.txt --to huggingface --output bert',
            ),
            ('to', 'output', 'scheme'),
            'VOCAB',
        ),
        'card': Command(
            'print the card of a dataset, for a README.md beside its shards',
            (Group((CardOptions,)),),
            (
                'tokbeam card out > out/README.md',
                'tokbeam card out --licence cc-by-4.0 > out/README.md',
            ),
            ('licence',),
            'DIR',
        ),
        'warm-up': Command(
            'compile the kernels of a scheme ahead, as for an image of a container',
            (Group((scheme, tokens)),),
            ('tokbeam warm-up', 'tokbeam warm-up --scheme bpe --pre-tokenizer cl100k'),
            ('scheme',),
        ),
        'cache': Command(
            'list or delete what is kept on this machine for later runs',
            (Group((CacheOptions,)),),
            ('tokbeam cache', 'tokbeam cache --delete kernels'),
            ('delete',),
        ),
    }


def add_groups(parser: Parser, groups: tuple[Group, ...]) -> None:
    """Adds options to the parser of a command; options that are not given are not in its result."""
    for group in groups:
        target = parser.add_argument_group(group.title, group.about) if group.title else parser
        for kind in group.kinds:
            for declaration in declared(kind):
                if group.only is not None and declaration.name not in group.only:
                    continue
                target.add_argument(flag(declaration.name), **_argparse_keywords(declaration))


def has_negation(declaration: Declared) -> bool:
    """Returns whether an option is a flag `--x` with its opposite, `--no-x`."""
    return declaration.option.kind is None and declaration.default is not False


def _argparse_keywords(declaration: Declared) -> dict[str, Any]:
    option = declaration.option
    keywords: dict[str, Any] = {'help': declaration.help, 'default': argparse.SUPPRESS}
    if option.kind is None:
        has_no = has_negation(declaration)
        return {**keywords, 'action': argparse.BooleanOptionalAction if has_no else 'store_true'}
    if not callable(option.kind):
        return {**keywords, 'choices': option.kind}
    keywords |= {'type': option.kind, 'metavar': option.metavar}
    if option.many == 'words':
        keywords |= {'nargs': '+', 'action': 'extend'}
    elif option.many == 'repeated':
        keywords['action'] = 'append'
    return keywords


def finish_options(
    command: Command, given: Mapping[str, object], has_datasets: bool = False
) -> dict[str, object]:
    """Returns the values of all options: those given, and the defaults of the others.

    Args:
        command: whose options these are.
        given: values by `Declared.key`.
        has_datasets: whether there are files beside those that options name.

    Raises:
        InputError: an option does not go with the others, or is missing.
    """
    known = {declaration.key: declaration for declaration in command.options}
    values, missing = dict(given), []
    for group in command.groups:
        kinds: list[type] = []
        undecided: list[type] = []
        for kind in group.kinds:
            if not isinstance(kind, Choice):
                kinds.append(kind)
                continue
            by = kind.by.replace('-', '_')
            value = given.get(by, known[by].default)
            # Without a default, the record beside a vocabulary may choose later; and `count` takes
            # several schemes.
            if isinstance(value, str):
                refuse_unchosen(kind, values, value)
                kinds.append(kind.chosen(value))
                if known[by].default is None:
                    undecided.append(kind.chosen(value))
        refuse_misplaced(kinds, values)
        for owner, declaration in ((kind, option) for kind in kinds for option in declared(kind)):
            key = declaration.key
            if declaration.default is MISSING:
                missing += [f'--{declaration.name}'] if key not in values else []
            elif owner not in undecided:  # there the record comes before the default
                values.setdefault(key, declaration.default)
    if missing and not has_datasets and not _names_inputs(command, given):
        missing.insert(0, 'the files to read (--text FILE, --source FILE --target FILE, …)')
    if missing:
        raise InputError(f'the following arguments are required: {", ".join(missing)}')
    return values


def _names_inputs(command: Command, given: Mapping[str, object]) -> bool:
    """Whether options name files to read, or the command reads none."""
    inputs = [declaration.key for declaration in command.options if declaration.option.reads]
    return not inputs or any(given.get(key) for key in inputs)
