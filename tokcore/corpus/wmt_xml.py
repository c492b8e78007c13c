"""WMT's XML: test sets from 2021 on, whose source and references are in one file of segments."""

from __future__ import annotations

import re

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import CorpusFile, OpenBinary
from tokcore.corpus.looks import converting_command
from tokcore.errors import InputError

_ASIDE = re.compile(rb'\A\xef\xbb\xbf|<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>', re.DOTALL)
_ROOT = re.compile(rb'\s*<dataset[\s>]')

_BEGINNING_BYTES = 64 << 10
"""Of a file, in which its root element is looked for; a header of comments may be before it."""

_CONVERTING = (
    'import sys, xml.etree.ElementTree as E; '
    "print(*(' '.join(''.join(s.itertext()).split()) + '\\t' + ' '.join(''.join(r.itertext()).split()) "
    "for d in E.parse(sys.stdin.buffer).iter('doc') if d.find('ref') is not None "
    "for s in d.find('src').iter('seg') "
    "for r in d.find('ref').iter('seg') if r.get('id') == s.get('id')), sep='\\n')"
)
"""Prints the segments of the source and of each document's first reference, as columns."""


def refuse_wmt_xml(file: CorpusFile, open_binary: OpenBinary) -> None:
    """Raises InputError if a file is WMT's XML, with a command that makes a TSV of it."""
    beginning = b''
    for piece in text_pieces(file, open_binary):
        beginning += piece
        if len(beginning) >= _BEGINNING_BYTES:
            break
    if _ROOT.match(_ASIDE.sub(b'', beginning[:_BEGINNING_BYTES])):
        raise wmt_xml_error(file)


def wmt_xml_error(file: CorpusFile) -> InputError:
    """Returns the error for a file that is WMT's XML."""
    command, made = converting_command(file, _CONVERTING)
    return InputError(
        f'{file.path} is the XML of WMT, with sources and references in one file; give --tsv {made}, '
        f'made first: {command}'
    )
