"""The commands: of which dataclasses of options each is made, and how its help groups them."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass

from pipelines.options.beam import Parser
from pipelines.options.job import (
    SPLITS,
    CountedSide,
    CountsOutput,
    CountsToLearn,
    CountsToMerge,
    DatasetOptions,
    DatasetOutput,
    EngineOptions,
    FetchOptions,
    LineOptions,
    PiecesToCount,
    RunningOptions,
    ShuffleOptions,
    TellingOptions,
    TryingOptions,
    VocabularyOutput,
    WorkOptions,
    option_name,
    split_files,
)
from pipelines.options.reading import refuse_misplaced, settle_choice
from pipelines.options.vocabulary import (
    LineBytes,
    LineEnding,
    LinePieces,
    LineVocabulary,
    SampleOptions,
    VocabularyFiles,
    VocabularyLayout,
    encoding_options,
    learning_options,
    scheme_option,
    schemes_option,
    token_options,
)
from tokcore.corpus.formats import all_formats
from tokcore.errors import InputError
from tokcore.options import Choice, Declared, Kind, declared


@dataclass(frozen=True)
class Group:
    """Options that the help tells together; without a title, among those of the whole command.

    Attributes:
        kinds: dataclasses of options.
        title: above them.
        about: below the title.
        split: whose they are: its name is a part of theirs.
        section: of a job file that they are in; None if they are in none.
    """

    kinds: tuple[Kind, ...]
    title: str | None = None
    about: str | None = None
    split: str = 'train'
    section: str | None = None

    @property
    def prefix(self) -> str:
        """What their names begin with in the parser's result: `dev_`."""
        return option_name(self.split, '')


@dataclass(frozen=True)
class Command:
    """A command as its help begins, and its options in the order of its usage."""

    summary: str
    groups: tuple[Group, ...]

    @property
    def options(self) -> Iterator[tuple[str, Declared]]:
        """All options with the prefix of each."""
        return (
            (group.prefix, each)
            for group in self.groups
            for kind in group.kinds
            for each in declared(kind)
        )

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections of a job file that its options are in."""
        return tuple(dict.fromkeys(each.section for each in self.groups if each.section))

    def of_section(self, section: str) -> list[Declared]:
        """Returns the options that a section of a job file may have."""
        kinds = [kind for group in self.groups if group.section == section for kind in group.kinds]
        return [each for kind in kinds for each in declared(kind)]


_TITLES = {'train': 'training corpus', 'dev': 'development corpus', 'test': 'test corpus'}
_DATASET = Group((DatasetOptions, DatasetOutput), 'dataset', section='output')
_RUNNING = Group(
    (EngineOptions, RunningOptions, LineOptions, FetchOptions, TellingOptions, TryingOptions),
    'running',
    section='running',
)
_WORK = Group((WorkOptions,), section='running')
_SHUFFLE = Group(
    (ShuffleOptions,), 'shuffle', 'none of these changes a byte of output', section='running'
)


def known_commands() -> dict[str, Command]:
    """Returns the commands by name, with the options of the formats and schemes that there are."""
    *others, last = [each.what for each in all_formats()]
    about = f'one of: {", ".join(others)}, or {last}'
    splits = [Group((split_files(split),), _TITLES[split], about, split) for split in SPLITS]
    training = splits[0]
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
                _RUNNING,
                _WORK,
                _SHUFFLE,
            ),
        ),
        'count': Command(
            'count the tokens of the training lines',
            (
                training,
                Group((CountsToMerge, PiecesToCount, CountedSide), section='counts'),
                Group((schemes_option(), tokens, SampleOptions), section='vocabulary'),
                Group((CountsOutput,), section='counts'),
                _RUNNING,
                _WORK,
            ),
        ),
        'vocab': Command(
            'learn a vocabulary, from text or from counts',
            (
                training,
                Group((CountsToLearn, CountedSide, SampleOptions), section='vocabulary'),
                vocabulary,
                Group((VocabularyOutput,), section='vocabulary'),
                _RUNNING,
                _WORK,
            ),
        ),
        'encode': Command(
            'encode a corpus with vocabularies that exist',
            (
                *splits,
                Group((VocabularyFiles, recorded_scheme, tokens, encoding), section='vocabulary'),
                _DATASET,
                _RUNNING,
                _WORK,
                _SHUFFLE,
            ),
        ),
        'tokenize': Command(
            'lines of text on stdin to lines of ids on stdout',
            (Group((LineVocabulary, recorded_scheme, tokens, encoding, LineEnding, LinePieces)),),
        ),
        'detokenize': Command(
            'lines of ids on stdin to text on stdout',
            (Group((LineVocabulary, recorded_scheme, tokens, encoding, LineBytes)),),
        ),
    }


def add_groups(parser: Parser, groups: tuple[Group, ...]) -> None:
    """Adds options to the parser of a command; those not given are not in its result."""
    for group in groups:
        target = parser.add_argument_group(group.title, group.about) if group.title else parser
        for each in (option for kind in group.kinds for option in declared(kind)):
            target.add_argument(
                f'--{group.prefix.replace("_", "-")}{each.name}', **_parsed(each, group.kinds)
            )


def _parsed(each: Declared, kinds: tuple[Kind, ...]) -> dict[str, object]:
    """What argparse is to know of an option."""
    option = each.option
    how: dict[str, object] = {'help': each.help, 'default': argparse.SUPPRESS}
    if option.kind is None:
        has_no = each.default is not False
        return {**how, 'action': argparse.BooleanOptionalAction if has_no else 'store_true'}
    if not callable(option.kind):
        return {**how, 'choices': option.kind}
    how |= {'type': option.kind, 'metavar': option.metavar}
    if option.many == 'words':
        how |= {'nargs': '+', 'action': 'extend'}
    elif option.many == 'repeated':
        how['action'] = 'append'
    return how


def finish_options(command: Command, given: Mapping[str, object]) -> dict[str, object]:
    """Returns what was given and the defaults of what was not.

    Raises:
        InputError: an option that does not go with the others, or is missing.
    """
    known = {prefix + each.key: each for prefix, each in command.options}
    found, missing = dict(given), []
    for group in command.groups:
        kinds, later = [], []
        for kind in group.kinds:
            if not isinstance(kind, Choice):
                kinds.append(kind)
                continue
            by = kind.by.replace('-', '_')
            value = given.get(by, known[by].default)
            # What is recorded beside a vocabulary may choose later, and so may several schemes.
            if isinstance(value, str):
                found = settle_choice(kind, found, value)
                kinds.append(kind.chosen(value))
                if known[by].default is None:
                    later.append(kind.chosen(value))
        refuse_misplaced(kinds, found, group.prefix)
        for owner, each in ((kind, each) for kind in kinds for each in declared(kind)):
            if each.default is not MISSING and owner in later:
                continue  # what is recorded comes before the default
            if each.default is not MISSING:
                found.setdefault(group.prefix + each.key, each.default)
            elif group.prefix + each.key not in found:
                missing.append(f'--{each.name}')
    if missing:
        raise InputError(f'the following arguments are required: {", ".join(missing)}')
    return found
