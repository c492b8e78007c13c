"""A job file to what its command line would have given: options by name, and datasets."""

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.cli.job_files.toml_places import TomlFile, read_toml
from pipelines.files import filesystem
from pipelines.jobs.split_paths import SplitPaths
from pipelines.options.command_options import Command
from pipelines.options.corpus_options import SPLITS
from pipelines.options.dataset_options import DatasetSource
from pipelines.options.option_reading import option_value
from tokcore.corpus.features.kept_fields import label_names
from tokcore.corpus.formats.registry import all_formats, corpus_format
from tokcore.errors import InputError
from tokcore.options.option_fields import Declared, declared
from tokcore.options.values import output_path, path, shown, vocabulary_path, work_path

_PATHS = (path, output_path, vocabulary_path, work_path)
"""Kinds of options whose values are relative to the file."""


@dataclass(frozen=True)
class JobFile:
    """What a job file asks of a command.

    Attributes:
        values: of options, by `Declared.key`.
        datasets: of each split that it has.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    datasets: Mapping[str, Sequence[SplitPaths]] = field(default_factory=dict)


def read_job(job_path: str, commands: Mapping[str, Command], command: str) -> JobFile:
    """Reads a job file for one command; what is another command's is passed over.

    Raises:
        InputError: the file cannot be read, has a key that there is not, or a value that cannot be.
    """
    toml = read_toml(job_path)
    folder = filesystem.split_path(filesystem.absolute(job_path))[0]
    sections = _sections(commands)
    values: dict[str, object] = {}
    datasets: dict[str, list[SplitPaths]] = {}
    for name, content in toml.tables.items():
        if name in SPLITS:
            datasets[name] = _datasets(toml, name, content, folder)
        elif name in sections:
            if not isinstance(content, dict):
                raise toml.error(f'{name} is a table, as [{name}]', name)
            own = {each.key: each for each in commands[command].of_section(name)}
            for key, value in content.items():
                if key not in sections[name]:
                    raise toml.error(_unknown(key, sections[name], f'[{name}]'), name, 0, key)
                if key in own:
                    values[key] = _read(toml, (name, 0, key), own[key], value, folder)
        else:
            known = [*SPLITS, *sections]
            raise toml.error(_unknown(name, known, 'a job file'), name)
    return JobFile(values, datasets)


def _sections(commands: Mapping[str, Command]) -> dict[str, set[str]]:
    """The keys that each section may have, of any command."""
    found: dict[str, set[str]] = {}
    for command in commands.values():
        for section in command.sections:
            found.setdefault(section, set()).update(
                each.key for each in command.of_section(section)
            )
    return found


def _unknown(name: str, known: Sequence[str], where: str) -> str:
    nearest = difflib.get_close_matches(name.replace('-', '_'), sorted(known), 1, 0.5)
    hint = f'; did you mean {nearest[0]}?' if nearest else f'; there are {", ".join(sorted(known))}'
    return f'{where} has no {shown(name)}{hint}'


def _read(
    toml: TomlFile, place: tuple[str, int, str], option: Declared, value: object, folder: str
) -> object:
    if isinstance(value, list) and not option.option.many:
        value = ','.join(map(str, value))
    if option.option.kind is label_names and isinstance(value, str):
        value = _beside(folder, value)  # it is read at once
    try:
        found = option_value(option, value, place[2])
    except InputError as error:
        raise toml.error(str(error), *place) from None
    if option.option.kind not in _PATHS:
        return found
    if isinstance(found, tuple):
        return tuple(_beside(folder, each) for each in found)
    return _beside(folder, found)


def _beside(folder: str, given: str) -> str:
    """Returns a path of a file's; relative ones are relative to its folder.

    A job file is UTF-8, and so are the names of files that it means, whatever the locale is.
    """
    if '://' in given:
        return given
    path = os.fsdecode(given.encode())
    return path if path.startswith('/') else filesystem.join(folder, path)


def _datasets(toml: TomlFile, split: str, content: object, folder: str) -> list[SplitPaths]:
    tables = content if isinstance(content, list) else [content]
    if not all(isinstance(each, dict) for each in tables):
        raise toml.error(f'{split} is a list of tables, each as [[{split}]]', split)
    found = [_dataset(toml, split, number, each, folder) for number, each in enumerate(tables)]
    names: set[str] = set()
    for number, each in enumerate(found):
        if len(found) > 1 and not each.dataset:
            raise toml.error('a name is missing: of several datasets each has one', split, number)
        if each.dataset in names:
            what = f'{shown(each.dataset)} is the name of two datasets of {split}'
            raise toml.error(what, split, number, 'name')
        names.add(each.dataset)
    return found


def _dataset(
    toml: TomlFile, split: str, number: int, table: Mapping[str, object], folder: str
) -> SplitPaths:
    def error(what: str, key: str | None = None) -> InputError:
        return toml.error(what, split, number, key)

    own = {each.key: each for each in declared(DatasetSource)}
    of_formats = {each.key for kind in all_formats() for each in declared(kind)}
    for key in table:
        if key not in own and key not in of_formats and key != 'paths':
            known = [*own, *of_formats, 'paths']
            raise error(_unknown(key, known, f'a dataset of {split}'), key)
    for needed in ('format', 'paths'):
        if needed not in table:
            raise error(f'{needed} is missing from a dataset of {split}')
    values = {
        key: _read(toml, (split, number, key), own[key], table[key], folder)
        for key in table
        if key in own
    }
    chosen = corpus_format(values['format'])
    options = {each.key: each for each in declared(chosen)}
    for key in table:
        if key in of_formats and key not in options and key not in own:
            fitting = [
                kind.name for kind in all_formats() if key in {o.key for o in declared(kind)}
            ]
            raise error(f'{key} goes with the format {" or ".join(fitting)}', key)
    given = {
        options[key].field: _read(toml, (split, number, key), options[key], table[key], folder)
        for key in table
        if key in options
    }
    paths = table['paths']
    if not isinstance(paths, dict):
        paths = {chosen.roles[0]: paths} if len(chosen.roles) == 1 else {}
    if set(paths) != set(chosen.roles):
        form = ', '.join(f'{role} = […]' for role in chosen.roles)
        raise error(f'paths of {chosen.name} are {{ {form} }}', 'paths')
    found = {role: _paths(each, folder) for role, each in paths.items()}
    if not all(found.values()):
        raise error('paths are texts: one, or several as ["a", "b"]', 'paths')
    named = {'dataset': values.pop('name', '')}
    return SplitPaths(split, values.pop('format'), found, given, **named, **values)


def _paths(given: object, folder: str) -> tuple[str, ...]:
    words = given if isinstance(given, list) else [given]
    if not all(isinstance(word, str) and word and '\0' not in word for word in words):
        return ()
    return tuple(_beside(folder, word) for word in words)
