"""What Linux's control groups grant this process: how a container's limits reach what runs in it.

A process is in a group of each hierarchy, and every group above it holds too. `/proc/self/cgroup`
names the groups, `/proc/self/mountinfo` where a hierarchy is seen; within a container that is often
its own group alone. Version 2 has one hierarchy, version 1 one for each controller.
"""

import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

ROOT = pathlib.Path('/')

_ESCAPED = re.compile(r'\\([0-7]{3})')


@dataclass(frozen=True)
class Group:
    """A group's folder, and whether it is of version 2."""

    folder: pathlib.Path
    unified: bool

    def numbers(self, name: str) -> list[int | None]:
        """Returns the words of a file of the group, None for each that is no number as `max` is.

        Nothing if the file is missing.
        """
        return [int(word) if re.fullmatch('-?[0-9]+', word) else None for word in self._words(name)]

    def statistics(self, name: str) -> dict[str, int]:
        """Returns the lines `key value` of a file of the group."""
        words = self._words(name)
        return {
            key: int(value) for key, value in zip(words[::2], words[1::2]) if value.isdigit()
        }

    def _words(self, name: str) -> list[str]:
        try:
            return (self.folder / name).read_text().split()
        except (OSError, UnicodeDecodeError):
            return []


def own_groups(controller: str, root: pathlib.Path = ROOT) -> Iterator[Group]:
    """Yields this process's group that a controller manages, and those above it.

    Args:
        controller: 'memory' or 'cpu'.
        root: where the system's files are; another one in tests.
    """
    paths = dict(_group_paths(root))
    for mounted, place, unified, options in _mounts(root):
        key = '' if unified else controller
        if key not in paths or not (unified or controller in options):
            continue
        below = pathlib.PurePosixPath(paths[key])
        # A group from outside of what is mounted here cannot be seen; the mounted one is above it.
        inside = below.relative_to(mounted) if below.is_relative_to(mounted) else ''
        top = root / place.lstrip('/')
        folder = top / inside
        while True:
            yield Group(folder, unified)
            if folder == top:
                break
            folder = folder.parent


def _group_paths(root: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yields each hierarchy's controllers, '' for version 2, and this process's group in it."""
    for line in _lines(root / 'proc/self/cgroup'):
        fields = line.split(':', 2)
        if len(fields) == 3:
            for controller in fields[1].split(','):
                yield controller, fields[2]


def _mounts(root: pathlib.Path) -> Iterator[tuple[str, str, bool, list[str]]]:
    """Yields each mounted hierarchy: the part seen, where, if of version 2, its controllers."""
    for line in _lines(root / 'proc/self/mountinfo'):
        before, _, after = line.partition(' - ')
        fields, kind = before.split(), after.split()
        if len(fields) >= 5 and len(kind) >= 3 and kind[0] in ('cgroup', 'cgroup2'):
            mounted, place = (_ESCAPED.sub(_character, each) for each in fields[3:5])
            yield mounted, place, kind[0] == 'cgroup2', kind[2].split(',')


def _character(match: re.Match) -> str:
    return chr(int(match[1], 8))


def _lines(path: pathlib.Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
