"""A command line as a job file."""

import os
from collections.abc import Mapping, Sequence

from pipelines.files import filesystem
from pipelines.jobs.split_paths import SplitPaths
from pipelines.options.command_options import Command
from pipelines.options.rejection_limits import RejectionLimit
from tokcore.corpus.features.kept_fields import LabelNames
from tokcore.errors import InputError
from tokcore.options.option_fields import Declared, as_typed, declared
from tokcore.options.values import (
    duration,
    min_count_range,
    output_path,
    path,
    vocabulary_path,
    work_path,
)

_PATHS = (path, output_path, vocabulary_path, work_path)
_NO_UTF8 = 'a path is not UTF-8, and a job file cannot hold it; rename the file'
_NOT_OF_A_JOB = ('print_job', 'dry_run')


def job_text(
    command: Command, given: Mapping[str, object], datasets: Sequence[SplitPaths]
) -> str:
    """Returns the job file of what was given to a command.

    Paths are made absolute, since nobody knows where the file will lie.

    Args:
        command: whose options these are.
        given: values by `Declared.key`; what has its default is not there.
        datasets: of all splits.

    Raises:
        InputError: a path that TOML, which is UTF-8, cannot hold.
    """
    import tomli_w

    tables: dict[str, object] = {}
    for each in datasets:
        tables.setdefault(each.split, []).append(_dataset(each))
    for section in command.sections:
        for option in command.of_section(section):
            if option.key in given and option.key not in _NOT_OF_A_JOB:
                value = _value(option, given[option.key])
                tables.setdefault(section, {})[option.key] = value
    text = tomli_w.dumps(tables)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(_NO_UTF8) from None
    return text


def _dataset(given: SplitPaths) -> dict[str, object]:
    own = {each.field: each for each in declared(type(given.chosen_format))}
    paths = {role: [_absolute(each) for each in found] for role, found in given.paths.items()}
    table: dict[str, object] = {}
    if given.dataset:
        table['name'] = given.dataset
    table['format'] = given.format
    table['paths'] = paths if len(paths) > 1 else next(iter(paths.values()))
    for name, value in given.options.items():
        table[own[name].key] = _value(own[name], value)
    for name in ('max_examples', 'source_prefix', 'target_prefix'):
        if getattr(given, name) is not None:
            table[name] = getattr(given, name)
    if given.clean:
        table['clean'] = list(given.clean)
    return table


def _value(option: Declared, value: object) -> object:
    kind = option.option.kind
    if kind in _PATHS:
        return [*map(_absolute, value)] if option.option.many else _absolute(value)
    if kind is duration:
        return f'{value:.0f}s'
    if kind is min_count_range and isinstance(value, tuple):
        return ':'.join(map(str, value))
    if kind is as_typed and str(value).isdecimal():
        return int(value)
    if isinstance(value, LabelNames):
        return _absolute(value.path)
    if isinstance(value, (tuple, list)):
        return list(value)
    if isinstance(value, RejectionLimit):
        return str(value)
    # What else a kind makes of a word is a number or the word itself; None stands for `none`.
    return 'none' if value is None else value


def _absolute(given: str) -> str:
    if '://' in given:
        return given
    try:
        # What the locale makes of it is another thing.
        return os.fsencode(filesystem.absolute(given)).decode()
    except UnicodeError:
        raise InputError(_NO_UTF8) from None

