"""Statistics of blocks, which prove that no line was lost and that each byte was read once.

A block has the CRC32C of each byte range that it read. For CRCs, appending n bytes is a multiplication
by x^(8n) modulo the polynomial, so two checksums combine in O(log n) steps without the bytes. Joined,
the checksums of a file prove that it was read exactly once, and give the checksum of its decompressed
text, however the file was cut or compressed.
"""

import base64
import collections
import contextlib
import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import google_crc32c
import numpy as np

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    MISSING_COLUMN,
    OF_ALL_FORMATS,
    STRETCH_BYTES,
    TOO_LONG,
    Block,
    CorpusFile,
    DroppedRow,
    Newlines,
    OnError,
    OpenBinary,
    Reject,
    Rows,
    Split,
    split_of,
)
from tokcore.corpus.line_rows import count_buffer_lines
from tokcore.errors import InputError
from tokcore.kernels.bytes import CRC32C

_ALWAYS_RECORDED = (INVALID_UTF8, MISSING_COLUMN)
"""Reasons that manifests record even with a count of 0."""

_RECORDED_IF_SET = (
    'no_token', 'ids', 'unknown', 'unknown_words', 'dataset', 'beyond_max_examples', 'not_sampled',
    'filtered', 'added', 'dropped_bytes', 'missing_side', 'text_bytes', 'removed',
)  # fmt: skip
"""Fields that manifests record only if they are not 0, empty or None."""

_SUMMED = (
    'lines', 'examples', 'empty', 'no_token', 'beyond_max_examples', 'not_sampled', 'added',
    'dropped_bytes', 'missing_side', 'text_bytes', 'removed',
)  # fmt: skip
"""Fields that are plain sums over blocks."""

MOST_UNKNOWN_WORDS = 100
"""The limit for a block and for all blocks; the ten commonest are reported."""

_ONE = 1 << 31

_MOST_NUMBERED = 1 << 30
"""Bytes of text before a line whose number an error has: to count so far takes seconds, and a file of
terabytes would be read for an hour before its user hears of the mistake."""


@dataclass(frozen=True)
class LineTally:
    """Counts of the lines of a split, or of one of its datasets.

    lines + added = examples + empty + missing_side + rejected + filtered + beyond_max_examples
    + not_sampled + removed

    Attributes:
        split: its name.
        lines: that were read.
        examples: that were written.
        empty: lines without text, on at least one side.
        left_out: rejected lines by reason, in alphabetical order.
        no_token: sides of examples whose text has no token.
        ids: of the text of examples; None if no id stands for unknown tokens.
        unknown: the ids that stand for an unknown token.
        unknown_words: the unknown tokens, and the characters without an entry, with their counts, the
            commonest of each block.
        dataset: its name, if a split has several.
        beyond_max_examples: lines after the last one that a dataset's `max_examples` takes.
        not_sampled: lines outside the sample from which a vocabulary is counted.
        filtered: rows that each filter dropped, by its name, in alphabetical order.
        added: rows that filters returned for one row, not counting the first of each.
        dropped_bytes: of characters for which the vocabulary has no entry and no unknown token, or that its
            pattern does not match.
        missing_side: rows that have no text for a side at all, as units without a language.
        text_bytes: of examples, the bytes of UTF-8 of all sides as they are encoded, without prefixes
            and line ends.
        removed: rows that were left out by their addresses, after all filters.

    Raises:
        ValueError: a reason has the name of a field; manifests have both side by side.
    """

    split: str
    lines: int
    examples: int
    empty: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    no_token: int = 0
    ids: int | None = None
    unknown: int | None = None
    unknown_words: Mapping[str, int] = field(default_factory=dict)
    dataset: str = ''
    beyond_max_examples: int = 0
    not_sampled: int = 0
    filtered: Mapping[str, int] = field(default_factory=dict)
    added: int = 0
    dropped_bytes: int = 0
    missing_side: int = 0
    text_bytes: int = 0
    removed: int = 0

    def __post_init__(self):
        counts = {reason: count for reason, count in sorted(self.left_out.items()) if count}
        if counts and (clashing := counts.keys() & {field.name for field in fields(self)}):
            raise ValueError(f'{sorted(clashing)} cannot be reasons to leave out lines')
        object.__setattr__(self, 'left_out', counts)
        filtered = {name: count for name, count in sorted(self.filtered.items()) if count}
        object.__setattr__(self, 'filtered', filtered)

    @property
    def rejected(self) -> int:
        """The number of lines that could not be used."""
        return sum(self.left_out.values())

    @property
    def is_conserved(self) -> bool:
        """Whether each line that was read, and each row that was added, is counted once."""
        left_out = self.empty + self.missing_side + self.rejected + sum(self.filtered.values())
        not_reached = self.beyond_max_examples + self.not_sampled
        return self.lines + self.added == self.examples + left_out + not_reached + self.removed

    def record(self) -> dict[str, object]:
        """Returns the tally as JSON, with the reasons next to the other fields."""
        reasons = dict.fromkeys(_ALWAYS_RECORDED, 0) | dict(self.left_out)
        always = {name: getattr(self, name) for name in ('split', 'lines', 'examples', 'empty')}
        if_set = {name: getattr(self, name) for name in _RECORDED_IF_SET if getattr(self, name)}
        if self.ids is not None:
            if_set |= {'ids': self.ids, 'unknown': self.unknown}
        return always | if_set | reasons

    @classmethod
    def of_record(cls, record: Mapping[str, object]) -> 'LineTally':
        """Returns the tally of a `record`; raises KeyError or TypeError if it is not one."""
        names = {field.name for field in fields(cls)} - {'left_out'}
        reasons = {name: count for name, count in record.items() if name not in names}
        if not all(isinstance(count, int) for count in reasons.values()):
            raise TypeError(f'{reasons} are not numbers of lines')
        required = names - {*_RECORDED_IF_SET}
        values: dict[str, Any] = {
            name: record[name] for name in names if name in record or name in required
        }
        return cls(**values, left_out=reasons)  # type: ignore[arg-type]  # checked above


@dataclass(frozen=True)
class RejectedLines:
    """A block's lines that were left out for one reason, as lines of JSON in the order of the file.

    For rows that a filter dropped, if those are written, the reason is the filter's name.
    """

    split: str
    reason: str  # after the dataset's name and a dot, where a split has several
    file_index: int
    offset: int  # of the block in its (source) file
    json_lines: bytes


@dataclass(frozen=True)
class RangeChecksum:
    """The checksum of what a block read: `length` bytes of decompressed text from `offset` on.

    `newlines` are counted in the text by which offsets of rows count: of a file in UTF-16 that in UTF-8.
    """

    split: str
    file_index: int
    side: int  # 0 source, 1 target
    offset: int
    length: int
    crc32c: int
    newlines: Newlines = field(default_factory=list)


@dataclass(frozen=True)
class BlockStats:
    """The statistics of one block."""

    tally: LineTally
    checksums: tuple[RangeChecksum, ...]
    rejected: tuple[RejectedLines, ...]


def block_stats(
    block: Block,
    rows: Rows,
    splits: Sequence[Split],
    on_error: OnError,
    open_binary: OpenBinary | None = None,
) -> BlockStats:
    """Returns a block's tally of lines, the checksums of its bytes, and its rejected lines.

    Args:
        block: that was read.
        rows: of the block.
        splits: the corpus, for the names of files.
        on_error: what to do at rejected lines; rows that filters drop are not rejected.
        open_binary: opens the file again, so that the error has the line's number; None: it has only the
            line's position in bytes.

    Raises:
        InputError: there are rejected lines, and `on_error` is 'stop'.
    """
    if rows.rejects and on_error == 'stop':
        raise reject_error(rows.rejects[0], block, splits, open_binary)
    reasons = collections.Counter(reject.reason for reject in rows.rejects)
    split = split_of(splits, block.split, block.file_index)
    dataset = split.dataset if split else ''
    tally = LineTally(
        block.split,
        rows.lines,
        len(rows),
        rows.empty,
        reasons,
        dataset=dataset,
        beyond_max_examples=rows.beyond_max_examples,
        not_sampled=rows.not_sampled,
        filtered=rows.filtered,
        added=rows.added,
        missing_side=rows.missing_side,
        removed=rows.removed,
    )
    lines: dict[str, list[bytes]] = {reason: [] for reason in tally.left_out}
    if rows.rejects or rows.dropped:
        names, identity = [file.name for file in _files_of(block, splits)], block.format.identity
        for reject in rows.rejects:
            lines[reject.reason].append(_json_line(reject, names[reject.side], identity))
        for row in rows.dropped:
            lines.setdefault(row.filter, []).append(_dropped_line(row, names[0], identity))
    rejected = tuple(
        RejectedLines(
            block.split,
            f'{dataset}.{reason}' if dataset else reason,
            block.file_index,
            block.offset,
            b''.join(json_lines),
        )
        for reason, json_lines in lines.items()
    )
    return BlockStats(tally, block_checksums(block), rejected)


def add_tallies(split: str, tallies: Iterable[LineTally]) -> LineTally:
    """Returns the sum of a split's tallies; with the name of a dataset if all are of that one.

    Raises:
        RuntimeError: the lines read are not as many as those accounted for.
    """
    of_split = [tally for tally in tallies if tally.split == split]
    datasets = {tally.dataset for tally in of_split}
    sums: dict[str, Any] = {
        name: sum(getattr(tally, name) for tally in of_split) for name in _SUMMED
    }
    total = LineTally(
        split,
        **sums,
        left_out=_sum_counts(tally.left_out for tally in of_split),
        filtered=_sum_counts(tally.filtered for tally in of_split),
        ids=_sum(tally.ids for tally in of_split),
        unknown=_sum(tally.unknown for tally in of_split),
        unknown_words=commonest(tally.unknown_words for tally in of_split),
        dataset=datasets.pop() if len(datasets) == 1 else '',
    )
    if not total.is_conserved:
        raise RuntimeError(f'lines were lost: {total}')
    return total


def commonest(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Returns the sum of counts, with the `MOST_UNKNOWN_WORDS` commonest words."""
    ordered = sorted(_sum_counts(counts).items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:MOST_UNKNOWN_WORDS])


def reject_error(
    reject: Reject,
    block: Block,
    splits: Sequence[Split],
    open_binary: OpenBinary | None = None,
) -> InputError:
    """Returns the error that stops a job at a rejected line; the arguments are as of `block_stats`."""
    file = _files_of(block, splits)[reject.side]
    by_number = block.format.identity == 'row'
    line = f'row {reject.offset}' if by_number else f'the line that starts at byte {reject.offset}'
    number = reject.number
    # With `read_ranges`, `offset` is not that of the file.
    if number is None and open_binary is not None and block.read_ranges is None:
        number = _line_number(file, reject.offset, open_binary)
    where = file.path if number is None else f'{file.path}, line {number}'
    if reject.why and reject.reason in OF_ALL_FORMATS:
        return InputError(f'{where}: {line}: {reject.why}')
    if reject.reason == TOO_LONG:
        return InputError(
            f'{where}: {line} has {reject.size} bytes, '
            f'more than the {block.max_line_bytes} of --max-line-size; give a larger '
            '--max-line-size, or leave such lines out with --on-error=skip'
        )
    if reject.reason == INVALID_UTF8 and by_number:
        return InputError(f'{where}: {line} is not UTF-8; mend it, or give --on-error=skip')
    if reject.reason == INVALID_UTF8:
        return InputError(
            f'{where}: invalid UTF-8 at byte {reject.position}, in the line that starts at '
            f'byte {reject.offset}; convert the file to UTF-8, mend the line, or leave such lines out with '
            '--on-error=skip'
        )
    return InputError(f'{where}: {block.format.explain(reject)}')


def line_at(file: CorpusFile, offset: int, open_binary: OpenBinary) -> int | None:
    """Returns the number of the line at a byte of a file's text, from 1; None if the text ends before.

    It reads the file up to there.
    """
    number, left = 1, offset
    for piece in text_pieces(file, open_binary):
        number += piece.count(b'\n', 0, left)
        left -= len(piece)
        if left <= 0:
            break
    return number if left <= 0 else None


def _line_number(file: CorpusFile, offset: int, open_binary: OpenBinary) -> int | None:
    """Returns `line_at`; None also if it is too far to count, or the file cannot be read."""
    if offset <= _MOST_NUMBERED:
        # The error that the number is for is the one to report.
        with contextlib.suppress(InputError, OSError):
            return line_at(file, offset, open_binary)
    return None


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> collections.Counter[str]:
    total: collections.Counter[str] = collections.Counter()
    for each in counts:
        total.update(each)
    return total


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _files_of(block: Block, splits: Sequence[Split]) -> tuple[CorpusFile, ...]:
    split = split_of(splits, block.split, block.file_index)
    assert split is not None, 'a block is of a file of the corpus'
    return split.files_at(block.file_index)


def _json_line(reject: Reject, name: str, identity: str) -> bytes:
    fields: dict[str, object] = {'file': name, identity: reject.offset}
    if reject.number is not None:
        fields['number'] = reject.number
        fields |= {'why': reject.why} if reject.why else {}
    what, data = 'line', reject.line
    if reject.size is not None:
        fields['bytes'] = reject.size
        what, data = 'beginning', _whole_characters(data, reject.size)
    try:
        fields[what] = data.decode()
    except UnicodeDecodeError:
        fields[f'{what}_base64'] = base64.b64encode(data).decode()
    return _json_text(fields)


def _dropped_line(row: DroppedRow, name: str, identity: str) -> bytes:
    sides = ('source', 'target') if len(row.texts) > 1 else ('text',)
    fields = {'file': name, identity: row.offset, **dict(zip(sides, row.texts, strict=True))}
    return _json_text(fields)


def _json_text(fields: dict[str, object]) -> bytes:
    # The name of a file may not be UTF-8; the bytes that are not are `\udc80` to `\udcff` in JSON.
    return json.dumps(fields, ensure_ascii=False).encode('utf-8', 'backslashreplace') + b'\n'


def _whole_characters(beginning: bytes, size: int) -> bytes:
    """Returns the first bytes of a line without a character that was cut off, if they are UTF-8."""
    try:
        beginning.decode()
    except UnicodeDecodeError as error:
        if len(beginning) < size and error.reason == 'unexpected end of data':
            return beginning[: error.start]
    return beginning


@dataclass(frozen=True)
class TextSummary:
    """The length and the CRC32C of a file's decompressed text."""

    bytes: int
    crc32c: int


def checksum_file(file: CorpusFile, open_binary: OpenBinary) -> TextSummary:
    """Returns the summary of a file by reading all of it; raises InputError as `text_pieces`."""
    length = crc = 0
    for piece in text_pieces(file, open_binary):
        crc = google_crc32c.extend(crc, piece)
        length += len(piece)
    return TextSummary(length, crc)


def combine_crc32c(first: int, second: int, second_length: int) -> int:
    """Returns the CRC32C of two byte strings, one after the other, from their CRC32Cs.

    >>> crc = google_crc32c.value
    >>> combine_crc32c(crc(b'ab'), crc(b'cde'), 3) == crc(b'abcde')
    True
    """
    if not first:  # of no bytes, as before the first checksum of each file
        return second
    return _multiply(_power_of_x(8 * second_length), first) ^ second


def join_checksums(checksums: Iterable[RangeChecksum], length: int | None = None) -> TextSummary:
    """Joins the checksums of one file, in any order, to its summary.

    `length` is that of the text, if known, as of an uncompressed file; without it, a lost end of the
    file is not noticed.

    Raises:
        ValueError: a part of the file was lost or read twice, or the checksums are of two files.
    """
    end = crc = 0
    previous = None
    for checksum in sorted(checksums, key=lambda checksum: (checksum.offset, checksum.length)):
        file = (checksum.split, checksum.file_index, checksum.side)
        if previous not in (None, file):
            raise ValueError(f'checksums of two files: {previous} and {file}')
        previous = file
        if checksum.offset != end:
            what = 'lost' if checksum.offset > end else 'read twice'
            first, last = sorted((end, checksum.offset))
            raise ValueError(
                f'bytes {first} to {last} of (split, file index, side) {file} were {what}'
            )
        crc = combine_crc32c(crc, checksum.crc32c, checksum.length)
        end += checksum.length
    if length is not None and end != length:
        raise ValueError(
            f'{end} of {length} bytes of (split, file index, side) {previous} were read'
        )
    return TextSummary(end, crc)


def join_adjacent(checksums: Iterable[RangeChecksum]) -> list[RangeChecksum]:
    """Joins each checksum to an earlier one of the same file that ends where it begins.

    In the order of reading, the checksums of a file become one; nothing is verified.
    """
    joined: dict[tuple[str, int, int, int], RangeChecksum] = {}  # by file and end
    for checksum in checksums:
        file = (checksum.split, checksum.file_index, checksum.side)
        before = joined.pop((*file, checksum.offset), None)
        if before is not None:
            checksum = replace(
                before,
                length=before.length + checksum.length,
                crc32c=combine_crc32c(before.crc32c, checksum.crc32c, checksum.length),
                newlines=join_newlines(before.newlines, checksum.newlines),
            )
        file_and_end = (*file, checksum.offset + checksum.length)
        joined[file_and_end] = checksum
    return list(joined.values())


def block_checksums(block: Block) -> tuple[RangeChecksum, ...]:
    """Returns the checksum of each file that was read for a block."""
    if block.read_ranges is not None:
        return tuple(
            RangeChecksum(block.split, block.file_index, *dataclasses.astuple(read_range))
            for read_range in block.read_ranges
        )
    long_lines = {line.side: line for line in block.long_lines}
    checksums = []
    for side, text in enumerate(block.texts):
        if line := long_lines.get(side):
            length, crc32c = line.length, line.crc32c
            newlines = [[(line.offset + length - 1) // STRETCH_BYTES, length - line.nbytes]]
        else:
            length, crc32c = len(text.data), google_crc32c.value(text.data)
            newlines = count_newlines(text.offset, text.data)
        checksums.append(
            RangeChecksum(
                block.split, block.file_index, side, text.offset, length, crc32c, newlines
            )
        )
    return tuple(checksums)


def count_newlines(offset: int, data: bytes) -> Newlines:
    """Returns the line feeds of text that begins at byte `offset` of its file, for each stretch of it."""
    counts: Newlines = []
    text, start = np.frombuffer(data, np.uint8), 0
    while start < len(text):
        stretch = (offset + start) // STRETCH_BYTES
        part = text[start : (stretch + 1) * STRETCH_BYTES - offset]
        counts.append([stretch, int(count_buffer_lines(part)) - int(part[-1] != ord('\n'))])
        start += len(part)
    return counts


def join_newlines(first: Newlines, second: Newlines) -> Newlines:
    """Returns the line feeds of a text and of the one that follows it."""
    if first and second and first[-1][0] == second[0][0]:
        return [*first[:-1], [second[0][0], first[-1][1] + second[0][1]], *second[1:]]
    return [*first, *second]


def _multiply(a: int, b: int) -> int:
    """Returns the product of two polynomials over GF(2) modulo that of the CRC."""
    product = 0
    bit = _ONE
    while a:
        if a & bit:
            product ^= b
            a ^= bit
        bit >>= 1
        b = b >> 1 ^ CRC32C if b & 1 else b >> 1
    return product


@functools.cache
def _squarings(count: int) -> int:
    """Returns x to the power 2^count."""
    if count == 0:
        return _ONE >> 1
    root = _squarings(count - 1)
    return _multiply(root, root)


def _power_of_x(exponent: int) -> int:
    power = _ONE
    for bit in range(exponent.bit_length()):
        if exponent >> bit & 1:
            power = _multiply(_squarings(bit), power)
    return power
