"""Archives that processes of their own list while this one imports Beam.

To list an archive that is compressed, all of it is read, for a gigabyte nearly as long as it takes to
import Beam; and of the threads of one Python process only one runs at a time.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable

from tokcore.corpus.archives import Entry, archive_and_member
from tokcore.corpus.contents import ZIP
from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.storage import compression_of
from tokcore.regular_files import open_regular

_LEAST_BYTES = 8 << 20
"""Of an archive: a smaller one is listed in less time than a process needs to start."""

_LIST = """
import os, pickle, sys, threading
sys.path[:], path = pickle.load(sys.stdin.buffer)
# The process that wants the list holds the other end of the pipe for as long as it lives.
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(1)), daemon=True).start()
from tokcore.corpus.archives import archive_file, tar_entries
from tokcore.corpus.looks import Looks
def opened(path): return open(path, 'rb')
status = os.stat(path)
state = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
looks = Looks(opened)
archive = archive_file(path, path, status.st_size, looks.at(path))
sys.stdout.buffer.write(pickle.dumps((state, tar_entries(archive, opened, looks))))
sys.stdout.buffer.flush()
os._exit(0)
"""


def begin_lists(paths: Iterable[str]) -> None:
    """Begins to list an archive whose members some paths name, if that saves time.

    It is one archive at most: importing takes one core, and small machines have two.

    Args:
        paths: `ARCHIVE!MEMBER`, or any other; those are passed over.
    """
    for path in paths:
        named = archive_and_member(path, os.path.isfile)
        if named is None or os.path.getsize(named[0]) < _LEAST_BYTES or not sys.executable:
            continue
        archive = os.path.abspath(named[0])
        if compression_of(archive, open_regular) != ZIP:
            _begin(archive)
            return


def begun_list(archive: CorpusFile) -> list[Entry] | None:
    """Returns the list of the members of an archive, when it is ready.

    None if none was begun, or if the archive has changed since or cannot be read: whoever reads it
    then finds out why.
    """
    process = _begun.pop(archive.path, None)
    if process is None:
        return None
    assert process.stdout is not None  # it is a pipe
    with process:
        listed = process.stdout.read()
    if process.returncode:
        return None
    state, entries = pickle.loads(listed)
    with contextlib.suppress(OSError):
        status = os.stat(archive.path)
        if state == (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns):
            return entries
    return None


_begun: dict[str, subprocess.Popen[bytes]] = {}


def _begin(archive: str) -> None:
    # Without a list that was begun, it is made later.
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, '-c', _LIST],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None  # it is a pipe
        process.stdin.write(pickle.dumps((sys.path, archive)))
        process.stdin.flush()
        _begun[archive] = process
