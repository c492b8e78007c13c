"""WMT's XML: test sets from 2021 on, whose source and references are in one file of segments."""

from __future__ import annotations

import re
import shlex

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import CorpusFile, OpenBinary
from tokcore.errors import InputError

_ASIDE = re.compile(rb'\A\xef\xbb\xbf|<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>', re.DOTALL)
_ROOT = re.compile(rb'\s*<dataset[\s>]')

_BEGINNING_BYTES = 64 << 10
"""Of a file, in which its root element is looked for; a header of comments may be before it."""

_CONVERTING = (
    'import sys, xml.etree.ElementTree as E; '
    "[print(' '.join(''.join(s.itertext()).split()), ' '.join(''.join(t.itertext()).split()), sep='\\t') "
    "for d in E.parse(sys.argv[1]).iter('doc') if d.find('ref') is not None "
    "for r in [{t.get('id'): t for t in d.find('ref').iter('seg')}] "
    "for s in d.find('src').iter('seg') for t in [r.get(s.get('id'))] if t is not None]"
)


def refuse_wmt_xml(file: CorpusFile, open_binary: OpenBinary) -> None:
    """Raises InputError if a file is WMT's XML, with a command that makes a TSV of it."""
    beginning = b''
    for piece in text_pieces(file, open_binary):
        beginning += piece
        if len(beginning) >= _BEGINNING_BYTES:
            break
    if _ROOT.match(_ASIDE.sub(b'', beginning[:_BEGINNING_BYTES])):
        raise wmt_xml_error(file.path)


def wmt_xml_error(path: str) -> InputError:
    """Returns the error for a file that is WMT's XML."""
    name = path.rpartition('/')[2]
    return InputError(
        f'{path} is the XML of WMT, with sources and references in one file; give --tsv '
        f'{shlex.quote(name + ".tsv")} after: python3 -c "{_CONVERTING}" {shlex.quote(path)} > '
        f'{shlex.quote(name + ".tsv")}'
    )
