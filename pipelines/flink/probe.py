"""Whether a cluster's workers are like this process, and see the output's folder as it does."""

import functools
import os
import pathlib
import platform
import time
import unicodedata
import zlib
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.internal import pickler
from apache_beam.portability import common_urns, python_urns
from apache_beam.portability.api import beam_runner_api_pb2

import pipelines
import tokcore
from tokcore.errors import InputError

_OWN_NAMES = '.tokbeam-'
"""Begins the names of files that are next to an output while a command works: its claim, attempts."""

_SEEN_SECONDS = 5
"""A network filesystem may show a new name some seconds late."""

_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Expected:
    """What a worker must be like.

    Attributes:
        versions: as `own_versions` returns them.
        folder: that it must see; None: none.
        names: of files in the folder that are not on another disk; it must see one of them.
    """

    versions: tuple[tuple[str, str], ...]
    folder: str | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def for_output(cls, output: str | None) -> 'Expected':
        """Returns what is like this process; on an object store no folder is looked for."""
        if output is None or '://' in output:
            return cls(own_versions())
        folder = output if os.path.isdir(output) else os.path.dirname(output)
        names = tuple(name for name in os.listdir(folder) if name.startswith(_OWN_NAMES))
        return cls(own_versions(), folder, names)

    def refuse_others(self) -> None:
        """Raises InputError if this process is not like that."""
        refuse_other_versions(self.versions)
        if self.folder is not None:
            refuse_unseen(self.folder, self.names)


def add_checks(pipeline: beam_runner_api_pb2.Pipeline, expected: Expected) -> None:
    """Makes each step of a pipeline raise InputError in a worker that is not as expected.

    So it takes no job, and no step of one, to try the workers.
    """
    for transform in pipeline.components.transforms.values():
        if transform.spec.urn != common_urns.primitives.PAR_DO.urn:
            continue
        step = beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload)
        if step.do_fn.urn == python_urns.PICKLED_DOFN_INFO:
            step.do_fn.payload = pickler.dumps(_CheckedStep(expected, step.do_fn.payload))
            transform.spec.payload = step.SerializeToString()


@dataclass(frozen=True)
class _CheckedStep:
    """A step as Beam sends it, which becomes the step itself in a worker."""

    expected: Expected
    step: bytes

    def __reduce__(self):
        return _load_step, (self.expected, self.step)


def _load_step(expected: Expected, step: bytes) -> tuple:
    """Returns a step as Beam has it: function, arguments, their names, side inputs, windowing."""
    try:
        expected.refuse_others()
    except InputError as error:
        # Raised here it would not end the job: Flink waits for the worker to take data.
        return _RefuseFn(str(error)), (), {}, [], None
    return pickler.loads(step)


@dataclass
class _RefuseFn(beam.DoFn):
    message: str

    def start_bundle(self) -> None:
        raise InputError(self.message)


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
        ('tokbeam', f'{tokcore.__version__} of sources {_checksum_of_sources():08x}'),
    )


def _checksum_of_sources() -> int:
    """Returns the CRC-32 of all modules, which differs between checkouts too."""
    checksum = 0
    for package in (pipelines, tokcore):
        folder = pathlib.Path(package.__path__[0])
        for path in sorted(folder.rglob('*.py')):
            checksum = zlib.crc32(str(path.relative_to(folder)).encode(), checksum)
            checksum = zlib.crc32(path.read_bytes(), checksum)
    return checksum


def refuse_other_versions(versions: tuple[tuple[str, str], ...]) -> None:
    """Raises InputError, which names the first difference, if this process has other versions."""
    for (name, theirs), (_, own) in zip(versions, own_versions(), strict=True):
        if theirs != own:
            raise InputError(
                f'{name} is {own} for the workers on {platform.node()}, and {theirs} where the '
                'command runs; install the same on both, and start the cluster again if it ran before'
            )


def refuse_unseen(folder: str, names: tuple[str, ...]) -> None:
    """Raises InputError if this process does not see a folder with one of the files, or cannot write.

    Of several one is enough: while a job runs, another command's may go, but not the claim of ours.
    """
    end = time.monotonic() + _SEEN_SECONDS
    while not (is_there := _is_seen(folder, names)) and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    here = platform.node()
    if not is_there:
        raise InputError(
            f'{folder} is not seen by the workers on {here} as where the command runs; give an '
            'output on a filesystem that all machines share, under the same path'
        )
    if not os.access(folder, os.W_OK):
        raise InputError(f'the workers on {here} may not write to {folder}; give them the right')


def _is_seen(folder: str, names: tuple[str, ...]) -> bool:
    if not names:
        return os.path.isdir(folder)
    return any(os.path.lexists(os.path.join(folder, name)) for name in names)
