"""A folder in which commands are run, each held to what is promised of every command."""

import hashlib
import os
import shlex
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from forked_commands import LONGEST_SECONDS, MOST_BYTES, Ended, Lane

_SHOWN = 12  # lines of what a command said, or of names, in the text of a violation

Entry = tuple[str, object]  # what it is, and its content, target or number


class Violation(AssertionError):
    """A promise that was not kept."""


class Room:
    """Commands run in `here`; beside it stands what none of them may touch.

    Args:
        folder: an empty folder.
        lane: runs the commands.
        made: a folder with results to take copies of.
    """

    def __init__(self, folder: Path, lane: Lane, made: Path):
        self.folder = folder
        self.made = made
        self.here = folder / 'here'
        self.here.mkdir()
        self.victim = folder / 'victim'
        (self.victim / 'deep').mkdir(parents=True)
        for name in ('precious', 'deep/precious', 'tokbeam.json', 'n-train-00000-of-00002'):
            (self.victim / name).write_text(f'nobody may touch {name}\n')
        self.history: list[str] = []
        self._lane = lane

    def write(self, name: str | bytes, data: bytes) -> Path:
        """Writes a file, with the folders on the way to it."""
        path = self.here / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def run(
        self,
        *arguments: object,
        stdin: bytes | str | None = b'',
        stdout: str | None = '',
        limits: Mapping[str, int] | None = None,
        statuses: Collection[int] = (0, 2),
        may_change: Sequence[str] = (),
        may_change_if: Callable[[str], bool] | None = None,
        may_vanish: Collection[str] = (),
        may_finish: Sequence[str] = (),
        may_keep: Sequence[str] = (),
        imports: bool = False,
        plant: Mapping[str, object] | None = None,
        may_leave: Callable[[str], bool] = lambda path: False,
    ) -> Ended:
        """Runs a command line and checks what is promised of any.

        Args:
            arguments: what follows `tokbeam`.
            stdin: what it reads; or a path, or None for no standard input at all.
            stdout: a path to write to in place of a file that is looked at, or None.
            limits: as for `Lane.start`.
            statuses: how it may end.
            may_change: names below `here` that it may make, replace or delete when it ends with
                0, with all below them.
            may_change_if: in place of `may_change` tells of a path below the room's folder.
            may_vanish: paths below the room's folder that it may delete however it ends.
            may_finish: folders below `here` that may be there after a refusal if they have a
                manifest: those of a stage before.
            may_keep: folders below `here` that may be there after a refusal: work to go on with.
            imports: whether modules in `here` can be imported.
            plant: as for `Lane.start`.
            may_leave: tells of a path below `here`, of an attempt or other work, whether it may be
                there after status 0.
        """
        words = [_word(each) for each in arguments]
        shown = shlex.join(['tokbeam', *words])
        if isinstance(stdin, bytes):
            source = self.folder / 'stdin'
            source.write_bytes(stdin)
            stdin = str(source)
        if stdin != os.devnull:
            shown += f' < {stdin}' if stdin else ' <&-'
        if limits:
            shown = f'ulimit {limits}; {shown}'
        if stdout != '':
            shown += f' > {stdout}' if stdout else ' >&-'
        self.history.append(shown)
        before = entries(self.folder)
        ended = self._lane.run(
            words,
            self.here,
            stdin=stdin,
            stdout=stdout,
            limits=limits,
            imports=imports,
            plant=plant,
        )
        _check_end(ended, statuses)
        changes = _changes(before, entries(self.folder))
        for path in may_vanish:
            if path in changes and changes[path][1] is None:
                del changes[path]
        if ended.status == 0:
            allowed = tuple(f'here/{each}' for each in may_change)
            _check_changes(changes, may_change_if or (lambda path: _is_below(path, allowed)))
            made = [path for path, (_, after) in changes.items() if after is not None]
            left = [
                path
                for path in made
                if '/.tokbeam' in f'/{path}' and not may_leave(path.removeprefix('here/'))
            ]
            if left:
                raise Violation(f'left behind after status 0: {_listed(left)}')
        else:
            finished = [
                f'here/{each}'
                for each in may_finish
                if (self.here / each / 'tokbeam.json').exists()
            ]
            kept = finished + [f'here/{each}' for each in may_keep if (self.here / each).exists()]
            parents = {parent for each in kept for parent in _parents(each)}
            _check_changes(changes, lambda path: _is_below(path, kept) or path in parents)
        return ended


def entries(folder: Path) -> dict[str, Entry]:
    """Returns all that is below a folder, not following links."""
    found: dict[str, Entry] = {}
    for base, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = os.path.join(base, name)
            found[os.path.relpath(path, folder)] = _entry(path)
    return found


def _entry(path: str) -> Entry:
    state = os.lstat(path)
    if stat.S_ISLNK(state.st_mode):
        return 'link', os.readlink(path)
    if stat.S_ISDIR(state.st_mode):
        return 'folder', None
    if not stat.S_ISREG(state.st_mode):
        return 'special', stat.S_IFMT(state.st_mode)
    data = Path(path).read_bytes()
    return 'file', data if len(data) < 64 else hashlib.sha256(data).digest()


def _check_end(ended: Ended, statuses: Collection[int]) -> None:
    said = '\n'.join(ended.stderr.splitlines()[-_SHOWN:])
    if ended.stopped:
        raise Violation(f'stopped after {ended.seconds:.1f} s: {ended.stopped}\n{said}')
    if ended.status not in (0, 2):
        raise Violation(f'status {ended.status}\n{said}')
    if ended.peak > MOST_BYTES or ended.seconds > LONGEST_SECONDS:
        raise Violation(f'{ended.peak >> 20} MiB, {ended.seconds:.1f} s')
    if ended.left_processes:
        raise Violation('processes were left')
    if 'Traceback' in ended.stderr:
        raise Violation(f'a traceback with status {ended.status}\n{said}')
    if ended.status == 2:
        if len(ended.complaints) != 1 or not ended.complaints[0].startswith('tokbeam: '):
            raise Violation(f'{len(ended.complaints)} lines and not one sentence\n{said}')
    if ended.status not in statuses:
        raise Violation(f'status {ended.status} in place of {statuses}\n{said}')


def _changes(
    before: dict[str, Entry], after: dict[str, Entry]
) -> dict[str, tuple[Entry | None, Entry | None]]:
    return {
        path: (before.get(path), after.get(path))
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
    }


def _check_changes(
    changes: dict[str, tuple[Entry | None, Entry | None]], is_allowed: Callable[[str], bool]
) -> None:
    for what, was_there, is_there in [
        ('deleted', True, False),
        ('changed', True, True),
        ('left', False, True),
    ]:
        paths = [
            path
            for path, (before, after) in changes.items()
            if (before is not None, after is not None) == (was_there, is_there)
            and not is_allowed(path)
        ]
        if paths:
            raise Violation(f'{what}: {_listed(paths)}')


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path == each or path.startswith(f'{each}/') for each in folders)


def _parents(path: str) -> list[str]:
    parts = path.split('/')
    return ['/'.join(parts[:count]) for count in range(1, len(parts))]


def _listed(paths: Sequence[str]) -> str:
    more = '' if len(paths) <= _SHOWN else f' and {len(paths) - _SHOWN} more'
    return ', '.join(map(repr, sorted(paths)[:_SHOWN])) + more


def _word(argument: object) -> str:
    return os.fsdecode(argument) if isinstance(argument, (bytes, os.PathLike)) else str(argument)
