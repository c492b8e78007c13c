"""Adding up COUNTS folders, partition by partition, without reading text again."""

import functools
import time
from collections.abc import Mapping, Sequence

from pipelines.artifacts.count_files import CountFiles, check_recorded, find_counts
from pipelines.artifacts.count_tables import read_counts_or_empty
from pipelines.artifacts.counts_folder import (
    CountedTable,
    count_names,
    counted_table,
    log_counts,
)
from pipelines.artifacts.manifest import MANIFEST_NAME, Manifest, read_manifest
from pipelines.artifacts.recorded_rules import earlier_rules
from pipelines.artifacts.stage_output import StageKey, StageOutput, StageTask
from pipelines.engines.engine import Engine
from pipelines.engines.progress import advance, counted
from pipelines.files import filesystem
from pipelines.files.attempts import Attempt
from pipelines.jobs.job import Execution
from pipelines.stages.run_stage import Made, run_stage
from pipelines.transforms.count_tokens import WrittenCounts, counts_name, write_counts_file
from pipelines.transforms.share_out import ReportEach
from pipelines.transforms.write_report import read_report
from tokcore.counts.block_counting import COUNT_PARTITIONS
from tokcore.encoding.token_rules import TokenRules
from tokcore.errors import InputError
from tokcore.text.unicode_tables import check_unicode

_MERGING = 'merging counts'


def merge_stage(folders: Sequence[str], output: str, execution: Execution) -> None:
    """Adds up COUNTS folders into a new one.

    Raises:
        InputError: a folder that is not whole, is of another Unicode version or is the output
            itself, or another result in the output.
    """
    counts = find_counts(folders)
    manifests = [_counts_manifest(folder, output) for folder in folders]
    rules = _common_rules(dict(zip(folders, manifests, strict=True)))
    check_recorded(counts, rules)
    key = StageKey(
        'count',
        {'merged': len(folders), 'side': [manifest.options.get('side') for manifest in manifests]},
        counts.wanted_inputs(),
        rules,
    )
    tokens = sum(manifest.tokens or 0 for manifest in manifests)

    def make(attempt: Attempt) -> list[Made]:
        started = time.monotonic()
        table = _merge_into(counts, rules, attempt.path, execution.engine)
        if table.tokens != tokens:
            raise InputError(
                f'what is merged has {table.tokens} tokens, but {MANIFEST_NAME} of the folders '
                f'states {tokens} in all; count them again with --overwrite'
            )
        manifest = key.manifest(
            tuple(each.checksum() for each in key.inputs),
            tokens=tokens,
            files=table.files,
        )
        return [Made(manifest, seconds={'merge': time.monotonic() - started})]

    task = StageTask(key, StageOutput.of_counts(output), count_names())
    [made] = run_stage([task], make, execution)
    if made is not None:
        log_counts(made.manifest, output)


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


def _common_rules(manifests: Mapping[str, Manifest]) -> TokenRules:
    """Returns the rules by which all folders were counted.

    Raises:
        InputError: there are two of them; both are named.
    """
    rules = {folder: manifest.rules or earlier_rules() for folder, manifest in manifests.items()}
    first, *others = rules
    for folder in others:
        if rules[folder] != rules[first]:
            raise InputError(
                f'{first} was counted with {rules[first]}, {folder} with {rules[folder]}: they do '
                'not add up; count one of them again'
            )
    return rules[first]


def _merge_into(
    counts: CountFiles, rules: TokenRules, path: str, engine: Engine
) -> CountedTable:
    by_partition = [
        CountFiles(tuple(file for file in counts.files if _base(file.name) == name))
        for name in (counts_name(partition) for partition in range(COUNT_PARTITIONS))
    ]
    counts.let_go(*counts.files)  # the workers read them
    report = filesystem.join(path, 'files')
    call = functools.partial(_merge_partition, path, rules)
    merging = ReportEach(list(enumerate(by_partition)), call, report)
    with counted('merge', _MERGING, len(by_partition), 'files'):
        engine.run(lambda pipeline: pipeline | 'MergeCounts' >> merging)
    return counted_table(read_report(report, WrittenCounts), path, rules)


def _base(name: str) -> str:
    return name.rpartition('/')[2]


def _merge_partition(
    folder: str, rules: TokenRules, numbered: tuple[int, CountFiles]
) -> list[WrittenCounts]:
    partition, files = numbered
    written = write_counts_file(folder, partition, read_counts_or_empty(files), rules)
    advance(_MERGING, 1)
    return [written]
