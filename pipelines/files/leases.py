"""Leases: claims on an object store, as objects that only one writer can create.

A holder renews its object while it works. One that was not renewed for `LEASE_SECONDS`, by the store's
clock, is of a driver that has died, and may be taken over: by a write that the store refuses if
anybody else was faster.
"""

import errno
import json
import threading

from pipelines.files.objects import create_if, delete_object, read_version, store_time
from tokcore.errors import InputError
from tokcore.object_stores import Version

LEASE_SECONDS = 300

_RENEWED_EVERY = 30
"""Several renewals may fail before the lease has ended."""

_checked_stores: set[str] = set()


class Lease:
    """An object that this process holds while others cannot.

    Args:
        path: of the object.
        holder: for others, as JSON: who holds it, and an `id` that no other holder has.
    """

    def __init__(self, path: str, holder: dict):
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

    def read(self) -> bytes:
        """Returns what is there now: the holder, or nothing."""
        there = read_version(self._path)
        return b'' if there is None else there[0]

    def release(self) -> None:
        """Ends the lease, unless somebody else has it by now."""
        self._ended.set()
        with self._renewing:
            if _id_of(self.read()) == self._holder['id']:
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
        return there[1].version if there and _id_of(there[0]) == self._holder['id'] else None

    def _write(self, expected: Version | None) -> Version | None:
        # Each renewal has other bytes, since of equal ones a store's etags are equal.
        self._renewals += 1
        data = json.dumps({**self._holder, 'renewals': self._renewals}).encode()
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


def _id_of(data: bytes) -> object:
    try:
        return json.loads(data)['id']
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _without_conditions(path: str) -> InputError:
    return InputError(
        f'the store of {path} does not refuse to write what is there, so that two runs could write one '
        'output at once; give another store'
    )
