"""Job files: the options and datasets of a command line as TOML, read and printed.

Errors name the line of the file in which a key stands.
"""

import difflib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.files import filesystem
from pipelines.jobs.corpus import SplitPaths
from pipelines.options.commands import Command
from pipelines.options.job import SPLITS, DatasetSource, RejectionLimit
from pipelines.options.reading import option_value
from tokcore.corpus.fields import LabelNames, label_names
from tokcore.corpus.formats import all_formats, corpus_format
from tokcore.errors import InputError
from tokcore.options import (
    Declared,
    as_typed,
    declared,
    duration,
    min_count_range,
    output_path,
    path,
    shown,
    vocabulary_path,
    work_path,
)

_PATHS = (path, output_path, vocabulary_path, work_path)
_NO_UTF8 = 'a path is not UTF-8, and a job file cannot hold it; rename the file'
_NOT_OF_A_JOB = ('print_job', 'dry_run')

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_HEADER = re.compile(r'\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$')
_KEY = re.compile(r'\s*(?:"([^"]*)"|\'([^\']*)\'|([A-Za-z0-9_-]+))\s*[=.]')

_MOST_BYTES = 8 << 20
"""Fifty thousand paths; what is made of a file takes up to a hundred times as much memory."""

_MOST_PARTS = 16
"""Of a key, as `a.b.c`. Job files have two; time and memory are as the square of them."""

_STRING_OR_COMMENT = re.compile(
    r"""\"{3}(?:[^\\]|\\.)*?(?:\"{3}|\Z) | '{3}.*?(?:'{3}|\Z)
    | "(?:[^"\\\n]|\\.)*"? | '[^'\n]*'? | \#[^\n]*""",
    re.VERBOSE | re.DOTALL,
)
_PART = r'[A-Za-z0-9_-]+'
_LONG_KEY = re.compile(rf'(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{_MOST_PARTS}}}')

_LARGEST = (1 << 63) - 1
"""As TOML has it. Python reads larger numbers, but of some thousand digits makes no text again."""


def job_text(command: Command, given: Mapping[str, object], datasets: Sequence[SplitPaths]) -> str:
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
        tables.setdefault(each.split, []).append(_dataset_table(each))
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


def _dataset_table(given: SplitPaths) -> dict[str, object]:
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


@dataclass(frozen=True)
class TomlFile:
    """A file of TOML.

    Attributes:
        path: for sentences about it.
        text: as it is.
        tables: what it holds.
    """

    path: str
    text: str
    tables: dict[str, object]

    def error(self, what: str, table: str, number: int = 0, key: str | None = None) -> InputError:
        """Returns an error about a key of the so-manieth table of a name, or about the table."""
        line = self._line(table, number, key)
        place = self.path if line is None else f'{self.path}, line {line}'
        return InputError(f'{place}: {what}')

    def _line(self, table: str, number: int, key: str | None) -> int | None:
        """Where a key is written; a guess, good enough to be looked at, in strings of many lines."""
        now, seen = '', dict.fromkeys([table], -1)
        begins = None
        for place, line in enumerate(self.text.splitlines(), 1):
            if header := _HEADER.match(line):
                now = header[2].strip('"\'')
                seen[now] = seen.get(now, -1) + 1
                if (now, seen[now]) == (table, number):
                    begins = place
                    if key is None:
                        return place
            elif found := _KEY.match(line):
                name = next(each for each in found.groups() if each is not None)
                inside = now == table and seen[now] == number
                if (inside and name == key) or (not now and key is None and name == table):
                    return place
        return begins


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
    found = [_read_dataset(toml, split, number, each, folder) for number, each in enumerate(tables)]
    names: set[str] = set()
    for number, each in enumerate(found):
        if len(found) > 1 and not each.dataset:
            raise toml.error('a name is missing: of several datasets each has one', split, number)
        if each.dataset in names:
            what = f'{shown(each.dataset)} is the name of two datasets of {split}'
            raise toml.error(what, split, number, 'name')
        names.add(each.dataset)
    return found


def _read_dataset(
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


def read_toml(path: str) -> TomlFile:
    """Reads a file of TOML.

    Raises:
        InputError: it cannot be read, or is no TOML.
    """
    found, *others = filesystem.find(path)
    if others:
        raise InputError(f'{path} names {len(others) + 1} files, and a job is one; give its file')
    if found.size > _MOST_BYTES:
        raise InputError(
            f'{path} has {found.size:,} bytes, and a job file has at most {_MOST_BYTES:,}; name files '
            'by patterns, as "texts/*.gz"'
        )
    data = filesystem.read_bytes(found.path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f'{path} is no job file: byte {error.start} is no UTF-8; write it as UTF-8'
        ) from error
    _check_keys(path, text)
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f'{path} is no TOML: {error}; mend the file') from error
    except ValueError as error:
        raise InputError(_too_large(path)) from error
    if any(abs(each) > _LARGEST for each in _whole_numbers(tables)):
        raise InputError(_too_large(path))
    return TomlFile(path, text, tables)


def _too_large(path: str) -> str:
    return f'{path} is no TOML: a whole number has more than 64 bits; mend the file'


def _whole_numbers(tables: object) -> Iterator[int]:
    waiting = [tables]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, int):
            yield each


def _check_keys(path: str, text: str) -> None:
    """Raises InputError for a key of so many parts that it would take long to read."""
    # Strings stand for parts too, and what is in them for nothing; line feeds stay.
    plain = _STRING_OR_COMMENT.sub(lambda found: 's' + '\n' * found[0].count('\n'), text)
    if found := _LONG_KEY.search(plain):
        line = plain.count('\n', 0, found.start()) + 1
        raise InputError(
            f'{path}, line {line}: a key has more than {_MOST_PARTS} parts; mend the file'
        )
