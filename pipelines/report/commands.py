"""Runs the commands `inspect`, `report`, `compare` and `card`, which write nothing.

Only `report` and `compare` run pipelines on any engine, to read a corpus.
"""

import argparse
import functools
import itertools
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence

from pipelines.artifacts.manifest import read_dataset_manifest
from pipelines.cli.folder_commands import and_more, job_of, workers_of
from pipelines.cli.printable import fitted, printable
from pipelines.cli.terminal import print_data, print_lines, standard_output
from pipelines.files import filesystem
from pipelines.files.vocabulary_files import vocabulary_path
from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.report.card import dataset_card
from pipelines.report.charts import import_charts_ahead
from pipelines.report.comparison import (
    compare_vocabularies,
    comparison_page,
    cut_by_datasets,
    text_of_file,
    text_sections,
)
from pipelines.report.croissant import croissant
from pipelines.report.figures import Figures, dataset_figures
from pipelines.report.inspect import Entry, content_of, sampled, statistics
from pipelines.report.page import report_page
from tokcore.errors import InputError
from tokcore.object_stores import is_object

_LOGGER = logging.getLogger(__name__)


def inspect(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Prints entries of what a path holds, or numbers of all of them."""
    vocabulary = vocabulary_path(options.vocab) if options.vocab else None
    what, entries, text_bytes = content_of(
        filesystem.absolute(options.path), options.split, vocabulary
    )
    if not options.head:
        numbers_by_name = statistics(entries)
        numbers_by_name |= {split: {'bytes of text': size} for split, size in text_bytes.items()}
        if options.json:
            print_data([json.dumps({'what': what, **numbers_by_name}, ensure_ascii=False)])
        else:
            print_lines([what])
            for name, numbers in numbers_by_name.items():
                values = ', '.join(f'{key} {value:,}' for key, value in numbers.items())
                print_lines([f'  {name}: {values}'])
        return 0
    _LOGGER.info('%s', what)
    if options.seed is not None:
        entries = sampled(entries, options.head, options.seed)
    else:
        entries = itertools.islice(entries, options.head)
    is_empty = True
    with standard_output() as write:
        for entry in entries:
            is_empty = False
            if options.json:
                lines = [json.dumps({**entry[0], **entry[1]}, default=bytes.hex)]
            else:
                lines = [fitted(line, sys.stdout) for line in entry_lines(entry)]
            encoding = getattr(sys.stdout, 'encoding', None) or 'utf-8'
            write(''.join(f'{line}\n' for line in lines).encode(encoding, 'backslashreplace'))
    if is_empty and not options.json:
        print_lines(['no entry'])
    return 0


def report(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Prints the report of a dataset."""
    if options.job is not None and options.corpus is False:
        raise InputError('--job names how the corpus is read; leave out --no-corpus')
    [figures] = _figures([options.path], options, beam_flags, options.job)
    return _print(options, figures, lambda: report_page([('', figures)]))


def compare(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Prints the report of two datasets, or of two vocabularies."""
    paths = [filesystem.absolute(path) for path in (options.path, options.second)]
    are_folders = [filesystem.is_folder(path) for path in paths]
    if are_folders[0] != are_folders[1]:
        folder, file = paths if are_folders[0] else reversed(paths)
        raise InputError(
            f'{folder} is a folder and {file} is a file; give two datasets, or two vocabularies'
        )
    text = None
    if options.common_text is not None:
        text = text_of_file(filesystem.absolute(options.common_text))
    if not are_folders[0]:
        compared = compare_vocabularies(paths, text)
        return _print(options, compared, lambda: comparison_page(compared))
    figures = _figures(paths, options, beam_flags)
    cut = cut_by_datasets(paths, text)
    named = list(zip('AB', figures, strict=True))
    return _print(
        options,
        {'text': cut, 'datasets': figures},
        lambda: report_page(named, text_sections(cut)),
    )


def _figures(
    folders: Sequence[str],
    options: argparse.Namespace,
    beam_flags: Sequence[str],
    job_file: str | None = None,
) -> list[Figures]:
    """Returns the figures of folders, of their corpora too if these are to be read."""

    def find_job(folder: str) -> BuildJob | EncodeJob:
        manifest = read_dataset_manifest(folder)
        job = job_of(folder, manifest, job_file, options.workers, beam_flags, fetches=False)
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
            workers_of(options),
            None if options.work is None else filesystem.absolute(options.work),
            (lambda: None) if options.json else import_charts_ahead,
        )
        for folder in map(filesystem.absolute, folders)
    ]


def _print(options: argparse.Namespace, figures: Figures, page: Callable[[], str]) -> int:
    """Prints figures as JSON, or a page as it is; `print_data` escapes what a terminal cannot show."""
    if options.json:
        print_data([json.dumps(figures)])
    else:
        with standard_output() as write:
            write(page().encode('utf-8', 'backslashreplace') + b'\n')
    return 0


def card(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Prints the card of a dataset, for readers or for programs."""
    text = (croissant if options.croissant else dataset_card)(filesystem.absolute(options.path))
    print_data(text.removesuffix('\n').split('\n'))
    return 0


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

    fields, columns = entry
    if 'token' in fields:
        count = f'  {fields["count"]:,}' if 'count' in fields else ''
        yield f'{fields["number"]:>8}  {shown(repr(fields["token"])[1:-1], _COLOURS[0])}{count}'
        return
    yield shown(f'{fields.get("split", "")} {fields["number"]}'.strip(), _BOLD)
    for name, column in columns.items():
        label, values = (
            ('    ids: ', column['ids']) if 'ids' in column else (f'  {name}: ', column['values'])
        )
        more = and_more(len(values) - _MOST_VALUES)
        if column.get('text') is not None:
            yield f'  {name}: {shown(column["text"])}'
        if 'pieces' in column:
            pieces = column['pieces'][:_MOST_VALUES]
            texts = (
                shown(piece.replace(' ', '␣'), _COLOURS[at % 2]) for at, piece in enumerate(pieces)
            )
            yield f'    pieces: {" ".join(texts)}{more}'
        yield f'{label}{shown(" ".join(map(_value, values[:_MOST_VALUES])))}{more}'


def _value(value: object) -> str:
    return (
        repr(value.decode('utf-8', 'backslashreplace')) if isinstance(value, bytes) else str(value)
    )
