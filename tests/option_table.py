"""The page of all commands and options: `python -m tests.option_table` writes `docs/options.md`."""

import pathlib
from dataclasses import MISSING

from pipelines.cli.help import scheme_table
from pipelines.options.commands import known_commands

PAGE = pathlib.Path(__file__).parents[1] / 'docs' / 'options.md'

_HEADER = """\
# Commands and options

`tokbeam COMMAND --help` shows the options that most people need, `tokbeam help COMMAND` all of them. In a job file and
in Python, `--min-count 2` is `min_count = 2`. Options of Beam, such as `--runner`, are passed on.

## Commands
"""


def page() -> str:
    """Returns the text of the page, from the declarations of the options."""
    commands = known_commands()
    lines = [_HEADER, '| command | does |', '| --- | --- |']
    lines += [f'| `tokbeam {name}` | {command.summary} |' for name, command in commands.items()]
    lines += [
        '| `tokbeam help TOPIC` | explains formats, filters, schemes, job files, or all options of a command |',
        '| `tokbeam completion SHELL` | prints the completion for bash, zsh or tcsh |',
        '\n## Options\n',
        '| option | default | commands | |',
        '| --- | --- | --- | --- |',
    ]
    found: dict[str, list[str]] = {}
    declared = {}
    for name, command in commands.items():
        for each in command.options:
            found.setdefault(each.name, []).append(name)
            declared.setdefault(each.name, each)
    for name, used_by in sorted(found.items()):
        each = declared[name]
        value = '' if each.option.kind is None else f' {_value(each)}'
        text = each.help.replace('%%', '%')
        row = (f'`--{name}{value}`', _default(each), ', '.join(used_by), text)
        lines.append('| ' + ' | '.join(cell.replace('|', '\\|') for cell in row) + ' |')
    lines += [
        '\n## Options of the schemes\n',
        'The other schemes refuse these options. `tokbeam help schemes/NAME` explains them.\n',
        '| option | schemes | commands |',
        '| --- | --- | --- |',
    ]
    lines += [
        f'| `{option}` | {schemes} | {takers} |'
        for option, schemes, takers in scheme_table(commands)
    ]
    return '\n'.join([*lines, ''])


def _value(each) -> str:
    if isinstance(each.option.kind, tuple):
        return '|'.join(map(str, each.option.kind))
    return each.option.metavar or each.name.upper().replace('-', '_')


def _default(each) -> str:
    if each.default is MISSING:
        return 'required'
    if each.default in (None, False, ()):
        return ''
    return f'`{each.default}`'


if __name__ == '__main__':
    PAGE.write_text(page())
