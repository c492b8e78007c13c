"""Where the segments of SGM are, and whether two files have the same ones on the same lines.

A file is read once for that, and its layout is a few digests, so that two files are compared without
what they hold.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tokcore.corpus.corpus import LongLine
from tokcore.corpus.line_reading import whole_lines

MOST_PAIRED_BYTES = 16 << 20
"""The size of a text whose segments are paired by ids, in memory: the largest of WMT's has one MB, and
a line may be as long."""

_TAG = re.compile(
    rb'<seg(?=[\s/>])[^>]*>|(?P<end></seg>)|(?P<document>(?i:<doc)(?=[\s>])[^>]*>)|(?i:</doc)(?=[\s>])'
)
_ID = r'\s{}\s*=\s*(?:"([^"]+)"|\'([^\']+)\'|([^\s"\'>]+))'
_SEGMENT_ID, _DOCUMENT_ID, _OTHER_DOCUMENT_ID = (
    re.compile(_ID.format(name).encode(), re.IGNORECASE) for name in ('id', 'docid', 'id')
)


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
            found = _id_of(_SEGMENT_ID, opened[0])
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
            name = _id_of(_DOCUMENT_ID, tag[0])
            documents.append(name or _id_of(_OTHER_DOCUMENT_ID, tag[0]))
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

    Ids count where both files have any. Files without any ids correspond if their segments are those
    of lines.
    """
    both = (source, target)
    if not all(layout.is_of_lines for layout in both):
        return False
    if not any(layout.has_ids or layout.has_document_ids for layout in both):
        return True
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
