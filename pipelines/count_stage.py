"""The stage that counts: training lines in, one or two COUNTS folders out."""

import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import apache_beam as beam

from pipelines import filesystem
from pipelines.corpora import Corpus, checksum_input, input_texts
from pipelines.counting import (
    FACTS,
    TABLES,
    CountTokens,
    WriteCounts,
    counts_name,
    write_counts_file,
)
from pipelines.engine import Engine
from pipelines.filesystem import Attempt
from pipelines.manifest import InputText, Manifest, OutputFile, SplitLines
from pipelines.reading import ReadBlocks
from pipelines.reports import WriteReport, read_report
from pipelines.stages import StageOutput, Wanted, WantedInput, run_record
from tokcore.corpus.checksum import TextReceipt
from tokcore.corpus.dataset import WorkItem
from tokcore.corpus.facts import LineTally, add_tallies
from tokcore.counting import COUNT_PARTITIONS
from tokcore.counts import TokenTable
from tokcore.errors import InputError
from tokcore.unicode_tables import UNICODE_VERSION

_LOGGER = logging.getLogger(__name__)

SIDES = {'inputs': (0,), 'targets': (1,), 'both': (0, 1)}
"""What `--side` chooses of a pair."""


@dataclass(frozen=True)
class CountsFolder:
    """One COUNTS folder to be made: which side of the pairs it counts, or 'text'."""

    path: str
    side: str  # a key of `SIDES`, or 'text'

    @property
    def sides(self) -> tuple[int, ...]:
        return SIDES.get(self.side, (0,))


@dataclass(frozen=True)
class ReadFacts:
    """What a pipeline's workers reported of the lines that they read."""

    inputs: tuple[InputText, ...]
    lines: tuple[SplitLines, ...]


def count_names() -> tuple[str, ...]:
    """Returns the file names of a COUNTS folder."""
    return tuple(counts_name(partition) for partition in range(COUNT_PARTITIONS))


def wanted_counts(corpus: Corpus, folder: CountsFolder) -> Wanted:
    """Returns what the bytes of a COUNTS folder depend on."""
    return Wanted('count', {'side': folder.side, **corpus_options(corpus)}, wanted_inputs(corpus))


def corpus_options(corpus: Corpus) -> dict[str, object]:
    """Returns the options that say how files are read as lines."""
    return {
        ('columns' if split.name == 'train' else f'{split.name}_columns'): split.columns
        for split in corpus.splits
        if split.kind == 'tsv'
    }


def wanted_inputs(corpus: Corpus) -> tuple[WantedInput, ...]:
    return tuple(
        WantedInput(each.split, each.role, each.stored, lambda each=each: checksum_input(each))
        for each in corpus.inputs
    )


def count_stage(
    corpus: Corpus,
    items: Sequence[WorkItem],
    folders: Sequence[CountsFolder],
    engine: Engine,
    item_bytes: int,
    overwrite: bool,
) -> None:
    """Counts the training lines' tokens into folders, each ended by its manifest.

    A folder that already holds this result is left as it is.

    Raises:
        InputError: a line that cannot be used, an empty corpus, or a folder with another result.
    """
    started = time.monotonic()
    wanted = {folder.path: wanted_counts(corpus, folder) for folder in folders}
    missing = [
        folder
        for folder in folders
        if StageOutput(folder.path).finished(wanted[folder.path], count_names(), overwrite) is None
    ]
    if not missing:
        _LOGGER.info('count: already done in %s', ', '.join(each.path for each in folders))
        return
    with contextlib.ExitStack() as stack:
        attempts = [stack.enter_context(Attempt(folder.path)) for folder in missing]
        paths = [attempt.path for attempt in attempts]
        facts, files = count_into(corpus, items, missing, paths, engine, item_bytes)
        seconds = {'count': time.monotonic() - started}
        for folder, attempt, (tokens, outputs) in zip(missing, attempts, files, strict=True):
            manifest = Manifest(
                'count',
                UNICODE_VERSION,
                wanted[folder.path].options,
                facts.inputs,
                facts.lines,
                tokens=tokens,
                files=outputs,
            )
            run = run_record(wanted[folder.path].inputs, seconds, engine.flags)
            StageOutput(folder.path).publish(attempt, count_names(), manifest, run)
            _LOGGER.info(
                'count: %d tokens, %d distinct, in %s',
                tokens,
                sum(file.rows for file in outputs),
                folder.path,
            )


def count_into(
    corpus: Corpus,
    items: Sequence[WorkItem],
    folders: Sequence[CountsFolder],
    paths: Sequence[str],
    engine: Engine,
    item_bytes: int,
) -> tuple[ReadFacts, list[tuple[int, tuple[OutputFile, ...]]]]:
    """Counts into an attempt's folders.

    Returns what was read, and for each folder its running tokens and its files.
    """
    groups = tuple(folder.sides for folder in folders)
    facts_path = filesystem.join(paths[0], 'facts')
    files_path = filesystem.join(paths[0], 'files')

    def build(pipeline: beam.Pipeline) -> None:
        blocks = pipeline | 'ReadBlocks' >> ReadBlocks(items, item_bytes)
        counted = blocks | 'CountTokens' >> CountTokens(groups, corpus.splits, engine.workers)
        counted[FACTS] | 'ReportFacts' >> WriteReport(facts_path)
        (
            counted[TABLES]
            | 'WriteCounts' >> WriteCounts(paths)
            | 'ReportFiles' >> WriteReport(files_path)
        )

    engine.run(build)
    facts = read_facts(corpus, facts_path)
    files = []
    for group, path in enumerate(paths):
        written = {row[1]: row[1:] for row in read_report(files_path) if row[0] == group}
        for partition in range(COUNT_PARTITIONS):
            if counts_name(partition) not in written:
                empty = write_counts_file(path, partition, TokenTable.from_items(()))
                written[empty[0]] = empty
        outputs = tuple(
            OutputFile(name, size, f'{crc:08x}', rows)
            for name, rows, _, size, crc in (written[name] for name in count_names())
        )
        files.append((sum(row[2] for row in written.values()), outputs))
    return facts, files


def read_facts(corpus: Corpus, path: str) -> ReadFacts:
    """Returns what a pipeline reported of its blocks.

    Raises:
        InputError: a split has no line to encode.
        RuntimeError: lines or bytes were lost on the way.
    """
    rows = read_report(path)
    receipts = [TextReceipt(*row[1:]) for row in rows if row[0] == 'text']
    tallies = [LineTally(*row[1:]) for row in rows if row[0] == 'lines']
    lines = []
    for split in corpus.splits:
        tally = add_tallies(split.name, tallies)
        if tally.examples == 0:
            names = ', '.join(
                each.stored.path for each in corpus.inputs if each.split == split.name
            )
            raise InputError(
                f'the {split.name} corpus is empty: {tally.lines} lines read from {names}, none '
                'with text on every side; check the files and the columns'
            )
        lines.append(SplitLines(*astuple(tally)))
    return ReadFacts(input_texts(corpus, receipts), tuple(lines))
