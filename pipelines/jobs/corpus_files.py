"""From the paths a user gave to splits and work items, with all that can be checked beforehand.

Paths, readability and the line counts of bitext are looked at for every split before the first
stage begins, so a typing error costs seconds and not the hours of a count.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np

from pipelines.artifacts.manifest import InputText
from pipelines.engines.engine import Engine
from pipelines.files import filesystem
from pipelines.files.filesystem import StoredFile
from pipelines.jobs.shuffle_options import ShuffleOptions
from pipelines.transforms.read_blocks import ReadBlocks
from pipelines.transforms.read_corpus import corpus_file
from pipelines.transforms.write_report import WriteReport, read_report
from tokcore.corpus.dataset import MAX_LINE_BYTES, CorpusFile, Split, WorkItem
from tokcore.corpus.formats.line_index import IndexRange, LineCount, count_lines, index_items
from tokcore.corpus.formats.work_items import plan_items
from tokcore.corpus.range_checksums import RangeChecksum, join_checksums
from tokcore.corpus.storage.file_checksum import checksum_file
from tokcore.errors import InputError

_GZIP_RATIO = 5
"""Text compresses three- to fourfold with gzip; a little more is a safe guess of its size."""

_MOST_GZIP_RATIO = 1032
"""No more than 258 bytes come of two bits (RFC 1951: the longest match)."""


@dataclass(frozen=True)
class SplitPaths:
    """What the command line gives for one split: `source` and `target`, or `tsv`, or `text`."""

    split: str
    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    tsv: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    columns: tuple[int, ...] = (0, 1)

    def option(self, name: str) -> str:
        """Returns the name of one of this split's options: `--source`, `--dev-source`."""
        return f'--{name}' if self.split == 'train' else f'--{self.split}-{name}'


@dataclass(frozen=True)
class CorpusInput:
    """One input file with its place in the corpus and its state on its filesystem."""

    split: str
    role: str  # 'source', 'target', 'tsv' or 'text'
    place: int
    side: int
    file: CorpusFile
    stored: StoredFile


@dataclass(frozen=True)
class Corpus:
    """The splits of a job and their files, in the order of splits, places and sides."""

    splits: tuple[Split, ...]
    inputs: tuple[CorpusInput, ...]

    def only(self, split: str) -> 'Corpus':
        """Returns the corpus of one split."""
        return Corpus(
            tuple(each for each in self.splits if each.name == split),
            tuple(each for each in self.inputs if each.split == split),
        )

    @property
    def most_text_bytes(self) -> int:
        """The most bytes of text that a file can hold."""
        return max(
            each.file.size * (_MOST_GZIP_RATIO if each.file.compressed else 1)
            for each in self.inputs
        )

    def text_bytes(self, split: str) -> int:
        """Returns about how many bytes of text a split holds."""
        return sum(
            each.file.size * (_GZIP_RATIO if each.file.compressed else 1)
            for each in self.inputs
            if each.split == split
        )


@dataclass(frozen=True)
class Job:
    """A corpus that has been looked at, and how it is to be run."""

    corpus: Corpus
    engine: Engine
    item_bytes: int
    on_error: str = 'stop'
    overwrite: bool = False
    shuffle: ShuffleOptions = ShuffleOptions()
    work: str | None = None  # for what survives a killed run; None: below the output
    items: Mapping[str, Sequence[WorkItem]] | None = None  # of each split, once planned
    max_line_bytes: int = MAX_LINE_BYTES

    @property
    def longest_line(self) -> int:
        """The most bytes that a line of the corpus can have and be read."""
        return min(self.max_line_bytes, self.corpus.most_text_bytes)

    def planned(self, folder: str) -> 'Job':
        """Returns the job cut into work items, which for bitext takes a pass over its bytes.

        Args:
            folder: for what the workers report.

        Raises:
            InputError: as `plan_corpus`.
        """
        if self.items is not None:
            return self
        items = plan_corpus(self.corpus, self.item_bytes, self.engine, folder)
        return dataclasses.replace(self, items=items)

    def only(self, split: str) -> 'Job':
        """Returns the job over one split."""
        items = None if self.items is None else {split: self.items[split]}
        return dataclasses.replace(self, corpus=self.corpus.only(split), items=items)

    def read(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """Returns the blocks of all splits of a planned job."""
        items = [item for split in self.corpus.splits for item in self.items[split.name]]
        return pipeline | 'ReadBlocks' >> ReadBlocks(items, self.item_bytes, self.max_line_bytes)


def find_corpus(paths: Sequence[SplitPaths]) -> Corpus:
    """Finds the files of all splits.

    Raises:
        InputError: a path that does not exist or cannot be read, or files that do not pair.
    """
    splits, inputs = [], []
    for given in paths:
        found = {
            role: [each for pattern in getattr(given, role) for each in filesystem.find(pattern)]
            for role in ('source', 'target', 'tsv', 'text')
        }
        if len(found['source']) != len(found['target']):
            raise InputError(
                f'{given.option("source")} names {len(found["source"])} files but '
                f'{given.option("target")} names {len(found["target"])}; they pair in the order '
                'given, so give as many of each'
            )
        files = {role: [corpus_file(each) for each in found[role]] for role in found}
        if files['source']:
            kind, sources, targets = 'bitext', files['source'], files['target']
            roles = ('source', 'target')
        else:
            kind = 'tsv' if files['tsv'] else 'text'
            sources, targets = files[kind], []
            roles = (kind,)
        if not any(each.size or each.compressed for each in sources):
            names = ', '.join(each.path for each in sources)
            raise InputError(
                f'the {given.split} corpus is empty: no byte in {names}; check the files'
            )
        splits.append(
            Split(
                given.split,
                kind,
                tuple(sources),
                tuple(targets),
                given.columns if kind == 'tsv' else (),
            )
        )
        inputs += [
            CorpusInput(given.split, role, place, side, files[role][place], found[role][place])
            for place in range(len(sources))
            for side, role in enumerate(roles)
        ]
    return Corpus(tuple(splits), tuple(inputs))


def plan_corpus(
    corpus: Corpus, item_bytes: int, engine: Engine, folder: str
) -> dict[str, list[WorkItem]]:
    """Returns the work items of each split; bitext costs a pass over its bytes.

    Args:
        corpus: all splits.
        item_bytes: size of a work item.
        engine: runs the pass.
        folder: for what the workers report.

    Raises:
        InputError: the two files of a pair have different numbers of lines, or a gzip is damaged.
    """
    counts: list[LineCount] = []
    ranges = [each for split in corpus.splits for each in index_items(split, item_bytes)]
    if ranges:
        report = filesystem.join(folder, 'line-counts')
        engine.run(lambda pipeline: pipeline | 'IndexLines' >> _IndexLines(ranges, report))
        for each in read_report(report, _CountedLines):
            newlines = np.array(each.newlines, np.int64)
            counts.append(
                LineCount(ranges[each.number], newlines, each.text_bytes, each.ends_with_newline)
            )
    return {split.name: plan_items(split, counts, item_bytes) for split in corpus.splits}


@dataclass(eq=False)
class _IndexLines(beam.PTransform):
    ranges: Sequence[IndexRange]
    report: str

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            root
            | 'Plan' >> beam.Create(list(enumerate(self.ranges)), reshuffle=False)
            | 'ShareOut' >> beam.Reshuffle()
            | 'CountLines' >> beam.ParDo(_CountLinesFn())
            | 'Report' >> WriteReport(self.report)
        )


@dataclass(frozen=True)
class _CountedLines:
    """A `LineCount` of the range with this number."""

    number: int
    newlines: tuple[int, ...]
    text_bytes: int
    ends_with_newline: bool


class _CountLinesFn(beam.DoFn):
    def process(self, element: tuple[int, IndexRange]) -> Iterator[_CountedLines]:
        number, index_range = element
        count = count_lines(index_range, filesystem.open_binary)
        newlines = tuple(count.newlines.tolist())
        yield _CountedLines(number, newlines, count.text_bytes, count.ends_with_newline)


def input_texts(corpus: Corpus, receipts: Sequence[RangeChecksum]) -> tuple[InputText, ...]:
    """Returns the manifest's inputs from what was read.

    Raises:
        RuntimeError: a file was not read exactly once, from its first byte to its last.
    """
    by_file: dict[tuple[str, int, int], list[RangeChecksum]] = {}
    for receipt in receipts:
        by_file.setdefault((receipt.split, receipt.place, receipt.side), []).append(receipt)
    texts = []
    for each in corpus.inputs:
        length = None if each.file.compressed else each.file.size
        try:
            summary = join_checksums(by_file.get((each.split, each.place, each.side), ()), length)
        except ValueError as error:
            raise RuntimeError(f'{each.file.path} was not read exactly once: {error}') from error
        texts.append(
            InputText(
                each.split, each.role, each.file.name, summary.bytes, f'{summary.crc32c:08x}'
            )
        )
    return tuple(texts)


def checksum_input(each: CorpusInput) -> InputText:
    """Returns the manifest's entry of an input by reading it from beginning to end."""
    summary = checksum_file(each.file, filesystem.open_binary)
    return InputText(
        each.split, each.role, each.file.name, summary.bytes, f'{summary.crc32c:08x}'
    )
