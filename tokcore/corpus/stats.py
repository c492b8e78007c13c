"""Statistics of blocks: enough to prove that no line was lost, and that each byte was read once.

Each block has the CRC32C of each byte range that it read. For CRCs, appending n bytes is a
multiplication by x^(8n) modulo the polynomial, so two checksums combine in O(log n) steps without
the bytes. Joined, they prove that a file was read whole, once, and give a checksum of its
decompressed text that does not depend on how the file was cut or compressed.
"""

import base64
import collections
import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import google_crc32c

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    MISSING_COLUMN,
    TOO_LONG,
    Block,
    CorpusFile,
    DroppedRow,
    OnError,
    OpenBinary,
    Reject,
    Rows,
    Split,
    split_of,
)
from tokcore.errors import InputError
from tokcore.kernels.bytes import CRC32C

_ALWAYS_TOLD = (INVALID_UTF8, MISSING_COLUMN)
"""Records of before there were other reasons tell these two wherever nothing was left out."""

_NEWER = (
    'no_token', 'ids', 'unknown', 'unknown_words', 'dataset', 'beyond_max_examples', 'not_sampled',
    'filtered', 'added',
)  # fmt: skip
"""What records tell only where there is something to tell."""

MOST_UNKNOWN_WORDS = 100
"""As many are kept of a block, and of all blocks, to tell the ten commonest."""

_ONE = 1 << 31


@dataclass(frozen=True)
class LineTally:
    """Lines of a split, or of one of its datasets.

    lines + added = examples + empty + those left out for each reason + those filtered
        + those beyond max_examples + those outside a sample

    Attributes:
        split: whose.
        lines: read.
        examples: written.
        empty: without text, on one side at least.
        left_out: by reason, in alphabetical order.
        no_token: sides of examples whose text has no token.
        ids: of the text of examples; None where none of them can stand for an unknown token.
        unknown: those of them that do.
        unknown_words: the tokens that these are, the commonest of each block, with their counts.
        dataset: whose, where a split has several.
        beyond_max_examples: those behind the last that is taken of a dataset.
        not_sampled: those outside the sample that a vocabulary is counted from.
        filtered: by filter, in alphabetical order, rows that it dropped.
        added: rows that filters made of others, beside the first of each.

    Raises:
        ValueError: a reason has the name of a field; they stand side by side in records.
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

    def __post_init__(self):
        counts = {reason: count for reason, count in sorted(self.left_out.items()) if count}
        if clashing := counts.keys() & {each.name for each in fields(self)}:
            raise ValueError(f'{sorted(clashing)} cannot be reasons to leave out lines')
        object.__setattr__(self, 'left_out', counts)
        filtered = {name: count for name, count in sorted(self.filtered.items()) if count}
        object.__setattr__(self, 'filtered', filtered)

    @property
    def rejected(self) -> int:
        """Lines that could not be used."""
        return sum(self.left_out.values())

    def record(self) -> dict[str, object]:
        """Returns what JSON is to hold: reasons beside the other fields, two of them even if 0."""
        counts = dict.fromkeys(_ALWAYS_TOLD, 0) | dict(self.left_out)
        told = ('split', 'lines', 'examples', 'empty')
        newer = {name: getattr(self, name) for name in _NEWER if getattr(self, name)}
        if self.ids is not None:
            newer |= {'ids': self.ids, 'unknown': self.unknown}
        return {name: getattr(self, name) for name in told} | newer | counts

    @classmethod
    def of_record(cls, record: Mapping[str, object]) -> 'LineTally':
        """Raises KeyError or TypeError if it is not what `record` gives."""
        known = {each.name for each in fields(cls)} - {'left_out'}
        counts = {name: count for name, count in record.items() if name not in known}
        if not all(isinstance(count, int) for count in counts.values()):
            raise TypeError(f'{counts} are not numbers of lines')
        of_it = {name: record[name] for name in known if name in record or name not in _NEWER}
        return cls(**of_it, left_out=counts)


@dataclass(frozen=True)
class RejectedLines:
    """A block's lines left out for one reason, as lines of JSON in identity order.

    Of rows that a filter dropped, if they are kept, its name is the reason.
    """

    split: str
    reason: str  # after the dataset's name and a dot, where a split has several
    file_index: int
    offset: int  # of the block in its (source) file: with `place` it orders the blocks
    json_lines: bytes


@dataclass(frozen=True)
class RangeChecksum:
    """What one block read of one file: `length` bytes of its decompressed text from `offset` on."""

    split: str
    file_index: int
    side: int  # 0 source, 1 target
    offset: int
    length: int
    crc32c: int


@dataclass(frozen=True)
class BlockStats:
    tally: LineTally
    checksums: tuple[RangeChecksum, ...]
    rejected: tuple[RejectedLines, ...]


def block_stats(block: Block, rows: Rows, splits: Sequence[Split], on_error: OnError) -> BlockStats:
    """Returns a block's tally of lines, the checksums of its bytes, and its rejected lines.

    Args:
        block: the block that was read.
        rows: its rows.
        splits: the corpus, for the files' names.
        on_error: what to do with rejected lines; what filters drop is none.

    Raises:
        InputError: there are rejected lines, and `on_error` is 'stop'.
    """
    if rows.rejects and on_error == 'stop':
        raise reject_error(rows.rejects[0], block, splits)
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
    )
    lines: dict[str, list[bytes]] = {reason: [] for reason in tally.left_out}
    for reject in rows.rejects:
        name = _file_of(reject, block, splits).name
        lines[reject.reason].append(_json_line(reject, name, block.format.identity))
    for row in rows.dropped:
        name = split.files_at(block.file_index)[0].name
        lines.setdefault(row.filter, []).append(_dropped_line(row, name, block.format.identity))
    rejected = tuple(
        RejectedLines(
            block.split,
            f'{dataset}.{reason}' if dataset else reason,
            block.file_index,
            block.offset,
            b''.join(of_it),
        )
        for reason, of_it in lines.items()
    )
    return BlockStats(tally, block_checksums(block), rejected)


def add_tallies(split: str, tallies: Iterable[LineTally]) -> LineTally:
    """Returns the sum of one split's tallies; it is a dataset's if all of them are.

    Raises:
        RuntimeError: lines read and lines accounted for differ.
    """
    of_split = [tally for tally in tallies if tally.split == split]
    datasets = {tally.dataset for tally in of_split}
    left_out: collections.Counter[str] = collections.Counter()
    filtered: collections.Counter[str] = collections.Counter()
    for tally in of_split:
        left_out.update(tally.left_out)
        filtered.update(tally.filtered)
    total = LineTally(
        split,
        sum(tally.lines for tally in of_split),
        sum(tally.examples for tally in of_split),
        sum(tally.empty for tally in of_split),
        left_out,
        sum(tally.no_token for tally in of_split),
        _sum(tally.ids for tally in of_split),
        _sum(tally.unknown for tally in of_split),
        commonest(tally.unknown_words for tally in of_split),
        datasets.pop() if len(datasets) == 1 else '',
        sum(tally.beyond_max_examples for tally in of_split),
        sum(tally.not_sampled for tally in of_split),
        filtered,
        sum(tally.added for tally in of_split),
    )
    elsewhere = total.rejected + total.beyond_max_examples + total.not_sampled + filtered.total()
    if total.lines + total.added != total.examples + total.empty + elsewhere:
        raise RuntimeError(f'lines were lost: {total}')
    return total


def commonest(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Returns the words of the largest counts in sum, `MOST_UNKNOWN_WORDS` of them at most."""
    total: collections.Counter[str] = collections.Counter()
    for each in counts:
        total.update(each)
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:MOST_UNKNOWN_WORDS])


def reject_error(reject: Reject, block: Block, splits: Sequence[Split]) -> InputError:
    """Returns the error that stops a job at a rejected line."""
    file = _file_of(reject, block, splits)
    by_number = block.format.identity == 'row'
    line = f'row {reject.offset}' if by_number else f'the line that starts at byte {reject.offset}'
    if reject.why:
        return InputError(f'{file.path}: {line}: {reject.why}')
    if reject.reason == TOO_LONG:
        return InputError(
            f'{file.path}: {line} has {reject.size} bytes, '
            f'more than the {block.max_line_bytes} of --max-line-size; give a larger '
            '--max-line-size, or leave such lines out with --on-error=skip'
        )
    if reject.reason == INVALID_UTF8 and by_number:
        return InputError(f'{file.path}: {line} is not UTF-8; mend it, or give --on-error=skip')
    if reject.reason == INVALID_UTF8:
        return InputError(
            f'{file.path}: invalid UTF-8 at byte {reject.position}, in the line that starts at '
            f'byte {reject.offset}; convert the file to UTF-8 or mend the line'
        )
    return InputError(f'{file.path}: {block.format.explain(reject)}')


def _sum(numbers: Iterable[int | None]) -> int | None:
    there = [number for number in numbers if number is not None]
    return sum(there) if there else None


def _file_of(reject: Reject, block: Block, splits: Sequence[Split]) -> CorpusFile:
    return split_of(splits, block.split, block.file_index).files_at(block.file_index)[reject.side]


def _json_line(reject: Reject, name: str, identity: str) -> bytes:
    fields = {'file': name, identity: reject.offset}
    what, data = 'line', reject.line
    if reject.reason == TOO_LONG:
        fields['bytes'] = reject.size
        what, data = 'beginning', _whole_characters(data, reject.size)
    try:
        fields[what] = data.decode()
    except UnicodeDecodeError:
        fields[f'{what}_base64'] = base64.b64encode(data).decode()
    return json.dumps(fields, ensure_ascii=False).encode() + b'\n'


def _dropped_line(row: DroppedRow, name: str, identity: str) -> bytes:
    sides = ('source', 'target') if len(row.texts) > 1 else ('text',)
    fields = {'file': name, identity: row.offset, **dict(zip(sides, row.texts, strict=True))}
    return json.dumps(fields, ensure_ascii=False).encode() + b'\n'


def _whole_characters(beginning: bytes, size: int) -> bytes:
    """A line's first bytes, without a last character that was cut; as they are if not UTF-8."""
    try:
        beginning.decode()
    except UnicodeDecodeError as error:
        if len(beginning) < size and error.reason == 'unexpected end of data':
            return beginning[: error.start]
    return beginning


@dataclass(frozen=True)
class TextSummary:
    """Length and CRC32C of a file's whole decompressed text."""

    bytes: int
    crc32c: int


def checksum_file(file: CorpusFile, open_binary: OpenBinary) -> TextSummary:
    """Returns the summary of a file by reading it from beginning to end.

    Raises:
      InputError: as `text_pieces`.
    """
    length = crc = 0
    for piece in text_pieces(file, open_binary):
        crc = google_crc32c.extend(crc, piece)
        length += len(piece)
    return TextSummary(length, crc)


def combine_crc32c(first: int, second: int, second_length: int) -> int:
    """Returns the CRC32C of two byte strings, one after the other, from theirs.

    >>> crc = google_crc32c.value
    >>> combine_crc32c(crc(b'ab'), crc(b'cde'), 3) == crc(b'abcde')
    True
    """
    return _multiply(_power_of_x(8 * second_length), first) ^ second


def join_checksums(checksums: Iterable[RangeChecksum], length: int | None = None) -> TextSummary:
    """Joins the checksums of one file, given in any order, to its summary.

    `length` is the text's length where it is known (a plain file's size); without it, a
    file that lost its end cannot be told.

    Raises:
      ValueError: if a part of the file was lost or read twice, or the checksums are of two files.
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
            raise ValueError(f'bytes {first} to {last} of (split, place, side) {file} were {what}')
        crc = combine_crc32c(crc, checksum.crc32c, checksum.length)
        end += checksum.length
    if length is not None and end != length:
        raise ValueError(f'{end} of {length} bytes of (split, place, side) {previous} were read')
    return TextSummary(end, crc)


def join_adjacent(checksums: Iterable[RangeChecksum]) -> list[RangeChecksum]:
    """Joins each checksum to an earlier one of the same file that ends where it begins.

    Given in the order of reading, many checksums of a file become one; nothing is lost or checked.
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
            )
        joined[(*file, checksum.offset + checksum.length)] = checksum
    return list(joined.values())


def block_checksums(block: Block) -> tuple[RangeChecksum, ...]:
    """Returns a checksum for each file that a block is of."""
    if block.read_ranges is not None:
        return tuple(
            RangeChecksum(block.split, block.file_index, *dataclasses.astuple(each))
            for each in block.read_ranges
        )
    read = {line.side: (line.length, line.crc32c) for line in block.long_lines}
    return tuple(
        RangeChecksum(
            block.split,
            block.file_index,
            side,
            text.offset,
            *(read[side] if side in read else (len(text.data), google_crc32c.value(text.data))),
        )
        for side, text in enumerate(block.texts)
    )


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials over GF(2) modulo the CRC's."""
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
    """x to the power 2^count."""
    if count == 0:
        return _ONE >> 1
    root = _squarings(count - 1)
    return _multiply(root, root)


def _power_of_x(exponent: int) -> int:
    power = _ONE
    for place in range(exponent.bit_length()):
        if exponent >> place & 1:
            power = _multiply(_squarings(place), power)
    return power
