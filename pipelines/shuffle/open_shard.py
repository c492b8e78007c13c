"""One shard written by several threads in turns."""

import contextlib
import math
import threading
from collections.abc import Iterator

import google_crc32c

from pipelines.files import filesystem
from pipelines.files.system_errors import telling
from pipelines.transforms.write_report import WrittenFile
from tokcore.errors import InputError
from tokcore.shuffle.run_merging import MergedRows


class OrderedShardWriter:
    """A shard whose parts are made by several threads at once, and written one after another.

    It has its name when the last part is written; if one fails, nothing of it is left. Parts must be begun in their order, or a thread
    would wait for what nobody makes.

    Args:
        folder: where the shard goes.
        name: of its file.
        parts: how many there are.
    """

    def __init__(self, folder: str, name: str, parts: int):
        self._folder, self._name = folder, name
        self._parts = parts
        self._turn, self._failed = 0, math.inf
        self._changed = threading.Condition()
        self._stack = contextlib.ExitStack()
        self._bytes = self._crc32c = self._examples = 0

    @contextlib.contextmanager
    def part(self, place: int) -> Iterator[None]:
        """Around what makes and writes a part: if it fails, those that wait for it fail too."""
        try:
            yield
        except BaseException:
            with self._changed:
                self._failed = min(self._failed, place)
                self._changed.notify_all()
                self._drop_if_over()
            raise

    def write(self, place: int, merged: MergedRows) -> WrittenFile | None:
        """Writes a part after those before it.

        Returns the shard if that was its last, else None.

        Raises:
            FullDiskError: there is no room for it.
            InputError: it cannot be written otherwise.
            RuntimeError: a part before it failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._turn == place or self._failed < place)
            if self._failed < place:
                raise RuntimeError(f'part {self._failed} of {self._name} was not written')
        path = filesystem.join(self._folder, self._name)
        if place == 0:
            self._stream = self._stack.enter_context(filesystem.create(path))
        with telling(f'write {path}'):
            self._stream.write(merged.records.data)
        self._crc32c = google_crc32c.extend(self._crc32c, merged.records)
        self._bytes += len(merged.records)
        self._examples += merged.rows
        if place + 1 == self._parts:
            self._stack.close()
            return WrittenFile(self._name, self._bytes, self._crc32c, self._examples)
        with self._changed:
            self._turn += 1
            self._changed.notify_all()
            self._drop_if_over()
        return None

    def _drop_if_over(self) -> None:
        """Deletes the half file if the part that is next has failed: on a full disk it takes room."""
        if self._turn == self._failed:
            with contextlib.suppress(_DroppedError, InputError), self._stack.pop_all():
                raise _DroppedError


class _DroppedError(Exception):
    """Ends the writing of a file that is not to be whole."""
