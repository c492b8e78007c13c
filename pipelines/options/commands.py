"""The commands: which dataclasses of options each has, and how its help groups them."""

import argparse
import dataclasses
import functools
from collections.abc import Container, Iterable, Mapping
from dataclasses import MISSING, dataclass
from typing import Any

from pipelines.options.folders import (
    CacheOptions,
    CardOptions,
    CompareOptions,
    ConvertOptions,
    IndexOptions,
    InspectOptions,
    ReportingOptions,
    ReportOptions,
    UpdateOptions,
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
    formats_with_options,
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
    WeightOptions,
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
    """

    kinds: tuple[Kind, ...]
    title: str | None = None
    about: str | None = None
    section: str | None = None


@dataclass(frozen=True)
class Command:
    """A command: what runs it, its options in the order of the help, and what the help says.

    Attributes:
        summary: the first line of its help.
        run: `module:function`, which takes the options and those of Beam, and returns the exit status.
        groups: its options.
        examples: command lines, at the top of its help.
        essential: the names of the options that most people need; none: all of a command with few options.
        paths: how the help calls the path that the command looks at, and a second word, which may be left
            out if it is in brackets; '' if it takes none. Such a command takes no job file.
        notes: at the end of its help.
    """

    summary: str
    run: str
    groups: tuple[Group, ...]
    examples: tuple[str, ...]
    essential: tuple[str, ...] = ()
    paths: str = ''
    notes: str = ''

    @property
    def options(self) -> list[Declared]:
        """All options."""
        return [each for group in self.groups for kind in group.kinds for each in declared(kind)]

    @property
    def flags(self) -> list[str]:
        """All options as they are typed."""
        negated = [f'--no-{each.name}' for each in self.options if has_negation(each)]
        return [flag(each.name) for each in self.options] + negated

    @property
    def takes_beam_options(self) -> bool:
        """Whether it may run pipelines on any engine."""
        return any(EngineOptions in group.kinds for group in self.groups)

    @property
    def sections(self) -> dict[str, dict[str, Declared]]:
        """By section of a job file the options that it may have, by their keys."""
        sections: dict[str, dict[str, Declared]] = {}
        for group in self.groups:
            if group.section:
                options = {each.key: each for kind in group.kinds for each in declared(kind)}
                sections.setdefault(group.section, {}).update(options)
        return sections


_CORPUS = tuple('text source target tsv jsonl parquet fields columns clean on-error'.split())
_OF_DATASET = (
    *('dev', 'dev-source', 'dev-target', 'dev-share', 'name', 'shards'),
    *('output-format', 'output', 'overwrite'),
)

_OTHERS = """\
Another format, other options of it, and filters of its rows are for a table [[dev]] or [[test]] of a job
file; --clean is of the training corpus alone."""
_DATASET = Group((DatasetOptions, EndOptions, DatasetOutput), 'dataset', section='output')
_RUNNING = Group(
    (EngineOptions, LineOptions, RunningOptions, CommandOptions), 'running', section='running'
)
_RUNNING_IN_MEMORY = dataclasses.replace(_RUNNING, kinds=(*_RUNNING.kinds, MemoryOptions))


_NOTHING_WRITTEN = """\
Nothing is written. The status is 0, or 3 where something is not as it should be, 2 for a mistake of the
command line."""

BEAM_NOTES = """\
Options of Beam (--runner, --direct_running_mode, ...) are passed on to it; what only a job server
knows stands after --."""

_READING = f'{_NOTHING_WRITTEN}\n\n{BEAM_NOTES}'

_DETOKENIZE = """\
There are as many lines as were read: a line feed that ids spell is written as a space. Half of a
surrogate pair, which UTF-8 cannot hold, is written as U+FFFD."""

_CONVERT = """\
The rows are those of the TFRecords, in their order. megatron: NAME-SPLIT-…_text_document.bin and .idx for
each shard, of pairs …_inputs_document and …_targets_document. flat: ….npy, ids one after another without a
header, and ….csv.gz with start,end,row,shard,record of each row. nanogpt: likewise all of a split as train.bin,
val.bin of dev and test.bin, with uint16. These leave out rows without text, and put the token that ends
documents after each row that does not end with it. packed:
….packed, TFRecords of several rows each, the longest of 65,536 rows first, where the least room is left.
joined: ….joined, TFRecords of input_ids, input_mask and segment_ids for each row, as BERT's run_classifier.
array_record: ….array_record, the payloads of the TFRecords, by pip install '.[array-record]'."""

_INDEX = """\
index/ in the folder has a file for each shard, by which any row is read and found in the corpus: build, encode
and convert write it, and this writes it again. The corpus is read once; if it is not there or has changed,
rows can be read, and not found. DIR may also be a folder of TFRecords of another program, or one such file:
their names say which split they are, and tokcore.open_dataset opens the folder."""

_UPDATE = """\
The result has the bytes and the root that `encode` gives of all files, those of DIR first, with --leave-out. The
files of DIR are not read again and need not be there. DIR has TFRecords; convert makes other formats."""

_EXPORT = """\
The folder opens with the tool as it stands. Where the tool is installed, it encodes a sample of text, and
a difference is an error; where it is not, the folder is reported as UNPROVED. The page of a playground encodes
such a sample whenever a browser opens it."""

_CACHE = """\
kernels are compiled once for a machine, in some 15 s, and those not used for 30 days are deleted.
vocabularies are large tokenizer files as they were parsed. datasets are copies of those of object stores, by
tokcore.open_dataset; do not delete them while one is read. Copies in a folder that was given as cache are not
listed."""

_WARM_UP = """\
A job compiles what this machine lacks by itself. Small local inputs need no compiled kernels: as long as
none are kept for this version and processor, up to 256 KiB run as plain Python, with the same result."""


_MOST_CHARACTERS = 30
"""Of the words to choose from, as one word of the help, which is never broken."""

JOBS = ('build', 'count', 'vocab', 'encode', 'update')
"""The commands that run pipelines, and keep work to continue from."""


def known_commands() -> dict[str, Command]:
    """Returns the commands by name, with the options of all formats and schemes."""
    return {**_commands_of(all_formats(), tuple(map(find_scheme, scheme_names())))}


def typed_keys() -> frozenset[str]:
    """Returns the keys of all options of the commands."""
    return _keys_of(all_formats(), tuple(map(find_scheme, scheme_names())))


@functools.cache
def _keys_of(
    formats: tuple[type[CorpusFormat], ...], schemes: tuple[object, ...]
) -> frozenset[str]:
    commands = _commands_of(formats, schemes).values()
    return frozenset(each.key for command in commands for each in command.options)


@functools.cache
def _commands_of(
    formats: tuple[type[CorpusFormat], ...], schemes: tuple[object, ...]
) -> dict[str, Command]:
    """Makes the classes of options once for what is registered; that takes longer than to parse."""
    *others, last = [kind.what for kind in formats_with_options()]
    about = f'one of: {", ".join(others)}, or {last}'
    training = Group((training_files(),), 'training corpus', about)
    splits = [training, Group((OtherFiles,), 'development and test corpus', _OTHERS)]
    scheme, recorded_scheme = scheme_option(), scheme_option(None)
    tokens, learning, encoding = token_options(), learning_options(), encoding_options()
    vocabulary = Group((scheme, tokens, learning), 'vocabulary', section='vocabulary')
    return {
        'build': Command(
            'count, learn and encode: the main job, in one go',
            'pipelines.cli.commands:run_command',
            (
                *splits,
                _DATASET,
                vocabulary,
                Group(
                    (VocabularyLayout, SampleOptions, WeightOptions, encoding),
                    section='vocabulary',
                ),
                _RUNNING_IN_MEMORY,
            ),
            (
                'tokbeam build --text corpus.txt.gz --dev-share 1% --name mine --vocab-size 32768 '
                '--output out',
                "tokbeam build --source 'train.*.en' --target 'train.*.zh' --name enzh "
                '--vocab-size 32768 --output out',
            ),
            (*_CORPUS, *_OF_DATASET, 'scheme', 'vocab-size', 'shared-vocab'),
        ),
        'count': Command(
            'count the tokens of the training lines',
            'pipelines.cli.commands:run_command',
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
            (*_CORPUS, 'counts', 'side', 'scheme', 'vocab-sample', 'output', 'overwrite'),
        ),
        'vocab': Command(
            'learn a vocabulary, from text or from counts',
            'pipelines.cli.commands:run_command',
            (
                training,
                Group((VocabOptions, SampleOptions, WeightOptions), section='vocabulary'),
                vocabulary,
                _RUNNING_IN_MEMORY,
            ),
            (
                'tokbeam vocab --text corpus.txt.gz --scheme wordpiece --vocab-size 30000 '
                '--output vocab.txt',
                'tokbeam vocab --counts counts --vocab-size 32768 --output vocab.subwords',
                'tokbeam vocab --counts counts/en=0.7 counts/zh=0.3 --vocab-size 32768 '
                '--output vocab.subwords',
            ),
            (
                *(*_CORPUS, 'counts', 'side', 'scheme', 'vocab-size', 'merges', 'search'),
                *('special-tokens', 'vocab-sample', 'temperature', 'output', 'overwrite'),
            ),
        ),
        'encode': Command(
            'encode a corpus with vocabularies that exist',
            'pipelines.cli.commands:run_command',
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
            (*_CORPUS, *_OF_DATASET, 'vocab', 'template', 'pack'),
        ),
        'update': Command(
            'add files to a dataset and remove rows, without encoding the others again',
            'pipelines.cli.commands:run_command',
            (*splits, Group((UpdateOptions, UnknownOptions))),
            (
                'tokbeam update out --text new.txt --output out.2',
                'tokbeam update out --remove rows.txt --output out.2',
            ),
            ('text', 'source', 'target', 'remove', 'output'),
            'DIR',
            notes=_UPDATE,
        ),
        'tokenize': Command(
            'lines of text on stdin to lines of ids on stdout',
            'pipelines.cli.line_commands:tokenize',
            (Group((TokenizeOptions, recorded_scheme, tokens, encoding)),),
            (
                'tokbeam tokenize --vocab vocab.subwords < text > ids',
                'tokbeam tokenize --vocab vocab.subwords --pieces < text',
            ),
            ('vocab', 'pieces', 'template', 'scheme'),
        ),
        'detokenize': Command(
            'lines of ids on stdin to text on stdout',
            'pipelines.cli.line_commands:detokenize',
            (Group((DetokenizeOptions, recorded_scheme, tokens, encoding)),),
            (
                'tokbeam detokenize --vocab vocab.subwords < ids',
                'tokbeam detokenize --vocab vocab.subwords --pieces < out/enzh-dev.inputs',
            ),
            ('vocab', 'pieces', 'scheme'),
            notes=_DETOKENIZE,
        ),
        'verify': Command(
            'check that a dataset is what its manifest says, or what its corpus gives',
            'pipelines.cli.folder_commands:verify',
            (Group((VerifyOptions, ReportingOptions)),),
            ('tokbeam verify out', 'tokbeam verify out --rerun 1% --json'),
            paths='DIR',
            notes=_NOTHING_WRITTEN,
        ),
        'where': Command(
            'print the file and line that a row of a dataset comes from, and back',
            'pipelines.cli.folder_commands:where',
            (Group((WhereOptions, ReportingOptions)),),
            (
                'tokbeam where out 12345',
                'tokbeam where out corpus.en:17 --json',
            ),
            paths='DIR [ROW|SHARD:RECORD|FILE:LINE]',
            notes=_NOTHING_WRITTEN,
        ),
        'index': Command(
            'let rows of a dataset be read by their numbers, and found in the corpus',
            'pipelines.cli.index_command:index',
            (Group((IndexOptions,)),),
            ('tokbeam index out', 'tokbeam index tfrecords-of-others'),
            paths='DIR',
            notes=_INDEX,
        ),
        'inspect': Command(
            'show what is in a dataset, a TFRecord file, a vocabulary or counts',
            'pipelines.report.commands:inspect',
            (Group((InspectOptions, ReportingOptions)),),
            ('tokbeam inspect out --head 5 --seed 7', 'tokbeam inspect counts --head 0'),
            paths='PATH',
            notes=_NOTHING_WRITTEN,
        ),
        'report': Command(
            'write a page about a dataset, with its charts, to standard output',
            'pipelines.report.commands:report',
            (Group((ReportOptions, ReportingOptions, EngineOptions)),),
            (
                'tokbeam report out > report.html',
                'tokbeam report out --corpus --json > report.json',
            ),
            paths='DIR',
            notes=_READING,
        ),
        'compare': Command(
            'write a page about two datasets, or two vocabularies, side by side',
            'pipelines.report.commands:compare',
            (Group((CompareOptions, ReportingOptions, EngineOptions)),),
            (
                'tokbeam compare out.16k out.32k > comparison.html',
                'tokbeam compare first.subwords second.subwords --json',
            ),
            paths='A B',
            notes=_READING,
        ),
        'convert': Command(
            'make a dataset again in the format of another trainer, from its shards',
            'pipelines.cli.folder_commands:convert',
            (Group((ConvertOptions, EndOptions)),),
            (
                'tokbeam convert out --to megatron --output out.megatron',
                'tokbeam convert out --to packed --pack 512 --output out.512',
            ),
            paths='DIR',
            notes=_CONVERT,
        ),
        'export': Command(
            "write a vocabulary as another tool's files, proved by that tool",
            'pipelines.export.exporting:export',
            (Group((ExportOptions, recorded_scheme, tokens)),),
            (
                'tokbeam export tokenizer.json --to tiktoken --output encoding',
                'tokbeam export vocab.txt --to huggingface --output bert',
                'tokbeam export out --to playground --output page',
            ),
            ('to', 'output', 'scheme'),
            'VOCAB',
            notes=_EXPORT,
        ),
        'card': Command(
            'print the card of a dataset, for a README.md next to its shards',
            'pipelines.report.commands:card',
            (Group((CardOptions,)),),
            (
                'tokbeam card out > out/README.md',
                'tokbeam card out --croissant > out/croissant.jsonld',
            ),
            paths='DIR',
            notes=_NOTHING_WRITTEN,
        ),
        'warm-up': Command(
            'compile the kernels of a scheme, as when an image of a container is built',
            'pipelines.cli.warm_up_command:warm_up',
            (Group((scheme, tokens)),),
            ('tokbeam warm-up', 'tokbeam warm-up --scheme bpe --pre-tokenizer cl100k'),
            ('scheme',),
            notes=_WARM_UP,
        ),
        'cache': Command(
            'list or delete what is kept on this machine for later runs',
            'pipelines.cli.cache_command:cache',
            (Group((CacheOptions,)),),
            ('tokbeam cache', 'tokbeam cache --delete kernels'),
            notes=_CACHE,
        ),
    }


def add_groups(parser: Parser, groups: Iterable[Group], only: Container[str] | None = None) -> None:
    """Adds options to a parser, perhaps only those of some names; what is not typed is not in its result."""
    for group in groups:
        target = parser.add_argument_group(group.title, group.about) if group.title else parser
        for each in (each for kind in group.kinds for each in declared(kind)):
            if only is not None and each.name not in only:
                continue
            option, help, keywords = each.option, each.help, dict[str, Any]()
            if option.kind is None:
                action = argparse.BooleanOptionalAction if has_negation(each) else 'store_true'
                keywords = {'action': action}
            elif isinstance(option.kind, tuple):
                keywords = {'choices': option.kind}
                if len(','.join(option.kind)) > _MOST_CHARACTERS:
                    if not all(word in help for word in option.kind):
                        help += f' {{{", ".join(option.kind)}}}'
                    keywords['metavar'] = option.metavar or each.name.rpartition('-')[2].upper()
            else:
                keywords = {'type': option.kind, 'metavar': option.metavar}
            if option.many == 'words':
                keywords |= {'nargs': '+', 'action': 'extend'}
            elif option.many == 'repeated':
                keywords |= {'action': 'append'}
            target.add_argument(flag(each.name), help=help, default=argparse.SUPPRESS, **keywords)


def has_negation(declaration: Declared) -> bool:
    """Returns whether an option is a flag `--x` with its opposite, `--no-x`."""
    return declaration.option.kind is None and declaration.default is not False


def finish_options(
    command: Command, given: Mapping[str, object], has_datasets: bool = False
) -> dict[str, object]:
    """Returns the values of all options: those given, and the defaults of the others.

    Args:
        command: whose options these are.
        given: values by `Declared.key`.
        has_datasets: whether a job file names files to read.

    Raises:
        InputError: an option does not go with the others, or is missing.
    """
    defaults = {each.key: each.default for each in command.options}
    implied = [each.option.implies for each in command.options if given.get(each.key)]
    given = {**dict(filter(None, implied)), **given}
    values: dict[str, object] = {}
    missing = []
    for group in command.groups:
        kinds: list[type] = []
        for kind in group.kinds:
            may_be_recorded = isinstance(kind, Choice) and defaults[kind.by] is None
            if isinstance(kind, Choice):
                value = given.get(kind.by, defaults[kind.by])
                if not isinstance(value, str):  # `count` has several, and a record may choose later
                    continue
                refuse_unchosen(kind, given, value)
                kind = kind.kinds[value]
            kinds.append(kind)
            for each in declared(kind):
                if each.default is MISSING:
                    missing += [f'--{each.name}'] if each.key not in given else []
                elif not may_be_recorded:  # there the record comes before the default
                    values[each.key] = each.default
        refuse_misplaced(kinds, given)
    inputs = [each.key for each in command.options if each.option.reads]
    if missing and inputs and not has_datasets and not any(map(given.get, inputs)):
        missing.insert(0, 'the files to read (--text FILE, --source FILE --target FILE, …)')
    if missing:
        raise InputError(f'the following arguments are required: {", ".join(missing)}')
    return {**values, **given}
