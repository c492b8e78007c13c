"""Replaces one of a job's own files or folders by a link, between two steps of the job.

A step is a system call about a path below the watched folder. Before the step of a given number, one
entry of the folder is moved away, and a link to a file or folder of somebody else gets its name. That
needs no second process, and no moment is left to chance.
"""

import contextlib
import os
import random
import re
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_CALLS = (
    'open', 'stat', 'lstat', 'scandir', 'listdir', 'mkdir', 'rename', 'replace', 'unlink', 'remove',
    'rmdir', 'ftruncate', 'truncate',
)  # fmt: skip
_RANDOM = re.compile(r'[0-9a-f]{16,}')

_VICTIMS = [
    'thesis', 'chapters/1', 'tokbeam.json', 'tokbeam.run.json', '.tokbeam-lock',
    'n-train-00000-of-00001', 'n-train-00001-of-00002', 'rejected/train.invalid_utf8.jsonl', 'train.invalid_utf8.jsonl',
    'plan.json', 'run-000000-0000', 'search.json', 'survey.json', 'round-3/sizes.json', 'sizes.json',
    'counts-00000-of-00032.parquet', 'vocabulary', 'empty/',
]  # fmt: skip


def make_victim(folder: Path) -> Path:
    """Makes a folder of somebody else, with files that have names of the tool's files."""
    for name in _VICTIMS:
        path = folder / name
        if name.endswith('/'):
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'nobody may touch {name}\n')
    return folder


def state_of(folder: Path) -> dict[str, object]:
    """Returns the contents of a folder with the times of files, so that a rewrite shows too."""
    found = {}
    for path in sorted(folder.rglob('*')):
        seen = path.lstat()
        is_file = stat.S_ISREG(seen.st_mode)
        found[str(path.relative_to(folder))] = (
            (path.read_bytes(), seen.st_mtime_ns) if is_file else stat.S_IFMT(seen.st_mode)
        )
    return found


@dataclass
class Planter:
    """Plants one link.

    Attributes:
        folder: the folder that a job works in, an absolute path.
        victim: the folder that links lead to.
        gone: the folder that the replaced entry is moved to; it is made.
        step: the number of the step before which the link is planted; None: no link.
        seed: chooses the entry.
        steps: the number of steps so far.
        planted: the path of the link; None while there is none.
    """

    folder: str
    victim: str
    gone: str
    step: int | None = None
    seed: str = ''
    steps: int = 0
    planted: str | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @contextlib.contextmanager
    def at_work(self) -> Iterator['Planter']:
        """Intercepts the system calls while a block runs."""
        real = {name: getattr(os, name) for name in _CALLS}
        try:
            for name, call in real.items():
                setattr(os, name, self._before(call))
            yield self
        finally:
            for name, call in real.items():
                setattr(os, name, call)

    def _before(self, call: Callable) -> Callable:
        def step_and_call(*arguments, **options):
            with self._lock:
                if self._is_below(*arguments, **options):
                    if self.steps == self.step:
                        self._plant()
                    self.steps += 1
            return call(*arguments, **options)

        return step_and_call

    def _is_below(self, path: object = os.curdir, *_, dir_fd: int | None = None, **options) -> bool:
        at = options.get('src_dir_fd', dir_fd)
        with contextlib.suppress(OSError, ValueError):
            if isinstance(path, int):
                path, at = '', path
            path = os.fsdecode(path)
            if at is not None:
                path = os.path.join(os.readlink(f'/proc/self/fd/{at}'), path)
            return os.path.normpath(path).startswith(self.folder)
        return False

    def _plant(self) -> None:
        """Replaces an entry; the choice does not depend on the random parts of names."""
        self.step = None  # what follows takes steps too
        dice = random.Random(self.seed)
        entries = sorted(self._entries(), key=lambda path: (_RANDOM.sub('', path), path))
        if not entries:
            return
        path = dice.choice(entries)
        name = os.path.basename(path)
        alike = os.path.join(self.victim, name)
        is_file = not os.path.isdir(path)
        if is_file and not os.path.isfile(alike):
            alike = os.path.join(self.victim, 'thesis')
        os.makedirs(self.gone, exist_ok=True)
        os.rename(path, os.path.join(self.gone, name))
        os.symlink(alike if is_file else self.victim, path)
        self.planted = path

    def _entries(self) -> Iterator[str]:
        for base, folders, files in os.walk(self.folder):
            yield from (os.path.join(base, name) for name in (*files, *folders))
