"""Adding up COUNTS folders, partition by partition, without reading text again."""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.artifacts.count_files import CountFiles, find_counts
from pipelines.artifacts.count_tables import read_counts_or_empty
from pipelines.artifacts.manifest import MANIFEST_NAME, Manifest, read_manifest
from pipelines.artifacts.run_stage import Made, run_stage
from pipelines.artifacts.stage_output import StageKey, StageOutput
from pipelines.engines.engine import Engine
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.stages.count import CountedTable, count_names, counted_table
from pipelines.transforms.count_tokens import WrittenCounts, counts_name, write_counts_file
from pipelines.transforms.write_report import WriteReport, read_report
from tokcore.counts.block_counting import COUNT_PARTITIONS
from tokcore.errors import InputError
from tokcore.text.unicode_tables import UNICODE_VERSION, check_unicode

_LOGGER = logging.getLogger(__name__)


def merge_stage(folders: Sequence[str], output: str, engine: Engine, overwrite: bool) -> None:
    """Adds up COUNTS folders into a new one.

    Raises:
        InputError: a folder that is not whole, is of another Unicode version or is the output
            itself, or another result in the output.
    """
    counts = find_counts(folders)
    manifests = [_counts_manifest(folder, output) for folder in folders]
    key = StageKey(
        'count',
        {'merged': len(folders), 'side': [manifest.options.get('side') for manifest in manifests]},
        counts.wanted_inputs(),
    )
    tokens = sum(manifest.tokens or 0 for manifest in manifests)

    def make(attempt: Attempt) -> Made:
        started = time.monotonic()
        table = _merge_into(counts, attempt.path, engine)
        if table.tokens != tokens:
            raise InputError(
                f'what is merged has {table.tokens} tokens, but {MANIFEST_NAME} of the folders '
                f'states {tokens} in all; count them again with --overwrite'
            )
        manifest = Manifest(
            'count',
            UNICODE_VERSION,
            key.options,
            tuple(each.checksum() for each in key.inputs),
            tokens=tokens,
            files=table.files,
        )
        return Made(manifest, seconds={'merge': time.monotonic() - started})

    made = run_stage(
        StageOutput.of_counts(output),
        key,
        count_names(),
        make,
        overwrite=overwrite,
        flags=engine.flags,
    )
    if made is not None:
        distinct = sum(file.rows for file in made.manifest.files)
        _LOGGER.info('count: %d tokens, %d distinct, in %s', tokens, distinct, output)


def _counts_manifest(folder: str, output: str) -> Manifest:
    path = filesystem.absolute(folder)
    if path == output:
        raise InputError(f'{folder} is merged and is the output; give another --output')
    manifest = read_manifest(filesystem.join(path, MANIFEST_NAME))
    if manifest is None:
        raise InputError(
            f'{folder} is no COUNTS folder: it has no {MANIFEST_NAME}; --merge takes the folders '
            'that `tokbeam count` makes'
        )
    check_unicode(manifest.unicode, f'the count folder {folder}')
    return manifest


def _merge_into(counts: CountFiles, path: str, engine: Engine) -> CountedTable:
    by_partition = [
        CountFiles(tuple(file for file in counts.files if _base(file.name) == name))
        for name in (counts_name(partition) for partition in range(COUNT_PARTITIONS))
    ]
    counts.let_go(*counts.files)  # the workers read them
    report = filesystem.join(path, 'files')
    engine.run(
        lambda pipeline: (
            pipeline | 'MergeCounts' >> _MergeCounts(by_partition, path) | WriteReport(report)
        )
    )
    return counted_table(read_report(report, WrittenCounts), path)


def _base(name: str) -> str:
    return name.rpartition('/')[2]


@dataclass(eq=False)
class _MergeCounts(beam.PTransform):
    """Gives a `WrittenCounts` of each partition's merged file."""

    by_partition: Sequence[CountFiles]
    folder: str

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            root
            | 'Plan' >> beam.Create(list(enumerate(self.by_partition)), reshuffle=False)
            | 'ShareOut' >> beam.Reshuffle()
            | 'Merge' >> beam.ParDo(_MergeCountsFn(self.folder))
        )


class _MergeCountsFn(beam.DoFn):
    def __init__(self, folder: str):
        self._folder = folder

    def process(self, element: tuple[int, CountFiles]) -> Iterator[WrittenCounts]:
        partition, files = element
        yield write_counts_file(self._folder, partition, read_counts_or_empty(files))
