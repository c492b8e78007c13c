"""The plain subword learner on Beam, an oracle: an element for each candidate substring and its weight.

Each iteration is a pipeline: workers segment the tokens by the vocabulary so far and emit
substrings, `CombinePerKey(sum)` adds them up, and the frequent ones are written to files, from
which the driver selects. It is slow (quadratic in the length of tokens, an element per substring),
and the reference for the packed learner.
"""

import functools
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as parquet

from pipelines.engines.engine import RunPipeline
from pipelines.engines.pool import in_global_window
from pipelines.files import filesystem
from pipelines.learning.subword_on_beam import fixed_subtokens
from pipelines.transforms.read import CreateReshuffled
from tokcore.subword.learner import ITERATIONS, longest_candidate
from tokcore.subword.plain_iteration import PlainSegmenter, candidate_substrings, select_substrings
from tokcore.text.t2t import alphabet_of, escape_token

_FILE_PREFIX = 'substrings-'

_ROWS_PER_FILE = 200_000
"""Some 10 MB of Python strings in a worker; a tenth would give the driver ten times the files."""

_MAX_SUMS = 500_000
"""Substrings that a worker adds up before it sends them: some 100 MB. With 100,000, the frequent
ones of English text would be sent twice as often."""

_SCHEMA = pa.schema([('substring', pa.string()), ('count', pa.int64())])


class BeamLearner:
    """Learns the same vocabularies as `MemoryLearner`, each iteration in a Beam pipeline.

    Args:
        paths: Parquet files of token counts; a token may occur in several.
        work: a folder reached by driver and workers, where the learner leaves its files.
        run: runs a pipeline, which it builds by the function that it is given, and waits for its
          end.
        max_subtoken_length: as for `MemoryLearner`.
        reserved_tokens: as for `MemoryLearner`.

    Raises:
        ValueError: `max_subtoken_length` is below 1.
    """

    def __init__(
        self,
        paths: Sequence[str],
        work: str,
        run: RunPipeline,
        *,
        max_subtoken_length: int | None = 200,
        reserved_tokens: Sequence[str] = (),
    ):
        self._paths = tuple(paths)
        # Processes cache vocabularies by path, so each learner needs paths of its own.
        self._work = os.path.join(work, uuid.uuid4().hex)
        self._run = run
        self._longest = longest_candidate(max_subtoken_length)
        folder = os.path.join(self._work, 'alphabet')
        self._run(lambda pipeline: pipeline | ReadCounts(self._paths) | _WriteAlphabet(folder))
        self._reserved, self._alphabet = fixed_subtokens(reserved_tokens, _read_substrings(folder))

    @property
    def smallest_size(self) -> int:
        """The size of the smallest vocabulary: the reserved tokens and the alphabet."""
        return len(self._reserved) + len(self._alphabet)

    def build(self, min_count: int) -> tuple[str, ...]:
        """Returns the subtokens by id, as `MemoryLearner.build`."""
        min_count = max(1, min_count)
        subtokens = tuple(self._alphabet)
        for iteration in range(ITERATIONS):
            folder = os.path.join(self._work, f'{min_count}-{iteration}')
            vocabulary_path = os.path.join(folder, 'vocabulary.json')
            filesystem.write_bytes(vocabulary_path, json.dumps(subtokens).encode())
            self._run(functools.partial(self._count, vocabulary_path, folder, min_count))
            counts = _read_substrings(folder)
            selected = select_substrings(counts, min_count, self._alphabet)
            subtokens = self._reserved + tuple(selected)
        return subtokens

    def _count(
        self, vocabulary_path: str, folder: str, min_count: int, pipeline: beam.Pipeline
    ) -> None:
        (
            pipeline
            | ReadCounts(self._paths)  # (token, count)
            | CountSubstringsByElement(vocabulary_path, self._longest)  # (substring, weight)
            | WriteSubstrings(folder, min_count)
        )


@dataclass(eq=False)
class ReadCounts(beam.PTransform):
    """Reads (token, count) from Parquet files with the columns `token` and `count`.

    Attributes:
        paths: the files; each is read by one worker.
    """

    paths: Sequence[str]

    def expand(self, begin) -> beam.PCollection[tuple[str, int]]:
        return (
            begin
            | CreateReshuffled(self.paths)  # path
            | 'Read' >> beam.FlatMap(_read_counts)  # (token, count)
        )


def _read_counts(path: str) -> Iterator[tuple[str, int]]:
    with filesystem.open_binary(path) as stream:
        for batch in parquet.ParquetFile(stream).iter_batches(columns=['token', 'count']):
            columns = batch.to_pydict()
            yield from zip(columns['token'], columns['count'])


@dataclass(eq=False)
class CountSubstringsByElement(beam.PTransform):
    """Counts every substring that starts at a segment: (token, count) to (substring, weight).

    The textbook form, with an element for each substring: the reference for `CountSubstrings`.

    Attributes:
        vocabulary_path: the subtokens to segment by, a JSON list; loaded once in each process.
        longest: of the substrings counted, in characters.
    """

    vocabulary_path: str
    longest: int

    def __post_init__(self):
        if self.longest < 0:
            raise ValueError(f'the longest substring is {self.longest} characters; give 0 or more')

    def expand(self, token_to_count) -> beam.PCollection[tuple[str, int]]:
        return (
            token_to_count
            | 'Emit'
            >> beam.ParDo(
                _EmitSubstringsFn(self.vocabulary_path, self.longest)
            )  # (substring, count)
            | 'Sum' >> beam.CombinePerKey(_SumFn())  # (substring, weight)
        )


class _EmitSubstringsFn(beam.DoFn):
    def __init__(self, vocabulary_path: str, longest: int):
        self._vocabulary_path = vocabulary_path
        self._longest = longest

    def setup(self) -> None:
        self._segmenter = _load_segmenter(self._vocabulary_path)

    def start_bundle(self) -> None:
        self._sums: dict[str, int] = {}

    def process(self, element: tuple[str, int]) -> Iterator[tuple[str, int]]:
        token, count = element
        escaped = escape_token(token, alphabet_of([token]))
        sums = self._sums
        for substring in candidate_substrings(escaped, self._segmenter, self._longest):
            sums[substring] = sums.get(substring, 0) + count
        if len(sums) >= _MAX_SUMS:
            yield from sums.items()
            self._sums = {}

    def finish_bundle(self) -> Iterator:
        yield from map(in_global_window, self._sums.items())
        self._sums = {}


class _SumFn(beam.CombineFn):
    """`sum` with a number as accumulator, where Beam's own has a list."""

    def create_accumulator(self) -> int:
        return 0

    def add_input(self, mutable_accumulator: int, element: int) -> int:
        return mutable_accumulator + element

    def merge_accumulators(self, accumulators: Iterable[int]) -> int:
        return sum(accumulators)

    def extract_output(self, accumulator: int) -> int:
        return accumulator

    def get_accumulator_coder(self) -> beam.coders.Coder:
        return beam.coders.VarIntCoder()


# Two, since a slow worker may still use the vocabulary of the iteration before.
@functools.lru_cache(maxsize=2)
def _load_segmenter(path: str) -> PlainSegmenter:
    return PlainSegmenter(json.loads(filesystem.read_bytes(path)))


@dataclass(eq=False)
class WriteSubstrings(beam.PTransform):
    """Writes frequent substrings, and all single characters, to Parquet files: (substring, weight).

    A retried bundle may write the same rows again, to another file.

    Attributes:
        folder: of the files, whose names are random.
        min_weight: the least weight of a substring of two characters or more.
    """

    folder: str
    min_weight: int

    def expand(self, substring_to_weight) -> beam.PCollection:
        return substring_to_weight | 'Write' >> beam.ParDo(
            _WriteSubstringsFn(self.folder, self.min_weight)
        )


class _WriteSubstringsFn(beam.DoFn):
    def __init__(self, folder: str, min_weight: int):
        self._folder, self._min_weight = folder, min_weight

    def start_bundle(self) -> None:
        self._rows: list[tuple[str, int]] = []

    def process(self, element: tuple[str, int]) -> Iterator[str]:
        substring, weight = element
        if weight < self._min_weight and len(substring) > 1:
            return
        self._rows.append(element)
        if len(self._rows) >= _ROWS_PER_FILE:
            yield self._write()

    def finish_bundle(self) -> Iterator:
        if self._rows:
            yield in_global_window(self._write())

    def _write(self) -> str:
        substrings, weights = zip(*self._rows)
        self._rows = []
        path = os.path.join(self._folder, f'{_FILE_PREFIX}{uuid.uuid4().hex}.parquet')
        table = pa.table([pa.array(substrings), pa.array(weights, pa.int64())], schema=_SCHEMA)
        with filesystem.create(path) as stream:
            parquet.write_table(table, stream)
        return path


@dataclass(eq=False)
class _WriteAlphabet(beam.PTransform):
    """Writes the distinct characters of all tokens, as substrings of weight 0."""

    folder: str

    def expand(self, token_to_count) -> beam.PCollection:
        return (
            token_to_count
            | 'SplitCharacters' >> beam.FlatMapTuple(_characters)  # (character, 0)
            | 'Distinct' >> beam.CombinePerKey(max)  # (character, 0)
            | 'Write' >> WriteSubstrings(self.folder, 0)
        )


def _characters(token: str, count: int) -> Iterator[tuple[str, int]]:
    for character in set(token):
        yield character, 0


def _read_substrings(folder: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for file in filesystem.list_folder(folder):
        if file.name.startswith(_FILE_PREFIX):
            with filesystem.open_binary(file.path) as stream:
                columns = parquet.read_table(stream).to_pydict()
            counts.update(zip(columns['substring'], columns['count']))
    return counts
