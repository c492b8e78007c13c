"""Whether there is room on disk for a shuffle's runs and its shards, before any of them is written."""

import os
import shutil
from dataclasses import dataclass

from pipelines.files import filesystem
from pipelines.shuffle.encoded_sample import DiskNeed
from tokcore.errors import FullDiskError

_LEAST_SHARE = 0.5
"""Of what a sample says is needed: with less free a job is refused, with more it begins. Later text
may be so much shorter, or more is left out of it; a job that would fit must not be refused, and one
that does not fit after all ends with a sentence and keeps what is finished."""


def refuse_too_little_room(need: DiskNeed, runs_folder: str, output: str) -> None:
    """Refuses a job for which there is far too little room.

    Args:
        need: what it takes, by a sample of its text.
        runs_folder: where the runs go; those that are there already need no room.
        output: the folder of the shards, perhaps on another disk.

    Raises:
        FullDiskError: there is less than half of what the job seems to need.
    """
    for use in _uses(need, runs_folder, output):
        if use.free < _LEAST_SHARE * use.bytes:
            raise FullDiskError(
                f'about {_mib(use.bytes)} MiB are needed in {use.folder} for {use.what}, by a sample '
                f'of the text, and {use.free >> 20} MiB are free; make room, or give another '
                f'{use.option}'
            )


@dataclass(frozen=True)
class _Use:
    """Bytes that are needed on the disk of a folder, and that are free there."""

    folder: str
    what: str
    option: str
    bytes: int

    @property
    def free(self) -> int:
        return shutil.disk_usage(_existing(self.folder)).free


def _uses(need: DiskNeed, runs_folder: str, output: str) -> list[_Use]:
    """Returns what is needed of each disk of this machine."""
    there = 0
    if not filesystem.is_shared(runs_folder) and os.path.isdir(runs_folder):
        there = sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(runs_folder))
    runs = _Use(runs_folder, 'the shuffle', '--work', max(0, need.runs - there))
    shards = _Use(output, 'the result', '--output', need.result)
    local = [use for use in (runs, shards) if not filesystem.is_shared(use.folder)]
    if len({os.stat(_existing(use.folder)).st_dev for use in local}) == 2 or len(local) < 2:
        return local
    both = 'the shuffle and the result'
    return [_Use(output, both, '--output', runs.bytes + shards.bytes)]


def _existing(folder: str) -> str:
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def _mib(size: int) -> int:
    return -(-size >> 20)
