"""Segments of two SGM files, paired by document and id, wherever they are in the files.

Documents with the same id are a pair, and in these the segments with the same id. What is left is paired
in its order, if both sides have as many left, and of each such pair one has no id. All other segments
have no counterpart and are rejected, and so are those whose id is in the document twice.

A segment may be on several lines, and a line may have several. A row is known by where its line begins,
as in files that are paired by lines, or by where its segment begins if an earlier one is on that line.

Whether files are paired by lines depends on their layouts: digests of the lines, the ids and the documents of
their segments, which a first pass over each file finds.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    OUTSIDE_SEGMENT,
    TOO_LONG,
    UNMATCHED_SEGMENT,
    Block,
    BlockText,
    CorpusFile,
    LongLine,
    OpenBinary,
    Reject,
    Rows,
    WorkItem,
)
from tokcore.corpus.declarations import SgmByIds
from tokcore.corpus.entities import decode_references
from tokcore.corpus.formats import FormatReader
from tokcore.corpus.line_reading import BEGINNING_BYTES, whole_lines
from tokcore.corpus.line_rows import finish_rows, mark_bytes, side_of_strings
from tokcore.errors import InputError
from tokcore.options import shown
from tokcore.text.normalizers import find_damage
from tokcore.text.rows import Normalizer, Side

MOST_PAIRED_BYTES = 16 << 20
"""The size of a text whose segments are paired by ids, in memory: the largest of WMT's has one MB, and
a line may be as long."""

_TAG = re.compile(
    rb'<seg(?=[\s/>])[^>]*>|(?P<end></seg>)|(?P<document>(?i:<doc)(?=[\s>])[^>]*>)|(?i:</doc)(?=[\s>])'
)
_ID = r'\s{}\s*=\s*(?:"([^"]+)"|\'([^\']+)\'|([^\s"\'>]+))'
_PLAIN_ID, _DOCUMENT_ID = (
    re.compile(_ID.format(name).encode(), re.IGNORECASE) for name in ('id', 'docid')
)

_MARKUP = re.compile(rb'<[^>]*>?')
_LINE_WITH_TEXT = re.compile(rb'^[^\S\n]*\S[^\n]*', re.MULTILINE)

_T = TypeVar('_T', '_Document', 'Segment')


class SgmPairReader(FormatReader):
    """Reads two files whose segments are not on the same lines, as one block."""

    format: SgmByIds

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        """Yields the block of two whole files.

        Raises:
            InputError: a file cannot be read, or its text is larger than `MOST_PAIRED_BYTES`.
        """
        texts = tuple(BlockText(0, _text_of(file, open_binary)) for file in item.files)
        yield Block(item.split, item.format, item.file_index, texts, max_line_bytes)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        """Returns a row for each pair of segments.

        `lines` counts the pairs, and what is rejected without being one.
        """
        files = [_FileSegments(side, text.data) for side, text in enumerate(block.texts)]
        pairs, unmatched = _pair(files[0], files[1])
        texts = [[files[side].content(pair[side]) for pair in pairs] for side in range(len(files))]
        sides, damages = [], []
        for side in map(side_of_strings, texts):
            if self.format.entities == 'decode':
                side = Side(*decode_references(side.text, side.starts, side.ends))
            normalized = normalizer.apply(side)
            sides.append(normalized.side)
            damages.append(normalized.damages)
        rejects = {}
        for number, pair in enumerate(pairs):
            wrong = [
                reject
                for file, segment, damaged in zip(files, pair, damages, strict=True)
                if (reject := file.flaw(segment, number in damaged, block.max_line_bytes))
            ]
            if wrong:
                rejects[number] = min(wrong, key=lambda reject: _REASONS.index(reject.reason))
        identities = np.array([files[0].identity(source) for source, _ in pairs], np.int64)
        rows = finish_rows(0, identities, None, sides, rejects)
        others: list[Reject] = []
        for file, segments in zip(files, unmatched, strict=True):
            others += [file.reject(UNMATCHED_SEGMENT, *segment) for segment in segments]
            others += file.texts_outside()
        all_rejects = sorted(
            (*rows.rejects, *others), key=lambda reject: (reject.side, reject.offset)
        )
        return dataclasses.replace(rows, lines=len(pairs) + len(others), rejects=tuple(all_rejects))

    def bounds_of_units(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        source = _FileSegments(0, block.texts[0].data)
        bounds = [(source.identity(segment), segment.end) for segment in source.segments]
        starts, ends = np.array(bounds, np.int64).reshape(-1, 2).T
        return starts, ends


_REASONS = (TOO_LONG, INVALID_UTF8, OUTSIDE_SEGMENT)
"""Why a pair may be rejected; of several reasons the first one counts."""


def _text_of(file: CorpusFile, open_binary: OpenBinary) -> bytes:
    text = bytearray()
    for piece in text_pieces(file, open_binary):
        text += piece
        if len(text) > MOST_PAIRED_BYTES:
            raise InputError(
                f'{file.path} has segments that are not on the same lines as those with the same ids in '
                f'the other file, and is larger than the {MOST_PAIRED_BYTES >> 20} MiB that are paired by '
                'ids; put segments with the same ids on the same lines'
            )
    return bytes(text)


_Unmatched = tuple['Segment', str]
"""A segment without a counterpart, and why it has none."""


class _FileSegments:
    """The segments of one file, and its documents."""

    def __init__(self, side: int, data: bytes):
        self._side, self._data = side, data
        self.segments, self.document_ids, _ = find_segments(data)
        self._newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == ord('\n'))
        starts = np.array([segment.start for segment in self.segments], np.int64)
        lines = np.searchsorted(self._newlines, starts)
        is_first = np.ones(len(lines), bool)
        is_first[1:] = lines[1:] != lines[:-1]
        self._of_lines = {
            segment.start: 0 if line == 0 else int(self._newlines[line - 1]) + 1
            for segment, line, first in zip(self.segments, lines.tolist(), is_first, strict=True)
            if first
        }

    def identity(self, segment: Segment) -> int:
        """Returns where the segment's line begins, or the segment if an earlier one is on its line."""
        return self._of_lines.get(segment.start, segment.start)

    def documents(self) -> list[_Document]:
        """Returns the documents with segments, in their order; those with one id are one."""
        found: dict[object, _Document] = {}
        for segment in self.segments:
            name = self.document_ids[segment.document]
            key = segment.document if name is None else name
            found.setdefault(key, _Document(name, [])).segments.append(segment)
        return list(found.values())

    def content(self, segment: Segment) -> bytes:
        """Returns the text of a segment as of one line."""
        start, end = segment.text
        return self._data[start:end].strip(b'\r\n').replace(b'\r', b'').replace(b'\n', b' ')

    def flaw(self, segment: Segment, is_damaged: bool, max_line_bytes: int) -> Reject | None:
        """Returns the reject of a segment that has a counterpart and cannot be used; else None."""
        if segment.end - segment.start > max_line_bytes:
            return self.reject(TOO_LONG, segment)
        if is_damaged:
            return self.reject(INVALID_UTF8, segment)
        if not segment.is_closed:
            return self.reject(OUTSIDE_SEGMENT, segment, f'{_named(segment)} has no </seg>')
        return None

    def reject(self, reason: str, segment: Segment, why: str = '') -> Reject:
        """Returns the reject of a segment."""
        return self._reject(reason, segment.start, segment.end, self.identity(segment), why)

    def texts_outside(self) -> list[Reject]:
        """Returns the rejects of text in no segment, one for each of its lines."""
        rejects = []
        start = mark_bytes(self._data, 0)
        for end, after in [*(segment[:2] for segment in self.segments), (len(self._data), 0)]:
            # Blanks in place of tags, so that positions stay, but for their line feeds.
            between = _MARKUP.sub(
                lambda tag: re.sub(rb'[^\n]', b' ', tag[0]), self._data[start:end]
            )
            for match in _LINE_WITH_TEXT.finditer(between):
                bounds = (start + match.start(), start + match.end())
                rejects.append(self._reject(OUTSIDE_SEGMENT, *bounds, bounds[0]))
            start = after
        return rejects

    def _reject(self, reason: str, start: int, end: int, offset: int, why: str = '') -> Reject:
        number = int(np.searchsorted(self._newlines, start)) + 1
        if reason == TOO_LONG:
            beginning = self._data[start : min(end, start + BEGINNING_BYTES)]
            return Reject(reason, self._side, offset, start, beginning, end - start, number=number)
        data = self._data[start:end]
        position = start
        if reason == INVALID_UTF8:
            position += find_damage(data) or 0
        return Reject(reason, self._side, offset, position, data, why=why, number=number)


class _Document(NamedTuple):
    id: bytes | None
    segments: list[Segment]


def _pair(
    source: _FileSegments, target: _FileSegments
) -> tuple[list[tuple[Segment, Segment]], list[list[_Unmatched]]]:
    """Returns the pairs of segments in the order of the source, and those of each side without one."""
    pairs: list[tuple[Segment, Segment]] = []
    unmatched: list[list[_Unmatched]] = [[], []]
    documents, left_documents, _ = _match(source.documents(), target.documents())
    for side, alone in enumerate(left_documents):
        for document in alone:
            why = f'is in {_named(document)}, which has no counterpart in the other file'
            unmatched[side] += [(each, f'{_named(each)} {why}') for each in document.segments]
    for two in documents:
        matched, left, twice = _match(two[0].segments, two[1].segments)
        pairs += matched
        for side, document in enumerate(two):
            where = f'of {_named(document)}'
            unmatched[side] += [
                (segment, f'{_named(segment)} {where} {what}')
                for segments, what in (
                    (left[side], 'has no counterpart in the other file'),
                    (twice[side], 'is there twice, or twice in the other file'),
                )
                for segment in segments
            ]
    pairs.sort(key=lambda pair: pair[0].start)
    return pairs, unmatched


def _match(
    source: Sequence[_T], target: Sequence[_T]
) -> tuple[list[tuple[_T, _T]], list[list[_T]], list[list[_T]]]:
    """Returns pairs, what is left of each side, and what has an id that is on a side twice."""
    both = (source, target)
    counts = [collections.Counter(each.id for each in side) for side in both]
    repeated = {name for of_side in counts for name, count in of_side.items() if count > 1} - {None}
    by_id = [
        {each.id: each for each in side if each.id is not None and each.id not in repeated}
        for side in both
    ]
    pairs = [(each, by_id[1][name]) for name, each in by_id[0].items() if name in by_id[1]]
    found = by_id[0].keys() & by_id[1].keys()
    left = [[each for each in side if each.id not in found | repeated] for side in both]
    if len(left[0]) == len(left[1]) and all(
        None in (one.id, other.id) for one, other in zip(*left, strict=True)
    ):
        pairs += zip(*left, strict=True)
        left = [[], []]
    return pairs, left, [[each for each in side if each.id in repeated] for side in both]


def _named(each: Segment | _Document) -> str:
    what = 'segment' if isinstance(each, Segment) else 'document'
    if each.id is None:
        return f'a {what} without an id'
    return f'{what} {shown(each.id.decode("utf-8", "replace"))}'


class Segment(NamedTuple):
    """A segment of a text.

    Attributes:
        start: of its start tag, in bytes of the text.
        end: of its end tag; of a segment without one, where the next tag begins.
        text: where its text starts and ends.
        document: its number among the documents of the text, from 1; 0 outside of all.
        id: None if it has none.
        is_closed: whether it has an end tag.
    """

    start: int
    end: int
    text: tuple[int, int]
    document: int
    id: bytes | None
    is_closed: bool


def find_segments(
    text: bytes, open_document: bytes | None = None
) -> tuple[list[Segment], list[bytes | None], bytes | None]:
    """Returns the segments of a text, and the id of each document; document 0 is outside of all.

    `open_document` is the id of the one in which the text begins; that in which it ends is returned too.
    """
    segments: list[Segment] = []
    documents: list[bytes | None] = [None]
    document = 0
    if open_document is not None:
        documents.append(open_document)
        document = 1
    opened: re.Match[bytes] | None = None

    def close(at: int, end: int, is_closed: bool) -> None:
        if opened is not None:
            bounds = (opened.end(), at)
            found = _id_of(_PLAIN_ID, opened[0])
            segments.append(Segment(opened.start(), end, bounds, document, found, is_closed))

    for tag in _TAG.finditer(text):
        if tag['end']:
            close(tag.start(), tag.end(), True)
            opened = None
            continue
        close(tag.start(), tag.start(), False)
        opened = None
        if tag['document']:
            document = len(documents)
            documents.append(_id_of(_DOCUMENT_ID, tag[0]) or _id_of(_PLAIN_ID, tag[0]))
        elif tag[0].startswith(b'<seg'):
            opened = tag
        else:
            document = 0
    close(len(text), len(text), False)
    return segments, documents, documents[document]


def _id_of(pattern: re.Pattern[bytes], tag: bytes) -> bytes | None:
    match = pattern.search(tag)
    return match[match.lastindex or 0] if match else None


class Layout(NamedTuple):
    """The segments of a file, as values that JSON can hold.

    Attributes:
        is_of_lines: whether each segment is the only one of its line, and ends there.
        has_ids: whether any segment has an id.
        has_document_ids: whether any segment is in a document with an id.
        line_count: of the file.
        lines: digest of the line number of each segment.
        ids: digest of the id of each.
        document_ids: digest of the id of the document of each.
    """

    is_of_lines: bool
    has_ids: bool
    has_document_ids: bool
    line_count: int
    lines: str
    ids: str
    document_ids: str


def corresponds(source: Layout, target: Layout) -> bool:
    """Returns whether the same lines of two files have segments with the same ids.

    Ids count where both files have any.
    """
    both = (source, target)
    if not all(layout.is_of_lines for layout in both):
        return False
    same_ids = source.ids == target.ids or not all(layout.has_ids for layout in both)
    same_documents = source.document_ids == target.document_ids or not all(
        layout.has_document_ids for layout in both
    )
    same_lines = (source.line_count, source.lines) == (target.line_count, target.lines)
    return same_ids and same_documents and same_lines


class LayoutReader:
    """Finds the layout of a text that is read in pieces; it holds `MOST_PAIRED_BYTES`, or a line."""

    def __init__(self) -> None:
        self._digests = [hashlib.blake2b(digest_size=16) for _ in range(3)]
        self._is_of_lines = True
        self._has_ids = self._has_document_ids = False
        self._lines = 0
        self._document: bytes | None = None  # the id of the open one

    def watched(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the pieces of a whole text, and adds them."""
        passed: list[bytes] = []

        def passing() -> Iterator[bytes]:
            for piece in pieces:
                passed.append(piece)
                yield piece

        for text in whole_lines(passing(), MOST_PAIRED_BYTES):
            if isinstance(text, LongLine):
                self._lines += 1
            else:
                self._add(text)
            yield from passed
            passed.clear()
        yield from passed

    def _add(self, text: bytes) -> None:
        segments, documents, self._document = find_segments(text, self._document)
        newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == ord('\n'))
        bounds = np.array([segment[:2] for segment in segments], np.int64).reshape(-1, 2)
        first, last = np.searchsorted(newlines, bounds).T
        is_alone = len(np.unique(first)) == len(first) and np.array_equal(first, last)
        self._is_of_lines &= is_alone and all(segment.is_closed for segment in segments)
        ids = [segment.id for segment in segments]
        in_documents = [documents[segment.document] for segment in segments]
        self._has_ids |= any(ids)
        self._has_document_ids |= any(in_documents)
        lines, *digests = self._digests
        lines.update((first + self._lines).astype('<i8').tobytes())
        for digest, names in zip(digests, (ids, in_documents), strict=True):
            digest.update(b''.join(_prefixed(name) for name in names))
        self._lines += len(newlines) + (not text.endswith(b'\n'))

    def layout(self) -> Layout:
        """Returns the layout of what was read."""
        return Layout(
            bool(self._is_of_lines), self._has_ids, self._has_document_ids, self._lines,
            *(digest.hexdigest() for digest in self._digests),
        )  # fmt: skip


def _prefixed(name: bytes | None) -> bytes:
    return b'-' if name is None else b'%d:%s' % (len(name), name)
