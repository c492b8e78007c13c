"""Job files: the options and datasets of a command line as TOML, read and printed.

Errors name the line of the file in which a key stands.
"""

import difflib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.files import filesystem
from pipelines.files.hub import is_hub_address
from pipelines.jobs.corpus import SplitPaths
from pipelines.options.commands import Command, known_commands
from pipelines.options.job import SPLITS, TAKE_ROWS_AWAY, DatasetSource
from tokcore.corpus.fields import LabelNames, label_names
from tokcore.corpus.formats import all_formats, corpus_format
from tokcore.errors import InputError
from tokcore.keywords import option_value
from tokcore.options import (
    PATH_KINDS,
    Declared,
    declared,
    min_count_range,
    shown,
)

_NOT_UTF8 = 'a path is not UTF-8, and a job file cannot hold it; rename the file'
_NOT_OF_A_JOB = ('print_job', 'dry_run')

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_HEADER = re.compile(r'\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$')
_KEY = re.compile(r'\s*(?:"([^"]*)"|\'([^\']*)\'|([A-Za-z0-9_-]+))\s*[=.]')

_MOST_BYTES = 8 << 20
"""Fifty thousand paths; a file takes up to a hundred times its size of memory when it is parsed."""


def job_text(command: Command, given: Mapping[str, object], datasets: Sequence[SplitPaths]) -> str:
    """Returns the job file that stands for the options given to a command.

    Paths are made absolute, because the file may be stored anywhere.

    Args:
        command: whose options these are.
        given: values by `Declared.key`, without defaults.
        datasets: of all splits.

    Raises:
        InputError: a path that TOML, which is UTF-8, cannot hold.
    """
    import tomli_w

    tables: dict[str, Any] = {}
    for dataset in datasets:
        tables.setdefault(dataset.split, []).append(_dataset_table(dataset))
    for section, options in command.sections.items():
        for key, option in options.items():
            if key in given and key not in _NOT_OF_A_JOB:
                tables.setdefault(section, {})[key] = _value(option, given[key])
    text = tomli_w.dumps(tables)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(_NOT_UTF8) from None
    return text


def _dataset_table(dataset: SplitPaths) -> dict[str, object]:
    own = {option.field: option for option in declared(type(dataset.chosen_format))}
    paths = {role: [_absolute(path) for path in paths] for role, paths in dataset.paths.items()}
    table: dict[str, object] = {}
    if dataset.dataset:
        table['name'] = dataset.dataset
    table['format'] = dataset.format
    table['paths'] = paths if len(paths) > 1 else next(iter(paths.values()))
    for name, value in dataset.options.items():
        table[own[name].key] = _value(own[name], value)
    for name in ('max_examples', 'source_prefix', 'target_prefix', 'weight'):
        if getattr(dataset, name) is not None:
            table[name] = getattr(dataset, name)
    if dataset.clean:
        table['clean'] = list(dataset.clean)
    return table


def _value(option: Declared, value: Any) -> object:
    kind = option.option.kind
    if kind in PATH_KINDS:
        return [*map(_absolute, value)] if option.option.many else _absolute(value)
    if kind is min_count_range and isinstance(value, tuple):
        return ':'.join(map(str, value))
    if isinstance(value, LabelNames):
        return _absolute(value.path)
    if isinstance(value, (tuple, list)):
        return list(value)
    # Other kinds make a number of a word, or keep the word; None stands for `none`.
    return 'none' if value is None else value


def _absolute(path: str) -> str:
    if '://' in path and not is_hub_address(path):
        return path
    try:
        # Whatever the locale's encoding is.
        return os.fsencode(filesystem.absolute(path)).decode()
    except UnicodeError:
        raise InputError(_NOT_UTF8) from None


def read_job(job_path: str, command: str) -> tuple[dict[str, object], dict[str, list[SplitPaths]]]:
    """Returns the options of a job file that one command has, by `Declared.key`, and its datasets by split.

    Raises:
        InputError: the file cannot be read, has an unknown key, or a value that a key cannot have.
    """
    toml, commands = read_toml(job_path), known_commands()
    sections: dict[str, set[str]] = {}
    for each in commands.values():
        for name, options in each.sections.items():
            sections.setdefault(name, set()).update(options)
    values: dict[str, object] = {}
    datasets: dict[str, list[SplitPaths]] = {}
    for name, content in toml.tables.items():
        if name in SPLITS:
            datasets[name] = _datasets(toml, name, content)
        elif name not in sections:
            raise toml.error(_unknown(name, [*SPLITS, *sections], 'a job file'), name)
        elif not isinstance(content, dict):
            raise toml.error(f'{name} is a table, as [{name}]', name)
        else:
            options = commands[command].sections.get(name, {})
            for key, value in content.items():
                if key not in sections[name]:
                    raise toml.error(_unknown(key, sections[name], f'[{name}]'), name, 0, key)
                if key in options:
                    values[key] = toml.read(options[key], value, name, 0)
                elif key in TAKE_ROWS_AWAY:
                    # `resolve_corpus` refuses it if text is read.
                    of_build = commands['build'].sections[name]
                    values[key] = toml.read(of_build[key], value, name, 0)
    return values, datasets


def _unknown(name: str, known: Iterable[str], where: str) -> str:
    nearest = difflib.get_close_matches(name.replace('-', '_'), sorted(known), 1, 0.5)
    hint = f'; did you mean {nearest[0]}?' if nearest else f'; there are {", ".join(sorted(known))}'
    return f'{where} has no {shown(name)}{hint}'


@dataclass(frozen=True)
class TomlFile:
    """A TOML file."""

    path: str
    text: str
    tables: dict[str, Any]

    def read(self, option: Declared, value: object, table: str, number: int) -> object:
        """Returns the value of an option in a table, by its name and number."""
        kind = option.option.kind
        if kind is label_names and isinstance(value, str):
            value = self.absolute(value)  # it is read at once
        try:
            read = option_value(option, value, option.key)
        except (InputError, TypeError) as error:
            raise self.error(str(error), table, number, option.key) from None
        if kind not in PATH_KINDS:
            return read
        return tuple(map(self.absolute, read)) if isinstance(read, tuple) else self.absolute(read)

    def absolute(self, text: str) -> str:
        """Returns a path in the file; relative paths are relative to the file's folder.

        The file is UTF-8, and so are the file names in it, whatever the locale is.
        """
        if '://' in text:
            return text
        folder = os.path.dirname(filesystem.absolute(self.path))
        return os.path.join(folder, os.fsdecode(text.encode()))

    def error(self, what: str, table: str, number: int = 0, key: str | None = None) -> InputError:
        """Returns an error about a table, by its name and number, or about one of its keys."""
        line = self._line(table, number, key)
        where = self.path if line is None else f'{self.path}, line {line}'
        return InputError(f'{where}: {what}')

    def _line(self, table: str, number: int, key: str | None) -> int | None:
        """Returns the line of a key; inside a string of several lines it may be a wrong guess."""
        current, seen = '', dict.fromkeys([table], -1)
        begins = None
        for count, line in enumerate(self.text.splitlines(), 1):
            if header := _HEADER.match(line):
                current = header[2].strip('"\'')
                seen[current] = seen.get(current, -1) + 1
                if (current, seen[current]) == (table, number):
                    begins = count
                    if key is None:
                        return count
            elif match := _KEY.match(line):
                name = next(group for group in match.groups() if group is not None)
                inside = current == table and seen[current] == number
                if (inside and name == key) or (not current and key is None and name == table):
                    return count
        return begins


def _datasets(toml: TomlFile, split: str, content: object) -> list[SplitPaths]:
    tables = content if isinstance(content, list) else [content]
    if not all(isinstance(table, dict) for table in tables):
        raise toml.error(f'{split} is a list of tables, each as [[{split}]]', split)
    datasets = [_dataset(toml, split, number, table) for number, table in enumerate(tables)]
    names: set[str] = set()
    for number, dataset in enumerate(datasets):
        if len(datasets) > 1 and not dataset.dataset:
            raise toml.error('a name is missing: of several datasets each has one', split, number)
        if dataset.dataset in names:
            what = f'{shown(dataset.dataset)} is the name of two datasets of {split}'
            raise toml.error(what, split, number, 'name')
        names.add(dataset.dataset)
    return datasets


def _dataset(toml: TomlFile, split: str, number: int, table: Mapping[str, Any]) -> SplitPaths:
    def error(what: str, key: str | None = None) -> InputError:
        return toml.error(what, split, number, key)

    def read(options: Mapping[str, Declared]) -> dict[str, Any]:
        return {
            option.field: toml.read(option, table[key], split, number)
            for key, option in options.items()
            if key in table
        }

    source = {option.key: option for option in declared(DatasetSource)}
    formats = {
        kind.name: {option.key: option for option in declared(kind)} for kind in all_formats()
    }
    known = {*source, 'paths'}.union(*formats.values())
    for key in table:
        if key not in known:
            raise error(_unknown(key, known, f'a dataset of {split}'), key)
    for needed in ('format', 'paths'):
        if needed not in table:
            raise error(f'{needed} is missing from a dataset of {split}')
    values = read(source)
    if 'weight' in values and split != 'train':
        raise error(
            f'a dataset of {split} has no weight: no vocabulary is learned from it', 'weight'
        )
    chosen = corpus_format(values['format'])
    for key in table:
        if key not in {*source, *formats[chosen.name], 'paths'}:
            fitting = [name for name, options in formats.items() if key in options]
            raise error(f'{key} goes with the format {" or ".join(fitting)}', key)
    paths = table['paths']
    if not isinstance(paths, dict):
        paths = {chosen.roles[0]: paths} if len(chosen.roles) == 1 else {}
    if set(paths) != set(chosen.roles):
        form = ', '.join(f'{role} = […]' for role in chosen.roles)
        raise error(f'paths of {chosen.name} are {{ {form} }}', 'paths')
    by_role: dict[str, tuple[str, ...]] = {}
    for role, words in paths.items():
        words = words if isinstance(words, list) else [words]
        if not words or not all(
            isinstance(word, str) and word and '\0' not in word for word in words
        ):
            raise error('paths are texts: one, or several as ["a", "b"]', 'paths')
        by_role[role] = tuple(map(toml.absolute, words))
    dataset = SplitPaths(
        split,
        values.pop('format'),
        by_role,
        read(formats[chosen.name]),
        dataset=values.pop('name', ''),
        **values,
    )
    for side, key in (('inputs', 'source_prefix'), ('targets', 'target_prefix')):
        if values.get(key) and side not in dataset.chosen_format.sides:
            sides = ' and '.join(dataset.chosen_format.sides)
            raise error(
                f'{key} is put before {side}, and of these rows only {sides} are text; leave it out',
                key,
            )
    return dataset


def read_toml(path: str) -> TomlFile:
    """Reads a TOML file.

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    try:
        file, *others = filesystem.find(path)
    except InputError as error:
        raise InputError(
            f'{error}; a word that is not an option names a job file, which is TOML (--print-job prints '
            'one)'
        ) from error
    if others:
        raise InputError(f'{path} names {len(others) + 1} files, and a job is one; give its file')
    if file.size > _MOST_BYTES:
        raise InputError(
            f'{path} has {file.size:,} bytes, and a job file has at most {_MOST_BYTES:,}; name files '
            'by patterns, as "texts/*.gz"'
        )
    data = filesystem.read_bytes(file.path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f'{path} is not a job file: byte {error.start} is not UTF-8; write it as UTF-8'
        ) from error
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: a number of thousands of digits too
        raise InputError(f'{path} is not TOML: {error}; mend the file') from error
    return TomlFile(path, text, tables)
