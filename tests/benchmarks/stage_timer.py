"""Times the stages of a command that runs in this process.

The program has no timers, because they would cost time. While a `StageTimer` times, it replaces the
functions of each stage by wrapped ones. A stage's time is processor time of the thread, without the
stages that it calls.
"""

import contextlib
import importlib
import inspect
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any
from unittest import mock

import numpy as np

_STAGES = """
read text | read text | pipelines.transforms.read:read_items
CRC32C of {} | crc32c {} | google_crc32c:value google_crc32c:extend
find lines | scan text | tokcore.corpus.line_rows:line_bounds
normalize | scan text | tokcore.text.normalizers:UnstrippedLines.apply
normalize | scan text | tokcore.text.normalizers:StrippedLines.apply
normalize | scan text | tokcore.text.normalizers:_T2tLines.apply

find, hash and count tokens | scan text, near-look-up tokens | tokcore.counts.counting:count_rows
partition tables || tokcore.counts.tables:partition_table tokcore.counts.tables:concatenate_tables
write tables || pipelines.transforms.count_tokens:write_counts_file

read tables || pipelines.artifacts.counts:read_counts
escape tokens || tokcore.learning.ranked_text:escape_tokens
make the trie || tokcore.learning.pruned_trie:PrunedSuffixTrie.__init__
make the trie || tokcore.learning.pruned_trie:PrunedSuffixTrie.at_least
make the trie || tokcore.learning.suffix_trie:FullSuffixTrie.__init__
make the trie || tokcore.learning.suffix_trie:FullSuffixTrie.at_least
count segments | scan arrays | tokcore.learning.suffix_trie:_weigh_segment_starts
choose subtokens || tokcore.learning.suffix_trie:select_first tokcore.learning.suffix_trie:select_next
vocabulary file || tokcore.subword.text_encoder:dump_vocabulary

text to ids | scan text, near-look-up tokens, copy ids | tokcore.encoding.encoder:encode_rows
order keys | copy keys | tokcore.corpus.order_keys:order_keys
frame: sizes | scan ids | tokcore.records.tfrecord:_add_entry_sizes
frame: heads || tokcore.records.tfrecord:_add_frame_sizes tokcore.records.tfrecord:_put_headers
frame: varints | copy records | tokcore.records.tfrecord:_put_entries
frame: CRC32C | crc32c records | tokcore.records.tfrecord:_put_footers
fill the run buffer | first-copy records | tokcore.records.sorted_runs:RunBuffer.add
sort rows of {} | look-up rows, look-up rows | tokcore.kernels.sorting:SortedRows.of
gather rows of {} | copy records, far-look-up rows | tokcore.kernels.sorting:_gather_rows
read runs | read runs | tokcore.records.sorted_runs:_read_range
write {} | write {} | pipelines.files.local:_FileInPieces.write
SHA-256 of {} | sha256 {} | tokcore.reading.checking:Sums.add
"""
"""Name | needs | functions. `{}` stands for a kind of file. A need is a limit of the machine and its
unit: "copy records" is the time to copy the bytes of the records. Functions are `module:function` or
`module:Class.method`."""


@dataclass(frozen=True)
class Stage:
    """A line of the table."""

    name: str
    needs: tuple[tuple[str, str], ...]
    """The least that it has to do, as (limit, unit) pairs; empty if that is not known."""
    functions: tuple[str, ...]

    def for_file(self, file: str) -> 'Stage':
        """Returns the stage for a kind of file, in place of `{}`."""
        needs = tuple((limit, unit.format(file)) for limit, unit in self.needs)
        return Stage(self.name.format(file), needs, self.functions)


def _stages() -> Iterator[Stage]:
    functions_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in filter(None, _STAGES.splitlines()):
        name, needs, functions = (part.strip() for part in line.split('|'))
        functions_of[name, needs] += functions.split()
    for (name, needs), functions in functions_of.items():
        pairs = tuple(tuple(need.split()) for need in needs.split(',') if need)
        yield Stage(name, pairs, tuple(functions))


STAGES = tuple(_stages())

_FILES = {
    'tokcore.records.sorted_runs:write_run': 'runs',
    'tokcore.records.sorted_runs:RunBuffer.sorted_rows': 'runs',
    'tokcore.records.sorted_runs:merge_buckets': 'merged runs',
    'pipelines.shuffle.merge_runs:OrderedShardWriter.write': 'shards',
    'pipelines.transforms.write_shards:IndexFile.add': 'indexes',
    'tokcore.corpus.stats:block_stats': 'text',
}
"""Functions, and the kind of file that the stages within them work on."""

_PHASES = {
    'pipelines.stages.build:count_folders': 'count',
    'pipelines.stages.build:learn': 'learn',
    'pipelines.stages.build:encode_into': 'encode',
    'pipelines.shuffle.encoded_sample:encode_sample': 'sample',
}


class StageTimer:
    """Adds up the seconds of each phase, and of each of its stages."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = defaultdict(float)
        self.stages: dict[tuple[str, Stage], float] = defaultdict(float)
        self.array_bytes: dict[tuple[str, Stage], int] = defaultdict(int)
        """Bytes of the arrays that the functions of a stage take."""
        self._phase = ''
        self._thread = threading.local()

    @contextlib.contextmanager
    def timing(self) -> Iterator[None]:
        """Times what runs in the block."""
        contexts = [
            (name, partial(self._timed, each)) for each in STAGES for name in each.functions
        ]
        contexts += [(name, partial(self._with_file, file)) for name, file in _FILES.items()]
        contexts += [(name, partial(self._in_phase, phase)) for name, phase in _PHASES.items()]
        with contextlib.ExitStack() as stack:
            for name, context in contexts:
                for patch in _patches(name, partial(_wrapped, context)):
                    stack.enter_context(patch)
            yield

    @contextlib.contextmanager
    def _timed(self, stage: Stage, arguments: Sequence[object]) -> Iterator[None]:
        calls = self._thread.__dict__.setdefault('calls', [])
        calls.append(0)  # seconds of the stages that this call calls
        began = time.thread_time()
        try:
            yield
        finally:
            spent = time.thread_time() - began
            line = self._phase, stage.for_file(self._file)
            self.stages[line] += spent - calls.pop()
            self.array_bytes[line] += sum(
                each.nbytes for each in arguments if isinstance(each, np.ndarray)
            )
            if calls:
                calls[-1] += spent

    @contextlib.contextmanager
    def _with_file(self, file: str, arguments: Sequence[object]) -> Iterator[None]:
        before, self._thread.file = self._file, file
        try:
            yield
        finally:
            self._thread.file = before

    @contextlib.contextmanager
    def _in_phase(self, phase: str, arguments: Sequence[object]) -> Iterator[None]:
        before, self._phase, began = self._phase, phase, time.process_time()
        try:
            yield
        finally:
            self.phases[phase] += time.process_time() - began
            self._phase = before

    @property
    def _file(self) -> str:
        return getattr(self._thread, 'file', 'others')


def _wrapped(
    context: Callable[[Sequence[object]], contextlib.AbstractContextManager[None]],
    function: Callable,
) -> Callable:
    """Returns a function that calls this one, or each step of this generator, within a context."""

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        with context(arguments):
            return function(*arguments, **keywords)

    @wraps(function)
    def generate(*arguments: Any, **keywords: Any) -> Iterator[Any]:
        results = function(*arguments, **keywords)
        while True:
            with context(()):
                result = next(results, results)
            if result is results:
                return
            yield result

    return generate if inspect.isgeneratorfunction(function) else call


def _patches(name: str, wrapped: Callable[[Callable], Callable]) -> Iterator[Any]:
    """Yields patches that replace a function by a wrapped one in each module that imported it."""
    module_name, _, path = name.partition(':')
    module = importlib.import_module(module_name)
    class_name, _, attribute = path.rpartition('.')
    if class_name:
        owner = getattr(module, class_name)
        function = vars(owner)[attribute]
        is_of_class = isinstance(function, classmethod)
        replacement = wrapped(function.__func__ if is_of_class else function)
        yield mock.patch.object(
            owner, attribute, classmethod(replacement) if is_of_class else replacement
        )
        return
    function = getattr(module, attribute)
    replacement = wrapped(function)
    yield mock.patch.object(module, attribute, replacement)
    for other in [*sys.modules.values()]:
        if other is not module and other.__name__.startswith(('tokcore', 'pipelines')):
            for key in [key for key, value in vars(other).items() if value is function]:
                yield mock.patch.object(other, key, replacement)
