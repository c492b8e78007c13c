"""Token counts as files: COUNTS folders, single Parquet files, and lines of text."""

import dataclasses
import functools
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import google_crc32c
import pyarrow.parquet as parquet

from pipelines.artifacts.count_batches import refusing_no_counts
from pipelines.artifacts.manifest import MANIFEST_NAME, InputText, OutputFile, read_manifest
from pipelines.artifacts.recorded_rules import earlier_rules
from pipelines.artifacts.stage_output import InputState
from pipelines.files import filesystem
from pipelines.files.filesystem import StoredFile
from pipelines.files.trial_reading import column_names, no_counts, read_on_trial
from pipelines.transforms.count_tokens import UNICODE_KEY
from tokcore.corpus.dataset import OpenBinary
from tokcore.corpus.storage.stored_file import open_path
from tokcore.encoding.token_rules import (
    NORMALIZER_KEY,
    PRE_TOKENIZER_KEY,
    TokenRules,
    check_rules,
)
from tokcore.errors import InputError
from tokcore.text.unicode_tables import check_unicode

_PARQUET_MAGIC = b'PAR1'
_ENCRYPTED_MAGIC = b'PARE'


_BYTES_AT_ONCE = 1 << 20

_HELD_BYTES = 256 << 20
"""Of files that are held from the first look at them until their tokens are read: what is stored is
some hundredth of what a learner takes. Files beyond that are read twice."""

_LENGTH_BYTES = 4
"""Of each string in an uncompressed Parquet column."""


@dataclass(frozen=True)
class CountedSize:
    """What count files hold, as their sizes tell."""

    tokens: int
    bytes: int  # of the tokens' text
    all_parquet: bool


@dataclass(frozen=True)
class _Look:
    """What is known of a count file once it was read."""

    bytes: int
    crc32c: str
    is_parquet: bool
    unicode: str | None  # as it records it
    recorded_rules: TokenRules | None
    tokens: int
    text_bytes: int

    @property
    def rules(self) -> TokenRules | None:
        """The rules that found the tokens; None if this is no file of ours.

        Version 0.1.0 at 6b30307 recorded the Unicode version and no rules.
        """
        if self.recorded_rules is None and self.unicode is not None:
            return earlier_rules()
        return self.recorded_rules


@dataclass(frozen=True)
class CountFiles:
    """The files that `--counts` names, in the order given, each read once for all that is asked.

    Attributes:
        files: where they are.
        partitions: how many there are, if they are all partitions of one count, in their order.
        stated: by path the CRC-32C of those that a manifest lists, which is compared before
            anything else is made of a file.
    """

    files: tuple[StoredFile, ...]
    partitions: int = 0
    stated: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __getstate__(self) -> dict[str, object]:
        # Workers read their files themselves.
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}

    def wanted_inputs(self) -> tuple[InputState, ...]:
        return tuple(
            InputState('train', 'counts', file, lambda file=file: self._text(file))
            for file in self.files
        )

    def size(self) -> CountedSize:
        """Returns how much the files hold: from Parquet's footers, and of text files by a guess.

        Of those a token and its count are taken for 12 bytes.
        """
        looks = [self.look(file) for file in self.files]
        return CountedSize(
            sum(each.tokens for each in looks),
            sum(each.text_bytes for each in looks),
            all(each.is_parquet for each in looks),
        )

    def look(self, file: StoredFile) -> _Look:
        """Returns what a file is; reads it if that was not done yet.

        Raises:
            InputError: it cannot be read, is no count file, or is not what its manifest states.
        """
        if file.path not in self._looks:
            held = sum(map(len, self._held.values())) + file.size
            if held <= _HELD_BYTES:
                self._held[file.path] = filesystem.read_bytes(file.path)
            stated = self.stated.get(file.path)
            self._looks[file.path] = _look(file.path, self.opened, stated)
        return self._looks[file.path]

    def opened(self, path: str) -> BinaryIO:
        """Opens a file: what is held of it, or where it is stored."""
        if path in self._held:
            return io.BytesIO(self._held[path])
        return filesystem.open_binary(path)

    def let_go(self, *files: StoredFile) -> None:
        """Holds these files' bytes no longer."""
        for file in files:
            self._held.pop(file.path, None)

    @functools.cached_property
    def _looks(self) -> dict[str, _Look]:
        return {}

    @functools.cached_property
    def _held(self) -> dict[str, bytes]:
        return {}

    def _text(self, file: StoredFile) -> InputText:
        look = self.look(file)
        check_unicode(look.unicode, f'the count file {file.path}')
        unicode = look.unicode or 'not recorded'
        return InputText(
            'train', 'counts', file.name, look.bytes, look.crc32c, unicode, look.recorded_rules
        )


def find_counts(paths: Sequence[str]) -> CountFiles:
    """Finds count files; a folder stands for the files that its manifest lists.

    What a manifest lists is compared with its checksums here, before anything else reads it. Of
    other Parquet files nothing is known, so those of this machine are read on trial.

    Raises:
        InputError: nothing is there, or a folder or a file is not whole.
    """
    files: list[StoredFile] = []
    stated: list[OutputFile | None] = []
    for given in paths:
        path = filesystem.absolute(given)
        if filesystem.is_folder(path):
            listed = _folder_files(path)
            files += [file for file, _ in listed]
            stated += [entry for _, entry in listed]
        else:
            found = filesystem.find(given)
            files += found
            stated += [None] * len(found)
    read_on_trial(
        [
            (file.path, file.size)
            for file, entry in zip(files, stated, strict=True)
            if entry is None and filesystem.is_local(file.path) and _is_parquet(file.path)
        ]
    )
    partitions = len(files) if len(paths) == 1 and None not in stated else 0
    listed_crcs = {
        file.path: entry.crc32c for file, entry in zip(files, stated, strict=True) if entry
    }
    counts = CountFiles(tuple(files), partitions, listed_crcs)
    for file in files:
        if file.path in listed_crcs:
            counts.look(file)
    return counts


def _folder_files(folder: str) -> list[tuple[StoredFile, OutputFile]]:
    manifest = read_manifest(filesystem.join(folder, MANIFEST_NAME))
    if manifest is None or manifest.stage != 'count' or not manifest.files:
        raise InputError(
            f'{folder} has no {MANIFEST_NAME} of a finished count; run `tokbeam count` to its end '
            'or give the files themselves'
        )
    stored = {file.name: file for file in filesystem.list_folder(folder)}
    for file in manifest.files:
        if file.name not in stored or stored[file.name].size != file.bytes:
            raise InputError(
                f'{folder}/{file.name} is missing or not of the size that {MANIFEST_NAME} states; '
                'count again with --overwrite'
            )
    base = filesystem.split_path(folder)[1]
    return [
        (dataclasses.replace(stored[file.name], name=f'{base}/{file.name}'), file)
        for file in manifest.files
    ]


def check_recorded(counts: CountFiles, rules: TokenRules | None = None) -> None:
    """Holds what files record against this Python, and the rules that are asked for, if any.

    Raises:
        InputError: a file records another Unicode version, or other rules.
    """
    for file in counts.files:
        look = counts.look(file)
        check_unicode(look.unicode, f'the count file {file.path}')
        if rules is not None:
            check_rules(look.rules, rules, f'the count file {file.path}')


def _look(path: str, open_binary: OpenBinary, stated: str | None) -> _Look:
    checksum = google_crc32c.Checksum()
    size = 0
    with open_path(path, open_binary) as stream:
        while piece := stream.read(_BYTES_AT_ONCE):
            checksum.update(piece)
            size += len(piece)
    crc32c = checksum.digest().hex()
    if stated not in (None, crc32c):
        raise InputError(
            f'{path} has CRC-32C {crc32c}, but {MANIFEST_NAME} states {stated}: it was '
            'changed or damaged; count again with --overwrite'
        )
    if not _is_parquet(path, open_binary):
        return _Look(size, crc32c, False, None, None, size // 12, size)
    with open_path(path, open_binary) as stream:
        parquet_file = open_parquet(path, stream)
        unicode, rules = _recorded(path, parquet_file)
        tokens, text_bytes = _tokens_and_bytes(parquet_file.metadata)
    return _Look(size, crc32c, True, unicode, rules, tokens, text_bytes)


def _tokens_and_bytes(metadata: parquet.FileMetaData) -> tuple[int, int]:
    size = 0
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            if column.path_in_schema.split('.')[0] == 'token':
                lengths = _LENGTH_BYTES * column.num_values
                size += max(0, column.total_uncompressed_size - lengths)
    return metadata.num_rows, size


def _is_parquet(path: str, open_binary: OpenBinary = filesystem.open_binary) -> bool:
    """Tells a Parquet file by its first bytes. Raises InputError if its footer is encrypted."""
    with open_path(path, open_binary) as stream:
        magic = stream.read(len(_PARQUET_MAGIC))
    if magic == _ENCRYPTED_MAGIC:
        raise InputError(f'{path} is an encrypted Parquet file; decrypt it first')
    return magic == _PARQUET_MAGIC


def open_parquet(path: str, stream: BinaryIO) -> parquet.ParquetFile:
    """Opens a Parquet file of counts; raises InputError if it is none."""
    with refusing_no_counts(path):
        parquet_file = parquet.ParquetFile(stream)
        column_names(parquet_file)
        return parquet_file


def _recorded(
    path: str, parquet_file: parquet.ParquetFile
) -> tuple[str | None, TokenRules | None]:
    """Returns the Unicode version and the rules that a file of counts records."""
    stored = parquet_file.schema_arrow.metadata or {}
    recorded: dict[str, str] = {}
    for key in (UNICODE_KEY, NORMALIZER_KEY, PRE_TOKENIZER_KEY):
        try:
            if key.encode() in stored:
                recorded[key] = stored[key.encode()].decode()
        except UnicodeDecodeError as error:
            raise no_counts(path, f'{key} in its metadata: {error}') from error
    try:
        return recorded.get(UNICODE_KEY) or None, TokenRules.of_metadata(recorded)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        keys = f'{NORMALIZER_KEY} or {PRE_TOKENIZER_KEY}'
        raise no_counts(path, f'{keys} in its metadata: {error}') from error
