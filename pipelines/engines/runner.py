"""What the rest of the house asks of a runner: answered once, when it is chosen."""

from collections.abc import Callable
from dataclasses import dataclass

import grpc
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineRunner

from pipelines.machine.process_memory import available_bytes, resident_bytes

_PROCESS_BYTES = 320 << 20
"""A worker process before its first block: imports, kernels, a vocabulary."""

_STILL_TO_COME = 96 << 20
"""What this process grows by before its first block: kernels that are loaded, Beam's plan."""

# What submitting a job to a cluster fails with where the options or the cluster are to blame.
_SUBMISSION_ERRORS = (
    OSError,
    RuntimeError,
    ValueError,
    ImportError,
    NotImplementedError,
    grpc.RpcError,
    grpc.FutureTimeoutError,
)


@dataclass(frozen=True)
class Runner:
    """A runner with its options; by default a cluster of which nothing else is known.

    Attributes:
        name: as Beam knows it.
        settings: options of Beam that it sets, whatever was given, by their names with dashes.
        processes: that work at once, as far as the options tell.
        workers: work items in flight in each, unless `--workers` gives another number.
        is_local: whether what is shuffled waits in this machine's memory.
        in_process: whether all work is done in this process.
        can_cancel: whether a pipeline that runs can be cancelled.
        through_files: whether it shuffles through files unless asked otherwise.
        has_containers: whether workers are containers unless something else is asked for.
        submission_errors: what says that the options or the cluster are to blame if a job is not
            taken.
        prepare: called before each pipeline.
        beam_runner: gives the runner for these options, or None if Beam makes it by its name.
        refuse_shuffle: raises InputError if the runner's own shuffle cannot take so many bytes of
            records, of so many work items.
        refuse_unasked: raises InputError if a job server, of the runner of this name, would be
            fetched from the network that nobody asked for, or is missing.
    """

    name: str
    settings: tuple[tuple[str, object], ...] = ()
    processes: int = 1
    workers: int = 1
    is_local: bool = False
    in_process: bool = False
    can_cancel: bool = True
    through_files: bool = False
    has_containers: bool = False
    submission_errors: tuple[type[Exception], ...] = _SUBMISSION_ERRORS
    prepare: Callable[[], None] = lambda: None
    beam_runner: Callable[[tuple[str, ...]], PipelineRunner | None] = lambda flags: None
    refuse_shuffle: Callable[[int, int], None] = lambda size, items: None
    refuse_unasked: Callable[[str, PipelineOptions], None] = lambda name, options: None

    def memory_share(self, limit: int | None) -> int | None:
        """Returns the bytes that a process has for its work, None where nobody here knows.

        Args:
            limit: of the whole job; None for what is free.
        """
        if not self.is_local:
            return None if limit is None else max(0, limit // self.processes - _PROCESS_BYTES)
        others = 0 if self.in_process else self.processes * _PROCESS_BYTES
        if limit is None:
            return (available_bytes() - others) // self.processes
        here = resident_bytes() + (_STILL_TO_COME if self.in_process else others)
        return max(0, limit - here) // self.processes
