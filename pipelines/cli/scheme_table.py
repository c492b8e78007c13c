"""Which options belong to which schemes, and which commands take them, as one table."""

from collections.abc import Mapping

from pipelines.options.command_options import Command
from tokcore.options.option_fields import Choice, declared, flag


def scheme_table(commands: Mapping[str, Command]) -> list[tuple[str, str, str]]:
    """Returns (option, schemes, commands) of all options that a scheme brings, in their order."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for command, about in commands.items():
        for kind in (kind for group in about.groups for kind in group.kinds):
            if isinstance(kind, Choice):
                for scheme, chosen in kind.kinds.items():
                    for each in declared(chosen):
                        schemes, takers = found.setdefault(flag(each.name), ([], []))
                        schemes += [scheme] if scheme not in schemes else []
                        takers += [command] if command not in takers else []
    every = next(
        (list(kind.kinds) for each in commands.values() for group in each.groups
         for kind in group.kinds if isinstance(kind, Choice)),
        [],
    )  # fmt: skip
    return [
        (option, 'all' if schemes == every else ', '.join(schemes), ', '.join(takers))
        for option, (schemes, takers) in found.items()
    ]


def as_text(rows: list[tuple[str, str, str]]) -> str:
    """Returns the table as help shows it."""
    rows = [('option', 'schemes', 'commands'), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return ''.join(
        f'  {option:{widths[0]}}  {schemes:{widths[1]}}  {takers}\n' for option, schemes, takers in rows
    )


def as_markdown(rows: list[tuple[str, str, str]]) -> str:
    """Returns the table as the README shows it."""
    lines = ['| option | schemes | commands |', '| --- | --- | --- |']
    lines += [f'| `{option}` | {schemes} | {takers} |' for option, schemes, takers in rows]
    return '\n'.join(lines) + '\n'
