"""The commands of what is there.

`verify`, `where`, `inspect`, `report`, `compare` and `card` look at it and write nothing; `convert`
writes. Only `report` and `compare` run pipelines on any engine, to read a corpus.
"""

import argparse
import functools
import itertools
import json
import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from pipelines.artifacts.manifest import RUN_NAME, read_dataset_manifest, read_run
from pipelines.cli.commands import make_job
from pipelines.cli.parser import with_job_file
from pipelines.cli.printable import printable
from pipelines.cli.summary import rows_lost
from pipelines.cli.terminal import StandardOutput, format_amount, format_time, print_lines
from pipelines.engines.machine import usable_cores
from pipelines.engines.progress import BYTES
from pipelines.files import filesystem
from pipelines.files.vocabulary_files import vocabulary_path
from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.options.commands import known_commands
from pipelines.options.job import ARRAY_RECORD, EndOptions, check_pack
from pipelines.options.reading import options_from
from pipelines.shard_formats.array_record import array_record_library
from pipelines.shard_formats.id_streams import documents_joined
from pipelines.stages.convert import convert_dataset
from pipelines.trust.card import dataset_card
from pipelines.trust.charts import import_charts_ahead
from pipelines.trust.compare import compare_vocabularies, comparison_page
from pipelines.trust.figures import Figures, dataset_figures
from pipelines.trust.inspect import Column, Entry, content_of, sampled, statistics
from pipelines.trust.report import report_page
from pipelines.trust.rerun import Rerun, rerun
from pipelines.trust.verify import Verified, as_json, verify_folder
from pipelines.trust.where import FoundRow, Wanted, find_rows, row_fields
from tokcore.errors import InputError
from tokcore.filters.registry import filter_names
from tokcore.object_stores import is_object
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
    verified = verify_folder(folder, _workers(options), options.root)
    made: Rerun | None = None
    if options.rerun is not None and verified.manifest is not None:
        share = Fraction(1)
        if options.rerun != 'all':
            share = Fraction(options.rerun.removesuffix('%')) / 100
        job = job_of(folder, verified.manifest, options.job, options.workers)
        made = rerun(job, verified.manifest, share, options.seed, _workers(options))
        verified = verified.with_findings(made.findings)
    if options.json:
        more = {'rerun': made and {'rows': made.rows, 'of': made.all_rows}}
        print_lines([as_json(verified, more)])
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
    job = job_of(folder, manifest, options.job, options.workers)
    count, rows = find_rows(job, manifest, wanted, _workers(options), options.head)
    if options.json:
        print_lines(json.dumps(row_fields(row), ensure_ascii=False) for row in rows)
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


def inspect(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    vocabulary = vocabulary_path(options.vocab) if options.vocab else None
    content = content_of(filesystem.absolute(options.path), options.split, vocabulary)
    entries: Iterable[Entry] = content.entries
    if not options.head:
        numbers_of = statistics(entries)
        numbers_of |= {split: {'bytes of text': size} for split, size in content.text_bytes.items()}
        if options.json:
            print_lines([json.dumps({'what': content.what, **numbers_of}, ensure_ascii=False)])
        else:
            print_lines([content.what])
            for name, numbers in numbers_of.items():
                values = ', '.join(f'{key} {value:,}' for key, value in numbers.items())
                print_lines([f'  {name}: {values}'])
        return 0
    _LOGGER.info('%s', content.what)
    if options.seed is not None:
        entries = sampled(entries, options.head, options.seed)
    else:
        entries = itertools.islice(entries, options.head)
    is_empty = True
    with StandardOutput() as target:
        for entry in entries:
            is_empty = False
            if options.json:
                lines = [json.dumps(entry.as_json())]
            else:
                lines = list(entry_lines(entry))
            encoding = getattr(sys.stdout, 'encoding', None) or 'utf-8'
            target.write(
                ''.join(f'{line}\n' for line in lines).encode(encoding, 'backslashreplace')
            )
    if is_empty and not options.json:
        print_lines(['no entry'])
    return 0


def report(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    if options.job is not None and options.corpus is False:
        raise InputError('--job names how the corpus is read; leave out --no-corpus')
    [figures] = _figures([options.path], options, beam_flags, options.job)
    if options.json:
        return _print_json(figures)
    return _print_page(report_page([('', figures)]))


def compare(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    paths = [filesystem.absolute(path) for path in (options.path, options.second)]
    are_folders = [filesystem.is_folder(path) for path in paths]
    if are_folders[0] != are_folders[1]:
        folder, file = paths if are_folders[0] else reversed(paths)
        raise InputError(
            f'{file} is a file, and {folder} a folder; give two datasets, or two vocabularies'
        )
    if not are_folders[0]:
        compared = compare_vocabularies(*paths)
        if options.json:
            return _print_json(compared)
        return _print_page(comparison_page(compared))
    figures = _figures(paths, options, beam_flags)
    if options.json:
        return _print_json(figures)
    return _print_page(report_page(list(zip('AB', figures, strict=True))))


def _figures(
    folders: Sequence[str],
    options: argparse.Namespace,
    beam_flags: Sequence[str],
    job_file: str | None = None,
) -> list[Figures]:
    """Returns the figures of folders, of their corpora too if these are to be read."""

    def find_job(folder: str) -> BuildJob | EncodeJob:
        job = job_of(
            folder,
            read_dataset_manifest(folder),
            job_file,
            options.workers,
            beam_flags,
        )
        paths = [corpus_input.file.path for corpus_input in job.reading.corpus.inputs]
        if not needs_corpus and any(map(is_object, paths)):
            raise InputError('it is in an object store; --corpus reads it from there')
        return job

    # Whoever says how it is read wants it to be read.
    needs_corpus = bool(options.corpus or job_file or beam_flags)
    return [
        dataset_figures(
            folder,
            None if options.corpus is False else functools.partial(find_job, folder),
            needs_corpus,
            _workers(options),
            None if options.work is None else filesystem.absolute(options.work),
            (lambda: None) if options.json else import_charts_ahead,
        )
        for folder in map(filesystem.absolute, folders)
    ]


def _print_json(value: object) -> int:
    print_lines([json.dumps(value)])
    return 0


def _print_page(page: str) -> int:
    """Writes a page as it is; `print_lines` escapes what a terminal cannot show."""
    with StandardOutput() as target:
        target.write(page.encode('utf-8', 'backslashreplace') + b'\n')
    return 0


def card(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    card = dataset_card(filesystem.absolute(options.path))
    print_lines(card.removesuffix('\n').split('\n'))
    return 0


def convert(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    check_pack(options.to, options.pack, '--to')
    ending = options_from(EndOptions, vars(options))
    ending.check(options.to)
    if options.to == ARRAY_RECORD:
        array_record_library()
    output = filesystem.absolute(options.output)
    made = convert_dataset(
        filesystem.absolute(options.path),
        options.to,
        output,
        _workers(options),
        options.overwrite,
        options.pack,
        ending,
    )
    if made is None:
        _LOGGER.info('convert: already done in %s', output)
        return 0
    for line in (*rows_lost(made), *documents_joined(made)):
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
) -> BuildJob | EncodeJob:
    """Returns the job that made a dataset, from its job file or from the record of its last run.

    Args:
        folder: of the dataset, an absolute path.
        manifest: of it.
        job_file: its job file; None: what the last run recorded in the folder.
        workers: to run it with; None: as the job has it.
        beam_flags: options of Beam; none: it runs on this machine.

    Raises:
        InputError: there is no record of it, or the record would run code.
    """
    job_from = functools.partial(_job_from, folder, manifest, workers, beam_flags)
    if job_file is not None:
        return job_from(job_file)
    run = read_run(os.path.join(folder, RUN_NAME))
    if run is None or not run.job:
        raise InputError(
            f'{folder} has no record of the job that made it; give --job with its job file (the command '
            'that made it prints that with --print-job)'
        )
    with tempfile.TemporaryDirectory(prefix='tokbeam-') as place:
        path = os.path.join(place, 'job.toml')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(run.job)
        return job_from(path, is_record=True)


def _job_from(
    folder: str,
    manifest: Manifest,
    workers: int | None,
    beam_flags: Sequence[str],
    path: str,
    is_record: bool = False,
) -> BuildJob | EncodeJob:
    known = known_commands()
    typed = argparse.Namespace(command=manifest.stage, output=folder, dry_run=False)
    if workers is not None:
        typed.workers = workers
    finished = with_job_file(known, typed, path)
    finished.memory = None  # that of the job's own machine
    if is_record:
        _refuse_code(finished)
        finished.job_path = None
        if manifest.stage == 'encode' and finished.vocab:
            # The vocabularies may be gone, and copies are here.
            finished.vocab = (folder,) * len(finished.vocab)
    job = make_job(finished, beam_flags)
    assert isinstance(job, (BuildJob, EncodeJob))
    return job


def _refuse_code(options: argparse.Namespace) -> None:
    """Refuses filters that are functions: whoever wrote the folder would choose what is run."""
    of_datasets = [dataset.clean for split in options.datasets.values() for dataset in split]
    for spec in (spec for specs in (options.clean or (), *of_datasets) for spec in specs):
        if spec.partition(':')[0] not in filter_names():
            raise InputError(
                f'the dataset was made with the filter {spec}, which is code; give --job with a job file '
                'of yours to run it'
            )


def _workers(options: argparse.Namespace) -> int:
    return options.workers or usable_cores()


_COLOURS = ('\x1b[36m', '\x1b[33m')
_BOLD, _PLAIN = '\x1b[1m', '\x1b[0m'

_MOST_VALUES = 2_000
"""Of a row that is shown to a reader; --json has all of them."""


def entry_lines(entry: Entry) -> Iterator[str]:
    """Yields the lines of an entry, fit for standard output."""
    coloured = sys.stdout is not None and sys.stdout.isatty()

    def shown(text: str, colour: str = '') -> str:
        text = printable(text, sys.stdout)
        return f'{colour}{text}{_PLAIN}' if coloured and colour else text

    if entry.token is not None:
        count = '' if entry.count is None else f'  {entry.count:,}'
        yield f'{entry.number:>8}  {shown(repr(entry.token)[1:-1], _COLOURS[0])}{count}'
        return
    yield shown(f'{entry.where} {entry.number}'.strip(), _BOLD)
    for name, column in (entry.columns or {}).items():
        if column.text is not None:
            yield f'  {name}: {shown(column.text)}'
        if column.pieces is not None:
            pieces = column.pieces[:_MOST_VALUES]
            texts = (
                shown(piece.replace(' ', '␣'), _COLOURS[at % 2]) for at, piece in enumerate(pieces)
            )
            yield f'    pieces: {" ".join(texts)}{_rest(column)}'
        label = f'  {name}: ' if column.pieces is None else '    ids: '
        values = ' '.join(map(_value, column.values[:_MOST_VALUES]))
        yield f'{label}{shown(values)}{_rest(column)}'


def _value(value: object) -> str:
    return (
        repr(value.decode('utf-8', 'backslashreplace')) if isinstance(value, bytes) else str(value)
    )


def _rest(column: Column) -> str:
    return and_more(len(column.values) - _MOST_VALUES)


def and_more(left: int) -> str:
    """Returns what a line says of things that it leaves out; '' if there are none."""
    return f' … and {left:,} more' if left > 0 else ''
