"""Looks at the beginnings of files and of members of archives, and refuses what is not text.

All inputs are looked at when they are found, before any work. Compressed texts, of which there may be too
many for that, are looked at once more when they are read. An error may name a command of the shell that
converts a file, which a user can paste.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Generator, Iterator
from typing import IO

from tokcore.corpus.contents import (
    HEAD_BYTES,
    TEXT,
    XML,
    ZIP,
    Inside,
    Look,
    compression_of_content,
    look,
    printing,
    refuse,
)
from tokcore.corpus.corpus import CorpusFile, MemberFile, OpenBinary
from tokcore.corpus.storage import FIRST_BYTES, open_path, read_up_to, unpacked_stream
from tokcore.errors import InputError

MOST_LOOKED_AT = 32 << 20
"""The text that is decompressed to look at the beginnings of files: 64 KiB of each of 500, which takes a
quarter of a second of gzip, or a second of bzip2, which decompresses 900 KB for the first byte."""


class Looks:
    """Looks at the beginnings of files, each once, while a job is planned.

    The beginning of the text of a compressed file is decompressed for that. When this was much for the
    files so far, the next ones are looked at when they are read (`checked_text`).
    """

    def __init__(self, open_binary: OpenBinary):
        self._open_binary = open_binary
        self._left = MOST_LOOKED_AT

    def at(self, path: str, is_needed: bool = False) -> Look:
        """Looks at a file, whatever the ones before took if `is_needed`.

        Raises:
            InputError: it cannot be opened.
        """
        if is_needed:
            self._left = max(self._left, 1)
        with open_path(path, self._open_binary) as stream:
            return self.at_stream(path, stream)

    def at_stream(self, name: str, stream: IO[bytes], is_packed: bool = False) -> Look:
        """Looks at what a stream has from its beginning on.

        Args:
            name: of the file.
            stream: of the stored bytes, or of as many as are at hand.
            is_packed: whether reading the stream decompresses.
        """
        size = FIRST_BYTES if is_packed and self._left <= 0 else HEAD_BYTES
        beginning = read_up_to(stream, size)
        seen = look(beginning)
        compression = compression_of_content(seen.content, beginning, name)
        if compression in (False, ZIP):
            if is_packed:
                self._left -= len(beginning)
            return seen._replace(compression=compression) if compression else seen
        if self._left <= 0:
            return Look(compression)
        stream.seek(0)
        text = b''
        with contextlib.suppress(InputError):  # what is wrong is said when the file is read
            for piece in unpacked_stream(CorpusFile(name, name, 0, compression), stream):
                text += piece
                if len(text) >= HEAD_BYTES:
                    break
        self._left -= len(text)
        return look(text[:HEAD_BYTES], compression)


def checked_text(file: CorpusFile, pieces: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Yields the pieces of a text; raises InputError first if its beginning shows that it is not text."""
    first: list[bytes] = []
    for piece in pieces:
        first.append(piece)
        if sum(map(len, first)) >= HEAD_BYTES:
            break
    text = b''.join(first)[:HEAD_BYTES]
    # Only XML may be in another encoding than UTF-8, and begins with a tag.
    expected = XML if text.lstrip(b'\xff\xfe\0').startswith(b'<') else TEXT
    refuse(file.path, look(text, file.compressed), expected, inside=inside(file))
    yield from first
    yield from pieces


_ASIDE = re.compile(rb'\A\xef\xbb\xbf|<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>', re.DOTALL)
_WMT_ROOT = re.compile(rb'\s*<dataset[\s>]')

_WMT_CONVERTING = (
    'import sys, xml.etree.ElementTree as E; '
    "print(*(' '.join(''.join(s.itertext()).split()) + '\\t' + ' '.join(''.join(r.itertext()).split()) "
    "for d in E.parse(sys.stdin.buffer).iter('doc') if d.find('ref') is not None "
    "for s in d.find('src').iter('seg') "
    "for r in d.find('ref').iter('seg') if r.get('id') == s.get('id')), sep='\\n')"
)
"""Prints the segments of the source and of each document's first reference, as columns."""


def is_wmt_xml(beginning: bytes) -> bool:
    """Returns whether a file is WMT's XML: test sets from 2021 on, with source and references in one."""
    return _WMT_ROOT.match(_ASIDE.sub(b'', beginning)) is not None


def wmt_xml_error(file: CorpusFile) -> InputError:
    """Returns the error for a file that is WMT's XML, with a command that makes a TSV of it."""
    command, made = converting_command(file, _WMT_CONVERTING)
    return InputError(
        f'{file.path} is the XML of WMT, with sources and references in one file; give --tsv {made}, '
        f'made first: {command}'
    )


def inside(file: CorpusFile) -> Inside | None:
    """Returns the archive that a file is a member of, for `refuse`."""
    if not isinstance(file, MemberFile):
        return None
    return Inside(file.archive.path, file.archive.compressed == ZIP)


def converting_command(file: CorpusFile, program: str) -> tuple[str, str]:
    """Returns a command that converts a file by a Python program, and the name of what it makes.

    The program has no double quotes.
    """
    made = shlex.quote(f'{file.path.rpartition("/")[2]}.tsv')
    command = printing(file.path, file.compressed, inside(file))
    return f'{command} | python3 -c "{program}" > {made}', made
