"""Small corpora of every input format, with the rows that formats and schemes treat differently.

Each corpus has two files for a role, so that rows have different file indexes. `OddCorpora.words`
writes them as they are, compressed, or into an archive, and returns the options that name them.
"""

import bz2
import functools
import gzip
import io
import itertools
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from generated_text import distinct_pairs

Pairs = Sequence[tuple[str, str]]
Texts = Mapping[str, Sequence[bytes]]

_ROWS = 150
_LONG = 'long ' * 1000  # more than `MAX_LINE_SIZE`, which is given where bad rows are skipped
MAX_LINE_SIZE = 4096

_ODD = (
    'one\rlone carriage return',
    'a NUL \0 inside',
    'line\u2028separator',
    'next\x85line',
    'file\x1cseparator',
    ' \u3000 ',
    '\xa0padded\u2003 ',
    'x' * 300,
    _LONG,
    'cafe\u0301 A\u030angstro\u0308m ﬁ ǅ İ',
    '<EOS> [MASK] <|endoftext|> <pad> </s> <2zh>',
    '&amp; <b>"quoted"</b> \'single\' &#233;',
    'the same twice',
    'the same twice',
    'a \ufeffmark inside',
    'under_score \\ back\\32; slash',
    '',
    '12345 6,789.0',
)
_OF_SEVERAL_LINES = ('two\nlines', 'two\r\nlines', 'ends\n', '\r\n', 'a\ttab')

_BOM = b'\xef\xbb\xbf'
_NOT_UTF8 = (b'\xff\xfe', b'\xed\xa0\x80', b'\xc3\x28')
LABELS = ('none', 'some', 'odd')
PAIR_LANGUAGES = ('en', 'zh')


@dataclass(frozen=True)
class Corpus:
    """A corpus and the options by which it is read.

    Attributes:
        sides: 2 for pairs, 1 for texts, 0 for texts with labels.
        texts: returns the contents of the files of each role, with bad rows or without.
        options: its format's, as in a job file; `labels.txt` is where the corpora are.
        format: its name in a job file.
    """

    sides: int
    texts: Callable[[bool], Texts]
    format: str
    options: Mapping[str, object]

    @property
    def has_other_fields(self) -> bool:
        """Whether examples have more than text, which only TFRecords hold."""
        return self.sides == 0 or 'keep' in self.options


@functools.cache
def _rows(several_lines: bool = False) -> tuple[tuple[str, str], ...]:
    """The pairs: ordinary ones, and each odd text as source, as target, and as both."""
    rows = distinct_pairs(_ROWS, seed=7)
    odd = [*_ODD, *(_OF_SEVERAL_LINES if several_lines else ())]
    for number, text in enumerate(odd):
        source, target = rows[number]
        rows[5 * number : 5 * number] = [(text, target), (source, text)]
        rows.append((text, text))
    return tuple(rows)


def _in_two(rows: Sequence) -> tuple[Sequence, Sequence]:
    return rows[: len(rows) // 2], rows[len(rows) // 2 :]


def _as_lines(lines: Sequence[bytes], bad: Sequence[bytes] = (), first: int = 0) -> bytes:
    r"""Joins lines; every fifth ends in `\r\n`, the last one in nothing, and bad ones are in between."""
    kinds = itertools.cycle(bad)
    data = bytearray()
    for number, line in enumerate(lines, first):
        data += line + (b'\r\n' if number % 5 == 2 else b'\n')
        if bad and number % 17 == 5:
            data += next(kinds) + b'\n'
    return bytes(data[:-1])


def _encoded(texts: Iterator[str] | Sequence[str]) -> list[bytes]:
    return [text.encode() for text in texts]


def _text(bad: bool) -> Texts:
    lines = _encoded([text for pair in _rows() for text in pair])
    return {'text': [_BOM + _as_lines(half, _NOT_UTF8 * bad) for half in _in_two(lines)]}


def _aligned(bad: bool) -> tuple[list[bytes], list[bytes]]:
    """Two files of as many lines; the bad ones of the one side do not go with those of the other."""
    sources, targets = zip(*_rows(), strict=True)
    if bad:
        sources = [b'\xff' if n % 19 == 3 else line for n, line in enumerate(_encoded(sources))]
        targets = [b'\xc3(' if n % 23 == 4 else line for n, line in enumerate(_encoded(targets))]
        return sources, targets
    return _encoded(sources), _encoded(targets)


def _bitext(bad: bool) -> Texts:
    sources, targets = _aligned(bad)
    return {
        'source': [_BOM + _as_lines(half) for half in _in_two(sources)],
        'target': [_as_lines(half, first=1) for half in _in_two(targets)],
    }


def _labelled(bad: bool) -> Texts:
    lines, _ = _aligned(bad)
    names = _encoded(LABELS[number % len(LABELS)] for number in range(len(lines)))
    if bad:
        names = [b'else' if number % 7 == 3 else name for number, name in enumerate(names)]
    return {
        'text': [_BOM + _as_lines(half) for half in _in_two(lines)],
        'line_labels': [_as_lines(half) for half in _in_two(names)],
    }


def _columns(header: bytes) -> Callable[[bool], Texts]:
    def texts(bad: bool) -> Texts:
        lines = _encoded(f'{n}\t{a}\t{b}' for n, (a, b) in enumerate(_rows()))
        wrong = (b'no other column', b'1\t\xff\tb', b'2\ta\t\xc3(', b'3\t\t') if bad else ()
        return {'tsv': [_BOM + header + _as_lines(half, wrong, first=3) for half in _in_two(lines)]}

    return texts


def _quoted_columns(bad: bool) -> Texts:
    def field(text: str) -> str:
        return f'"{text}"'.replace('"', '""')[1:-1] if set(text) & set('\r\n\t"') else text

    lines = _encoded(f'{field(a)}\t{field(b)}\tnote' for a, b in _rows(several_lines=True))
    wrong = (b'no other column', b'"\xff"\tb', b'"a" after\tb') if bad else ()
    return {'tsv': [_as_lines(half, wrong) for half in _in_two(lines)]}


def _objects(rows: Pairs) -> list[dict[str, object]]:
    return [
        {
            'pair': {'en': source, 'zh': target},
            'text': target,
            'id': number,
            'score': number / 4,
            'kind': LABELS[number % len(LABELS)],
            'stars': number % 3,
        }
        for number, (source, target) in enumerate(rows)
    ]


def _json_lines(bad: bool) -> Texts:
    objects = _objects(_rows(several_lines=True))
    lines = [json.dumps(each, ensure_ascii=n % 2 == 0).encode() for n, each in enumerate(objects)]
    wrong = (
        b'not JSON',
        b'{"pair": {}}',
        b'{"pair": {"en": 1, "zh": "b"}, "text": 2}',
        b'{"pair": {"en": "\\ud800", "zh": "b"}, "text": "\\ud800", "stars": 1, "kind": "odd"}',
        b'{"pair": {"en": "", "zh": ""}, "text": "", "stars": "x", "kind": "else", "id": "x"}',
    )
    mark = _BOM if bad else b''
    return {'jsonl': [mark + _as_lines(half, wrong if bad else ()) for half in _in_two(lines)]}


def _parquet(bad: bool) -> Texts:
    files = []
    for half in _in_two(_objects(_rows(several_lines=True))):
        if bad:
            half = [*half, {'pair': {'en': None, 'zh': 'b'}, 'text': None, 'id': 1, 'score': 0.5}]
        stored = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(half), stored, row_group_size=37)
        files.append(stored.getvalue())
    return {'parquet': files}


def _in_xml(text: str) -> str:
    text = ''.join(each for each in text if each >= ' ' or each in '\t\n\r')
    return escape(text, {'\r': '&#13;'})


def _tmx(bad: bool) -> Texts:
    """Units of which two are on a line, some over several lines, some without a language."""
    units = []
    for number, (source, target) in enumerate(_rows(several_lines=True)):
        variants = [f'<tuv xml:lang="en-US"><seg>{_in_xml(source)}</seg></tuv>']
        if number % 29:
            variants.append(f'<tuv xml:lang="ZH"><seg><ph>code</ph>{_in_xml(target)}</seg></tuv>')
        unit = ('\n ' if number % 7 == 3 else '').join(variants)
        units.append(f'<tu tuid="{number}">{unit}</tu>' + ('' if number % 3 else '\n'))
        if bad and number % 40 == 5:
            units.append(unit.replace('</seg>', '&undefined;</seg>').join(('<tu>', '</tu>\n')))
    files = []
    for half in _in_two(units):
        text = (
            '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><body>\n'
            f'{"".join(half)}\n</body></tmx>\n'
        )
        files.append(_BOM + text.encode())
    return {'tmx': files}


def _tmx_lines(bad: bool) -> Texts:
    pairs = _encoded(f' <seg>{text}</seg>' for pair in _rows() for text in pair)
    wrong = (b' <seg>\xff</seg>\n <seg>b</seg>', b'<tu>') if bad else (b'<tu>',)
    halves = _in_two(pairs) if len(pairs) % 4 == 0 else (pairs[:-2], pairs[-2:])
    # A bad line stands between pairs only: after it, sides would change places.
    files = []
    for half in halves:
        couples = [b'\n'.join(half[at : at + 2]) for at in range(0, len(half), 2)]
        files.append(b'<body>\n' + _as_lines(couples, wrong) + b'\n</body>\n')
    return {'tmx_lines': files}


def _sgm(bad: bool) -> Texts:
    """Two documents in each file, whose segments have ids."""

    def files(texts: Sequence[bytes]) -> list[bytes]:
        made = []
        for half, begin in zip(_in_two(texts), (0, 100), strict=True):
            lines = [b'<refset setid="s" srclang="any">']
            for document, part in enumerate(_in_two(half), begin):
                lines.append(b'<doc docid="d%d" genre="news">' % document)
                lines += [
                    b'outside' if bad and n % 31 == 9 else b'<seg id="%d">%b</seg>' % (n, text)
                    for n, text in enumerate(part, 1)
                ]
                lines.append(b'</doc>')
            made.append(_as_lines([*lines, b'</refset>']))
        return made

    sources, targets = _aligned(bad)
    return {'sgm_source': files(sources), 'sgm_target': files(targets)}


_PAIR = {'fields': ['pair.en', 'pair.zh']}

CORPORA = {
    'text': Corpus(1, _text, 'text', {}),
    'bitext': Corpus(2, _bitext, 'bitext', {}),
    'tsv': Corpus(2, _columns(b''), 'tsv', {'columns': [1, 2]}),
    'tsv-header': Corpus(
        2, _columns(b'id\ten\tzh\r\n'), 'tsv',
        {'columns': ['zh', 'en'], 'keep_tabs': True, 'keep': ['id']},
    ),
    'tsv-quoted': Corpus(2, _quoted_columns, 'tsv', {'quoting': 'csv'}),
    'jsonl': Corpus(2, _json_lines, 'jsonl', _PAIR),
    'jsonl-kept': Corpus(1, _json_lines, 'jsonl', {'keep': ['id:int', 'score:float', 'kind=k']}),
    'jsonl-label': Corpus(0, _json_lines, 'jsonl', {'label': 'kind', 'labels': 'labels.txt'}),
    'parquet': Corpus(2, _parquet, 'parquet', _PAIR),
    'parquet-label': Corpus(0, _parquet, 'parquet', {'label': 'stars', 'keep': ['score:float']}),
    'tmx': Corpus(2, _tmx, 'tmx', {'languages': 'en,zh'}),
    'tmx-text': Corpus(1, _tmx, 'tmx', {'languages': 'zh', 'markup': 'text'}),
    'tmx-lines': Corpus(2, _tmx_lines, 'tmx-lines', {}),
    'sgm': Corpus(2, _sgm, 'sgm', {}),
    'sgm-decoded': Corpus(2, _sgm, 'sgm', {'entities': 'decode'}),
    'labelled': Corpus(0, _labelled, 'labelled', {'labels': 'labels.txt'}),
}  # fmt: skip
"""By name; each input format is in it, as a test checks."""

STORAGES: Mapping[str, Callable[[bytes], bytes] | None] = {
    'plain': bytes,
    'gz': lambda data: gzip.compress(data, mtime=0),
    'bz2': bz2.compress,
    'xz': lzma.compress,
    'zst': lambda data: zstandard.ZstdCompressor().compress(data),
    'tar': None,
    'tgz': None,
    'tar.xz': None,
    'zip': None,
}
"""How files are stored: alone, by what compresses them, or as members of an archive."""


class OddCorpora:
    """Writes corpora into a folder, each when it is asked for."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.labels = folder / 'labels.txt'
        folder.mkdir()
        self.labels.write_text(''.join(f'{name}\n' for name in LABELS))
        self._paths: dict[tuple[str, str, bool], dict[str, list[str]]] = {}

    def paths(self, name: str, storage: str = 'plain', bad: bool = False) -> dict[str, list[str]]:
        """Returns the paths of each role of a corpus, or patterns of members of an archive."""
        key = name, storage, bad
        if key not in self._paths:
            self._paths[key] = self._write(*key)
        return self._paths[key]

    def contents(self, name: str) -> list[bytes]:
        """Returns the contents of a corpus's files, role by role."""
        return [data for _, _, data in _each(CORPORA[name].texts(False))]

    def words(self, name: str, storage: str = 'plain', bad: bool = False) -> list[object]:
        """Returns the options that name a corpus, and those of its format."""
        by_role = self.paths(name, storage, bad)
        if CORPORA[name].format == 'tmx-lines':
            # Only job files have this format; the name of one comes first.
            job = self._folder / f'{name}-{storage}{"-bad" * bad}.toml'
            [paths] = by_role.values()
            job.write_text(f'[[train]]\nformat = "tmx-lines"\npaths = {json.dumps(paths)}\n')
            return [job]
        words = [word for role, paths in by_role.items() for word in (_option(role), *paths)]
        for option, value in CORPORA[name].options.items():
            if value is True:
                words.append(_option(option))
                continue
            if isinstance(value, list):
                value = ','.join(map(str, value))
            words += [_option(option), self.labels if option == 'labels' else value]
        return words

    def _write(self, name: str, storage: str, bad: bool) -> dict[str, list[str]]:
        folder = self._folder / f'{name}{"-bad" * bad}'
        texts = CORPORA[name].texts(bad)
        compress = STORAGES[storage]
        if compress is None:
            archive = folder.with_name(f'{folder.name}.{storage}')
            _write_archive(archive, texts)
            return {role: [f'{archive}!{role}-*{_ending(role)}'] for role in texts}
        folder.mkdir(exist_ok=True)
        paths: dict[str, list[str]] = {}
        for role, number, data in _each(texts):
            stored = '' if storage == 'plain' else f'.{storage}'
            path = folder / f'{role}-{number}{_ending(role)}{stored}'
            path.write_bytes(compress(data))
            paths.setdefault(role, []).append(str(path))
        return paths


def _each(texts: Texts) -> Iterator[tuple[str, int, bytes]]:
    return ((role, n, data) for role, files in texts.items() for n, data in enumerate(files))


def _option(name: str) -> str:
    return f'--{name.removeprefix("sgm_").replace("_", "-")}'


def _write_archive(path: Path, texts: Texts) -> None:
    if path.suffix == '.zip':
        with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
            for role, number, data in _each(texts):
                archive.writestr(zipfile.ZipInfo(f'{role}-{number}{_ending(role)}'), data)
        return
    mode = {'.tgz': 'w:gz', '.xz': 'w:xz'}.get(path.suffix, 'w')
    with tarfile.open(path, mode) as archive:
        for role, number, data in _each(texts):
            member = tarfile.TarInfo(f'{role}-{number}{_ending(role)}')
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def _ending(role: str) -> str:
    """How files of a role are called: SGM is known by its name."""
    return '.sgm' if role.startswith('sgm_') else ''
