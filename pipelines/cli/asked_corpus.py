"""The corpus that a command's options ask for: what is on the web of it is fetched before."""

import argparse
from collections.abc import Sequence

from pipelines.cli.given_files import split_paths
from pipelines.cli.standard_output import print_lines
from pipelines.fetching.fetched_files import fetch_all, fetched_before
from pipelines.fetching.web_addresses import is_web_address
from pipelines.files import filesystem
from pipelines.files.work_folder import WorkFolder
from pipelines.jobs.corpus_files import Corpus, find_corpus
from pipelines.transforms.read_corpus import find_files
from tokcore.errors import InputError


def asked_corpus(
    options: argparse.Namespace, splits: Sequence[str], folder: str
) -> Corpus | None:
    """Returns the corpus of some splits; None of a dry run where not all of it is there.

    What would be fetched is printed then, and all other paths are looked for.

    Args:
        options: of a command.
        splits: that it reads.
        folder: of its output, where the work folder is if none is given.

    Raises:
        InputError: what is given for the splits does not go together, is not there, or cannot be
            fetched.
    """
    corpus = _found_corpus(options, splits, folder)
    if corpus and options.keep_rejected and not any(each.filters for each in corpus.splits):
        raise InputError(
            '--keep-rejected keeps what --clean drops, and no split has it; leave it out (with '
            '--on-error=skip lines that cannot be used are kept in any case)'
        )
    return corpus


def _found_corpus(
    options: argparse.Namespace, splits: Sequence[str], folder: str
) -> Corpus | None:
    given, keeps = split_paths(options, splits), options.keep_rejected
    if not options.fetch:
        return find_corpus(given, keeps_dropped=keeps)
    paths = [path for each in given for paths in each.paths.values() for path in paths]
    work = WorkFolder(filesystem.absolute(options.work) if options.work else None, folder).path
    if not options.dry_run:
        return find_corpus(given, fetch_all(paths, work), keeps)
    there, missing = fetched_before(paths, work)
    if not missing:
        return find_corpus(given, there, keeps)
    for path in paths:
        if not is_web_address(path):
            find_files(path)
    print_lines(missing)
    return None
