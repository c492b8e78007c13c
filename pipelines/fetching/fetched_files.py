"""Files from the web in the work folder: each is fetched once, by one run at a time.

    WORK/fetched/KEY/NAME           the file, whole
    WORK/fetched/KEY/.fetched.json  its address without secrets, its size and SHA-256
    WORK/fetched/KEY/.part          what came so far of one that is not whole; .part.json beside it

KEY is made of the address. The files stay until somebody deletes them: later runs read them again.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipelines.engines.progress import stage_running, tell
from pipelines.fetching.fetch_events import FetchAwaited, FileFetched
from pipelines.fetching.transfer import Transfer
from pipelines.fetching.web_addresses import WebAddress, is_web_address, web_address
from pipelines.files import filesystem
from pipelines.files.claims import CLAIM_NAME, Claim, HeldError
from tokcore.errors import InputError

_FOLDER = 'fetched'
_RECORD = '.fetched.json'
_PART = '.part'
_LOOK_AGAIN_SECONDS = 0.2


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

    Raises:
        InputError: it is not on this machine.
    """

    def __init__(self, work: str):
        if not filesystem.is_local(work):
            raise InputError(
                f'{work} is no folder of this machine, and what is fetched goes to one; give '
                'such a folder by --work'
            )
        self._folder = filesystem.join(work, _FOLDER)

    def found(self, address: WebAddress) -> FetchedFile | None:
        """Returns a file that was fetched before, with the checksum asked for, if there is one."""
        path = self._path(address, address.file_name)
        try:
            with open(self._path(address, _RECORD), 'rb') as file:
                record = json.load(file)
            size, sha256 = record['bytes'], str(record['sha256'])
            if os.path.getsize(path) != size:
                return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return self._file(address, sha256) if address.sha256 in (None, sha256) else None

    def fetch(self, address: WebAddress) -> FetchedFile:
        """Returns a file, which is fetched if it is not there; another run's is waited for.

        Raises:
            InputError: it cannot be fetched or written, or has another checksum.
        """
        with contextlib.ExitStack() as stack:
            self._claimed(address, stack)
            there = self.found(address)
            if there is not None:
                return there
            with stage_running('fetch'):
                return self._fetch(address)

    def path_of(self, address: WebAddress) -> str:
        """Returns where a file is, or would be."""
        return self._path(address, address.file_name)

    def _fetch(self, address: WebAddress) -> FetchedFile:
        filesystem.delete_file(self._path(address, _RECORD))
        transfer = Transfer(address, self._path(address, _PART))
        came = transfer.run()
        if address.sha256 not in (None, came.sha256):
            transfer.discard()
            raise InputError(
                f'{address.name} has the SHA-256 {came.sha256}, and not {address.sha256} as its '
                'address says; what came was deleted: mend the address, or find out which is right'
            )
        path = self._path(address, address.file_name)
        transfer.move(path)
        record = {'address': address.name, 'bytes': came.bytes, 'sha256': came.sha256}
        text = json.dumps(record, indent=1, sort_keys=True)
        filesystem.write_bytes(self._path(address, _RECORD), f'{text}\n'.encode())
        tell(FileFetched(address.name, came.bytes, path))
        return self._file(address, came.sha256)

    def _claimed(self, address: WebAddress, stack: contextlib.ExitStack) -> None:
        """Holds the claim on a file until the stack ends; waits for a run that has it."""
        has_told = False
        while True:
            try:
                claim = Claim(self._path(address, CLAIM_NAME), address.name, '--work')
                stack.enter_context(claim).require()
                return
            except HeldError as error:
                if not has_told:
                    tell(FetchAwaited(str(error)))
                has_told = True
                time.sleep(_LOOK_AGAIN_SECONDS)

    def _path(self, address: WebAddress, name: str) -> str:
        return filesystem.join(self._folder, address.key, name)

    def _file(self, address: WebAddress, sha256: str) -> FetchedFile:
        return FetchedFile(self.path_of(address), address.name, address.member, sha256)


def fetch_all(paths: Iterable[str], work: str) -> dict[str, FetchedFile]:
    """Returns by their paths the files of those that are addresses; one after another is fetched.

    Raises:
        InputError: as `FetchedFiles`.
    """
    asked = _addresses(paths)
    files = FetchedFiles(work) if asked else None
    return {path: files.fetch(address) for path, address in asked.items()}


def fetched_before(paths: Iterable[str], work: str) -> tuple[dict[str, FetchedFile], list[str]]:
    """Returns by their paths the files of addresses that are there, and a line about each other.

    Nothing is fetched. Raises InputError as `FetchedFiles`.
    """
    asked = _addresses(paths)
    files = FetchedFiles(work) if asked else None
    found = {path: files.found(address) for path, address in asked.items()}
    return {path: file for path, file in found.items() if file is not None}, [
        f'{address.name} is to be fetched to {files.path_of(address)}'
        for path, address in asked.items()
        if found[path] is None
    ]


def _addresses(paths: Iterable[str]) -> Mapping[str, WebAddress]:
    return {path: web_address(path) for path in dict.fromkeys(paths) if is_web_address(path)}
