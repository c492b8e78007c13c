"""Attempts: a run's own folder inside an output's, from which whole files get their final names.

An attempt says in a file of its own what it is an attempt at, and has its name only once that file
is in it. So what a killed run left is known by what it holds, and a folder or a link of somebody
else's that only looks like an attempt is left alone, or removed as the link that it is.
"""

import contextlib
import json
import os
import re
from collections.abc import Sequence

from pipelines.files import filesystem
from pipelines.files.filesystem import ATTEMPT_PREFIX, attempt_name, join
from pipelines.files.folders import (
    delete_empty_folders,
    delete_known,
    delete_tree,
    delete_within,
    make_folders,
)
from pipelines.files.system_errors import system_error
from tokcore.errors import InputError

_MARK_NAME = '.tokbeam-attempt.json'
_NEW_PREFIX = '.tokbeam-new-'
_UUID = r'[0-9a-f]{32}'
_ATTEMPT = re.compile(re.escape(ATTEMPT_PREFIX) + _UUID)
_NEW = re.compile(re.escape(_NEW_PREFIX) + _UUID)

_MOST_MARK_BYTES = 1 << 20

# What a run of version 0.1.0 at 6b30307, which marked nothing, can have left in an attempt's folder:
# reports, files in the making, results, and a learner's own folders.
_HALF = rf'\.tokbeam-attempt-.+-{_UUID}'
_EARLIER_FILES = [
    'probe', 'line-counts', 'facts', 'rejected-files', 'files', 'shards', 'runs',
    rf'table-{_UUID}',
    r'.+-(train|dev|test)-\d{5,}-of-\d{5,}(\.bucket-\d{8,})?',
    r'vocab\..+\.\d+\.subwords(\.inputs|\.targets)?',
    r'counts-\d{5}-of-\d{5}\.parquet',
    r'(train|dev|test)\.(invalid_utf8|missing_column)\.jsonl',
    r'tokbeam(\.run)?\.json', r'vocabulary\.json',
    rf'substrings-{_UUID}\.parquet',
    _HALF,
]  # fmt: skip
_EARLIER_FILE = re.compile('|'.join(f'(?:{each})' for each in _EARLIER_FILES))
_EARLIER_FOLDER = re.compile(
    rf'overflow|rejected|counts|learner(\.(both|inputs|targets))?|alphabet|\d+-\d+|{_UUID}|{_HALF}'
)


class Attempt:
    """A folder of one run's own inside the output's, swept when the run ends, however it ends.

    Who makes one holds the claim on the output, so what earlier attempts left is nobody's.

    Args:
        folder: the output's.
        names: if given, the output is these files of the folder, where others may be at work.
    """

    def __init__(self, folder: str, names: Sequence[str] = ()):
        self.folder = folder
        self.path = join(folder, attempt_name())
        self._names = tuple(names)

    def __enter__(self) -> 'Attempt':
        self._made: list[str] = []
        try:
            self._made = make_folders(self.folder)
            sweep_attempts(self.folder, self._names)
            self._begin()
        except OSError as error:
            raise system_error(error, f'write to {self.folder}') from error
        except BaseException:
            delete_empty_folders(self._made)
            raise
        return self

    def __exit__(self, *_) -> None:
        _delete_marked(self.path)
        delete_empty_folders(self._made)

    def _begin(self) -> None:
        mark = json.dumps({'tokbeam': 'attempt', 'of': self._names}).encode()
        if not filesystem.is_local(self.folder):
            filesystem.write_bytes(join(self.path, _MARK_NAME), mark)
            return
        name = filesystem.split_path(self.path)[1].removeprefix(ATTEMPT_PREFIX)
        new = join(self.folder, _NEW_PREFIX + name)
        os.mkdir(new)
        try:
            with open(os.path.join(new, _MARK_NAME), 'xb') as file:
                file.write(mark)
            os.rename(new, self.path)
        except BaseException:
            _sweep_unnamed(new)
            raise

    def publish(self, names: Sequence[str]) -> None:
        """Gives whole files of this attempt their final names in the output's folder."""
        for name in names:
            self.publish_as(name, self.folder, name)

    def publish_as(self, source: str, folder: str, name: str) -> None:
        """Gives a whole file of this attempt a final name below a folder.

        Raises:
            InputError: a folder or a link on the way is there.
        """
        target = join(folder, *name.split('/'))
        if filesystem.has_link(folder, name):
            raise InputError(f'{target} lies behind a symbolic link; remove the link')
        if filesystem.is_local(target) and os.path.isdir(target) and not os.path.islink(target):
            raise InputError(f'{target} is a folder where a file of the result goes; move it away')
        filesystem.move(join(self.path, *source.split('/')), target)


def sweep_attempts(folder: str, names: Sequence[str] = ()) -> None:
    """Deletes what killed runs left in an output's folder, or only that of the files named.

    Taken is what says of itself that it is an attempt at this output, what 6b30307 is sure to have
    made for it, and links that have such a name.
    """
    if not filesystem.is_local(folder):
        _sweep_objects(folder, names)
        return
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in list(entries):
            if _is_ours(entry, names):
                _delete_ours(entry)
            elif _NEW.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                _sweep_unnamed(entry.path)


def _is_ours(entry: os.DirEntry, names: Sequence[str]) -> bool:
    of_output = _ATTEMPT.fullmatch(entry.name)
    earlier = _earlier_attempt(names).fullmatch(entry.name)
    if entry.is_symlink():
        is_alike = not names and entry.name.startswith(ATTEMPT_PREFIX)
        return bool(of_output or earlier or is_alike)
    if not entry.is_dir(follow_symlinks=False):
        # Of 6b30307 only: a manifest or a run record that was not whole.
        return bool(earlier and entry.is_file(follow_symlinks=False) and _begins_json(entry.path))
    if of_output:
        return _is_marked(_read_mark(os.path.join(entry.path, _MARK_NAME)), names)
    return bool(earlier) and _is_all_earlier(entry.path, names)


def _delete_ours(entry: os.DirEntry) -> None:
    if not entry.is_dir(follow_symlinks=False):
        filesystem.delete_file(entry.path)
    elif _ATTEMPT.fullmatch(entry.name):
        _delete_marked(entry.path)
    else:
        delete_tree(entry.path)


def _delete_marked(path: str) -> None:
    """Deletes an attempt so that it is known as one at each moment at which this may be killed.

    Its mark goes last, and under the name of an attempt that has nothing but its mark.
    """
    if not filesystem.is_local(path):
        files = filesystem.list_folder(path)
        for file in sorted(files, key=lambda file: file.name == _MARK_NAME):
            filesystem.delete_file(file.path)
        return
    if not os.path.isdir(path):
        return
    delete_within(path, kept=_MARK_NAME)
    above, name = filesystem.split_path(path)
    unnamed = join(above, _NEW_PREFIX + name.removeprefix(ATTEMPT_PREFIX))
    filesystem.rename(path, unnamed)
    _sweep_unnamed(unnamed)


def _sweep_unnamed(path: str) -> None:
    """Deletes an attempt that has no name yet, or no more: it has its mark at most."""
    if set(os.listdir(path)) <= {_MARK_NAME}:
        delete_known(path, {_MARK_NAME}.__contains__)


def _earlier_attempt(names: Sequence[str]) -> re.Pattern:
    of = names or ('run', 'tokbeam.json', 'tokbeam.run.json')
    return re.compile(rf'\.tokbeam-attempt-({"|".join(map(re.escape, of))})-{_UUID}')


def _is_all_earlier(folder: str, names: Sequence[str]) -> bool:
    """Tells whether 6b30307 can have made all that is in a folder."""
    for _, folders, files in os.walk(folder):
        if not all(map(_EARLIER_FOLDER.fullmatch, folders)):
            return False
        if not all(_EARLIER_FILE.fullmatch(name) or name in names for name in files):
            return False
    return True


def _begins_json(path: str) -> bool:
    with filesystem.open_binary(path) as stream:
        return stream.read(1) in (b'', b'{')


def _read_mark(path: str) -> bytes:
    if os.path.islink(path) or not os.path.isfile(path):
        return b''
    with filesystem.open_binary(path) as stream:
        return stream.read(_MOST_MARK_BYTES)


def _is_marked(mark: bytes, names: Sequence[str]) -> bool:
    try:
        return json.loads(mark) == {'tokbeam': 'attempt', 'of': list(names)}
    except (ValueError, RecursionError):
        return False


def _sweep_objects(folder: str, names: Sequence[str]) -> None:
    marks = {
        file.name.partition('/')[0]: file.path
        for file in filesystem.list_folder(folder)
        if _ATTEMPT.fullmatch(file.name.partition('/')[0])
        and file.name.partition('/')[2] == _MARK_NAME
    }
    for name, mark in marks.items():
        if _is_marked(filesystem.read_bytes(mark), names):
            _delete_marked(join(folder, name))
