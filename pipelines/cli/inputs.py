"""The input files that a command line names, as the corpus of a job.

Each format has options of its own. Files on the web are fetched first, and names that the
filesystem cannot hold are refused before any work.
"""

import argparse
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence

from pipelines.cli.terminal import print_lines
from pipelines.files import filesystem
from pipelines.files.claims import WorkFolder
from pipelines.files.fetching import fetch_all, fetched_before
from pipelines.files.transfer import is_web_address
from pipelines.jobs.corpus import Corpus, SplitPaths, find_corpus
from pipelines.options.job import option_name, split_flag
from pipelines.transforms.read import find_files
from tokcore.corpus.formats import CorpusFormat, all_formats
from tokcore.errors import InputError
from tokcore.options import shown

_USUAL_NAME = 255  # bytes, where the system does not tell; all usual filesystems have this
_USUAL_PATH = 4096

_ROOM_BELOW = 512
"""Bytes of path that a run takes below its output or work folder: folders of attempts and of a
learner's rounds, and in them a name of at most 255."""


def resolve_corpus(
    options: argparse.Namespace, splits: Sequence[str], folder: str
) -> Corpus | None:
    """Returns the corpus of some splits; None of a dry run where not all of it is there.

    What would be fetched is printed then, and all other paths are looked for.

    Args:
        options: of a command.
        splits: that it reads.
        folder: of its output, where the work folder is if none is given.

    Raises:
        InputError: what is given for the splits does not go together, is not there, or cannot be
            fetched.
    """
    corpus = _found_corpus(options, splits, folder)
    if corpus and options.keep_rejected and not any(each.filters for each in corpus.splits):
        raise InputError(
            '--keep-rejected keeps what --clean drops, and no split has it; leave it out (with '
            '--on-error=skip lines that cannot be used are kept in any case)'
        )
    return corpus


def _found_corpus(options: argparse.Namespace, splits: Sequence[str], folder: str) -> Corpus | None:
    given, keeps = split_paths(options, splits), options.keep_rejected
    if not options.fetch:
        return find_corpus(given, keeps_dropped=keeps)
    paths = [path for each in given for paths in each.paths.values() for path in paths]
    work = WorkFolder(filesystem.absolute(options.work) if options.work else None, folder).path
    if not options.dry_run:
        return find_corpus(given, fetch_all(paths, work), keeps)
    there, missing = fetched_before(paths, work)
    if not missing:
        return find_corpus(given, there, keeps)
    for path in paths:
        if not is_web_address(path):
            find_files(path)
    print_lines(missing)
    return None


def names_files(options: argparse.Namespace) -> bool:
    """Tells whether files of a training corpus are given, or what is to be done with their rows."""
    return bool(
        'train' in getattr(options, 'datasets', {})
        or options.clean
        or any(getattr(options, role) for each in all_formats() for role in each.roles)
    )


def split_paths(options: argparse.Namespace, splits: Sequence[str]) -> list[SplitPaths]:
    """Returns what is given for each split, of those for which files are given.

    Files of a split on the command line take the place of a job file's, and so do filters.

    Raises:
        InputError: no training corpus, options that do not go together, or splits of another shape.
    """
    chosen = {split: _chosen_format(options, split) for split in splits}
    of_job = getattr(options, 'datasets', {})
    if chosen['train'] is None and 'train' not in of_job:
        choices = [
            ' with '.join(split_flag('train', role) for role in each.roles)
            for each in all_formats()
        ]
        raise InputError(f'no training corpus given: {", or ".join(choices)}')
    found: list[SplitPaths] = []
    for split, given in chosen.items():
        clean = getattr(options, option_name(split, 'clean'))
        if given is None:
            of_split = of_job.get(split, ())
            if clean and not of_split:
                raise InputError(
                    f'{split_flag(split, "clean")} is for the rows of a {split} corpus, and there '
                    'is none; leave it out, or give one'
                )
            if clean is not None:
                of_split = [dataclasses.replace(each, clean=clean) for each in of_split]
            found += of_split
            continue
        paths = {role: getattr(options, option_name(split, role)) for role in given.roles}
        found.append(
            SplitPaths(
                split, given.name, paths, _format_options(options, split, given), clean=clean or ()
            )
        )
    _check_sides(found)
    return found


def _chosen_format(options: argparse.Namespace, split: str) -> type[CorpusFormat] | None:
    """The format of which files are given for a split."""
    given = {
        each: [role for role in each.roles if getattr(options, option_name(split, role))]
        for each in all_formats()
    }
    chosen = [each for each, roles in given.items() if roles]
    if len(chosen) > 1:
        names = ['/'.join(split_flag(split, role) for role in each.roles) for each in chosen]
        raise InputError(f'{" and ".join(names)} exclude each other; give one of them')
    for each in chosen:
        for role in each.roles:
            if role not in given[each]:
                missing = split_flag(split, role)
                raise InputError(f'{missing} is missing: {each.name} needs both sides')
    return chosen[0] if chosen else None


def _option_names(each: type[CorpusFormat]) -> list[str]:
    return [field.name for field in dataclasses.fields(each)]


def _format_options(
    options: argparse.Namespace, split: str, given: type[CorpusFormat]
) -> Mapping[str, object]:
    """A split's options of its format; what is not given is the training corpus's."""
    found = {}
    for name in _option_names(given):
        values = [getattr(options, option_name(each, name)) for each in (split, 'train')]
        value = next((each for each in values if each is not None), None)
        if value is not None:
            found[name] = value
    return found


def _check_sides(found: Sequence[SplitPaths]) -> None:
    if len({len(each.chosen_format.sides) for each in found}) > 1:
        single = [each for each in all_formats() if len(each().sides) == 1]
        names = ' or '.join(split_flag('train', each.roles[0]) for each in single)
        raise InputError(f'the splits must all be pairs, or all {names}')
    for each in found[1:]:
        features = [one.chosen_format.features for one in (found[0], each)]
        if features[0] != features[1]:
            named = ' and '.join(
                f'{one.dataset or one.split} {", ".join(names)}'
                for one, names in zip((found[0], each), features, strict=True)
            )
            raise InputError(f'all examples must have the same features, and there are of {named}')


def refuse_long_names(folder: str, names: Iterable[str], option: str) -> None:
    """Refuses names that the filesystem of a folder, which need not exist yet, cannot hold.

    On object stores, which have no folders, nothing is refused.

    Args:
        folder: an absolute path.
        names: of files to be made in it.
        option: that decides the names, as `--name`.

    Raises:
        InputError: a name, or the path, is too long.
    """
    if not filesystem.is_local(folder):
        return
    above = folder
    while not os.path.isdir(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    longest = _limit(above, 'PC_NAME_MAX', _USUAL_NAME)
    for part in folder.split(os.sep):
        if len(os.fsencode(part)) > longest:
            raise InputError(_sentence(part, above, longest, '--output or --work'))
    for name in names:
        if len(os.fsencode(name)) > longest:
            raise InputError(_sentence(name, above, longest, option))
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
    except (AttributeError, OSError, ValueError):  # not on this system, or not for this folder
        return usual
    return limit if limit > 0 else usual


def _sentence(name: str, folder: str, longest: int, option: str) -> str:
    return (
        f'the name {shown(name)} would have {len(os.fsencode(name))} bytes, and names in {folder} '
        f'have at most {longest}; give a shorter {option}'
    )
