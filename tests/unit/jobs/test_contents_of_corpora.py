"""Each way to store a corpus, to name it, and each format: the rows are read, or a sentence says why not.

The cells are pairs of all three, and more; each opens files as a job does, without running one.
"""

import bz2
import gzip
import io
import itertools
import json
import lzma
import re
import tarfile
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from object_store import keep_stores_in_memory
from web_server import Page, web_server

from pipelines.files import filesystem
from pipelines.files.fetching import fetch_all
from pipelines.jobs.corpus import SplitPaths, find_corpus
from tokcore.corpus import looks
from tokcore.corpus.archive_reading import reading_on
from tokcore.corpus.formats import (
    block_rows,
    corpus_format,
    format_names,
    format_reader,
    index_ranges,
    plan_items,
    read_blocks,
)
from tokcore.errors import InputError
from tokcore.text.normalizers import UNSTRIPPED_LINES

PAIRS = [('a house', 'ein Haus'), ('two words', 'zwei Wörter')]


def lines(texts):
    return ''.join(f'{text}\n' for text in texts).encode()


def parquet(pairs):
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([{'en': en, 'de': de} for en, de in pairs]), sink)
    return sink.getvalue()


SOURCES, TARGETS = zip(*PAIRS, strict=True)
UNITS = [
    f'<tu><tuv xml:lang="en"><seg>{en}</seg></tuv><tuv xml:lang="de"><seg>{de}</seg></tuv></tu>'
    for en, de in PAIRS
]


def segments(texts):
    return lines(['<doc docid="a">', *(f'<seg id="1">{text}</seg>' for text in texts), '</doc>'])


FILES = {
    'text': [lines(SOURCES)],
    'bitext': [lines(SOURCES), lines(TARGETS)],
    'tsv': [lines(f'{en}\t{de}' for en, de in PAIRS)],
    'labelled': [lines(SOURCES), lines(['yes', 'no'])],
    'jsonl': [lines(json.dumps({'en': en, 'de': de}) for en, de in PAIRS)],
    'parquet': [parquet(PAIRS)],
    'tmx': [lines(['<tmx version="1.4"><body>', *UNITS, '</body></tmx>'])],
    'tmx-lines': [lines(f' <seg>{text}</seg>' for pair in PAIRS for text in pair)],
    'sgm': [segments(SOURCES), segments(TARGETS)],
}
OPTIONS = {
    'jsonl': {'fields': ('en', 'de')},
    'parquet': {'fields': ('en', 'de')},
    'tmx': {'languages': ('en', 'de')},
    'labelled': {'labels': ('yes', 'no')},
}
assert FILES.keys() == set(format_names())


def tar(members):
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode='w') as packed:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
    return sink.getvalue()


def zipped(members):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, 'w', zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return sink.getvalue()


def seven(data):
    return b'7z\xbc\xaf\x27\x1c\0\4' + bytes(24) + lzma.compress(data)


COMPRESSIONS = {
    'gz': gzip.compress, 'bz2': bz2.compress, 'xz': lzma.compress, 'zst': zstandard.compress,
}  # fmt: skip
ARCHIVES = {
    'tar': tar,
    'zip': zipped,
    'tgz': lambda members: gzip.compress(tar(members)),
    'tar.bz2': lambda members: bz2.compress(tar(members)),
    'tar.xz': lambda members: lzma.compress(tar(members)),
    'tar.zst': lambda members: zstandard.compress(tar(members)),
    'of-gz.tar': lambda members: tar({name: gzip.compress(each) for name, each in members.items()}),
    'of-tgz.zip': lambda members: zipped(
        {name: gzip.compress(tar({'inner': each})) for name, each in members.items()}
    ),
}
REFUSED = {
    '7z': (seven, 'a 7z archive'),
    'gz.gz': (lambda data: gzip.compress(gzip.compress(data)), 'compressed twice'),
    'zip.gz': (lambda data: gzip.compress(zipped({'a': data})), 'a zip archive in gzip'),
}
KINDS = ['plain', *COMPRESSIONS, *ARCHIVES, *REFUSED]
PLACES = ['name', 'none', 'wrong', 'glob', 'fetched', 'query', 'bucket']


def is_cell(kind, place, form):
    """All pairs of two of the three are there, and all kinds and places with formats of lines."""
    number = KINDS.index(kind) + PLACES.index(place) + list(FILES).index(form)
    return number % 3 == 0 or form in ('text', 'bitext')


CELLS = [cell for cell in itertools.product(KINDS, PLACES, FILES) if is_cell(*cell)]


@pytest.fixture
def served():
    with web_server({}) as server:
        yield server


def read(form, paths, fetched=None):
    """The rows of a corpus, given the path of each role."""
    roles = corpus_format(form).roles
    by_role = {role: [path] for role, path in zip(roles, paths, strict=True)}
    corpus = find_corpus([SplitPaths('train', form, by_role, OPTIONS.get(form, {}))], fetched)
    [split] = corpus.splits
    reader, parts = format_reader(split.format), index_ranges(split, 1 << 20)
    with reading_on(filesystem.open_binary, [split.files[0]] * 2) as open_binary:
        index = [reader.index(part, open_binary) for part in parts]
        blocks = [
            block for item in plan_items(split, index) for block in read_blocks(item, open_binary)
        ]
    rows = [block_rows(block, UNSTRIPPED_LINES) for block in blocks]
    assert not any(each.rejects for each in rows)
    return [
        tuple(side.row(row) for side in each.sides) for each in rows for row in range(len(each))
    ]


def stored(kind, form):
    """Returns the files to be stored, and what follows a file's path; the same file for all roles."""
    if kind in ARCHIVES:
        members = {f'{number}.txt': data for number, data in enumerate(FILES[form])}
        return [ARCHIVES[kind](members)] * len(members), [f'!{name}' for name in members]
    pack = REFUSED[kind][0] if kind in REFUSED else COMPRESSIONS.get(kind, bytes)
    return [pack(data) for data in FILES[form]], [''] * len(FILES[form])


def names(kind, place, form):
    endings = {'none': '', 'glob': '.part', 'fetched': '', 'wrong': '.txt.gz', 'query': f'.{kind}'}
    ending = endings.get(place, f'.{kind}')
    return [
        f'{form}{0 if kind in ARCHIVES else number}{ending}' for number in range(len(FILES[form]))
    ]


def test_each_cell_is_read_as_what_it_is_or_refused_by_name(tmp_path, monkeypatch, served):
    keep_stores_in_memory(monkeypatch)
    expected = {
        form: read(
            form, _written(tmp_path / 'plain', [f'{form}{n}' for n in range(len(data))], data)
        )
        for form, data in FILES.items()
    }
    assert all(len(rows) == len(PAIRS) for rows in expected.values())
    refused = 0
    for kind, place, form in CELLS:
        contents, ends = stored(kind, form)
        chosen = names(kind, place, form)
        fetched = None
        if place in ('fetched', 'query'):
            query = '?file=1' if place == 'query' else ''
            for name, content in zip(chosen, contents, strict=True):
                served.pages[f'/{kind}/{name}{query}'] = Page(content)
            paths = [f'{served.address}/{kind}/{name}{query}' for name in chosen]
            given = [path + end for path, end in zip(paths, ends, strict=True)]
            fetched = fetch_all(given, str(tmp_path / 'work'))
        elif place == 'bucket':
            paths = [f's3://bucket/{kind}/{name}' for name in chosen]
            for path, content in zip(paths, contents, strict=True):
                filesystem.write_bytes(path, content)
        else:
            paths = _written(tmp_path / kind / place, chosen, contents)
            if place == 'glob':
                paths = [re.sub('.part$', '.*', path) for path in paths]
        if fetched is None:
            given = [path + end for path, end in zip(paths, ends, strict=True)]
        reason = _reason(kind, form)
        if reason is None:
            assert read(form, given, fetched) == expected[form], (kind, place, form)
        else:
            refused += 1
            with pytest.raises(InputError, match=reason) as said:
                read(form, given, fetched)
            assert '\n' not in str(said.value)
        if kind in ARCHIVES and fetched is None:
            with pytest.raises(InputError, match='name its members: .*!0.txt'):
                read(form, paths)
    assert refused > 50


def _written(folder, chosen, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in zip(chosen, contents, strict=True):
        (folder / name).write_bytes(content)
    return [str(folder / name) for name in chosen]


def _reason(kind, form):
    """What a refusal says of a cell; None if it is read."""
    if kind == 'of-tgz.zip':
        return 'is a tar archive in gzip within an archive; unpack'
    if kind in REFUSED:
        return REFUSED[kind][1]
    if form == 'parquet' and kind != 'plain':
        return 'Parquet is compressed inside'
    return None


def test_compressed_texts_are_looked_at_when_they_are_read_if_there_were_many(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(looks, 'MOST_LOOKED_AT', 0)
    inner = gzip.compress(tar({'inner': b'text\n'}))
    texts = {'a.bz2': bz2.compress(tar({'inner': b'text\n'})), 'a.zip': zipped({'x': inner}),
             'a.tar': tar({'x': inner})}  # fmt: skip
    for path in _written(tmp_path, texts, texts.values()):
        member = '' if path.endswith('bz2') else '!x'
        with pytest.raises(InputError, match='is a tar archive'):
            read('text', [path + member])
    [path] = _written(tmp_path, ['noext'], [bz2.compress(tar({'inner': b'text\n'}))])
    assert read('text', [f'{path}!inner']) == [('text',)]
    [path] = _written(tmp_path, ['u.gz'], [gzip.compress('text\n'.encode('utf-16-le'))])
    with pytest.raises(InputError, match='UTF-16LE text'):
        read('text', [path])
    tmx = FILES['tmx'][0].decode().encode('utf-16')
    [path] = _written(tmp_path, ['t.gz'], [gzip.compress(tmx)])
    assert read('tmx', [path]) == PAIRS


def test_utf16_is_read_of_tmx_alone(tmp_path):
    for form, contents in FILES.items():
        if form == 'parquet':
            continue
        chosen = [f'{form}{number}' for number in range(len(contents))]
        paths = _written(tmp_path, chosen, [data.decode().encode('utf-16') for data in contents])
        if form == 'tmx':
            assert read(form, paths) == PAIRS
        else:
            with pytest.raises(InputError, match='iconv -f UTF-16 -t UTF-8'):
                read(form, paths)


def test_few_nuls_are_warned_of_and_stay(tmp_path, caplog):
    paths = _written(tmp_path, ['1', '2'], [b'a\0b\n' + b'x\n' * 9, b'a\0b\n' + b'x\n' * 9])
    assert read('text', [paths[0]])[0] == ('a\0b',)
    find_corpus([SplitPaths('train', 'text', {'text': [str(tmp_path / '*')]})])
    assert 'NUL' in caplog.messages[0] and '1 more' in caplog.messages[1]


def test_a_page_in_place_of_a_file_is_refused_with_its_address(tmp_path, served):
    served.pages['/c.tgz?download=1'] = Page(b'<!DOCTYPE html>\n<p>Not found')
    address = f'{served.address}/c.tgz?download=1'
    for path in (address, f'{address}!c.en'):
        fetched = fetch_all([path], str(tmp_path / 'work'))
        with pytest.raises(
            InputError, match=r'is a web page \(HTML\).*fetched from http.*delete it'
        ):
            read('text', [path], fetched)
