"""Claims, by which one run at a time writes an output.

On a local filesystem a claim is a lock, which the system releases when the process dies. Where only Beam
reaches, a claim is a file, which is read again before any file gets its final name, so that of two runs
that began at the same moment one stops.

An object store has no locks. There a claim is a lease, an object that only one writer can create: a
holder renews it while it works. One that was not renewed for `LEASE_SECONDS`, by the store's clock, is of
a driver that has died, and may be taken over: by a write that the store refuses if anybody else was
faster.
"""

import contextlib
import datetime
import errno
import json
import os
import platform
import threading
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from pipelines.files import filesystem
from pipelines.files.filesystem import delete_empty_folders, make_folders
from pipelines.files.local import LinkError, LocalFolder
from pipelines.files.objects import create_if, delete_object, read_version, store_time
from pipelines.files.system_errors import system_error
from tokcore.errors import InputError, OperatingSystemError
from tokcore.object_stores import Version, is_object
from tokcore.process_end import UndoneAtEnd

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]  # a module is no Optional

CLAIM_NAME = '.tokbeam-lock'
"""The file that the holder of a folder keeps locked in it; deleted when the holder is done."""

_CANNOT_LOCK = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL, errno.EBADF}
"""What a filesystem without locks says, as some network filesystems do."""

_MOST_BYTES = 4096


class HeldError(InputError):
    """Another run holds a claim."""


class LostError(InputError):
    """Another run has taken over a claim: nothing that it works on may be deleted."""


@dataclass(frozen=True)
class _Holder:
    """Who holds a claim: a process of a host, and since when."""

    id: str
    pid: int
    host: str
    since: str

    @classmethod
    def this_process(cls) -> '_Holder':
        now = datetime.datetime.now(datetime.timezone.utc)
        return cls(uuid.uuid4().hex, os.getpid(), platform.node(), f'{now:%Y-%m-%d %H:%M:%S} UTC')

    @classmethod
    def from_json(cls, data: bytes) -> '_Holder | None':
        """Returns None for bytes that name nobody, as of a holder that has only begun to write."""
        try:
            fields = json.loads(data)
            return cls(
                str(fields['id']), int(fields['pid']), str(fields['host']), str(fields['since'])
            )
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def __str__(self) -> str:
        return f'process {self.pid} on host {self.host} since {self.since}'


class Claim:
    """The right to write to something, held while the block runs.

    A folder that may not be written to gives no claim and no error yet: a result in it can still
    be found to be done. `require` and `check` raise the error.

    Args:
        path: the file of the claim, gone at the end; folders on the way to it are made, and deleted
            if they are empty then.
        what: names what is claimed, in errors.
        instead: the option by which another may be given.
        root: a folder above, below which no link is followed; None: as `LocalFolder.open` has it.

    Attributes:
        folder: the one that the file is in, held open whatever becomes of its path; None where
            there is no claim, or none on this machine.

    Raises:
        HeldError: another run holds it.
        InputError: something else is in its place.
    """

    def __init__(self, path: str, what: str, instead: str = '--output', root: str | None = None):
        self._path, self._what, self._instead, self._root = path, what, instead, root
        self._name = os.path.basename(path)
        self.folder: LocalFolder | None = None
        self._lock: int | None = None
        self._lease: Lease | None = None
        self._written: _Holder | None = None
        self._denied: OSError | None = None

    def __enter__(self) -> 'Claim':
        self._made: list[str] = []
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(UndoneAtEnd(lambda: None, lambda _: self._release()))
        try:
            self._take()
        except OSError as error:
            self._denied = error
            self._let_go_of_folder()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_) -> None:
        self._stack.close()

    def _release(self) -> None:
        if self._lock is not None:
            if self._is_of_path(self._lock):
                # Before the lock is released: whoever has opened the file finds that it is gone.
                self._opened.delete(self._name)
            os.close(self._lock)
        elif self._lease is not None:
            with contextlib.suppress(OSError, OperatingSystemError):  # it ends by itself
                self._lease.release()
        elif self._written is not None and self._is_held():
            filesystem.delete_file(self._path)
        self._let_go_of_folder()
        delete_empty_folders(self._made)

    def _let_go_of_folder(self) -> None:
        if self.folder is not None:
            self.folder.close()
            self.folder = None

    @property
    def _opened(self) -> LocalFolder:
        assert self.folder is not None  # with a lock there is a folder
        return self.folder

    @property
    def is_denied(self) -> bool:
        """Whether there is no claim, since nothing can be written there."""
        return self._denied is not None

    def require(self) -> None:
        """Raises InputError if there is no claim, since nothing can be written there."""
        if self._denied is not None:
            folder = os.path.dirname(self._path)
            raise system_error(self._denied, f'write to {folder}') from self._denied

    def check(self) -> None:
        """Raises LostError if the claim was lost: nothing may get its final name any more."""
        self.require()
        if not self._is_held():
            holder = _Holder.from_json(self._read())
            raise LostError(
                f'{self._what} was taken over by {holder or "another run"}, which deleted or '
                f'replaced {self._path}; nothing was published, run again when that is done'
            )

    def _is_held(self) -> bool:
        if self.folder is not None and not self.folder.is_at_its_path():
            return False
        if self._lock is not None:
            return self._is_of_path(self._lock)
        return self._written is not None and _Holder.from_json(self._read()) == self._written

    def _is_of_path(self, descriptor: int) -> bool:
        there = self._opened.state(self._name)
        return there is not None and os.path.samestat(there, os.fstat(descriptor))

    def _take(self) -> None:
        if is_object(self._path):
            self._take_lease()
            return
        above = os.path.dirname(self._path)
        while True:
            self._made += make_folders(above, self._root)
            try:
                if not filesystem.is_shared(above):
                    self.folder = LocalFolder.open(above, self._root)
                if fcntl is None or self.folder is None or not self._try_lock():
                    self._write()
                return
            except FileNotFoundError:
                # A run that ended in this moment deleted the folder, which was empty.
                self._let_go_of_folder()

    def _take_lease(self) -> None:
        written = _Holder.this_process()
        lease = Lease(self._path, written)
        there = lease.take()
        if there is not None:
            raise self._held_by(
                _Holder.from_json(there),
                f' (if that process has died, wait {LEASE_SECONDS // 60} minutes)',
            )
        self._written, self._lease = written, lease

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
            os.close(descriptor)  # it is of a holder that ended in this moment
        os.ftruncate(descriptor, 0)
        with contextlib.suppress(OSError):  # on a full disk: only the sentence says less
            os.pwrite(descriptor, _Holder.this_process().to_json(), 0)
        self._lock = descriptor
        return True

    def _open(self) -> int:
        while True:
            try:
                return self._opened.open_file(self._name, os.O_RDWR | os.O_CREAT, 0o644)
            except LinkError:
                self._opened.delete(self._name)

    def _held_by(self, holder: _Holder | None, remedy: str = '') -> HeldError:
        return HeldError(
            f'{self._what} is being written by {holder or "another process"}; wait until it is '
            f'done, or give another {self._instead}{remedy}'
        )

    def _write(self) -> None:
        holder = _Holder.from_json(self._read())
        if holder is not None:
            raise self._held_by(holder, f' (if that process has died, delete {self._path})')
        self._written = _Holder.this_process()
        filesystem.write_bytes(self._path, self._written.to_json())

    def _read(self) -> bytes:
        if self._lease is not None:
            there = read_version(self._path)
            return b'' if there is None else there[0]
        return filesystem.read_bytes(self._path) if filesystem.exists(self._path) else b''


@contextlib.contextmanager
def loss_named(claims: Iterable[Claim]) -> Iterator[None]:
    """Raises LostError in place of what a block raises if one of the claims was lost by then.

    The run that has taken it over deletes what this one has begun, and the error is about that.
    """
    try:
        yield
    except Exception:
        for claim in claims:
            # Where the store does not answer, the first error is raised.
            with contextlib.suppress(OSError, OperatingSystemError):
                claim.check()
        raise


def sweep_claim(path: str) -> None:
    """Deletes the local file of a claim that a killed run left; not if a run holds it."""
    with contextlib.suppress(InputError), Claim(path, path):
        pass


LEASE_SECONDS = 300

_RENEWED_EVERY = 30
"""Several renewals may fail before the lease has ended."""

_checked_stores: set[str] = set()


class Lease:
    """An object that this process holds while others cannot.

    Args:
        path: of the object.
        holder: who holds it, for others.
    """

    def __init__(self, path: str, holder: _Holder):
        self._path, self._holder = path, holder
        self._renewals = 0
        self._ended = threading.Event()
        self._renewing = threading.Lock()

    def take(self) -> bytes | None:
        """Takes the lease. Returns None, or the holder that has it.

        Raises:
            InputError: the store cannot refuse a second writer.
            OSError: it cannot be written.
        """
        while True:
            version = self._write(None)
            if version is not None:
                self._check_store()
                break
            version = self._own_version()
            if version is not None:
                break
            there = read_version(self._path)
            if there is None:
                continue  # its holder has ended in this moment
            data, state = there
            # A process is never looked for: another machine or container may have its name and number.
            if store_time(self._path) - state.modified <= LEASE_SECONDS:
                return data
            version = self._write(state.version)
            if version is not None:
                break
        self._version = version
        renewing = threading.Thread(target=self._renew, name='renew-lease', daemon=True)
        renewing.start()
        return None

    def release(self) -> None:
        """Ends the lease, unless somebody else has it by now."""
        self._ended.set()
        with self._renewing:
            if self._own_version() is not None:
                delete_object(self._path)

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWED_EVERY):
            with self._renewing:
                if self._ended.is_set():
                    return
                try:
                    version = self._write(self._version) or self._own_version()
                except (OSError, InputError):
                    continue  # the next one may be possible; whether it is held is looked up
                if version is None:
                    return
                self._version = version

    def _own_version(self) -> Version | None:
        """Returns the version that is there, if it is this holder's: an answer may have got lost."""
        there = read_version(self._path)
        return there[1].version if there and _Holder.from_json(there[0]) == self._holder else None

    def _write(self, expected: Version | None) -> Version | None:
        # Each renewal has other bytes, since of equal ones a store's etags are equal.
        self._renewals += 1
        data = json.dumps({**asdict(self._holder), 'renewals': self._renewals}).encode()
        try:
            return create_if(self._path, data, expected)
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                raise _without_conditions(self._path) from None
            raise

    def _check_store(self) -> None:
        """Refuses a store that overwrites what it was only to create, as some do."""
        store = self._path.split('/')[2]
        if store in _checked_stores:
            return
        if self._write(None) is not None:
            delete_object(self._path)
            raise _without_conditions(self._path)
        _checked_stores.add(store)


def _without_conditions(path: str) -> InputError:
    return InputError(
        f'the store of {path} does not refuse to write what is there, so that two runs could write one '
        'output at once; give another store'
    )
