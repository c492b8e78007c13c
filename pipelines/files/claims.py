"""Who may work on an output: one run at a time, told apart by a lock or a claim.

On a local filesystem it is a lock that the system gives back when the process dies, however it dies.
Elsewhere nothing can be locked: a claim is written there, and looked at again before anything gets
its final name, so that of two runs that began at the same moment one stops.
"""

import contextlib
import datetime
import errno
import json
import os
import platform
import stat
import uuid
from dataclasses import asdict, dataclass

import psutil

from pipelines.files import filesystem
from pipelines.files.folders import delete_empty_folders, make_folders
from pipelines.files.system_errors import system_error
from tokcore.errors import InputError

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None

CLAIM_NAME = '.tokbeam-lock'
"""The file in a folder of the tool's own that its holder keeps locked; gone when nobody works there."""

_CANNOT_LOCK = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL, errno.EBADF}
"""What a filesystem without locks says, as some network filesystems do."""

_MOST_BYTES = 4096


@dataclass(frozen=True)
class _Holder:
    """Who holds a claim: a process of a host, and since when."""

    id: str
    pid: int
    host: str
    began: float  # when the process began, seconds since 1970: a pid may come again
    since: str

    @classmethod
    def this_process(cls) -> '_Holder':
        now = datetime.datetime.now(datetime.UTC)
        began = psutil.Process().create_time()
        return cls(uuid.uuid4().hex, os.getpid(), platform.node(), began, f'{now:%Y-%m-%d %H:%M:%S} UTC')

    @classmethod
    def from_json(cls, data: bytes) -> '_Holder | None':
        """Returns None for bytes that say of nobody: of a holder that has only just begun to write."""
        try:
            fields = json.loads(data)
            return cls(
                str(fields['id']),
                int(fields['pid']),
                str(fields['host']),
                float(fields['began']),
                str(fields['since']),
            )
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def is_gone(self) -> bool:
        """Tells whether this process is of this host and surely no more."""
        if self.host != platform.node():
            return False
        try:
            return abs(psutil.Process(self.pid).create_time() - self.began) > 1
        except psutil.Error:
            return not psutil.pid_exists(self.pid)

    def __str__(self) -> str:
        return f'process {self.pid} on host {self.host} since {self.since}'


class HeldError(InputError):
    """Another run holds a claim."""


class Claim:
    """The right to write to something, held while the block runs.

    A folder that may not be written to gives no claim and no error yet: a result in it can still
    be found to be done. `require` and `check` tell.

    Args:
        path: the file of the claim, gone at the end; folders on the way to it are made, and deleted
            if they are empty then.
        what: names what is claimed, in errors.
        instead: the option by which another may be given.

    Raises:
        HeldError: another run holds it.
        InputError: something else is in its place.
    """

    def __init__(self, path: str, what: str, instead: str = '--output'):
        self._path, self._what, self._instead = path, what, instead
        self._lock: int | None = None
        self._written: _Holder | None = None
        self._denied: OSError | None = None

    def __enter__(self) -> 'Claim':
        self._made: list[str] = []
        try:
            self._take()
        except OSError as error:
            self._denied = error
        except BaseException:
            delete_empty_folders(self._made)
            raise
        return self

    def __exit__(self, *_) -> None:
        if self._lock is not None:
            if self._is_held():
                # Before it is let go: who opened the file meanwhile finds that it is no more.
                os.unlink(self._path)
            os.close(self._lock)
        elif self._written is not None and self._is_held():
            filesystem.delete_file(self._path)
        delete_empty_folders(self._made)

    @property
    def is_denied(self) -> bool:
        """Whether there is no claim, since nothing can be written there."""
        return self._denied is not None

    def require(self) -> None:
        """Raises InputError if there is no claim, since nothing can be written there."""
        if self._denied is not None:
            folder = filesystem.split_path(self._path)[0]
            raise system_error(self._denied, f'write to {folder}') from self._denied

    def check(self) -> None:
        """Raises InputError if the claim was lost: nothing may get its final name any more."""
        self.require()
        if not self._is_held():
            holder = _Holder.from_json(self._read())
            raise InputError(
                f'{self._what} was taken over by {holder or "another run"}, which deleted or '
                f'replaced {self._path}; nothing was published, run again when that is done'
            )

    def _is_held(self) -> bool:
        if self._lock is not None:
            return self._is_of_path(self._lock)
        holder = _Holder.from_json(self._read())
        return holder is not None and holder.id == self._written.id

    def _is_of_path(self, descriptor: int) -> bool:
        try:
            there = os.lstat(self._path)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(descriptor))

    def _take(self) -> None:
        while True:
            self._made += make_folders(filesystem.split_path(self._path)[0])
            try:
                if fcntl is None or not filesystem.is_local(self._path) or not self._try_lock():
                    self._write()
                return
            except FileNotFoundError:
                pass  # a run that ended in this moment deleted the folder, which was empty

    def _try_lock(self) -> bool:
        """Takes the lock; False if the filesystem has none. Raises InputError if it is held."""
        while True:
            descriptor = self._open()
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = _Holder.from_json(os.pread(descriptor, _MOST_BYTES, 0))
                os.close(descriptor)
                raise self._held_by(holder) from None
            except OSError as error:
                os.close(descriptor)
                if error.errno in _CANNOT_LOCK:
                    return False
                raise
            if self._is_of_path(descriptor):
                break
            os.close(descriptor)  # of a holder that ended in this moment
        os.ftruncate(descriptor, 0)
        with contextlib.suppress(OSError):  # on a full disk: only the sentence says less
            os.pwrite(descriptor, _Holder.this_process().to_json(), 0)
        self._lock = descriptor
        return True

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(self._path, flags, 0o644)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            # Somebody's link: it is removed and not followed.
            os.unlink(self._path)
            return self._open()
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise InputError(f'{self._path} is not a regular file; remove it')
        return descriptor

    def _held_by(self, holder: _Holder | None, remedy: str = '') -> HeldError:
        return HeldError(
            f'{self._what} is being written by {holder or "another process"}; wait until it is '
            f'done, or give another {self._instead}{remedy}'
        )

    def _write(self) -> None:
        holder = _Holder.from_json(self._read())
        if holder is not None and not holder.is_gone():
            raise self._held_by(
                holder, f' (if that process is no more, delete {self._path})'
            )
        self._written = _Holder.this_process()
        filesystem.write_bytes(self._path, self._written.to_json())

    def _read(self) -> bytes:
        return filesystem.read_bytes(self._path) if filesystem.exists(self._path) else b''


def sweep_claim(path: str) -> None:
    """Deletes the local file of a claim that a killed run left; not if a run holds it."""
    with contextlib.suppress(InputError), Claim(path, path):
        pass
