"""`export`: a vocabulary as the files of another tool, in a folder that opens as it stands."""

import argparse
import os
from collections.abc import Iterator, Sequence

from pipelines.artifacts.vocabularies import read_vocabulary, scheme_of
from pipelines.cli.terminal import print_lines
from pipelines.files import filesystem
from pipelines.files.vocabulary_files import vocabulary_path
from tokcore.encoding.tokenizer_folder import ExportTarget
from tokcore.errors import InputError
from tokcore.exporting import exported_files, prove
from tokcore.process_end import temporary_folder

_LIBRARIES: dict[ExportTarget, str] = {
    'huggingface': 'tokenizers',
    'tiktoken': 'tiktoken',
    'sentencepiece': 'sentencepiece',
    'vocab.txt': 'transformers<5',
    'subword-nmt': 'subword-nmt',
}


def export(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Writes the folder, proved or not; returns the command's status.

    Raises:
        InputError: the tool cannot hold the vocabulary, or encodes the sample otherwise.
    """
    path = vocabulary_path(options.path)
    folder = filesystem.absolute(options.output)
    if '://' in folder:
        raise InputError('export writes to this machine; give a path here, and copy the folder')
    if os.path.lexists(folder):
        raise InputError(f'{folder} is there already; give another --output, or remove it')
    parent, name = os.path.split(folder)
    target: ExportTarget = options.to
    scheme = scheme_of([path], options.scheme, vars(options))
    vocabulary = read_vocabulary(path, scheme).entries
    files = exported_files(scheme, vocabulary, target, name)
    os.makedirs(parent, exist_ok=True)
    with temporary_folder('.tokbeam-export-', parent) as attempt:
        for file, data in files.items():
            place = os.path.join(attempt, file)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, 'wb') as written:
                written.write(data)
        try:
            lines: int | None = prove(attempt, scheme, vocabulary, target, name)
        except ImportError:
            lines = None
        os.chmod(attempt, 0o755)
        os.rename(attempt, folder)
    print_lines(_outcome(folder, sorted(files), target, lines))
    return 0


def _outcome(
    folder: str, files: Sequence[str], target: ExportTarget, lines: int | None
) -> Iterator[str]:
    yield f'{folder}: {", ".join(files)}'
    library = _LIBRARIES[target]
    if lines is None:
        yield f"UNPROVED: install '{library}', and the sample is encoded with it"
    else:
        yield f'proved: {library.partition("<")[0]} encodes {lines:,} lines as tokbeam does'
