"""Vocabulary files: read, and checked against the manifest of the run that made them.

A flipped bit within a subtoken still leaves a valid vocabulary, only a different one. The checksum in
the manifest reveals it; a file from elsewhere has no manifest and is used as it is.

Where the files lie with which Hugging Face's libraries open a vocabulary by its folder:

data/vocab.txt, data/tokenizer.json       the folder itself, where the file is called as these
                                          libraries call it
data/bert.txt.tokenizer/tokenizer.json    a folder of its own for a file of another name
data/enzh/tokenizer.json                  the folder of a dataset with one vocabulary
data/enzh/tokenizer.inputs/, ….targets/   folders in that of a dataset with two of them

`encode` learns nothing: it copies the files of its vocabulary, by their names, into

data/enzh/tokenizer/                      for one vocabulary
data/enzh/tokenizer.inputs/, ….targets/   for two of them
"""

import dataclasses
import functools
import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import google_crc32c

from pipelines.artifacts.manifest import read_manifest
from pipelines.engines.progress import AT_ONCE
from pipelines.files import filesystem
from pipelines.options.job import STREAM_FORMATS, EndOptions
from pipelines.options.vocabulary import scheme_from_options
from tokcore.corpus.contents import refuse_but
from tokcore.encoding.document_ends import (
    EndOfDocument,
    end_candidates,
    end_of_document,
    unknown_end,
)
from tokcore.encoding.hub_folders import TOKENIZER_FOLDER, manifests_of
from tokcore.encoding.scheme import EncodingOptions, Scheme, check_rules, refuse_different
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError
from tokcore.records.manifest import Manifest, OutputFile, VocabularyRecord
from tokcore.schemes import DEFAULT_SCHEME, find_scheme, scheme_names, schemes_of_file
from tokcore.text.unicode import check_unicode

_LOGGER = logging.getLogger(__name__)

TOKENIZER_FILE = rf'tokenizer(_config)?\.json|tokenizer\.vocab|{TOKENIZER_FOLDER}/[^/]+'
"""The names of files of tokenizer folders in datasets, as a regular expression."""

_STATED_LICENCE = re.compile(r'^license(?:_name)?:[ \t]*["\']?([\w.+-]+)', re.MULTILINE)


@dataclass(frozen=True)
class ReadVocabulary:
    """A whole vocabulary file."""

    entries: Vocabulary
    data: bytes  # the file as it is stored
    crc32c: str  # of the data, as manifests have it
    unicode: str | None  # of the Python whose tables cut its tokens, None if not recorded
    beside: tuple[OutputFile, ...] = ()  # other files that it was read from, by names in its folder
    licence: str | None = None  # as its manifest records it
    ends: Mapping[str, int] = dataclasses.field(default_factory=dict)  # what may end its documents


def scheme_of(
    paths: Iterable[str], requested: str | None = None, values: Mapping[str, object] | None = None
) -> Scheme:
    """Returns the scheme of vocabulary files, with the options of its tokens.

    It is the one that a manifest records, or the requested one, or else the only scheme whose files
    have this form. Options that the command line does not give are as recorded.

    Args:
        paths: of the files; none for a scheme that needs none.
        requested: the scheme's name from the command line, if there is one.
        values: options from the command line, by `Declared.key`.

    Raises:
        InputError: the files, or the request, are of different schemes or token options; or nothing
            shows which scheme it is.
    """
    schemes = {f'--scheme {requested} is asked for': requested} if requested else {}
    stated: dict[str, Mapping[str, object]] = {}  # options, by the path
    for path in paths:
        _, record = _recorded(path)
        if record is not None:
            scheme = record.scheme
            schemes[f'the vocabulary {path} was made with --scheme {scheme}'] = scheme
            stated[path] = record.scheme_options or {}
        elif requested is None:
            scheme = _scheme_by_form(path)
            schemes[f'the vocabulary {path} is by its form one of --scheme {scheme}'] = scheme
        if record is None and (name := requested or scheme) in scheme_names():
            found, data = find_scheme(name), _read(path)
            stated[path] = found.options_from_file(data, path, filesystem.read_if_there)
            if values is not None:  # `inspect` and `compare` have no such options
                found.refuse_unstated(data, path, {**stated[path], **values})
    first, name = next(iter(schemes.items()), ('', DEFAULT_SCHEME))
    for statement, scheme in schemes.items():
        if scheme != name:
            raise InputError(f'{statement}, but {first}; give vocabularies of one scheme')
        if scheme not in scheme_names():
            known = ', '.join(scheme_names())
            raise InputError(f'{statement}, which this version does not know: there are {known}')
    given = dict(values or {})
    refuse_different(
        {
            path: scheme_from_options(name, {**options, **given})
            for path, options in stated.items()
            if options
        }
    )
    recorded_options = {key: value for each in stated.values() for key, value in each.items()}
    return scheme_from_options(name, recorded_options | given)


def needs_no_vocabulary(scheme: str | None) -> bool:
    """Returns whether a scheme needs no vocabulary file, as `byte`; False for None."""
    return scheme is not None and find_scheme(scheme).fixed is not None


def _read(path: str) -> bytes:
    data = filesystem.read_bytes(path)
    refuse_but('a vocabulary', path, data)
    return data


def _scheme_by_form(path: str) -> str:
    fitting = schemes_of_file(_read(path))
    if len(fitting) != 1:
        raise InputError(
            f'{path} has no record beside it, and its form does not tell what kind of vocabulary '
            f'it is; give --scheme, one of {", ".join(scheme_names())}'
        )
    return fitting[0]


def read_vocabulary(path: str, scheme: Scheme) -> ReadVocabulary:
    """Reads a vocabulary file of a scheme, and looks for its manifest next to it.

    That is `FILE.tokbeam.json`, or else the `tokbeam.json` of the folder, or of the dataset whose
    tokenizer folder it is, if it lists the file.

    Raises:
        InputError: the file cannot be read, is not a vocabulary or not the one that its manifest
            tells of, or was made with another Unicode version than this Python's, or for other
            rules of tokens than the scheme's.
    """
    data = _read(path)
    crc32c = f'{google_crc32c.value(data):08x}'
    manifest_path, record = _recorded(path)
    unicode, licence = (None, None) if record is None else (record.unicode, record.licence)
    if record is not None:
        check_unicode(record.unicode, f'the vocabulary {path}')
        check_rules(record.rules, scheme.rules, f'the vocabulary {path}')
        if (len(data), crc32c) != (record.bytes, record.crc32c):
            raise InputError(
                f'{path} has {len(data)} bytes with CRC-32C {crc32c}, and {manifest_path} tells of '
                f'{record.bytes} with {record.crc32c}; make it again, or if it was changed on '
                'purpose, give a copy in another folder'
            )
    beside: dict[str, OutputFile] = {}

    def read(other: str) -> bytes | None:
        content = filesystem.read_if_there(other)
        if content is not None:
            name = os.path.basename(other)
            beside[name] = file_entry(name, content)
        return content

    entries = scheme.parse(data, path, read)
    ends = end_candidates(entries, path, filesystem.read_if_there)
    if record is not None:
        for file in record.beside:
            above, name = os.path.split(file.name)
            found = beside.get(name, file) if above == os.path.dirname(record.name) else file
            if (found.bytes, found.crc32c) != (file.bytes, file.crc32c):
                raise InputError(
                    f'{file.name} beside {path} is not the one that {manifest_path} tells of; make '
                    'both again, or give copies in another folder'
                )
    return ReadVocabulary(entries, data, crc32c, unicode, tuple(beside.values()), licence, ends)


VocabularyReader = Callable[[str], ReadVocabulary]


def vocabulary_reader(scheme: Scheme) -> VocabularyReader:
    """Returns a function that reads each vocabulary of a scheme once, by its path."""
    return functools.cache(functools.partial(read_vocabulary, scheme=scheme))


def stated_licence(path: str) -> str | None:
    """Returns the licence that the README.md next to a file states in its YAML header, as hubs have it.

    Where it is `other`, that is its `license_name`, if there is one.
    """
    data = filesystem.read_if_there(os.path.join(os.path.dirname(path), 'README.md')) or b''
    header = re.match(r'---\s*\n(.*?)\n---', data.decode('utf-8', 'replace'), re.DOTALL)
    stated = _STATED_LICENCE.findall(header[1]) if header else []
    return next((name for name in stated if name != 'other'), stated[0] if stated else None)


def ends_of_documents(
    paths: Mapping[str, str],
    scheme: Scheme,
    template: str | None,
    options: EndOptions,
    output_format: str,
    read: VocabularyReader | None = None,
) -> tuple[EndOfDocument, ...]:
    """Returns the token that ends the documents of each feature, as far as it is known.

    Args:
        paths: of the vocabularies, by feature.
        scheme: of the vocabularies.
        template: the value of `--template`.
        options: of the end.
        output_format: of the rows; where it joins them, the end must be known.
        read: reads the vocabularies; None: `read_vocabulary`.

    Raises:
        InputError: a vocabulary does not have the end that is asked for, or it must be known and is not.
    """
    ends = []
    read = read or vocabulary_reader(scheme)
    for feature, path in {} if options.has_no_end else paths.items():
        if scheme.fixed is None:
            entries, candidates = read(path).entries, read(path).ends
        else:
            entries, candidates = scheme.fixed, end_candidates(scheme.fixed)
        around = scheme.template(entries, template)
        end = end_of_document(feature, entries, candidates, around, options.end)
        if end is not None:
            ends.append(end)
        elif output_format in STREAM_FORMATS:
            raise unknown_end(path, candidates)
    return tuple(ends)


def warn_of_missing_tokens(
    scheme: Scheme, id_of: Callable[[str], int | None], encoding: EncodingOptions, vocabulary: str
) -> None:
    """Logs a warning, before any work, if a vocabulary lacks special tokens that encoding uses."""
    missing = scheme.missing_tokens(id_of, encoding, vocabulary)
    if missing is not None:
        _LOGGER.warning('%s', missing, extra={AT_ONCE: True})


def file_entry(name: str, data: bytes) -> OutputFile:
    """Returns the entry of a file of lines in a manifest."""
    crc32c = f'{google_crc32c.value(data):08x}'
    sha256 = hashlib.sha256(data).hexdigest()
    return OutputFile(name, len(data), crc32c, data.count(b'\n'), sha256)


def folder_for_file(name: str, scheme: Scheme) -> str:
    """Returns the tokenizer folder of a vocabulary file, seen from the file's; '' is that itself."""
    return '' if name == scheme.name_in_tokenizer_folder else f'{name}.tokenizer'


def folder_for_side(side: str) -> str:
    """Returns the tokenizer folder of a dataset's vocabulary, seen from the dataset's."""
    return '' if side == 'both' else f'tokenizer.{side}'


def name_of_copy(side: str, path: str) -> str:
    """Returns the name in a dataset of the copy of a vocabulary's file."""
    return f'{folder_for_side(side) or "tokenizer"}/{os.path.basename(path)}'


def tokenizer_paths(folder: str, scheme: Scheme) -> list[str]:
    """Returns the paths of all files in a tokenizer folder."""
    return [path_in_folder(folder, name) for name in scheme.tokenizer_file_names]


def path_in_folder(folder: str, name: str) -> str:
    """Returns the path of a file in a tokenizer folder, `/` between names, seen from where that is."""
    return f'{folder}/{name}' if folder else name


def recorded_manifest(path: str) -> Manifest | None:
    """Returns the manifest of the run that made a vocabulary file; None if no manifest lists it."""
    manifest_path, record = _recorded(path)
    return None if record is None else read_manifest(manifest_path)


def _recorded(path: str) -> tuple[str, VocabularyRecord | None]:
    for manifest_path, listed in manifests_of(path).items():
        manifest = read_manifest(manifest_path)
        for record in manifest.vocabularies if manifest else ():
            if record.name == listed:
                return manifest_path, record
    return '', None
