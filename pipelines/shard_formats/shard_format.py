"""What a format of shards is: how rows are written, checked, and read again by their numbers.

An encoding writes TFRecords; at its end, or later, each shard becomes the files of another format. A
shard is converted by itself and in the order of its rows, so its files are the same bytes wherever
that happens.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, ClassVar, Protocol

import numpy as np

from pipelines.files import filesystem
from pipelines.transforms.stats import WrittenFile
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import SpecialIds, Vocabulary
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import read_only
from tokcore.reading.checking import Advance, CheckedFile
from tokcore.reading.record_kernels import FOOTER_SIZE, HEADER_SIZE, LARGEST_ID
from tokcore.reading.shards import EncodedRows, ExampleParser, PieceLineWriter
from tokcore.records.manifest import (
    SHARD_NAME,
    Manifest,
    OutputFile,
    VocabularyRecord,
    file_of_shard,
)
from tokcore.records.tfrecord import FramedRows


class ShardFormat(abc.ABC):
    """A format of shards; `options.job.SHARD_FORMATS` lists all of them.

    Attributes:
        name: what `--output-format` calls it.
        hub_ending: the ending of its files if dataset hubs open these by themselves.
        needs_pieces: whether its rows are pieces and not ids.
    """

    name: ClassVar[str]
    hub_ending: ClassVar[str | None] = None
    needs_pieces: ClassVar[bool] = False

    @abc.abstractmethod
    def file_names(self, shard: str, features: Sequence[str]) -> list[str]:
        """Returns the names of the files of a shard, those that need another one after it.

        Args:
            shard: its name as TFRecords.
            features: of the text, inputs before targets.
        """

    @abc.abstractmethod
    def check(
        self, stream: BinaryIO, file: OutputFile, dataset: StoredDataset, advance: Advance
    ) -> CheckedFile:
        """Checks what a file of a shard holds.

        Args:
            stream: at its beginning.
            file: as the manifest has it.
            dataset: that it is of.
            advance: see `Advance`.
        """

    @abc.abstractmethod
    def stored_rows(
        self,
        paths: Sequence[str],
        numbers: np.ndarray,
        columns: Sequence[Column],
        files: Mapping[str, OutputFile],
    ) -> Iterator[bytes | None]:
        """Yields rows of a shard as they are stored, None for those that it does not have.

        Args:
            paths: of the shard's files, as `file_names` has them.
            numbers: int64[n], ascending.
            columns: the features of the rows.
            files: of all shards, by their names, as the manifest has them.

        Raises:
            InputError: a file of the shard cannot be read.
        """

    @abc.abstractmethod
    def row_bytes(self, rows: FramedRows, columns: Sequence[Column]) -> Iterator[bytes]:
        """Yields rows as `stored_rows` would yield them, if they were stored."""

    @abc.abstractmethod
    def reading_code(self, manifest: Manifest) -> Iterator[str]:
        """Yields lines of Python that read the files of a dataset."""

    def require(self, sides: Sequence[str]) -> None:  # noqa: B027 - most formats hold all rows
        """Raises InputError if it cannot hold rows of these sides, or needs a package that is missing."""

    def require_ids(self, count: int) -> None:  # noqa: B027 - as above
        """Raises InputError if it cannot hold so many different ids."""

    def described(self, manifest: Manifest) -> str | None:
        """Returns what the files of a dataset are, for a reader; None if `tokcore.open_dataset` reads them."""
        return None

    def documents(
        self, paths: Sequence[str], files: Mapping[str, OutputFile]
    ) -> Iterator[list[np.ndarray]]:
        """Yields the ids of each side of each row of a shard, where there is a description of its files.

        Args:
            paths: of the shard's files, as `file_names` has them.
            files: of all shards, by their names, as the manifest has them.
        """
        raise NotImplementedError(f'tokcore.open_dataset reads {self.name}')

    def hint(self, file: OutputFile) -> str | None:
        """Returns, as a clause, how a file is read that does not say what it is."""
        return None

    def notes(self, manifest: Manifest) -> Iterator[str]:
        """Yields what a user should know of a new dataset."""
        return iter(())


class ConvertedFormat(ShardFormat):
    """A format whose files are made of TFRecords: one for each shard, if it does not say otherwise."""

    def file_names(self, shard: str, features: Sequence[str]) -> list[str]:
        return [f'{shard}.{self.name}']

    @abc.abstractmethod
    def write(
        self,
        parts: Iterator[EncodedRows],
        shard: Shard,
        folder: str,
        columns: Sequence[Column],
    ) -> Iterator[WrittenFile]:
        """Writes the rows of a shard, and yields its files, in the order of `file_names`.

        Args:
            parts: all rows.
            shard: its name, and where it is in its split.
            folder: where the files go.
            columns: the features of the rows.

        Raises:
            ValueError: an id is not of its vocabulary.
        """


class StoredDataset(Protocol):
    """What formats ask of a dataset whose files they check."""

    @property
    def id_counts(self) -> Mapping[str, int | None]:
        """By feature how many ids there are, as far as that is known."""

    @property
    def ends(self) -> Mapping[str, int]:
        """By feature the id that ends documents, if there is one."""

    def pieces(self, feature: str) -> frozenset[bytes] | None:
        """Returns the pieces that text may have; None if the vocabulary is not there, or damaged."""

    def content(self, name: str) -> bytes | None:
        """Returns what a file of the folder holds; None if it is not there."""


@dataclass(frozen=True)
class Column:
    """A feature of the rows.

    Attributes:
        name: of the feature.
        vocab_size: how many ids there are: those of its vocabulary, and the end of its documents.
        special_ids: those that stand for no text: of begin, end and padding, as far as there are such.
        vocabulary: the path of its file.
        lines: writes ids as lines of pieces, where a format needs them.
        roles: the special ids by their role.
        end: the id that follows each document where rows are joined; None: rows end with it, or none does.
    """

    name: str
    vocab_size: int
    special_ids: tuple[int, ...]
    vocabulary: str = ''
    lines: PieceLineWriter | None = None
    roles: SpecialIds = SpecialIds()
    end: int | None = None

    @classmethod
    def of(
        cls,
        name: str,
        vocab_size: int,
        special_ids: SpecialIds,
        vocabulary: str = '',
        lines: PieceLineWriter | None = None,
    ) -> Column:
        """Returns the column of a feature, from the special ids of its vocabulary."""
        roles = (special_ids.pad, special_ids.begin, special_ids.end)
        own = tuple(sorted({id_ for id_ in roles if id_ is not None}))
        return cls(name, vocab_size, own, vocabulary, lines, special_ids)

    @classmethod
    def recorded(cls, name: str, record: VocabularyRecord, vocabulary: str) -> Column:
        """Returns the column of a feature, from what a manifest records of its vocabulary."""
        roles = {role: record.special_ids.get(role) for role in SpecialIds._fields}
        return cls.of(name, record.size, SpecialIds(**roles), vocabulary)

    def with_end(self, ends: Iterable[EndOfDocument]) -> Column:
        """Returns the column with the end of its documents, if that is among these ends."""
        end = next((end for end in ends if end.feature == self.name), None)
        if end is None:
            return self
        special_ids = tuple({*self.special_ids, end.id})
        return dataclasses.replace(
            self,
            vocab_size=max(self.vocab_size, end.id + 1),  # files of ranks list no special tokens
            special_ids=special_ids,
            end=None if end.in_template else end.id,
        )


def line_writer(scheme: Scheme, vocabulary: Vocabulary) -> PieceLineWriter:
    """Returns what writes the ids of a vocabulary as lines; pieces that hold a blank are escaped."""
    return PieceLineWriter(vocabulary.pieces, scheme.piece_writer(vocabulary) is None)


@dataclass(frozen=True)
class Shard:
    """A shard that is converted: its name, and the number of its first row among all of its split."""

    name: str
    first_row: int


def shards_in_order(files: Sequence[OutputFile]) -> list[Shard]:
    """Returns the shards of all splits from their files as TFRecords, in their order."""
    shards, rows = [], collections.Counter[str]()
    for file in files:
        name = re.fullmatch(SHARD_NAME, file.name)
        assert name is not None  # the manifest's own, or this program's
        shards.append(Shard(file.name, rows[name['split']]))
        rows[name['split']] += file.rows
    return shards


def most_ids(vocabularies: Iterable[VocabularyRecord], ends: Iterable[EndOfDocument]) -> int:
    """Returns how many ids vocabularies have, with the ends of documents."""
    return max([0, *(each.size for each in vocabularies), *(end.id + 1 for end in ends)])


def parse_rows(rows: FramedRows, features: Sequence[str]) -> EncodedRows:
    """Returns the ids of rows that are framed as TFRecords."""
    bounds = row_offsets(rows.lengths)
    records = np.array([bounds[:-1] + HEADER_SIZE, np.diff(bounds) - HEADER_SIZE - FOOTER_SIZE])
    parser = ExampleParser(dict.fromkeys(features, LARGEST_ID))
    parsed, errors = parser.parse_all(read_only(rows.records), read_only(records))
    for error in errors.values():
        raise error  # these rows are this program's
    return parsed


def bytes_of_ids(sides: Iterable[np.ndarray]) -> bytes:
    """Returns a row whose form is its ids, those of each side with their number before them."""
    return b'\n'.join(np.int64(len(ids)).tobytes() + ids.astype('<i8').tobytes() for ids in sides)


def rows_of_ids(rows: EncodedRows, features: Sequence[str]) -> Iterator[bytes]:
    """Yields rows as `bytes_of_ids` has them."""
    sides = [np.split(rows.ids[name], rows.offsets[name][:-1])[1:] for name in features]
    return map(bytes_of_ids, zip(*sides, strict=True))


def mapped_bytes(path: str) -> np.ndarray:
    """Returns a file's bytes, uint8; of this machine they are mapped and not read."""
    with filesystem.open_binary(path) as stream:
        if filesystem.is_shared(path) or not filesystem.stored_size(path):
            return read_only(np.frombuffer(stream.read(), np.uint8))
    return read_only(np.asarray(np.memmap(path, np.uint8, 'r')))


def dropped_rows(manifest: Manifest) -> dict[str, int]:
    """Returns how many rows the files of each split leave out, if they do."""
    counts: dict[str, int] = {}
    seen = set()
    for file in manifest.files:
        shard = file_of_shard(file.name)
        # A shard has several files, which leave out the same rows.
        if shard is not None and file.dropped and shard.shard not in seen:
            seen.add(shard.shard)
            counts[shard.split] = counts.get(shard.split, 0) + len(file.dropped)
    return counts


def cut_rows(files: Iterable[OutputFile]) -> dict[str, int]:
    """Returns how many rows of each split were cut; none of other formats."""
    counts: dict[str, int] = {}
    for file in files:
        shard = file_of_shard(file.name)
        if shard is not None and file.cut is not None:
            counts[shard.split] = counts.get(shard.split, 0) + file.cut
    return counts


def what_ends(made: Manifest) -> str:
    """Returns what follows each document where the rows of a dataset are joined, as a clause."""
    ends = {end.feature: str(end) for end in made.end_of_document}
    if not ends:
        return 'joined without an end'
    if len({*ends.values()}) > 1:
        return f'each followed by {" and ".join(f"{end} in {name}" for name, end in ends.items())}'
    return f'each followed by {ends.popitem()[1]}'
