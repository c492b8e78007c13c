"""What a file is, by the bytes that it begins with, and whether a format can read that.

`identify` knows compressions, archives and data that are not text. Each signature is one that no UTF-8
text has: a byte that is not UTF-8, a control character, or a structure that is checked. The exceptions
are documents that are text themselves, as HTML. Libraries such as libmagic and puremagic take `MZ`,
`BM` or `ORC` at the beginning of a text for a program, an image or a table, and none of them has
Parquet, TFRecords and UTF-16 without a mark.
"""

from __future__ import annotations

import codecs
import re
import shlex
import struct
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from tokcore.errors import InputError

HEAD_BYTES = 64 << 10
"""The beginning of a text that is looked at: one request of an object store returns as much."""

Compression = bool | str
"""How bytes are packed: False, True for gzip, or one of these names; a zip is an archive as well."""

BZIP2, XZ, ZSTD, ZIP = 'bzip2', 'xz', 'zstd', 'zip'

TEXT, XML, PARQUET = 'text', 'xml', 'parquet'
"""What a format reads: UTF-8, XML in any encoding that it declares, or Parquet."""

_MOST_NULS = 16
_BYTES_PER_NUL = 1000
"""A text may have `_MOST_NULS` NULs, or one in so many bytes: a crawl has a few. Data has more."""

_TAR_BLOCK = 512


class Content(NamedTuple):
    """What a file is that is not text.

    Attributes:
        name: with an article, as a sentence has it.
        remedy: what to do, as the end of a sentence; `{0}` is the file's path.
    """

    name: str
    remedy: str


class Look(NamedTuple):
    """What the beginning of a file shows.

    Attributes:
        compression: how the file is packed.
        content: what is in it, once it is decompressed; None for what may be text.
        encoding: of text that is not UTF-8, as iconv has it.
        nuls: NUL bytes in the beginning of the text.
        size: of this beginning, in bytes.
    """

    compression: Compression = False
    content: Content | None = None
    encoding: str = ''
    nuls: int = 0
    size: int = 0


_TABLE = 'convert it to Parquet or JSON lines'
_DOCUMENT = 'save its text in UTF-8'
_NO_TEXT = 'give a file of text'
_UNPACK = 'unpack it, or pack its files as tar or zip'
_CONTROL = r'(?=[^\0]{0,60}[\0-\x08\x0e-\x1f])'  # a control character follows soon

TAR = Content('a tar archive', 'name its members')
ZIP_ARCHIVE = Content('a zip archive', 'name its members')
PARQUET_FILE = Content('a Parquet file', 'give it with --parquet')
HTML = Content(
    'a web page (HTML)',
    'look at what it says, as servers send errors so, or name files of such text .html',
)
_GZIP, _BZIP2, _XZ, _ZSTD = (Content(f'{name} data', '') for name in ('gzip', BZIP2, XZ, ZSTD))

_SIGNATURES: Sequence[tuple[str, Content]] = (
    (r'\x1f\x8b', _GZIP),
    # After the level comes the first block, or the end of an empty file: no text begins like this.
    (r'BZh[1-9](?:1AY&SY|\x17rE8P\x90)', _BZIP2),
    (r'\xfd7zXZ\0', _XZ),
    (r'\x28\xb5\x2f\xfd', _ZSTD),
    (r'PK(?:\x03\x04|\x05\x06|\x07\x08)', ZIP_ARCHIVE),
    (r'PAR[1E]' + _CONTROL, PARQUET_FILE),
    (r'7z\xbc\xaf\x27\x1c', Content('a 7z archive', _UNPACK)),
    (r'Rar!\x1a\x07', Content('a rar archive', _UNPACK)),
    (
        r'(?:07070[12][0-9A-Fa-f]{104}|070707[0-7]{70})[^\0\n]{0,60}\0|\xc7\x71',
        Content('a cpio archive', _UNPACK),
    ),
    (r'!<arch>\n', Content('an ar archive', _UNPACK)),
    (r'xar!\0', Content('a xar archive', _UNPACK)),
    (r'MSCF\0\0\0\0', Content('a cab archive', _UNPACK)),
    (r'\x1f[\x9d\xa0]', Content('a file of compress (.Z)', 'unpack it: gzip -dc {0}')),
    (r'LZIP[\0\1]', Content('an lzip file', 'unpack it: lzip -dc {0}')),
    (r'\]\0\0[\0-\xff]{2}(?:\xff{8}|[\0-\xff]{5}\0{3})', Content('an lzma file', 'unpack it: xz -dc {0}')),
    (r'\x04\x22\x4d\x18', Content('an lz4 file', 'unpack it: lz4 -dc {0}')),
    (r'\x89LZO\0\r\n\x1a\n', Content('an lzop file', 'unpack it: lzop -dc {0}')),
    (r'\xff\x06\0\0sNaPpY', Content('a snappy file', 'unpack it')),
    (r'ARROW1\0\0|FEA1' + _CONTROL + r'|\xff{4}[\0-\xff]{2}\0\0\x10\0\0\0', Content('an Arrow file', _TABLE)),
    (r'ORC' + _CONTROL, Content('an ORC file', _TABLE)),
    (r'Obj\x01', Content('an Avro file', _TABLE)),
    (r'SQLite format 3\0', Content('an SQLite database', _TABLE)),
    (r'\x89HDF\r\n\x1a\n', Content('an HDF5 file', _TABLE)),
    (r'\x93NUMPY', Content('a NumPy array', _NO_TEXT)),
    (r'\x80[\x02-\x05]', Content('a pickle of Python', _TABLE)),
    (r'[\0-\xff]{4}\0{4}\{"', Content('a safetensors file', _NO_TEXT)),
    (r'GGUF[\1-\x0f]\0', Content('a GGUF model', _NO_TEXT)),
    (r'MMIDIDX\0\0', Content("a Megatron index", _NO_TEXT)),
    (r'\x7fELF|MZ(?=[^\0]{0,60}\0)|[\xce\xcf]\xfa\xed\xfe|\xca\xfe\xba\xbe|\0asm', Content('a program', _NO_TEXT)),
    (r'%PDF-[12]\.', Content('a PDF document', _DOCUMENT + ', as with pdftotext')),
    (r'\{\\rtf1', Content('an RTF document', _DOCUMENT)),
    (r'%!PS-Adobe', Content('a PostScript document', _DOCUMENT)),
    (r'\xd0\xcf\x11\xe0\xa1\xb1', Content('a document of Microsoft Office', _DOCUMENT)),
    (
        r'\x89PNG|\xff\xd8\xff|GIF8[79]a' + _CONTROL + r'|II\*\0|MM\0\*|BM[\0-\xff]{4}\0{4}'
        r'|RIFF[\0-\xff]{4}WEBP|\0\0[\0-\xff]{2}ftyp(?:avif|hei[cf])|\0\0\1\0',
        Content('an image', _NO_TEXT),
    ),
    (
        r'ID3[\2-\4]\0|OggS\0|fLaC\0|RIFF[\0-\xff]{4}(?:WAVE|AVI )|\0\0[\0-\xff]{2}ftyp|\x1aE\xdf\xa3',
        Content('a sound or a film', _NO_TEXT),
    ),
    (r'\0\5\x16[\0\7]', Content('an AppleDouble file of macOS', 'leave it out')),
    (
        r'version https://git-lfs\.github\.com/spec/v1\n',
        Content('a pointer of Git LFS', 'fetch the file itself: git lfs pull'),
    ),
    (r'(?:\xef\xbb\xbf)?\s*<(?:!(?i:doctype)\s+(?i:html)\b|(?i:html)[\s>])', HTML),
)  # fmt: skip

_SIGNATURE = re.compile('|'.join(f'({each})' for each, _ in _SIGNATURES).encode('latin-1'))
"""One pattern for all: a corpus may have ten thousand files. The group says which signature it is."""

_SKIPPABLE = re.compile(rb'[\x50-\x5f]\x2a\x4d\x18')
"""The header of a frame of zstd without text; a text may begin so, and then the name decides."""

_COMPRESSIONS: dict[Content, Compression] = {_GZIP: True, _BZIP2: BZIP2, _XZ: XZ, _ZSTD: ZSTD}

_ENDINGS: Sequence[tuple[Compression, bytes, tuple[str, ...]]] = (
    (True, b'\x1f\x8b', ('.gz', '.tgz')),
    (BZIP2, b'BZh', ('.bz2', '.tbz', '.tbz2')),
    (XZ, b'\xfd7zXZ\0', ('.xz', '.txz')),
    (ZSTD, b'\x28\xb5\x2f\xfd', ('.zst', '.tzst')),
)
"""The first bytes of a file that was cut off within them, and the endings of names that then decide."""

_MOST_CUT_OFF = 6

_TAR_ENDINGS = ('.tar', '.tgz', '.tbz', '.tbz2', '.txz', '.tzst', '.tar.gz', '.tar.bz2', '.tar.xz', '.tar.zst')  # fmt: skip

_ZIPPED: Sequence[tuple[bytes, Content]] = (
    (b'[Content_Types].xml', Content('an Office document', _DOCUMENT)),
    (b'mimetypeapplication/', Content('an OpenDocument or EPUB document', _DOCUMENT)),
    (b'/data.pkl', Content('a model of PyTorch', _NO_TEXT)),
    (b'.npy', Content('NumPy arrays', _NO_TEXT)),
    (b'META-INF/', Content('a Java archive', _NO_TEXT)),
)
"""Zips that are documents: these names stand in the header of their first files."""

_ZIP_HEADER_BYTES = 256

_MARKS = (
    (codecs.BOM_UTF32_LE, 'UTF-32'),
    (codecs.BOM_UTF32_BE, 'UTF-32'),
    (codecs.BOM_UTF16_LE, 'UTF-16'),
    (codecs.BOM_UTF16_BE, 'UTF-16'),
)

_TFRECORD = Content('a TFRecord file', _TABLE)


def identify(beginning: bytes) -> Content | None:
    """Returns what a file is by its first bytes, at best `HEAD_BYTES`; None for what may be text."""
    match = _SIGNATURE.match(beginning)
    if match is not None and match.lastindex is not None:
        content = _SIGNATURES[match.lastindex - 1][1]
        return _zipped(beginning) if content is ZIP_ARCHIVE else content
    if b'\0' not in beginning[:_TAR_BLOCK]:
        return None
    if _is_tar(beginning):
        return TAR
    return _TFRECORD if _is_record(beginning) else None


def look(text: bytes, compression: Compression = False) -> Look:
    """Returns what the beginning of a (decompressed) text shows."""
    content = identify(text)
    if content is not None:
        return Look(compression, content, size=len(text))
    nuls = text.count(0) if b'\0' in text else 0
    return Look(compression, None, _encoding(text, nuls), nuls, len(text))


def compression_of_content(content: Content | None, beginning: bytes, name: str) -> Compression:
    """Returns how a file is packed that begins with these bytes, ten or more if it has them.

    No UTF-8 text begins so. If the file is too short for that, its name shows that it was cut off.
    `content` is what `identify` has returned.
    """
    if content is not None:
        is_zip = content == ZIP_ARCHIVE or any(content == kind for _, kind in _ZIPPED)
        return ZIP if is_zip else _COMPRESSIONS.get(content, False)
    if len(beginning) >= _MOST_CUT_OFF and not _SKIPPABLE.match(beginning):
        return False
    name = name.lower()
    if name.endswith('.zst') and _SKIPPABLE.match(beginning):
        return ZSTD
    for compression, first_bytes, endings in _ENDINGS:
        if name.endswith(endings) and first_bytes.startswith(beginning[: len(first_bytes)]):
            return compression
    return False


def archive_by_name(path: str) -> Content | None:
    """Returns what archive the name of a file promises, for one whose content does not say."""
    name = path.lower()
    if name.endswith('.zip'):
        return ZIP_ARCHIVE
    return TAR if name.endswith(_TAR_ENDINGS) else None


class Inside(NamedTuple):
    """The archive that a file is a member of."""

    path: str
    is_zip: bool


def refuse(
    path: str,
    seen: Look,
    expected: str = TEXT,
    members: Sequence[str] = (),
    inside: Inside | None = None,
) -> None:
    """Refuses a file that cannot be what a format reads.

    Args:
        path: of the file, or of a member of an archive, `ARCHIVE!MEMBER`.
        seen: what its beginning shows.
        expected: `TEXT`, `XML` or `PARQUET`.
        members: names of some members of an archive; empty where none can be named.
        inside: the archive that the file is in.

    Raises:
        InputError: it is something else.
    """
    if expected == PARQUET:
        _refuse_for_parquet(path, seen, members, inside)
    elif seen.content is not None:
        if seen.content != HTML or not _PAGE_NAME.search(path):
            raise InputError(_described(path, seen, members, inside, 'not text'))
    elif seen.encoding and expected != XML:
        raise InputError(
            f'{path} is {seen.encoding} text, and UTF-8 is needed; convert it: '
            f'{_iconv(path, seen, inside)}'
        )
    elif not seen.encoding and seen.nuls > _MOST_NULS and seen.nuls * _BYTES_PER_NUL > seen.size:
        raise InputError(
            f'{path} has {seen.nuls:,} NUL bytes among the first {seen.size:,} bytes of its text, so it '
            'is not text in UTF-8; convert it, or give another file'
        )


def refuse_but(what: str, path: str, data: bytes) -> None:
    """Refuses what is not text, of files that are read whole, as vocabularies.

    Args:
        what: the file should be, with an article.
        path: of it.
        data: its bytes, or the first ones.

    Raises:
        InputError: it is something else, as a compressed file.
    """
    content = identify(data[:HEAD_BYTES])
    if content is None:
        return
    compression = _COMPRESSIONS.get(content)
    if compression is not None:
        remedy = _decompressing(path, compression)
    elif content in (TAR, ZIP_ARCHIVE):
        remedy = 'unpack it'
    else:
        remedy = content.remedy.format(shlex.quote(path))
    raise InputError(f'{path} is {content.name} and not {what}; {remedy}')


def _refuse_for_parquet(
    path: str, seen: Look, members: Sequence[str], inside: Inside | None
) -> None:
    if seen.content == PARQUET_FILE:
        return  # in a compressed file or an archive it is refused by its reader
    if seen.content is not None:
        raise InputError(_described(path, seen, members, inside, 'not Parquet'))
    if seen.size and not seen.nuls:
        raise InputError(
            f'{path} begins as text and is not a Parquet file; give it with the option of its format, '
            'as --text, --tsv or --jsonl'
        )


def _described(
    path: str, seen: Look, members: Sequence[str], inside: Inside | None, instead: str
) -> str:
    """Returns the sentence about a file that is known, and is not what was expected."""
    content = seen.content
    assert content is not None
    is_packed = seen.compression not in (False, ZIP)
    packed = f' in {compression_name(seen.compression)}' if is_packed else ''
    if content in (TAR, ZIP_ARCHIVE):
        if inside is not None:
            return (
                f'{path} is {content.name}{packed} within an archive; unpack {inside.path}, and name the '
                'members of the inner one'
            )
        if is_packed and content == ZIP_ARCHIVE:
            return f'{path} is {content.name}{packed}; {_decompressing(path, seen.compression)}'
        remedy = 'unpack it'
        if members:
            others = f' (it has {", ".join(members)})' if len(members) > 1 else ''
            remedy = f'name its members: {path}!{members[0]}{others}'
        return f'{path} is {content.name}; {remedy}'
    if content in _COMPRESSIONS:
        return (
            f'{path} is compressed twice, by {compression_name(seen.compression)} over '
            f'{compression_name(_COMPRESSIONS[content])}; {_decompressing(path, seen.compression)}'
        )
    remedy = content.remedy.format(shlex.quote(path))
    return f'{path} is {content.name}{packed} and {instead}; {remedy}'


def compression_name(compression: Compression) -> str:
    """Returns the name of a compression."""
    return 'gzip' if compression is True else str(compression)


_COMPRESSED_NAME = re.compile(r'\.(?:gz|bz2|xz|zst)$', re.IGNORECASE)
_PAGE_NAME = re.compile(r'\.x?html?(?:\.(?:gz|bz2|xz|zst))?$', re.IGNORECASE)


def printing(path: str, compression: Compression, inside: Inside | None = None) -> str:
    """Returns the shell's command that prints the text of a file.

    >>> printing('a b.gz', True)
    "gzip -dc 'a b.gz'"
    """
    unpack = f'{compression_name(compression)} -dc' if compression else ''
    if inside is None:
        return f'{unpack or "cat"} {shlex.quote(path)}'
    member = path.removeprefix(f'{inside.path}!')
    program = 'unzip -p' if inside.is_zip else 'tar -xOf'
    command = f'{program} {shlex.quote(inside.path)} {shlex.quote(member)}'
    return f'{command} | {unpack}' if unpack else command


def _decompressing(path: str, compression: Compression) -> str:
    return f'decompress it: {printing(path, compression)}'


def _iconv(path: str, seen: Look, inside: Inside | None) -> str:
    """Returns a shell's command that writes the text in UTF-8."""
    command = f'iconv -f {seen.encoding} -t UTF-8'
    if seen.compression or inside is not None:
        command = f'{printing(path, seen.compression, inside)} | {command}'
    else:
        command = f'{command} {shlex.quote(path)}'
    name = _COMPRESSED_NAME.sub('', re.split(r'[/!]', path)[-1])
    return f'{command} > {shlex.quote(f"{name}.utf-8")}'


def _zipped(beginning: bytes) -> Content:
    header = beginning[:_ZIP_HEADER_BYTES]
    for name, content in _ZIPPED:
        if name in header:
            return content
    return ZIP_ARCHIVE


def _is_tar(beginning: bytes) -> bool:
    """Whether there is a header of a tar at the beginning, which has a checksum of itself."""
    header = beginning[:_TAR_BLOCK]
    if len(header) < _TAR_BLOCK:
        return False
    try:
        checksum = int(header[148:156].strip(b' \0') or b'-', 8)
    except ValueError:
        return False
    return checksum == 8 * 32 + sum(header) - sum(header[148:156])


def _is_record(beginning: bytes) -> bool:
    """Whether the checksum of a TFRecord's length is where it should be."""
    import google_crc32c

    if len(beginning) < 12:
        return False
    crc = google_crc32c.value(beginning[:8])
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.unpack_from('<I', beginning, 8) == (masked,)


def _encoding(text: bytes, nuls: int) -> str:
    """Returns the encoding of UTF-16 and UTF-32, as iconv has it; '' for all other text."""
    for mark, encoding in _MARKS:
        if text.startswith(mark):
            return encoding
    return _unmarked_encoding(text) if nuls else ''


def _unmarked_encoding(text: bytes) -> str:
    r"""Returns the encoding of UTF-16 and UTF-32 without a mark, of text that has NULs.

    In UTF-32, each fourth byte is a NUL. In UTF-16 of an alphabet, half of all bytes are the upper ones
    of the characters, mostly NULs or other control characters: `a\0b\0`, or `0\4@\4`.
    Chinese is known by being text in UTF-16, and far from text in UTF-8.
    """
    if len(text) >= 8:
        quarters = [text[start::4] for start in range(4)]
        for encoding, top, next_to_top in (('UTF-32LE', 3, 2), ('UTF-32BE', 0, 1)):
            planes = quarters[next_to_top].strip(bytes(range(0x11)))
            if not quarters[top].strip(b'\0') and not planes and text.strip(b'\0'):
                return encoding
    halves = [text[0::2], text[1::2]]
    nuls = [half.count(0) for half in halves]
    upper = int(nuls[1] > nuls[0])
    if len(text) >= 4 and nuls[1 - upper] * 4 <= nuls[upper]:
        size = len(halves[upper])
        controls = size - len(halves[upper].translate(None, _CONTROLS))
        is_frequent = nuls[upper] > 1 and nuls[upper] >= _LEAST_NUL_SHARE * size
        if is_frequent:
            controls = size - len(halves[upper].translate(None, _ALL_CONTROLS))
        if controls >= _LEAST_UPPER_SHARE * size:
            return 'UTF-16LE' if upper else 'UTF-16BE'
    return _encoding_by_line_feeds(text[:_SAMPLE_BYTES])


_LEAST_UPPER_SHARE = 0.5
"""At least half of the upper bytes are control characters; the rest are those of punctuation."""

_LEAST_NUL_SHARE = 0.05
"""Spaces, digits and line feeds are more than this in text of any alphabet. With so many NULs, tabs and
line breaks count as upper bytes too: Devanagari begins at U+0900, and Malayalam at U+0D00."""

_ALL_CONTROLS = bytes(range(0x20))
_CONTROLS = _ALL_CONTROLS.translate(None, b'\t\n\r')

_SAMPLE_BYTES = 4 << 10
_LEAST_LINE_FEEDS = 4


def _encoding_by_line_feeds(sample: bytes) -> str:
    """Returns the encoding of UTF-16 whose upper bytes may be any: its line feeds have a NUL each.

    If the text is also UTF-8, all line feeds must have one, and at an even offset; in other text one or
    two may have one by chance.
    """
    line_feeds = sample.count(b'\n')
    try:
        codecs.getincrementaldecoder('utf-8')().decode(sample)
        least = max(line_feeds, _LEAST_LINE_FEEDS)
    except UnicodeDecodeError:
        least = max(line_feeds // 2, 1)
    pairs = [sample[at : at + 2] for at in range(0, len(sample) - 1, 2)]
    for encoding, line_feed in (('UTF-16LE', b'\n\0'), ('UTF-16BE', b'\0\n')):
        if pairs.count(line_feed) >= least and _is_text_in(encoding, sample):
            return encoding
    return ''


def _is_text_in(encoding: str, sample: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return False
    kinds = {unicodedata.category(each) for each in set(text) - set('\t\n\r\f')}
    return kinds.isdisjoint({'Cc', 'Cn', 'Co'})
