"""The public surface as a list: `python -m tests.public_surface` writes `tests/public_surface.md`.

With the argument `release` it also writes `tests/public_surface_of_release.txt`, the list of this release.

A name is public if `tokcore` or `pipelines` exports it, and so are the methods and properties of its
class that do not begin with an underscore. The rule: each name of the list that the list of the last
release (`tests/public_surface_of_release.txt`) has not, or has with another signature, and each that
is gone, must be in the first section of `CHANGELOG.md`; of a method its class may be there instead.
"""

import dataclasses
import inspect
import pathlib
import re
import sys
import typing

import pipelines
import tokcore

ROOT = pathlib.Path(__file__).parents[1]
LIST = ROOT / 'tests' / 'public_surface.md'
CHANGES = ROOT / 'CHANGELOG.md'
OF_RELEASE = ROOT / 'tests' / 'public_surface_of_release.txt'

_HEADER = """\
# The public surface

Written by `python -m tests.public_surface`; do not edit it. What begins with an underscore is not
public, nor is any module that is not `tokcore` or `pipelines` itself.
"""


def surface() -> dict[str, str]:
    """Returns the signature of each public name, `''` for a property."""
    names = {}
    for package in (tokcore, pipelines):
        for name in package.__all__:
            value = getattr(package, name)
            whole = f'{package.__name__}.{name}'
            if typing.is_typeddict(value):
                names[whole] = f'({", ".join(sorted(value.__annotations__))})'
            else:
                names[whole] = _signature(value)
                names |= {f'{whole}.{own}': text for own, text in _members(value)}
    return names


def page() -> str:
    """Returns the text of the list."""
    lines = []
    for name, signature in surface().items():
        if name.count('.') == 1:
            lines += ['', f'## {name}', '', f'`{name}{signature}`', '']
        else:
            lines.append(f'- `{name.split(".", 2)[2]}{signature}`')
    return re.sub(r'\n{3,}', '\n\n', '\n'.join([_HEADER, *lines, '']))


def not_mentioned(old: dict[str, str], new: dict[str, str], changes: str) -> list[str]:
    """Returns the names that differ and that the text of the changes does not have."""
    differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    words = set(re.findall(r'\w+', changes))
    return [name for name in differing if words.isdisjoint(name.split('.')[1:])]


def of_release() -> dict[str, str]:
    """Returns the list of the last release."""
    lines = OF_RELEASE.read_text().splitlines()
    return dict(line.split('\t') for line in lines)


def first_section() -> str:
    """Returns the first section of the changelog."""
    return CHANGES.read_text().split('\n## ')[1]


def _members(value: object) -> typing.Iterator[tuple[str, str]]:
    if not inspect.isclass(value):
        return
    if dataclasses.is_dataclass(value):
        own = (field.name for field in dataclasses.fields(value) if not field.name.startswith('_'))
        yield from ((name, '') for name in own)
    for owner in value.__mro__:
        if not owner.__module__.startswith(('tokcore', 'pipelines')):
            continue
        for name, member in vars(owner).items():
            if name.startswith('_') or name == 'expand':
                continue
            if isinstance(member, (classmethod, staticmethod)) or inspect.isfunction(member):
                yield name, _signature(getattr(value, name))
            elif isinstance(member, property) or type(member).__name__ == 'cached_property':
                yield name, ''


def _signature(value: object) -> str:
    if inspect.isclass(value) and issubclass(value, Exception):
        return '(message)'
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ''
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_shown(parameter.default))
        for parameter in signature.parameters.values()
        if parameter.name != 'self'
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


class _Default(str):
    def __repr__(self) -> str:
        return str(self)


def _shown(default: object) -> object:
    if default is inspect.Parameter.empty:
        return default
    plain = isinstance(default, (str, int, float, bool, type(None), tuple))
    return default if plain else _Default('…')


if __name__ == '__main__':
    LIST.write_text(page())
    if sys.argv[1:] == ['release']:
        OF_RELEASE.write_text(''.join(f'{name}\t{text}\n' for name, text in surface().items()))
