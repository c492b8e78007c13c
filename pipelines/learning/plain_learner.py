"""Learning a vocabulary on Beam in the plain form: each candidate substring with its weight.

Each iteration is one pipeline: workers cut the tokens by the vocabulary so far and emit substrings,
`CombinePerKey(sum)` adds them up, and what can still matter goes to files, which the driver prunes.
It is slow by nature (quadratic in a token's length, an element per substring), and is the reference
for the packed learner.
"""

import functools
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as parquet

from pipelines.engines.pool import in_global_window
from pipelines.files import filesystem
from pipelines.transforms.read import CreateReshuffled
from tokcore.subword.learner import ITERATIONS, RESERVED_TOKENS, longest_candidate
from tokcore.subword.plain_iteration import PlainSegmenter, candidate_substrings, select_substrings
from tokcore.text.t2t import alphabet_of, escape_token

RunPipeline = Callable[[Callable[[beam.Pipeline], None]], None]

_FILE_PREFIX = 'substrings-'

_ROWS_PER_FILE = 200_000
"""Some 10 MB of Python strings wait in a worker; a tenth would make ten times the files, and the
driver opens each."""

_SUMS_AT_ONCE = 500_000
"""Substrings that a worker adds up before it sends them on: some 100 MB. With 100,000, English
text's frequent ones are sent twice as often."""

_SCHEMA = pa.schema([('substring', pa.string()), ('count', pa.int64())])


class BeamLearner:
    """Learns what `MemoryLearner` learns, with every iteration a Beam pipeline.

    Args:
        paths: Parquet files of token counts; a token may stand in several.
        work: a folder that driver and workers reach; it is left with the learner's files in it.
        run: builds a pipeline by the function it is given, runs it and waits for its end.
        max_subtoken_length: as `MemoryLearner`'s.
        reserved_tokens: as `MemoryLearner`'s.

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
        # A process keeps vocabularies by path, so no other learner may use the same ones.
        self._work = filesystem.join(work, uuid.uuid4().hex)
        self._run = run
        self._longest = longest_candidate(max_subtoken_length)
        folder = filesystem.join(self._work, 'alphabet')
        self._run(lambda pipeline: pipeline | ReadCounts(self._paths) | _WriteAlphabet(folder))
        self._fixed = FixedSubtokens.of(reserved_tokens, _read_substrings(folder))

    @property
    def smallest_size(self) -> int:
        """The size that no min-count gets below: reserved tokens and alphabet."""
        return len(self._fixed)

    def build(self, min_count: int) -> tuple[str, ...]:
        """Returns the subtokens in the order of their ids, as `MemoryLearner.build` does."""
        min_count = max(1, min_count)
        subtokens = tuple(self._fixed.alphabet)
        for iteration in range(ITERATIONS):
            folder = filesystem.join(self._work, f'{min_count}-{iteration}')
            vocabulary_path = filesystem.join(folder, 'vocabulary.json')
            filesystem.write_bytes(vocabulary_path, json.dumps(subtokens).encode())
            self._run(functools.partial(self._count, vocabulary_path, folder, min_count))
            kept = select_substrings(_read_substrings(folder), min_count, self._fixed.alphabet)
            subtokens = self._fixed.reserved + tuple(kept)
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
            | CreateReshuffled(self.paths)
            | 'Read' >> beam.FlatMap(_read_counts)  # (token, count)
        )


def _read_counts(path: str) -> Iterator[tuple[str, int]]:
    with filesystem.open_binary(path) as stream:
        for batch in parquet.ParquetFile(stream).iter_batches(columns=['token', 'count']):
            columns = batch.to_pydict()
            yield from zip(columns['token'], columns['count'])


@dataclass(eq=False)
class CountSubstringsByElement(beam.PTransform):
    """Counts every substring that starts at a cut: (token, count) to (substring, weight).

    The textbook form, an element a substring: the reference that `CountSubstrings` equals.

    Attributes:
        vocabulary_path: the subtokens that cut, a JSON list; loaded once for each process.
        longest: the longest substring counted, in characters.
    """

    vocabulary_path: str
    longest: int

    def __post_init__(self):
        if self.longest < 0:
            raise ValueError(f'the longest substring is {self.longest} characters; give 0 or more')

    def expand(self, token_to_count) -> beam.PCollection[tuple[str, int]]:
        return (
            token_to_count
            | 'Emit' >> beam.ParDo(_EmitSubstringsFn(self.vocabulary_path, self.longest))
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
        if len(sums) >= _SUMS_AT_ONCE:
            yield from sums.items()
            self._sums = {}

    def finish_bundle(self) -> Iterator:
        yield from map(in_global_window, self._sums.items())
        self._sums = {}


class _SumFn(beam.CombineFn):
    """`sum` with a number as accumulator: Beam's own keeps, and sends, lists."""

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


# The vocabulary of one iteration, and of the one before for a worker that lags.
@functools.lru_cache(maxsize=2)
def _load_segmenter(path: str) -> PlainSegmenter:
    return PlainSegmenter.of(json.loads(filesystem.read_bytes(path)))


@dataclass(eq=False)
class WriteSubstrings(beam.PTransform):
    """Writes the (substring, weight) that reach a weight, and all single characters, to a folder.

    A retried bundle may write a row again, in another file: it is the same row.

    Attributes:
        folder: gets Parquet files of any names.
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
        path = filesystem.join(self._folder, f'{_FILE_PREFIX}{uuid.uuid4().hex}.parquet')
        table = pa.table([pa.array(substrings), pa.array(weights, pa.int64())], schema=_SCHEMA)
        with filesystem.create(path) as stream:
            parquet.write_table(table, stream)
        return path


@dataclass(eq=False)
class _WriteAlphabet(beam.PTransform):
    """Writes the distinct characters of all tokens, as substrings without weight."""

    folder: str

    def expand(self, token_to_count) -> beam.PCollection:
        return (
            token_to_count
            | 'Characters' >> beam.FlatMapTuple(_characters)
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


@dataclass(frozen=True)
class FixedSubtokens:
    """The subtokens that a learner need not learn."""

    reserved: tuple[str, ...]  # escaped, in the order of their ids
    alphabet: str  # every character of all tokens, and of escaping, ascending

    @classmethod
    def of(cls, reserved_tokens: Sequence[str], characters: Iterable[str]) -> 'FixedSubtokens':
        """Returns those of a learner.

        Args:
            reserved_tokens: those beyond `RESERVED_TOKENS`.
            characters: those of the tokens to learn from.
        """
        reserved = RESERVED_TOKENS + tuple(reserved_tokens)
        alphabet = alphabet_of([*reserved, *characters])
        escaped = tuple(escape_token(token, alphabet) for token in reserved)
        return cls(escaped, ''.join(sorted(alphabet)))

    def __len__(self) -> int:
        return len(self.reserved) + len(self.alphabet)
