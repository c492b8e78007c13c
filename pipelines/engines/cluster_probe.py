"""Whether a cluster's workers are like this process, and see the output's folder as it does."""

import functools
import importlib.metadata
import os
import pathlib
import platform
import time
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam

import pipelines
import tokcore
from tokcore.errors import InputError

_OWN_NAMES = '.tokbeam'
"""Begins the names of the files that the tool keeps beside an output: a claim, attempts."""

_SEEN_SECONDS = 5
"""A network filesystem may show a new name some seconds late."""

_LOOK_SECONDS = 0.2


@dataclass
class TryWorkers(beam.PTransform):
    """Raises `InputError` in a worker that has other versions or does not see a folder.

    Attributes:
        folder: that must be there; None: none.
        names: some of the files in it.
        versions: as `own_versions` returns them.
        elements: how many are spread over the workers.
    """

    folder: str | None
    names: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    elements: int

    @classmethod
    def of(cls, output: str | None, elements: int) -> 'TryWorkers':
        """Returns the transform for an output; nothing is looked for on an object store."""
        if output is None or '://' in output:
            return cls(None, (), own_versions(), elements)
        folder = output if os.path.isdir(output) else os.path.dirname(output)
        names = tuple(name for name in os.listdir(folder) if name.startswith(_OWN_NAMES))
        return cls(folder, names, own_versions(), elements)

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        return (
            pipeline
            | beam.Create(range(self.elements))
            | beam.Reshuffle()
            | 'TryWorker' >> beam.ParDo(_TryWorkerFn(self.folder, self.names, self.versions))
        )


@dataclass
class _TryWorkerFn(beam.DoFn):
    folder: str | None
    names: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]

    def process(self, element: int) -> Iterator[int]:
        refuse_other_versions(self.versions)
        if self.folder is not None:
            refuse_unseen(self.folder, self.names)
        yield element


@functools.cache
def own_versions() -> tuple[tuple[str, str], ...]:
    """Returns names and versions of what must be equal in driver and workers.

    They stay those of the first call: a process that workers are forked from calls this when it has
    imported everything, and keeps that when tokbeam is upgraded.
    """
    return (
        ('Python', '.'.join(platform.python_version_tuple()[:2])),
        ('Unicode', unicodedata.unidata_version),
        ('Apache Beam', beam.__version__),
        ('tokbeam', f'{_installed("tokbeam")} of sources {_checksum_of_sources():08x}'),
    )


def _checksum_of_sources() -> int:
    """Returns the CRC-32 of all modules, which tells checkouts apart too."""
    checksum = 0
    for package in (pipelines, tokcore):
        folder = pathlib.Path(package.__path__[0])
        for path in sorted(folder.rglob('*.py')):
            checksum = zlib.crc32(str(path.relative_to(folder)).encode(), checksum)
            checksum = zlib.crc32(path.read_bytes(), checksum)
    return checksum


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return 'not installed'


def refuse_other_versions(versions: tuple[tuple[str, str], ...]) -> None:
    """Raises InputError, which names the first difference, if this process has other versions."""
    for (name, theirs), (_, own) in zip(versions, own_versions(), strict=True):
        if theirs != own:
            raise InputError(
                f'{name} is {own} for the workers on {platform.node()}, and {theirs} where the '
                'command runs; install the same on both, and start the cluster again if it ran before'
            )


def refuse_unseen(folder: str, names: tuple[str, ...]) -> None:
    """Raises InputError if this process does not see a folder with these files, or cannot write."""
    end = time.monotonic() + _SEEN_SECONDS
    while not (is_there := all(os.path.lexists(os.path.join(folder, name)) for name in names)):
        if time.monotonic() >= end:
            break
        time.sleep(_LOOK_SECONDS)
    here = platform.node()
    if not is_there or not os.path.isdir(folder):
        raise InputError(
            f'{folder} is not seen by the workers on {here} as where the command runs; give an '
            'output on a filesystem that all machines share, under the same path'
        )
    if not os.access(folder, os.W_OK):
        raise InputError(f'the workers on {here} may not write to {folder}; give them the right')
