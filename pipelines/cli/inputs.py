"""The input files of a command line or a job file, as the corpus of a job.

Each format has options of its own. Files on the web are fetched first, and names that the
filesystem cannot hold are refused before any work.
"""

import argparse
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from pipelines.engines.engine import Engine
from pipelines.files import filesystem
from pipelines.files.attempts import WorkFolder
from pipelines.files.fetching import fetch_all, fetched_before
from pipelines.files.hub import fetch_into, is_hub_address, to_be_fetched
from pipelines.files.transfer import is_web_address
from pipelines.jobs.corpus import Corpus, SplitPaths, check_same_shape, find_corpus
from pipelines.jobs.recorded import as_recorded
from pipelines.options.job import (
    PAIR_OF_FILES,
    TAKE_ROWS_AWAY,
    DatasetOptions,
    formats_with_options,
)
from pipelines.options.reading import options_from
from pipelines.transforms.read import find_files
from tokcore.corpus.formats import CorpusFormat, format_of_files
from tokcore.corpus.order_keys import key_ranges
from tokcore.errors import InputError
from tokcore.filters.leaving_out import AddressedFiles
from tokcore.filters.registry import converting_filters
from tokcore.options import declared, flag, shown

_USUAL_NAME = 255  # bytes, if the system states no limit; all usual filesystems have this one
_USUAL_PATH = 4096

_ROOM_BELOW = 512
"""Bytes of path that a run needs below its output or work folder: for folders of attempts and of a
learner's rounds, and a name of at most 255 in them."""


class InputsToFetch(Exception):
    """A dry run needs inputs that are not fetched yet; `lines` name them."""

    def __init__(self, lines: Sequence[str]):
        super().__init__(lines)
        self.lines = lines


def resolve_corpus(
    options: argparse.Namespace,
    splits: Sequence[str],
    folder: str,
    engine: Engine,
    before: Corpus | None = None,
) -> Corpus:
    """Returns the corpus of some splits.

    Args:
        options: of a command.
        splits: that the command reads.
        folder: of the output; the default work folder is in it.
        engine: what runs the job; workers on other machines read what is fetched in the work folder.
        before: the corpus of the dataset to which this one is added.

    Raises:
        InputError: the inputs of the splits do not go together, do not exist, or cannot be fetched.
        InputsToFetch: of a dry run, after all other paths were looked up.
    """
    for key in TAKE_ROWS_AWAY:
        if 'dev' not in splits and vars(options).get(key):
            raise InputError(
                f'{options.job_path}: {key} takes rows from the training corpus, and {options.command} '
                'would count them; leave it out, or let build learn from the rows that are left'
            )
    datasets, keeps = split_paths(options, splits), options.keep_rejected
    if before is not None:
        datasets = [as_recorded(dataset, before) for dataset in datasets]
    paths = [path for dataset in datasets for role in dataset.paths.values() for path in role]
    work = WorkFolder(filesystem.absolute(options.work) if options.work else None, folder).path
    fetch_into(None if engine.runner.is_local else os.path.join(work, 'hub'))
    if options.dry_run:
        fetched, missing = fetched_before(paths, work)
        of_hub = {path: to_be_fetched(path) for path in filter(is_hub_address, paths)}
        missing += [f'{file} is to be fetched' for files in of_hub.values() for file in files]
        if missing:
            for dataset in datasets:
                for path in (path for role in dataset.paths.values() for path in role):
                    if not is_web_address(path) and not of_hub.get(path):
                        find_files(path, content=dataset.chosen_format.content)
            raise InputsToFetch(missing)
    else:
        fetched = fetch_all(paths, work)
    corpus = find_corpus(datasets, fetched, keeps, is_added=before is not None)
    _refuse_unnamed_format(options, corpus)
    if before is None and keeps and not any(split.filters for split in corpus.splits):
        raise InputError(
            '--keep-rejected keeps what --clean drops, and no split has it; leave it out (with '
            '--on-error=skip lines that cannot be used are kept in any case)'
        )
    if getattr(options, 'leave_out', None):  # not of `count` and `vocab`
        data = filesystem.read_bytes(options.leave_out)
        corpus = corpus.without(AddressedFiles(corpus.splits).read(data, options.leave_out))
    return corpus


def names_files(options: argparse.Namespace) -> bool:
    """Returns whether the options name files of a training corpus, or filters of their rows."""
    return bool('train' in options.datasets or options.clean or _given_roles(options))


def split_paths(options: argparse.Namespace, splits: Sequence[str]) -> list[SplitPaths]:
    """Returns the datasets of the splits for which there are files.

    Files and filters of a split on the command line take the place of those in a job file.

    Raises:
        InputError: no training corpus, options that do not go together, or splits of another shape.
    """
    training = _training_paths(options)
    files = {split: _paths_of_split(options, split, training) for split in splits[1:]}
    named = [dataset for datasets in files.values() for dataset in datasets]
    _refuse_unused(options, [*training, *named])
    shares = options_from(DatasetOptions, vars(options)).shares if 'dev' in splits else {}
    datasets = [*training]
    for split, of_split in files.items():
        if split not in shares:
            datasets += of_split or options.datasets.get(split, ())
        elif of_split or split in options.datasets:
            raise InputError(
                f'--{split}-share cuts the {split} split off the training corpus, and there are files '
                'for it; give one of the two'
            )
        else:
            datasets += [
                dataclasses.replace(each, split=split, clean=converting_filters(each.clean))
                for each in training
            ]
    if shares:
        datasets = _with_key_ranges(datasets, shares, options.seed)
    check_same_shape([(each.dataset or each.split, each.chosen_format) for each in datasets])
    return datasets


def _given_roles(options: argparse.Namespace) -> dict[str, Sequence[str]]:
    """Returns the paths of a training corpus on the command line, by their role."""
    roles = dict.fromkeys(role for kind in formats_with_options() for role in kind.roles)
    return {role: getattr(options, role) for role in roles if getattr(options, role)}


def _training_paths(options: argparse.Namespace) -> list[SplitPaths]:
    paths = _given_roles(options)
    if paths:
        kind = _chosen_format(paths)
        given = _format_options(options, kind)
        return [SplitPaths('train', kind.name, paths, given, clean=options.clean or ())]
    if 'train' not in options.datasets:
        choices = dict.fromkeys(
            ' with '.join(map(flag, each.roles)) for each in formats_with_options()
        )
        raise InputError(f'no training corpus given: {", or ".join(choices)}')
    of_job = options.datasets['train']
    if options.clean is None:
        return list(of_job)
    return [dataclasses.replace(dataset, clean=options.clean) for dataset in of_job]


def _refuse_unnamed_format(options: argparse.Namespace, corpus: Corpus) -> None:
    """Refuses files whose names say SGM, found by paths that do not, as `dev/*src*`."""
    for split in corpus.splits:
        roles, prefix = split.format.roles, '' if split.name == 'train' else f'{split.name}_'
        if roles != PAIR_OF_FILES or not getattr(options, f'{prefix}source'):
            continue  # a job file names the format
        files = zip(*split.files, strict=True)
        names = {role: [file.path for file in of] for role, of in zip(roles, files, strict=True)}
        kind = format_of_files(names)
        if kind is not None and kind.endings and kind.name != split.format.name:
            raise InputError(
                f'the names of files that {" and ".join(flag(prefix + role) for role in roles)} find end '
                f'in one of {", ".join(kind.endings)}, and these paths do not, so they would not be read as '
                f'{kind.name}; let a path end so, or name the format in a job file'
            )


def _paths_of_split(
    options: argparse.Namespace, split: str, training: Sequence[SplitPaths]
) -> list[SplitPaths]:
    """Returns the datasets of a split other than the training corpus, from the command line."""
    paths: Sequence[str] = getattr(options, split)
    pair = {role: getattr(options, f'{split}_{role}') for role in PAIR_OF_FILES}
    given = {role: of_role for role, of_role in pair.items() if of_role}
    if paths and given:
        raise InputError(
            f'--{split} and {flag(f"{split}_{next(iter(given))}")} exclude each other; give one of them'
        )
    if given:
        kind = _chosen_format(given, f'{split}-')
        return [SplitPaths(split, kind.name, pair, _format_options(options, kind))]
    if not paths:
        return []
    first, *others = training
    if any((each.format, each.options) != (first.format, first.options) for each in others):
        raise InputError(
            f'--{split} is of the format of the training corpus, whose datasets have several; name the '
            f'files in a table [[{split}]] of the job file'
        )
    roles = first.chosen_format.roles
    if roles == PAIR_OF_FILES:
        raise InputError(
            f'--{split} is for a corpus of single files, and the training corpus has two sides; give '
            f'--{split}-source and --{split}-target'
        )
    if len(roles) > 1:
        raise InputError(
            f'--{split} is for a corpus of single files, and the training corpus has '
            f'{" and ".join(map(flag, roles))}; name the files in a table [[{split}]] of a job file'
        )
    return [SplitPaths(split, first.format, {roles[0]: paths}, first.options)]


def _with_key_ranges(
    datasets: Sequence[SplitPaths], shares: Mapping[str, Fraction], seed: int
) -> list[SplitPaths]:
    if sum(shares.values()) >= 1:
        raise InputError(
            '--dev-share and --test-share leave no rows to train on; give less than 100%'
        )
    if any(dataset.max_examples for dataset in datasets):
        raise InputError(
            'max_examples takes the first rows of a dataset, and --dev-share and --test-share take '
            'rows from all of it; leave one of them out'
        )
    ranges = key_ranges(shares, seed)
    return [
        dataclasses.replace(dataset, key_range=ranges.get(dataset.split)) for dataset in datasets
    ]


def _chosen_format(paths: Mapping[str, Sequence[str]], of_split: str = '') -> type[CorpusFormat]:
    """Returns the format of the files of a split on the command line, by their roles and names."""
    kind = format_of_files(paths)
    if kind is not None:
        return kind
    for other in formats_with_options():
        if set(paths) < set(other.roles):
            [missing] = set(other.roles) - set(paths)
            raise InputError(
                f'{flag(of_split + missing)} is missing: {other.name} needs both sides'
            )
    flags = [flag(of_split + role) for role in paths]
    raise InputError(f'{" and ".join(flags)} exclude each other; give one of them')


def _format_options(options: argparse.Namespace, kind: type[CorpusFormat]) -> Mapping[str, object]:
    """Returns the options of a format that are given."""
    names = [declaration.field for declaration in declared(kind)]
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def _refuse_unused(options: argparse.Namespace, datasets: Sequence[SplitPaths]) -> None:
    """Refuses an option of a format that shares its roles with the one that was chosen."""
    used = {name for dataset in datasets for name in dataset.options}
    for kind in formats_with_options():
        for declaration in declared(kind):
            name = declaration.field
            if getattr(options, name) is not None and name not in used:
                chosen = ' and '.join(dict.fromkeys(dataset.format for dataset in datasets))
                raise InputError(
                    f'{flag(declaration.name)} is for the format {kind.name}, and the corpus is {chosen}; '
                    'leave it out'
                )


def refuse_long_names(folder: str, names: Iterable[str], option: str) -> None:
    """Refuses names that the filesystem of a folder cannot hold; an object store refuses none.

    Args:
        folder: an absolute path; the folder need not exist.
        names: of files to be made in it.
        option: that determines the names, as `--name`.

    Raises:
        InputError: a name, or the path, is too long.
    """
    if filesystem.is_shared(folder):
        return
    above = folder
    while not os.path.isdir(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    longest = _limit(above, 'PC_NAME_MAX', _USUAL_NAME)
    parts = [(part, '--output or --work') for part in folder.split(os.sep)]
    for name, by in [*parts, *((name, option) for name in names)]:
        if len(os.fsencode(name)) > longest:
            raise InputError(
                f'the name {shown(name)} would have {len(os.fsencode(name))} bytes, and names in {above} '
                f'have at most {longest}; give a shorter {by}'
            )
    most = _limit(above, 'PC_PATH_MAX', _USUAL_PATH) - _ROOM_BELOW
    if len(os.fsencode(folder)) > most:
        raise InputError(
            f'{shown(folder)} has {len(os.fsencode(folder))} bytes, and paths of at most {most} leave '
            'room for the files below them; give a shorter one'
        )


def _limit(folder: str, name: str, usual: int) -> int:
    try:
        limit = os.pathconf(folder, name)
    except (AttributeError, OSError, ValueError):  # unknown to this system, or for this folder
        return usual
    return limit if limit > 0 else usual
