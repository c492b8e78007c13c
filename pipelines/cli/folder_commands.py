"""The commands of datasets that are there: `verify` and `where` look at one, `convert` writes another."""

import argparse
import dataclasses
import itertools
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from pipelines.artifacts.manifest import RUN_NAME, read_dataset_manifest, read_run
from pipelines.cli.commands import job_of_record, make_job
from pipelines.cli.inputs import InputsToFetch
from pipelines.cli.parser import with_job_file
from pipelines.cli.summary import rows_lost
from pipelines.cli.terminal import format_amount, format_time, print_data, print_lines
from pipelines.engines.machine import usable_cores
from pipelines.engines.progress import BYTES
from pipelines.files import filesystem
from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.options.job import EndOptions, check_pack
from pipelines.options.reading import options_from
from pipelines.shard_formats.formats import stored_format
from pipelines.stages.convert import convert_dataset
from pipelines.trust.rerun import Rerun, rerun
from pipelines.trust.row_sources import found_again
from pipelines.trust.verify import Verified, as_json, verify_folder
from pipelines.trust.where import FoundRow, Wanted, find_rows, row_fields
from tokcore.errors import InputError
from tokcore.filters.registry import is_code
from tokcore.options import shown
from tokcore.records.manifest import Manifest

_LOGGER = logging.getLogger(__name__)

_ADDRESS_NUMBER = re.compile('[0-9]{1,18}')

_MOST_NAMES = 8
"""Files that a line names."""

FOUND = 3
"""The status of a command that found something not as it should be."""


def verify(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    folder = filesystem.absolute(options.path)
    verified = verify_folder(folder, workers_of(options), options.root)
    made: Rerun | None = None
    if options.rerun is not None and verified.manifest is not None:
        share = Fraction(1)
        if options.rerun != 'all':
            share = Fraction(options.rerun.removesuffix('%')) / 100
        job = job_of(folder, verified.manifest, options.job, options.workers)
        made = rerun(job, verified.manifest, share, options.seed, workers_of(options))
        findings = (*verified.findings, *made.findings)
        verified = dataclasses.replace(verified, findings=findings)
    if options.json:
        more = {'rerun': made and {'rows': made.rows, 'of': made.all_rows}}
        print_data([as_json(verified, more)])
    else:
        print_lines(_outcome(verified, made))
    return FOUND if verified.findings else 0


def _outcome(verified: Verified, made: Rerun | None) -> Iterator[str]:
    yield from map(str, verified.findings)
    count = len(verified.findings)
    outcome = f'{count:,} {"finding" if count == 1 else "findings"}' if count else 'all as stated'
    size = format_amount(verified.bytes, BYTES)
    if made is not None:
        yield f'{made.rows:,} of the {made.all_rows:,} rows of the corpus were made again'
    yield f'{verified.folder}: {verified.files:,} files, {verified.rows:,} rows, {size}: {outcome}'
    if verified.root is not None:
        yield f'root {verified.root}'
    if verified.not_covered:
        names = ', '.join(verified.not_covered[:_MOST_NAMES])
        yield f'not covered: {names}{and_more(len(verified.not_covered) - _MOST_NAMES)}'


def where(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    folder = filesystem.absolute(options.path)
    manifest = read_dataset_manifest(folder)
    wanted = _wanted(options)
    is_pass = wanted.text is not None
    job = job_of(folder, manifest, options.job, options.workers, takes_record=not is_pass)
    count, rows = find_rows(job, manifest, wanted, workers_of(options), options.head)
    if options.json:
        print_data(json.dumps(row_fields(row), ensure_ascii=False) for row in rows)
    else:
        print_lines(_described(rows, count, wanted))
    return 0 if all(row.is_stored for row in rows) else FOUND


def _wanted(options: argparse.Namespace) -> Wanted:
    address: str | None = options.second
    if (address is None) == (not options.text):
        raise InputError('give a row, SHARD:RECORD or FILE:LINE, or --text WORDS')
    if address is None:
        return Wanted(options.split, text=options.text)
    place, _, number = address.rpartition(':')
    if not _ADDRESS_NUMBER.fullmatch(number):
        raise InputError(
            f'{shown(address)} is not an address of a row: give its number, as 7, a shard and a record, as '
            '2:7, or a line of a file, as corpus.en:17'
        )
    if not place:
        return Wanted(options.split, rows=(int(number),))
    if _ADDRESS_NUMBER.fullmatch(place):
        return Wanted(options.split, record=(int(place), int(number)))
    return Wanted(options.split, input=(place, int(number)))


def _described(rows: Sequence[FoundRow], count: int, wanted: Wanted) -> Iterator[str]:
    for row in rows:
        yield f'{row.split} row {row.row}: {row.shard}, {_record(row)}'
        piece = f', part {row.place.piece} of it' if row.place.piece else ''
        yield f'  from {row.place}{piece}'
        yield from (f'  text: {text}' for text in row.texts)
        for feature, pieces in row.pieces.items():
            yield f'  {feature}: {" ".join(piece.replace(" ", "␣") for piece in pieces)}'
        if not row.is_stored:
            yield '  the shard has another row there: see tokbeam verify --rerun'
    if count > len(rows):
        yield f'{count - len(rows):,} more rows; --head N shows more'
    if not rows and wanted.input is not None:
        yield f'no row: {wanted.input[0]}:{wanted.input[1]} is empty, was left out, or is not there'
    elif not rows:
        yield 'no row has these words'


def _record(row: FoundRow) -> str:
    """Returns where a row is in its shard."""
    if row.segments is None:
        return f'record {row.record}'
    parts = [
        f'record {segment.record}, segment {segment.number}'
        + (f' from id {segment.start}' if len(row.segments) > 1 else '')
        for segment in row.segments
    ]
    return '; '.join(parts) or 'left out, since it is empty or too long'


def convert(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    check_pack(options.to, options.pack, '--to')
    ending = options_from(EndOptions, vars(options))
    ending.check(options.to)
    output = filesystem.absolute(options.output)
    made = convert_dataset(
        filesystem.absolute(options.path),
        options.to,
        output,
        workers_of(options),
        options.overwrite,
        options.pack,
        ending,
    )
    if made is None:
        _LOGGER.info('convert: already done in %s', output)
        return 0
    for line in (*rows_lost(made), *stored_format(made).notes(made)):
        _LOGGER.info('%s', line)
    size = sum(file.bytes for file in made.outputs)
    seconds = format_time(time.monotonic() - options.began)
    _LOGGER.info('done in %s: %s in %s', seconds, format_amount(size, BYTES), output)
    if made.root is not None:
        _LOGGER.info('root %s', made.root)
    return 0


def job_of(
    folder: str,
    manifest: Manifest,
    job_file: str | None,
    workers: int | None,
    beam_flags: Sequence[str] = (),
    takes_record: bool = False,
    fetches: bool = True,
) -> BuildJob | EncodeJob:
    """Returns the job that made a dataset, from its job file or from the record of its last run.

    Args:
        folder: of the dataset, an absolute path.
        manifest: of it.
        job_file: its job file; None: what the last run recorded in the folder.
        workers: to run it with; None: as the job has it.
        beam_flags: options of Beam; none: it runs on this machine.
        takes_record: whether it may have the files that its run has read without looking for them, and no
            pass reads these.
        fetches: whether inputs on the web that are not here are fetched, or are an error.

    Raises:
        InputError: there is no record of it, the record would run code, or inputs are missing.
    """
    typed = argparse.Namespace(command=manifest.stage, output=folder, dry_run=not fetches)
    if workers is not None:
        typed.workers = workers
    if job_file is not None:
        finished = with_job_file(typed, job_file)
    else:
        run = read_run(os.path.join(folder, RUN_NAME))
        if (
            run is not None
            and (takes_record or not run.job)
            and len(run.inputs) == len(manifest.inputs)
        ):
            recorded = job_of_record(folder, manifest, workers, beam_flags)
            corpus = recorded.reading.corpus
            _refuse_code(each.spec for split in corpus.splits for each in split.filters)
            if takes_record:
                return recorded
            reading = dataclasses.replace(recorded.reading, corpus=found_again(corpus))
            return dataclasses.replace(recorded, reading=reading)
        if run is None or not run.job:
            raise InputError(
                f'{folder} has no record of the job that made it; give --job with its job file (the command '
                'that made it prints that with --print-job)'
            )
        with tempfile.TemporaryDirectory(prefix='tokbeam-') as place:
            path = os.path.join(place, 'job.toml')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(run.job)
            finished = with_job_file(typed, path)
        of_datasets = [each.clean for split in finished.datasets.values() for each in split]
        _refuse_code(itertools.chain(finished.clean or (), *of_datasets))
        finished.job_path = None
        if manifest.stage == 'encode' and finished.vocab:
            # The vocabularies may be gone, and copies are here.
            finished.vocab = (folder,) * len(finished.vocab)
        if manifest.removed:
            finished.leave_out = os.path.join(folder, manifest.removed[0].name)
    finished.memory = None  # that of the job's own machine
    try:
        job = make_job(finished, beam_flags)
    except InputsToFetch as missing:
        raise InputError(
            f'the corpus is not all here: {missing.lines[0]}{and_more(len(missing.lines) - 1)}; run the '
            f'job of {folder} again, which fetches it'
        ) from missing
    assert isinstance(job, (BuildJob, EncodeJob))
    return job


def _refuse_code(specs: Iterable[str]) -> None:
    """Refuses filters that are functions: whoever wrote the folder would choose what is run."""
    for spec in filter(is_code, specs):
        raise InputError(
            f'the dataset was made with the filter {spec}, which is code; give --job with a job file '
            'of yours to run it'
        )


def workers_of(options: argparse.Namespace) -> int:
    return options.workers or usable_cores()


def and_more(left: int) -> str:
    """Returns what a line says of things that it leaves out; '' if there are none."""
    return f' … and {left:,} more' if left > 0 else ''
