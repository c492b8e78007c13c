"""The page of all commands and options: `python -m tests.option_table` writes `docs/options.md`."""

import html
import pathlib
import re
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
        '| `tokbeam completion SHELL` | prints the completion for bash, zsh or fish |',
        '\n## Options\n',
        '| option | what it does | default | commands |',
        '| --- | --- | --- | --- |',
    ]
    found: dict[tuple[str, ...], list[str]] = {}  # an option that means two things has two rows
    for name, command in commands.items():
        for each in command.options:
            found.setdefault((each.name, _option(each), *_help_and_default(each)), []).append(name)
    for (_, *row), used_by in sorted(found.items()):
        cells = (cell.replace('|', '\\|') for cell in (*row, ', '.join(used_by)))
        lines.append('| ' + ' | '.join(cells) + ' |')
    lines += [
        '\n## Options of the schemes\n',
        'The other schemes refuse these options. `tokbeam help schemes/NAME` explains them.\n',
        '| option | schemes |',
        '| --- | --- |',
    ]
    lines += [f'| `{option}` | {schemes} |' for option, schemes, _ in scheme_table(commands)]
    return '\n'.join([*lines, ''])


def _option(each) -> str:
    """Returns the option and its values; choices are outside of the code, so that the cell can wrap."""
    kind = each.option.kind
    if kind is None:
        return f'`--{each.name}`'
    metavar = each.option.metavar or each.name.upper().replace('-', '_')
    values = [str(value) for value in kind] if isinstance(kind, tuple) else metavar.split('|')
    if len(values) == 1:
        return f'`--{each.name} {values[0]}`'
    return f'`--{each.name}` ' + ', '.join(values)


def _help_and_default(each) -> tuple[str, str]:
    """Returns the help without its default, and the default: as the help says it, or as it is declared."""
    text = html.escape(each.help.replace('%%', '%'), quote=False)
    said = re.findall(r' \(default: ([^()]*)\)', text)
    if len(said) == 1:
        return text.replace(f' (default: {said[0]})', ''), said[0]
    if said:
        return text, ''
    if each.default is MISSING:
        return text, 'required'
    return text, '' if each.default in (None, False, (), '') else f'`{each.default}`'


if __name__ == '__main__':
    PAGE.write_text(page())
