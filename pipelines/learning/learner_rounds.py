"""Where a learner on Beam keeps what it has finished: a folder for each search, in a work folder.

Other outputs share the work folder, so a search has an id of its own: the digest of all that its
files depend on, of what it looks for, and of the output that it is for. The folder says what that
is, and counts only if its name is the digest of it.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipelines.files import filesystem
from pipelines.files.checked_files import read_checked, write_checked
from pipelines.files.claims import Claim, sweep_claim
from pipelines.files.folders import delete_known
from pipelines.files.system_errors import system_error
from pipelines.files.work_folder import WORK_FOLDER, delete_own_if_empty
from pipelines.learning.learner_files import LearnerFiles
from tokcore.errors import InputError, OperatingSystemError

_PREFIX = 'learner-'
_LOCK = '.lock'
_FOLDER = re.compile(_PREFIX + r'[0-9a-f]{16}')
_LOCK_FILE = re.compile(_FOLDER.pattern + re.escape(_LOCK))
_ASKED_NAME = 'asked.json'


@dataclass(frozen=True)
class RoundsPlace:
    """Where the rounds for one output are kept.

    Attributes:
        work: a folder that driver and workers reach, which other outputs use too.
        output: tells the output from all others that use it.
    """

    work: str
    output: str

    @classmethod
    def of(cls, folder: str, name: str, work: str | None = None) -> 'RoundsPlace':
        """Returns the place for a file of an output's folder: below `work`, or in `.tokbeam` there.

        The latter goes where the folder goes, so the file's name is all that it is told by.
        """
        if work is None:
            return cls(filesystem.join(folder, WORK_FOLDER), name)
        return cls(work, filesystem.join(folder, name))

    def sweep(self, keep_begun: bool = False) -> None:
        """Deletes the rounds for this output, as far as no other run is at work on them.

        Args:
            keep_begun: whether those stay that there is something to go on with in.
        """
        for name in filter(_FOLDER.fullmatch, _names(self.work)):
            folder = filesystem.join(self.work, name)
            if _output_of(folder, name) == self.output:
                if not (keep_begun and filesystem.exists(LearnerFiles(folder).facts_path)):
                    _delete(folder)
        # Of runs that were killed before they said what they are for; one that is held stays.
        for name in filter(_LOCK_FILE.fullmatch, _names(self.work)):
            lock = filesystem.join(self.work, name)
            if filesystem.is_local(lock) and not os.path.lexists(lock.removesuffix(_LOCK)):
                sweep_claim(lock)
        delete_own_if_empty(self.work)

    @contextlib.contextmanager
    def swept(self) -> Iterator[None]:
        """Leaves no rounds behind a block that makes the output's result, unless they are of use.

        They are where a run was killed, has failed or was refused something by the system, and are
        of none with a whole result, or with a refusal: then the input or the options must change.
        """
        try:
            yield
        except OperatingSystemError:
            self.sweep(keep_begun=True)
            raise
        except InputError:
            self.sweep()
            raise
        self.sweep()


@dataclass(frozen=True)
class KeptRounds:
    """The rounds of one search.

    Attributes:
        place: where they are kept.
        content: all that their files depend on, as JSON takes it; 6b30307 told them by that alone.
        search: what is looked for in them.
    """

    place: RoundsPlace
    content: Mapping[str, object]
    search: Mapping[str, object]

    @property
    def folder(self) -> str:
        """The search's own folder."""
        return filesystem.join(self.place.work, _PREFIX + _id(self._asked))

    @property
    def _earlier_folder(self) -> str:
        return filesystem.join(self.place.work, _PREFIX + _id(self.content))

    @property
    def _asked(self) -> dict[str, object]:
        return {**self.content, **self.search, 'output': self.place.output}

    @contextlib.contextmanager
    def claimed(self) -> Iterator[Claim]:
        """Holds the folder for a block that works in it.

        Raises:
            InputError: another run is at work there, or nothing can be written there.
        """
        with _claim(self.folder) as claim:
            claim.require()
            self._take_up_earlier()
            _delete_links(self.folder)
            asked_path = filesystem.join(self.folder, _ASKED_NAME)
            write_checked(asked_path, json.dumps(self._asked).encode())
            yield claim

    def _take_up_earlier(self) -> None:
        """Gives the folder of 6b30307 its new name; of two searches that want it one gets it."""
        earlier = self._earlier_folder
        if not filesystem.is_local(earlier) or os.path.lexists(self.folder):
            return
        if os.path.isdir(earlier) and not os.path.islink(earlier):
            with contextlib.suppress(InputError):  # then all is made anew, or cannot be
                filesystem.rename(earlier, self.folder)


def _id(asked: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def _claim(folder: str) -> Claim:
    # Beside the folder: it outlives what is deleted there.
    return Claim(folder + _LOCK, folder)


def _delete_links(folder: str) -> None:
    """Deletes links in a folder, or in its place: a run makes none, and would write behind them."""
    if filesystem.is_local(folder):
        delete_known(folder, lambda name: os.path.islink(os.path.join(folder, name)))


def _names(work: str) -> list[str]:
    if not filesystem.is_local(work):
        return sorted({file.name.partition('/')[0] for file in filesystem.list_folder(work)})
    try:
        return sorted(os.listdir(work))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise system_error(error, f'look into {work}') from error


def _output_of(folder: str, name: str) -> str | None:
    """Returns what output a search's folder says it is for; None if it is none."""
    path = filesystem.join(folder, _ASKED_NAME)
    if filesystem.is_local(folder) and os.path.islink(folder) or not filesystem.exists(path):
        return None
    try:
        asked = json.loads(read_checked(path))
        is_own = _PREFIX + _id(asked) == name
    except (InputError, ValueError, RecursionError):
        return None  # nobody's, or damaged: a run that works there writes it anew
    return asked.get('output') if is_own and isinstance(asked, dict) else None


def _delete(folder: str) -> None:
    """Deletes a search's files and its lock, if no other run holds that; last what it says."""
    with contextlib.ExitStack() as stack:
        try:
            claim = stack.enter_context(_claim(folder))
        except InputError:
            return  # it deletes them itself, or goes on with them
        if claim.is_denied:
            return
        LearnerFiles(folder).clear()
    delete_known(folder, {_ASKED_NAME}.__contains__)
