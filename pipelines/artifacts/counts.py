"""Token counts on disk: COUNTS folders, single Parquet files, and lines of text.

A COUNTS folder has one Parquet file per hash partition and a manifest that lists them. Files are
read whole as one table, or batch by batch in workers.
"""

import contextlib
import dataclasses
import functools
import io
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from pipelines.artifacts.manifest import read_manifest
from pipelines.artifacts.outputs import InputState
from pipelines.files import filesystem
from pipelines.files.filesystem import StoredFile
from pipelines.files.trial_reading import column_names, no_counts, read_on_trial
from pipelines.transforms.count_tokens import (
    LAST_WORD_KEY,
    UNICODE_KEY,
    WrittenCounts,
    counts_name,
    write_counts_file,
)
from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.contents import refuse
from tokcore.corpus.corpus import MAX_LINE_BYTES, CorpusFile, LongLine, OpenBinary
from tokcore.corpus.line_reading import whole_lines
from tokcore.corpus.looks import Looks
from tokcore.corpus.storage import open_path
from tokcore.counts.tables import (
    COUNT_PARTITIONS,
    concatenate_tables,
    is_partition,
    merge_tables,
    read_counts_text,
    refuse_unstorable,
    scale_table,
)
from tokcore.counts.token_table import TokenTable, token_arrays
from tokcore.counts.weights import factors_of_tables, reason_against, spelled_weight
from tokcore.encoding.scheme import (
    NORMALIZER_KEY,
    PRE_TOKENIZER_KEY,
    Scheme,
    TokenRules,
    check_rules,
)
from tokcore.errors import InputError
from tokcore.records.manifest import MANIFEST_NAME, InputText, Manifest, OutputFile
from tokcore.text.unicode import check_unicode

_LOGGER = logging.getLogger(__name__)

_TEXT_BYTES = 4 << 20
"""Counts as text that are read at once. A line takes 33 bytes more than its text, even a blank one;
so that is some 140 MB at most, whatever a gzip file unpacks to."""

_PARQUET_MAGIC = b'PAR1'
_ENCRYPTED_MAGIC = b'PARE'

_BYTES_AT_ONCE = 1 << 20

_HELD_BYTES = 256 << 20
"""Of files that are held from the first look at them until their tokens are read: what is stored is
some hundredth of what a learner takes. Files beyond that are read twice."""

_LENGTH_BYTES = 4
"""Of each string in an uncompressed Parquet column."""

_MOST_WEIGHTED = 1 << 62
"""Of the sum of weighted counts: half of what int64 holds, so that rounding and the sums of learners fit."""

ROWS_AT_ONCE = 1 << 18
"""Some 2.5 MB of tokens, whose suffixes take 100 MB while they are sorted; a quarter would repeat
each group's frequent suffixes four times as often."""

COUNT_COLUMNS = ['token', 'count']

_LastWord = bytes | None  # in a class with a field `bytes`

TokenArrays = tuple[np.ndarray, np.ndarray, np.ndarray]

SIDES = {'inputs': (0,), 'targets': (1,), 'both': (0, 1)}
"""What `--side` chooses of a pair."""


@dataclass(frozen=True)
class CountedSize:
    """What count files hold, by their sizes."""

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
    rules: TokenRules | None  # by which its tokens were found, as it records them
    tokens: int
    text_bytes: int
    last_word: _LastWord = None  # `TokenTable.last_word`


@dataclass(frozen=True)
class CountedDataset:
    """A path of counts that is learned from, and its weight.

    Attributes:
        name: of its folder or file.
        files: with its counts.
        partitions: as of `CountFiles`.
        weight: None without one, and with a temperature.
    """

    name: str
    files: tuple[StoredFile, ...]
    partitions: int
    weight: str | None


@dataclass(frozen=True)
class CountFiles:
    """The files that `--counts` names, in the order given, each read once for all that is asked.

    Attributes:
        files: where they are.
        partitions: how many there are, if they are all partitions of one count, in their order.
        stated: by path the CRC-32C of those that a manifest lists, which is compared before
            anything else is made of a file.
        datasets: the files of each path that was given, and its weight if it has one.
        temperature: by which their weights follow from their sizes, if it is given.
    """

    files: tuple[StoredFile, ...]
    partitions: int = 0
    stated: Mapping[str, str] = dataclasses.field(default_factory=dict)
    datasets: tuple[CountedDataset, ...] = ()
    temperature: str | None = None

    def __getstate__(self) -> dict[str, object]:
        # Workers read their files themselves.
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def wanted_inputs(self) -> tuple[InputState, ...]:
        return tuple(
            InputState('train', 'counts', file, functools.partial(self._text, file))
            for file in self.files
        )

    @property
    def has_weights(self) -> bool:
        """Whether the datasets are scaled before they are added up."""
        return self.temperature is not None or any(each.weight for each in self.datasets)

    @property
    def weighting(self) -> dict[str, object]:
        """What manifests record of weights; empty without any."""
        if not self.has_weights:
            return {}
        weights = [[each.name, len(each.files), each.weight] for each in self.datasets]
        return {'weights': weights, 'temperature': self.temperature}

    def size(self) -> CountedSize:
        """Returns how much the files hold: from Parquet's footers, and of text files by a guess.

        Of those a token and its count are taken for 12 bytes.
        """
        looks = [self.look(file) for file in self.files]
        return CountedSize(
            sum(look.tokens for look in looks),
            sum(look.text_bytes for look in looks),
            all(look.is_parquet for look in looks),
        )

    def look(self, file: StoredFile) -> _Look:
        """Returns what a file is; reads it if that was not done yet.

        Raises:
            InputError: it cannot be read, is not a count file, or is not what its manifest states.
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

    @property
    def last_word(self) -> bytes | None:
        """The last word of the last table, if its files record one."""
        words = [self.look(file).last_word for file in self.files]
        return next((word for word in reversed(words) if word is not None), None)

    def _text(self, file: StoredFile) -> InputText:
        look = self.look(file)
        check_unicode(look.unicode, f'the count file {file.path}')
        unicode = look.unicode or 'not recorded'
        return InputText('train', 'counts', file.name, look.bytes, look.crc32c, unicode, look.rules)


def read_counts(counts: CountFiles, unstorable: str = '') -> TokenTable:
    """Reads and adds up count files, Parquet or text by their content.

    Args:
        counts: the files.
        unstorable: characters of ASCII that no token may have.

    Raises:
        InputError: a file that is neither Parquet with `token` and `count` nor lines of counts, a
            token with a character that is not allowed, or nothing but empty files.
    """
    table = read_counts_or_empty(counts, unstorable)
    if len(table) == 0:
        raise InputError(f'no token in {_names(counts)}; there is nothing to learn from')
    return table


def read_counts_or_empty(counts: CountFiles, unstorable: str = '') -> TokenTable:
    """Returns the sum of count files, which may be a partition without tokens."""
    check_recorded(counts)
    try:
        if counts.has_weights:
            table = concatenate_tables([*weighted_tables(counts, unstorable)])
        elif counts.partitions:
            # Sorted, and with no token in common: nothing is to be added up.
            tables = [_read(counts, file, unstorable, is_sorted=True) for file in counts.files]
            are_apart = all(
                is_partition(number, table, counts.partitions)
                for number, table in enumerate(tables)
            )
            table = (concatenate_tables if are_apart else merge_tables)(tables)
        else:
            table = merge_tables(_read(counts, file, unstorable) for file in counts.files)
        is_text = not any(counts.look(file).is_parquet for file in counts.files)
        return dataclasses.replace(table, is_ordered=is_text, last_word=counts.last_word)
    except OverflowError as error:
        raise InputError(f'{error}; divide the counts in {_names(counts)}') from error


def weighted_tables(counts: CountFiles, unstorable: str = '') -> Iterator[TokenTable]:
    """Yields the counts, scaled by weights and added up, in tables that have no token in common.

    With weights these are the hash partitions, if all datasets are COUNTS folders; otherwise one table.

    Raises:
        InputError: as `read_counts`; a dataset has no token, or the sum is too large.
    """
    datasets, names = counts.datasets, _names(counts)
    if not counts.has_weights:
        yield read_counts(counts, unstorable)
        return
    sizes, totals, are_partitions = zip(*(_survey(counts, each, unstorable) for each in datasets))
    for dataset, size in zip(datasets, sizes):
        if not size:
            raise InputError(
                f'{dataset.name} has no token, so it cannot have a weight; leave it out'
            )
    factors = factors_of_tables(sizes, [each.weight for each in datasets], counts.temperature)
    scaled = [f'{each.name} {float(factor):.6g}' for each, factor in zip(datasets, factors)]
    _LOGGER.info('factors of the counts: %s', ', '.join(scaled))
    total = sum(total * factor for total, factor in zip(totals, factors))
    if total > _MOST_WEIGHTED:
        raise InputError(
            f'with their weights, the counts in {names} add up to {float(total):.3g}, more than 2^62; '
            'give weights that differ less'
        )
    in_parts = [
        [(file,) for file in each.files] if all(are_partitions) else [each.files]
        for each in datasets
    ]
    for part in zip(*in_parts):
        yield merge_tables(
            scale_table(merge_tables(_read(counts, file, unstorable) for file in files), factor)
            for files, factor in zip(part, factors)
        )


def _survey(counts: CountFiles, dataset: CountedDataset, unstorable: str) -> tuple[int, int, bool]:
    """Returns the bytes and the sum of a dataset's counts, and whether its files are partitions."""
    size = total = 0
    are_partitions = dataset.partitions == COUNT_PARTITIONS
    for number, file in enumerate(dataset.files):
        table = _read(counts, file, unstorable, is_sorted=bool(dataset.partitions))
        size, total = size + table.text_bytes, total + table.total
        are_partitions &= is_partition(number, table, COUNT_PARTITIONS)
    return size, total, are_partitions


def read_counts_apart(counts: CountFiles, unstorable: str = '') -> list[TokenTable]:
    """Reads count files as `read_counts`, and adds up those of each dataset alone."""
    check_recorded(counts)
    tables = []
    for dataset in counts.datasets:
        tables.append(merge_tables(_read(counts, file, unstorable) for file in dataset.files))
        if len(tables[-1]) == 0:
            raise InputError(f'no token in {dataset.name}; there is nothing to learn from')
    return tables


def _names(counts: CountFiles) -> str:
    return ', '.join(file.path for file in counts.files)


def _read(
    counts: CountFiles, file: StoredFile, unstorable: str, is_sorted: bool = False
) -> TokenTable:
    if counts.look(file).is_parquet:
        table = read_parquet_counts(file.path, counts.opened, is_sorted)
    else:
        table = _read_text(file, counts.opened)
    counts.let_go(file)
    refuse_unstorable(file.path, table.data, table.offsets, unstorable)
    return table


def read_parquet_counts(
    path: str, open_binary: OpenBinary = filesystem.open_binary, is_sorted: bool = True
) -> TokenTable:
    """Returns the table of a Parquet file of counts, as `TokenTable.from_arrow` does.

    Raises InputError if it is not one, OverflowError for a count or a sum past 2^63 - 1.
    """
    with open_path(path, open_binary) as stream:
        parquet_file = open_parquet(path, stream)
        try:
            with refusing_no_counts(path):
                rows = parquet_file.read(columns=COUNT_COLUMNS)
                return TokenTable.from_arrow(rows, is_sorted=is_sorted)
        except OverflowError as error:
            raise OverflowError(f'{path}: {error}') from error


def _read_text(file: StoredFile, open_binary: OpenBinary) -> TokenTable:
    seen = Looks(open_binary).at(file.path)
    if seen.content is not None:
        refuse(file.path, seen)
    stored = CorpusFile(file.path, file.name, file.size, seen.compression)
    return merge_tables(_text_tables(stored, open_binary))


def _text_tables(file: CorpusFile, open_binary: OpenBinary) -> Iterator[TokenTable]:
    lines = 0
    for block in whole_lines(text_pieces(file, open_binary), _TEXT_BYTES):
        if isinstance(block, LongLine):
            raise InputError(
                f'{file.path}: the line at byte {block.offset} of its text has {block.nbytes} '
                f'bytes, more than {MAX_LINE_BYTES}, which cannot be a token with its count; take it out'
            )
        try:
            yield read_counts_text(block, file.path)
        except InputError as error:
            raise _with_line(error, file.path, lines) from error
        lines += block.count(b'\n')


def _with_line(error: InputError, path: str, lines: int) -> InputError:
    """Returns an error of a block of text with the line's number in the file."""
    match = re.match(r': line (\d+)(?= )', str(error).removeprefix(path))
    if match is None:
        return error
    rest = str(error)[len(path) + match.end() :]
    return InputError(f'{path}: line {lines + int(match[1])}{rest}')


def find_weighted_counts(words: Sequence[str], temperature: str | None = None) -> CountFiles:
    """Finds count files as `find_counts`; each path may have a weight, as `en=0.7` or `en=2x`.

    Raises:
        InputError: also for weights that do not go together.
    """
    paths, weights = [], list[str | None]()
    for word in words:
        path, _, end = word.rpartition('=')
        is_there = filesystem.exists(filesystem.absolute(word))
        weight = None
        if path and not is_there:
            weight = spelled_weight(end)
            if weight is None and filesystem.exists(filesystem.absolute(path)):
                raise InputError(
                    f'{end} of {word} is not a weight above 0, as 0.7, nor a factor, as 2x'
                )
        paths.append(word if weight is None else path)
        weights.append(weight)
    if temperature is None and not any(weights):
        return find_counts(paths)
    if reason := reason_against(weights, temperature):
        raise InputError(f'--counts: {reason}')
    return find_counts(paths, weights, temperature)


def find_counts(
    paths: Sequence[str], weights: Sequence[str | None] = (), temperature: str | None = None
) -> CountFiles:
    """Finds count files; a folder stands for the files that its manifest lists.

    What a manifest lists is compared with its checksums here, before anything else reads it. Of
    other Parquet files nothing is known, so those of this machine are read on trial.

    The paths may have weights, which are None with a temperature.

    Raises:
        InputError: nothing is there, or a folder or a file is not whole.
    """
    found: list[tuple[StoredFile, OutputFile | None]] = []
    datasets: list[CountedDataset] = []
    for number, given in enumerate(paths):
        path = filesystem.absolute(given)
        if is_folder := filesystem.is_folder(path):
            own = _folder_files(path)
        else:
            own = [(file, None) for file in filesystem.find(given)]
        found += own
        weight = weights[number] if weights else None
        name, files = os.path.basename(path.rstrip('/')), tuple(file for file, _ in own)
        datasets.append(CountedDataset(name, files, len(files) if is_folder else 0, weight))
    read_on_trial(
        [
            (file.path, file.size)
            for file, entry in found
            if entry is None and not filesystem.is_shared(file.path) and _is_parquet(file.path)
        ]
    )
    files = tuple(file for file, _ in found)
    partitions = datasets[0].partitions if len(paths) == 1 else 0
    stated = {file.path: entry.crc32c for file, entry in found if entry}
    counts = CountFiles(files, partitions, stated, tuple(datasets), temperature)
    for file in files:
        if file.path in stated:
            counts.look(file)
    return counts


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


def _folder_files(folder: str) -> Sequence[tuple[StoredFile, OutputFile | None]]:
    manifest = read_manifest(os.path.join(folder, MANIFEST_NAME))
    if manifest is None or manifest.stage != 'count' or not manifest.files:
        raise InputError(
            f'{folder} has no {MANIFEST_NAME} of a finished count; run `tokbeam count` to its end, '
            'give the folders of datasets in it, or the files themselves'
        )
    stored = {file.name: file for file in filesystem.list_folder(folder)}
    for file in manifest.files:
        if file.name not in stored or stored[file.name].size != file.bytes:
            raise InputError(
                f'{folder}/{file.name} is missing or not of the size that {MANIFEST_NAME} states; '
                'count again with --overwrite'
            )
    base = os.path.basename(folder)
    return [
        (dataclasses.replace(stored[file.name], name=f'{base}/{file.name}'), file)
        for file in manifest.files
    ]


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
        last_word = (parquet_file.schema_arrow.metadata or {}).get(LAST_WORD_KEY.encode())
    return _Look(size, crc32c, True, unicode, rules, tokens, text_bytes, last_word)


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
    """Opens a Parquet file of counts; raises InputError if it is not one."""
    with refusing_no_counts(path):
        parquet_file = parquet.ParquetFile(stream)
        column_names(parquet_file)
        return parquet_file


def _recorded(path: str, parquet_file: parquet.ParquetFile) -> tuple[str | None, TokenRules | None]:
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


def read_batches(path: str) -> Iterator[TokenArrays]:
    """Yields (data uint8, offsets int64[n + 1], counts int64[n]) of a Parquet file of counts.

    The file was once read by `read_new_batches`.

    Raises:
        InputError: it is not such a file.
    """
    with _opened(path) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=COUNT_COLUMNS):
            yield token_arrays(*map(batch.column, COUNT_COLUMNS))


def read_new_batches(
    path: str, unstorable: str, row_groups: Iterable[int] | None = None
) -> Iterator[TokenArrays]:
    """Yields the same of any file, or of some of its row groups.

    Raises:
        InputError: also for tokens that are not UTF-8, or have one of the characters `unstorable`.
    """
    groups = None if row_groups is None else list(row_groups)
    with _opened(path) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=groups, columns=COUNT_COLUMNS):
            batch.column('token').validate(full=True)
            arrays = token_arrays(*map(batch.column, COUNT_COLUMNS))
            refuse_unstorable(path, *arrays[:2], unstorable)
            yield arrays


def stored_rows(paths: Sequence[str]) -> int:
    """Returns the rows of Parquet files, by their footers. Raises InputError if one has none."""
    rows = 0
    for path in paths:
        with _opened(path) as file:
            rows += file.metadata.num_rows
    return rows


@dataclass(frozen=True)
class CountsPart:
    """Some row groups of a Parquet file of counts, from `first` to before `last`, and their rows."""

    path: str
    first: int
    last: int
    rows: int


def counts_parts(paths: Sequence[str], most_rows: int) -> list[CountsPart]:
    """Returns all rows of Parquet files in parts, none of which has more rows than are wanted.

    A part may be larger if it is one row group, as files of `write_counts_file` have of a million.
    """
    parts = []
    for path in paths:
        with _opened(path) as file:
            groups = [
                file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)
            ]
        first = rows = 0
        for group, more in enumerate(groups):
            if rows and rows + more > most_rows:
                parts.append(CountsPart(path, first, group, rows))
                first, rows = group, 0
            rows += more
        if rows:
            parts.append(CountsPart(path, first, len(groups), rows))
    return parts


@contextlib.contextmanager
def _opened(path: str) -> Iterator[parquet.ParquetFile]:
    with refusing_no_counts(path), filesystem.open_binary(path) as stream:
        yield parquet.ParquetFile(stream)


@contextlib.contextmanager
def refusing_no_counts(path: str) -> Iterator[None]:
    """Around what reads a Parquet file: raises InputError if that is not one of token counts."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise no_counts(path, error) from error


@dataclass(frozen=True)
class CountsFolder:
    """One COUNTS folder to be made: which side of the pairs it counts, or 'text'.

    Attributes:
        path: of the folder.
        side: a key of `SIDES`, or 'text'.
        scheme: whose tokens are counted; None for that of all that is read.
        root: the user's folder, if the tool has named this one in it: then it is not a link.
        dataset: whose rows are counted; '' for those of all datasets.
    """

    path: str
    side: str
    scheme: Scheme | None = None
    root: str | None = None
    dataset: str = ''

    def within(self, dataset: str) -> 'CountsFolder':
        """Returns the folder in this one with the counts of a dataset."""
        if dataset in ('.', '..'):
            raise InputError(
                f'a dataset is called {dataset}, and its counts need a folder; rename it'
            )
        path, root = os.path.join(self.path, dataset), self.root or self.path
        return dataclasses.replace(self, path=path, root=root, dataset=dataset)

    @property
    def sides(self) -> tuple[int, ...]:
        return SIDES.get(self.side, (0,))


def count_names() -> tuple[str, ...]:
    """Returns the file names of a COUNTS folder."""
    return tuple(counts_name(partition) for partition in range(COUNT_PARTITIONS))


def counted_table(
    files: Iterable[WrittenCounts], path: str, rules: TokenRules
) -> tuple[int, tuple[OutputFile, ...]]:
    """Returns the running tokens and the files of a COUNTS folder; writes its empty partitions."""
    written = {file.name: file for file in files}
    for partition, name in enumerate(count_names()):
        if name not in written:
            written[name] = write_counts_file(path, partition, TokenTable.from_items(()), rules)
    listed = tuple(written[name].listed() for name in count_names())
    return sum(file.tokens for file in written.values()), listed


def log_sample(manifest: Manifest) -> None:
    """Logs what a vocabulary was counted from, if that was a sample."""
    sample = manifest.sample
    if sample:
        parts = [
            f'{part.taken:,} of {part.lines:,} lines'
            + (f' of {part.side}' if len(sample) > 1 else '')
            for part in sample
        ]
        _LOGGER.info(
            'the vocabulary was counted from %s (--vocab-sample %s)',
            ' and '.join(parts),
            sample[0].how,
        )
