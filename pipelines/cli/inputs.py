"""The input files of a command line or a job file, as the corpus of a job.

Each format has options of its own. Files on the web are fetched first, and names that the
filesystem cannot hold are refused before any work.
"""

import argparse
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from pipelines.cli.terminal import print_lines
from pipelines.engines.engine import Engine
from pipelines.files import filesystem
from pipelines.files.fetching import fetch_all, fetched_before
from pipelines.files.hub import fetch_into, is_hub_address, to_be_fetched
from pipelines.files.transfer import is_web_address
from pipelines.files.work_folder import WorkFolder
from pipelines.jobs.corpus import Corpus, SplitPaths, find_corpus
from pipelines.options.job import DatasetOptions, option_name, split_flag
from pipelines.options.reading import options_from
from pipelines.transforms.read import find_files
from tokcore.corpus.formats import CorpusFormat, all_formats
from tokcore.corpus.key_ranges import key_ranges
from tokcore.errors import InputError
from tokcore.options import shown

_USUAL_NAME = 255  # bytes, if the system states no limit; all usual filesystems have this one
_USUAL_PATH = 4096

_ROOM_BELOW = 512
"""Bytes of path that a run needs below its output or work folder: for folders of attempts and of a
learner's rounds, and a name of at most 255 in them."""


def resolve_corpus(
    options: argparse.Namespace, splits: Sequence[str], folder: str, engine: Engine
) -> Corpus | None:
    """Returns the corpus of some splits; None for a dry run if inputs still have to be fetched.

    A dry run then prints what would be fetched, and all other paths are looked up.

    Args:
        options: of a command.
        splits: that the command reads.
        folder: of the output; the default work folder is in it.
        engine: what runs the job; workers on other machines read what is fetched in the work folder.

    Raises:
        InputError: the inputs of the splits do not go together, do not exist, or cannot be fetched.
    """
    corpus = _find_or_fetch(options, splits, folder, engine)
    if corpus and options.keep_rejected and not any(split.filters for split in corpus.splits):
        raise InputError(
            '--keep-rejected keeps what --clean drops, and no split has it; leave it out (with '
            '--on-error=skip lines that cannot be used are kept in any case)'
        )
    return corpus


def _find_or_fetch(
    options: argparse.Namespace, splits: Sequence[str], folder: str, engine: Engine
) -> Corpus | None:
    datasets, keeps = split_paths(options, splits), options.keep_rejected
    paths = [path for dataset in datasets for role in dataset.paths.values() for path in role]
    work = WorkFolder(filesystem.absolute(options.work) if options.work else None, folder).path
    fetch_into(None if engine.runner.is_local else os.path.join(work, 'hub'))
    if not options.dry_run:
        return find_corpus(datasets, fetch_all(paths, work), keeps)
    fetched, missing = fetched_before(paths, work)
    of_hub = {path: to_be_fetched(path) for path in filter(is_hub_address, paths)}
    missing += [f'{file} is to be fetched' for files in of_hub.values() for file in files]
    if not missing:
        return find_corpus(datasets, fetched, keeps)
    for path in paths:
        if not is_web_address(path) and not of_hub.get(path):
            find_files(path)
    print_lines(missing)
    return None


def names_files(options: argparse.Namespace) -> bool:
    """Returns whether the options name files of a training corpus, or filters of their rows."""
    return bool(
        'train' in options.datasets
        or options.clean
        or any(getattr(options, role) for kind in all_formats() for role in kind.roles)
    )


def split_paths(options: argparse.Namespace, splits: Sequence[str]) -> list[SplitPaths]:
    """Returns the datasets of the splits for which there are files.

    Files and filters of a split on the command line take the place of those in a job file.

    Raises:
        InputError: no training corpus, options that do not go together, or splits of another shape.
    """
    formats = {split: _chosen_format(options, split) for split in splits}
    if formats['train'] is None and 'train' not in options.datasets:
        choices = [
            ' with '.join(split_flag('train', role) for role in kind.roles)
            for kind in all_formats()
        ]
        raise InputError(f'no training corpus given: {", or ".join(choices)}')
    shares = options_from(DatasetOptions, vars(options)).shares if 'dev' in splits else {}
    datasets: list[SplitPaths] = []
    for split, kind in formats.items():
        clean = getattr(options, option_name(split, 'clean'))
        if split in shares:
            datasets += _cut_off(options, split, kind, datasets, clean or ())
            continue
        if kind is not None:
            paths = {role: getattr(options, option_name(split, role)) for role in kind.roles}
            format_options = _format_options(options, split, kind)
            datasets.append(SplitPaths(split, kind.name, paths, format_options, clean=clean or ()))
            continue
        of_job = options.datasets.get(split, ())
        if clean and not of_job:
            raise InputError(
                f'{split_flag(split, "clean")} is for the rows of a {split} corpus, and there '
                'is none; leave it out, or give one'
            )
        if clean is not None:
            of_job = [dataclasses.replace(dataset, clean=clean) for dataset in of_job]
        datasets += of_job
    if shares:
        datasets = _with_key_ranges(datasets, shares, options.seed)
    _check_same_shape(datasets)
    return datasets


def _cut_off(
    options: argparse.Namespace,
    split: str,
    kind: type[CorpusFormat] | None,
    training: Sequence[SplitPaths],
    clean: Sequence[str],
) -> list[SplitPaths]:
    """Returns the datasets of a split that is a share of the training corpus."""
    share = f'--{split}-share'
    if kind is not None or split in options.datasets:
        raise InputError(
            f'{share} cuts the {split} split off the training corpus, and there are files for it; give '
            'one of the two'
        )
    return [
        dataclasses.replace(dataset, split=split, clean=clean)
        for dataset in training
        if dataset.split == 'train'
    ]


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


def _chosen_format(options: argparse.Namespace, split: str) -> type[CorpusFormat] | None:
    """Returns the format of the files of a split on the command line."""
    roles = {
        kind: [role for role in kind.roles if getattr(options, option_name(split, role))]
        for kind in all_formats()
    }
    chosen = [kind for kind in roles if roles[kind]]
    if len(chosen) > 1:
        names = ['/'.join(split_flag(split, role) for role in kind.roles) for kind in chosen]
        raise InputError(f'{" and ".join(names)} exclude each other; give one of them')
    for kind in chosen:
        for role in kind.roles:
            if role not in roles[kind]:
                missing = split_flag(split, role)
                raise InputError(f'{missing} is missing: {kind.name} needs both sides')
    return chosen[0] if chosen else None


def _format_options(
    options: argparse.Namespace, split: str, kind: type[CorpusFormat]
) -> Mapping[str, object]:
    """Returns the options of a split's format; those of the training corpus are the defaults."""
    values = {}
    for declaration in dataclasses.fields(kind):  # type: ignore[arg-type]  # all are dataclasses
        name = declaration.name
        for owner in (split, 'train'):
            value = getattr(options, option_name(owner, name))
            if value is not None:
                values[name] = value
                break
    return values


def _check_same_shape(datasets: Sequence[SplitPaths]) -> None:
    if len({len(dataset.chosen_format.sides) for dataset in datasets}) > 1:
        single = [kind for kind in all_formats() if len(kind().sides) == 1]
        names = ' or '.join(split_flag('train', kind.roles[0]) for kind in single)
        raise InputError(f'the splits must all be pairs, or all {names}')
    for other in datasets[1:]:
        pair = (datasets[0], other)
        features = [dataset.chosen_format.features for dataset in pair]
        if features[0] != features[1]:
            described = ' and '.join(
                f'{dataset.dataset or dataset.split} {", ".join(names)}'
                for dataset, names in zip(pair, features, strict=True)
            )
            raise InputError(
                f'all examples must have the same features, and there are of {described}'
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
    for part in folder.split(os.sep):
        if len(os.fsencode(part)) > longest:
            raise _too_long(part, above, longest, '--output or --work')
    for name in names:
        if len(os.fsencode(name)) > longest:
            raise _too_long(name, above, longest, option)
    whole = _limit(above, 'PC_PATH_MAX', _USUAL_PATH)
    size = len(os.fsencode(folder))
    if size + _ROOM_BELOW > whole:
        raise InputError(
            f'{shown(folder)} has {size} bytes, and paths of at most {whole - _ROOM_BELOW} leave '
            'room for the files below them; give a shorter one'
        )


def _limit(folder: str, name: str, usual: int) -> int:
    try:
        limit = os.pathconf(folder, name)
    except (AttributeError, OSError, ValueError):  # unknown to this system, or for this folder
        return usual
    return limit if limit > 0 else usual


def _too_long(name: str, folder: str, longest: int, option: str) -> InputError:
    return InputError(
        f'the name {shown(name)} would have {len(os.fsencode(name))} bytes, and names in {folder} '
        f'have at most {longest}; give a shorter {option}'
    )
