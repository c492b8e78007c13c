"""The files of a corpus as the command line names them: each format has options of its own."""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence

from pipelines.jobs.split_paths import SplitPaths
from pipelines.options.corpus_options import option_name, split_flag
from tokcore.corpus.formats.corpus_format import CorpusFormat
from tokcore.corpus.formats.registry import all_formats
from tokcore.errors import InputError


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
