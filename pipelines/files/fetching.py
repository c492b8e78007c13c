"""Files from the web in the work folder: each is fetched once, by one run at a time.

    WORK/fetched/KEY/NAME           the file, whole
    WORK/fetched/KEY/.fetched.json  its address without secrets, its size, time and SHA-256
    WORK/fetched/KEY/.part          what came so far of one that is not whole; its state is in .part.json

KEY is made of the address. The files stay until somebody deletes them: later runs read them again.
A file whose size or time is not the recorded one, or whose address has a SHA-256, is read
once before it is taken, and fetched again if it is another than the one that came.
"""

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pipelines.engines.progress import AT_ONCE, stage_running
from pipelines.files import filesystem
from pipelines.files.claims import CLAIM_NAME, Claim, HeldError
from pipelines.files.local import LocalFolder
from pipelines.files.system_errors import telling
from pipelines.files.transfer import (
    Transfer,
    WebAddress,
    is_web_address,
    read_record,
    regular_state,
    sha256_of,
    web_address,
)
from tokcore.errors import InputError
from tokcore.format_numbers import FETCHED_FILE
from tokcore.process_end import keep

_LOGGER = logging.getLogger(__name__)

_FOLDER = 'fetched'
_RECORD = '.fetched.json'
_PART = '.part'
_LOOK_AGAIN_SECONDS = 0.2

AWAITED_SECONDS = 15 * 60
"""So long another run may fetch a file without a byte more on the disk: it may compute the checksum of
some hundred gigabytes."""


@dataclass(frozen=True)
class FetchedFile:
    """A file that is there.

    Attributes:
        path: of it.
        name: its address, without secrets.
        member: of an archive, or a pattern of members; None for the file itself.
        sha256: of the file.
    """

    path: str
    name: str
    member: str | None
    sha256: str


class FetchedFiles:
    """The files of a work folder.

    Args:
        work: the folder, which need not be there.
        clock: by which other runs are measured.
        wait: for some seconds.

    Raises:
        InputError: it is not on this machine.
    """

    def __init__(
        self,
        work: str,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ):
        if filesystem.is_shared(work):
            raise InputError(
                f'{work} is not a folder of this machine, which files are fetched to; give '
                'such a folder by --work'
            )
        self._work = filesystem.absolute(work)
        self._clock, self._wait = clock, wait

    def found(self, address: WebAddress) -> FetchedFile | None:
        """Returns a file that was fetched before, with the checksum asked for, if there is one.

        Raises:
            InputError: it is there and cannot be read.
        """
        folder = self._path(address)
        missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
        with telling(f'read {folder}'), missing, LocalFolder.open(folder, self._work) as opened:
            return self._found(address, opened)
        return None

    def _found(self, address: WebAddress, folder: LocalFolder) -> FetchedFile | None:
        name, record = address.file_name, read_record(folder, _RECORD)
        sha256, state = record.get('sha256'), regular_state(folder, name)
        if state is None or not isinstance(sha256, str) or address.sha256 not in (None, sha256):
            return None
        if state.st_size != record.get('bytes'):
            return None
        is_untouched = state.st_mtime_ns == record.get('modified_ns')
        is_whole = is_untouched and address.sha256 is None
        if not is_whole and sha256_of(folder, name) != sha256:
            return None
        return self._file(address, sha256)

    def fetch(self, address: WebAddress) -> FetchedFile:
        """Returns a file, which is fetched if it is not there; another run's is waited for.

        Raises:
            InputError: it cannot be fetched or written, or has another checksum.
        """
        there = self.found(address)
        if there is not None:  # also in a folder that may not be written to
            return there
        with contextlib.ExitStack() as stack:
            folder = self._claimed(address, stack)
            with telling(f'read {folder.path}'):
                there = self._found(address, folder)
            if there is not None:
                return there
            if regular_state(folder, address.file_name) is not None:
                _LOGGER.warning(
                    '%s is not as it was fetched, or not what is asked for; %s is fetched again',
                    self.path_of(address),
                    address.name,
                )
            with stage_running('fetch'):
                return self._fetch(address, folder)

    def path_of(self, address: WebAddress) -> str:
        """Returns where a file is, or would be."""
        return self._path(address, address.file_name)

    def _fetch(self, address: WebAddress, folder: LocalFolder) -> FetchedFile:
        with telling(f'delete {self._path(address, _RECORD)}'):
            folder.delete(_RECORD)
        keep('what was fetched')
        transfer = Transfer(address, folder, _PART)
        came = transfer.run()
        if address.sha256 not in (None, came.sha256):
            transfer.discard()
            raise InputError(
                f'{address.name} has the SHA-256 {came.sha256}, and not {address.sha256} as its '
                'address says; what came was deleted: mend the address, or find out which is right'
            )
        transfer.move(address.file_name)
        record = {
            'format': FETCHED_FILE,
            'address': address.name,
            'bytes': came.bytes,
            'modified_ns': came.modified_ns,
            'sha256': came.sha256,
        }
        text = json.dumps(record, indent=1, sort_keys=True)
        with telling(f'write {self._path(address, _RECORD)}'), folder.create(_RECORD) as file:
            file.write(f'{text}\n'.encode())
        _LOGGER.info(
            'fetched %s: %d bytes, in %s, where it stays for later runs until you delete it',
            address.name,
            came.bytes,
            self.path_of(address),
        )
        return self._file(address, came.sha256)

    def _claimed(self, address: WebAddress, stack: contextlib.ExitStack) -> LocalFolder:
        """Returns a file's folder, whose claim the stack holds; waits for a run that has it.

        Raises:
            HeldError: that run makes no progress.
        """
        came, since = None, self._clock()
        has_told = False
        while True:
            try:
                path = self._path(address, CLAIM_NAME)
                claim = stack.enter_context(Claim(path, address.name, '--work', self._work))
                claim.require()
                assert claim.folder is not None  # the work folder is of this machine
                return claim.folder
            except HeldError as error:
                if not has_told:
                    _LOGGER.warning('waiting: %s', error, extra={AT_ONCE: True})
                has_told = True
                if (now_came := self._came(address)) != came:
                    came, since = now_came, self._clock()
                if self._clock() - since >= AWAITED_SECONDS:
                    raise HeldError(
                        f'{error}: for {AWAITED_SECONDS // 60} minutes nothing more of it has come'
                    ) from error
                self._wait(_LOOK_AGAIN_SECONDS)

    def _came(self, address: WebAddress) -> int | None:
        """The bytes of a file that another run fetches."""
        try:
            return os.lstat(self._path(address, _PART)).st_size
        except OSError:
            return None

    def _path(self, address: WebAddress, *names: str) -> str:
        return os.path.join(self._work, _FOLDER, address.key, *names)

    def _file(self, address: WebAddress, sha256: str) -> FetchedFile:
        return FetchedFile(self.path_of(address), address.name, address.member, sha256)


def fetch_all(paths: Iterable[str], work: str) -> dict[str, FetchedFile]:
    """Returns by their paths the files of those that are addresses; one after another is fetched.

    Raises:
        InputError: as `FetchedFiles`.
    """
    asked = _addresses(paths)
    if not asked:
        return {}
    files = FetchedFiles(work)
    return {path: files.fetch(address) for path, address in asked.items()}


def fetched_before(paths: Iterable[str], work: str) -> tuple[dict[str, FetchedFile], list[str]]:
    """Returns by their paths the files of addresses that are there, and a line about each other.

    Nothing is fetched. Raises InputError as `FetchedFiles`.
    """
    asked = _addresses(paths)
    if not asked:
        return {}, []
    files = FetchedFiles(work)
    fetched = {path: files.found(address) for path, address in asked.items()}
    return {path: file for path, file in fetched.items() if file is not None}, [
        f'{address.name} is to be fetched to {files.path_of(address)}'
        for path, address in asked.items()
        if fetched[path] is None
    ]


def _addresses(paths: Iterable[str]) -> Mapping[str, WebAddress]:
    return {path: web_address(path) for path in dict.fromkeys(paths) if is_web_address(path)}
