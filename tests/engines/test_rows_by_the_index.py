"""`where` by the index: the answers are those of a pass over the corpus, and little is read for them."""

import contextlib
import json
import random
import re
from html import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from generated_text import as_lines, distinct_pairs, english_lines
from jobs import refuse, succeed, write
from packed_in_parts import xz_of_blocks, zstd_with_table
from packed_members import tar_of, zip_of
from traced_by_a_pass import traced_by_a_pass

import pipelines
from pipelines.cli.folder_commands import job_of
from pipelines.files.local import LocalFiles
from pipelines.jobs.recorded import read_corpus_index
from pipelines.trust.row_sources import RowSources
from pipelines.trust.where import Wanted, find_rows
from tokcore.corpus import (
    bitext_reading,
    corpus,
    line_reading,
    stats,
    stretches,
)
from tokcore.errors import InputError
from tokcore.records.manifest import Manifest

STRETCH = 3_001
"""Bytes, so that small files have many stretches, whose ends are in all parts of rows."""

ROWS = 1_100
"""Of each dataset."""

JOB = """
[vocabulary]
scheme = "byte"
[output]
name = "all"
output = "out"
shards = 4
[running]
on_error = "skip"
"""


def table(name, form, paths, more=''):
    return f'[[train]]\nname = "{name}"\nformat = "{form}"\npaths = {paths}\n{more}\n'


def parts_of(data):
    return [data[at : at + 5_000] for at in range(0, len(data), 5_000)]


def as_columns(pairs):
    return ''.join(f'{en}\t{zh}\n' for en, zh in pairs).encode()


def as_quoted(pairs):
    """Every third field has line feeds, a quote and a tab; some records are no rows."""
    lines = []
    for number, (en, zh) in enumerate(pairs):
        text = (
            '"' + en.replace(' ', '\n', 2).replace(' ', '\t', 1) + ' ""x"""' if number % 3 else en
        )
        lines.append(f'{text}\t{zh}\n' if number % 11 else '"a\nb"\n\n')
    return ''.join(lines).encode()


def as_objects(pairs):
    return ''.join(json.dumps({'en': en, 'zh': zh}) + '\n' for en, zh in pairs).encode()


def as_units(pairs):
    units = ''.join(
        f'<tu>\n <tuv xml:lang="en">\n<seg>{escape(en)}</seg></tuv>\n'
        f'<tuv xml:lang="zh"><seg>{escape(zh)}</seg>\n</tuv></tu>\n'
        for en, zh in pairs
    )
    return f'<?xml version="1.0"?>\n<tmx version="1.4"><body>\n{units}</body></tmx>\n'


def as_segments(texts, ids):
    lines = ''.join(
        f'<seg id="{n}">{escape(text)}</seg>\n' for n, text in zip(ids, texts, strict=True)
    )
    return f'<srcset>\n<doc docid="d">\n{lines}</doc>\n</srcset>\n'.encode()


def make_corpus(folder):
    """Writes files of all formats; returns the tables of a job file."""
    pairs = iter(distinct_pairs(20 * ROWS, seed=11))

    def some(count=ROWS):
        taken = [next(pairs) for _ in range(count)]
        return [pair if number % 13 else ('', pair[1]) for number, pair in enumerate(taken)]

    tables = []

    def add(name, form, data, more=''):
        write(folder / name, data)
        tables.append(table(name.replace('.', '-'), form, f'"{name}"', more))

    add('a.tsv', 'tsv', as_columns(some()))
    add('b.tsv.gz', 'tsv', as_columns(some()))  # `write` compresses it
    add('c.tsv.xz', 'tsv', xz_of_blocks(parts_of(as_columns(some()))))
    add('d.tsv.zst', 'tsv', zstd_with_table(parts_of(as_columns(some()))))
    add('e.tsv', 'tsv', b'\xef\xbb\xbfzh\ten\n' + as_columns(some()), 'columns = "en,zh"')
    add('f.tsv', 'tsv', as_quoted(some()), 'quoting = "csv"')
    add('g.tsv.xz', 'tsv', xz_of_blocks(parts_of(as_quoted(some()))), 'quoting = "csv"')
    add('h.tsv', 'tsv', as_columns(some()), 'clean = ["own_filters:without_odd_ones"]')
    add('i.jsonl', 'jsonl', as_objects(some()), 'fields = ["en", "zh"]\nmax_examples = 400')
    for archive, pack in (
        ('j.tgz', lambda members: tar_of(members, 'w:gz')), ('k.tar', tar_of), ('l.zip', zip_of),
    ):  # fmt: skip
        members = [(f'm/{n}.jsonl', as_objects(some(ROWS // 3))) for n in range(3)]
        write(folder / archive, pack(members))
        paths = f'"{archive}!m/*.jsonl"'
        tables.append(table(archive.replace('.', '-'), 'jsonl', paths, 'fields = ["en", "zh"]'))
    english, chinese = zip(*some(), strict=True)
    columns = pa.table({'en': english, 'zh': chinese})
    pq.write_table(columns, folder / 'n.parquet', row_group_size=300)
    pq.write_table(columns, folder / 'o.parquet', row_group_size=300)
    fields = 'fields = ["en", "zh"]'
    tables.append(table('n', 'parquet', '"n.parquet"', fields))
    several = f'{fields}\nclean = ["own_filters:without_odd_ones"]'
    tables.append(table('o', 'parquet', '"o.parquet"', several))
    for name, pack, ending in (
        ('p', bytes, ''), ('q', bytes, '.gz'), ('r', lambda data: xz_of_blocks(parts_of(data)), '.xz'),
    ):  # fmt: skip
        for side, texts in zip(('en', 'zh'), zip(*some(), strict=True), strict=True):
            data = ''.join(f'{text}\n' for text in texts).encode().removesuffix(b'\n')
            write(folder / f'{name}.{side}{ending}', pack(data))
        paths = f'{{ source = "{name}.en{ending}", target = "{name}.zh{ending}" }}'
        tables.append(table(name, 'bitext', paths))
    add('s.tmx', 'tmx', as_units(some()).encode(), 'languages = ["en", "zh"]')
    add('t.tmx', 'tmx', as_units(some()).encode('utf-16'), 'languages = ["en", "zh"]')
    lines = ''.join(f' <seg>{side}</seg>\n<tu/>\n' for pair in some() for side in pair)
    add('u.tmx', 'tmx-lines', lines.encode())
    english, chinese = zip(*some(), strict=True)
    order = list(range(ROWS))
    random.Random(1).shuffle(order)
    for name, ids in (('v', range(ROWS)), ('w', order)):
        write(folder / f'{name}.en.sgm', as_segments(english, range(ROWS)))
        write(folder / f'{name}.zh.sgm', as_segments([chinese[n] for n in ids], ids))
        paths = f'{{ source = "{name}.en.sgm", target = "{name}.zh.sgm" }}'
        tables.append(table(name, 'sgm', paths))
    return tables


@contextlib.contextmanager
def small_stretches():
    from pipelines.trust import row_sources

    with pytest.MonkeyPatch.context() as patch:
        for module in (
            corpus, stats, stretches, line_reading, bitext_reading, row_sources,
        ):  # fmt: skip
            patch.setattr(module, 'STRETCH_BYTES', STRETCH)
        yield


@pytest.fixture(scope='module', autouse=True)
def stretches_are_small():
    with small_stretches():
        yield


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    """The folder of a dataset of all formats; its job, and its manifest."""
    folder = tmp_path_factory.mktemp('formats')
    job = JOB + ''.join(make_corpus(folder))
    write(folder / 'job.toml', job.encode())
    succeed('build', folder / 'job.toml')
    return opened(folder / 'out', folder / 'job.toml')


def opened(out, job_file=None):
    path = out / 'tokbeam.json'
    manifest = Manifest.from_json(path.read_bytes(), str(path))
    job = job_of(str(out), manifest, job_file and str(job_file), 1, takes_record=True)
    return out, job, manifest


@pytest.fixture(scope='module')
def traced(built):
    return traced_by_a_pass(built[1], 'train')


def assert_as_traced(row, expected):
    assert (row.shard.split('-')[2], row.record) == (f'{expected.shard:05d}', expected.record)
    assert tuple(file.path for file in row.place.files) == expected.files
    assert row.place.number == expected.number and row.place.byte == expected.byte
    assert row.place.piece == expected.piece and row.texts == expected.texts
    assert row.is_stored


def test_rows_of_all_formats_are_those_of_a_pass(built, traced):
    out, job, _ = built
    rows = pipelines.source(
        out, 'train', range(len(traced)), job=out.parent / 'job.toml', workers=2
    )
    assert len(rows) == len(traced) > 15 * ROWS
    for number, (row, expected) in enumerate(zip(rows, traced, strict=True)):
        assert row.row == number
        assert_as_traced(row, expected)
    assert len({row.files for row in traced}) == 28
    assert max(row.piece for row in traced) == 1


def test_the_line_of_a_row_finds_it_again(built, traced):
    """One row of each file after another: the two directions are the inverse of each other."""
    out, job, manifest = built
    of_files = {}
    for number, row in enumerate(traced):
        of_files.setdefault(row.files, {}).setdefault(row.number, set()).add(number)
    for files, lines in of_files.items():
        for line in random.Random(2).sample(sorted(lines), 12):
            for path in files:
                _, rows = find_rows(job, manifest, Wanted('train', input=(path, line)), 1, 10)
                assert {row.row for row in rows} == lines[line], (path, line)


def on_lines(built, name, count):
    """The texts of the rows that each line of a file has become."""
    _, job, manifest = built
    newlines = read_corpus_index(job.output, manifest)
    sources = RowSources(job.reading, newlines, job.dataset.seed, manifest)
    return [
        [
            tuple(side.row(n) for side in found.rows.sides)
            for found in sources.on_line('train', name, line)
            for n in range(len(found.rows))
        ]
        for line in range(1, count + 1)
    ]


@pytest.mark.parametrize('name', ['f.tsv', 's.tmx', 't.tmx', 'u.tmx', 'w.en.sgm'])
def test_any_line_of_a_row_finds_it(name, built, traced):
    out = built[0]
    encoding = 'utf-16' if name == 't.tmx' else 'utf-8'
    lines = (
        (out.parent / name)
        .read_bytes()
        .decode(encoding)
        .split('\n')[: 40 if name == 'w.en.sgm' else 150]
    )
    found = on_lines(built, name, len(lines))
    rows = {row.number: row.texts for row in traced if row.files[0].endswith(f'/{name}')}
    began = None
    for number, (line, texts) in enumerate(zip(lines, found, strict=True), 1):
        began = rows.get(number, began)
        assert texts in ([], [began]), (number, line)
        if number in rows or (name != 'f.tsv' and '<seg' in line and texts):
            assert texts == [began], (number, line)
    if name.endswith('.tmx'):  # the rows without a text on a side are none
        segs = [
            texts for line, texts in zip(lines, found, strict=True) if re.search('<seg.*>.', line)
        ]
        assert sum(map(bool, segs)) > 0.8 * len(segs)
    if name == 'f.tsv':
        quoted = [number for number, line in enumerate(lines, 1) if line.startswith('"')]
        assert (
            sum(
                found[number - 1] == found[number] != [] for number in quoted if number < len(found)
            )
            > 15
        )


def test_a_line_that_is_no_row(built):
    out, job, manifest = built
    for path, line in (
        ('a.tsv', 1),
        ('a.tsv', 0),
        ('a.tsv', ROWS + 1),
        ('n.parquet', ROWS),
        ('i.jsonl', 900),
    ):
        assert find_rows(job, manifest, Wanted('train', input=(path, line)), 1, 10) == (0, [])
    with pytest.raises(InputError, match='other lines than in'):
        find_rows(job, manifest, Wanted('train', input=('w.zh.sgm', 7)), 1, 10)


def test_the_index_of_the_corpus_is_made_again(built):
    out, job, manifest = built
    path = out / 'index' / 'corpus.jsonl'
    before = path.read_bytes()
    newlines = read_corpus_index(str(out), manifest)
    text = (out.parent / 'a.tsv').read_bytes()
    expected = [text[at : at + STRETCH].count(b'\n') for at in range(0, len(text), STRETCH)]
    assert newlines[0] == tuple(expected)
    path.unlink()
    assert 'run `tokbeam index' in refuse('where', out, 7, '--job', out.parent / 'job.toml')
    succeed('index', out, '--job', out.parent / 'job.toml', '@item-size', 1000)
    assert path.read_bytes() == before
    path.write_bytes(before.replace(b'[', b'[1, ', 1))
    assert 'damaged' in refuse('where', out, 7, '--job', out.parent / 'job.toml')
    path.write_bytes(before)


def test_the_job_of_the_last_run_has_the_files(built, traced, monkeypatch):
    """No file is looked for, and none but those of the rows is opened."""
    monkeypatch.setattr('pipelines.cli.folder_commands._refuse_code', lambda options: None)
    seen = []
    for name in ('open', 'stat'):
        method = getattr(LocalFiles, name)

        def noting(self, path, *arguments, method=method):
            seen.append(path)
            return method(self, path, *arguments)

        monkeypatch.setattr(LocalFiles, name, noting)
    out = built[0]
    for number in random.Random(3).sample(range(len(traced)), 40):
        seen.clear()
        [row] = pipelines.source(out, 'train', [number])
        assert_as_traced(row, traced[number])
        own = {path.partition('!')[0] for path in traced[number].files}
        own |= {path.replace('w.en', 'w.zh') for path in own}  # which is paired by ids
        others = {
            path.partition('!')[0]
            for path in seen
            if path.startswith(f'{out.parent}/') and f'{out}/' not in path
        }
        assert others == own


@pytest.mark.parametrize(
    'more',
    [
        ('--dev-share', '20%', '--clean', 'own_filters:without_odd_ones'),
        ('--output-format', 'packed', '--pack', 64),
        ('--output-format', 'parquet'),
        ('--columns', '1', '--keep', '0=name:bytes'),
    ],
    ids=['shares', 'packed', 'parquet', 'one-side'],
)
def test_rows_of_other_datasets_are_those_of_a_pass(more, tmp_path, monkeypatch):
    path = write(tmp_path / 'x.tsv', as_columns(distinct_pairs(1_000, seed=5)))
    if '--columns' not in more:
        more = (*more, '--columns', '0,1')
    command = ('build', '--tsv', path, '--scheme', 'byte', '--name', 'x', '--shards', 3)
    succeed(*command, '--output', tmp_path / 'out', *more)
    monkeypatch.setattr('pipelines.cli.folder_commands._refuse_code', lambda options: None)
    _, job, manifest = opened(tmp_path / 'out')
    for split in job.reading.corpus.split_names:
        traced = traced_by_a_pass(job, split)
        wanted = range(0, len(traced), 1 + len(traced) // 300)
        _, rows = find_rows(job, manifest, Wanted(split, rows=tuple(wanted)), 2, len(traced))
        assert len(rows) == len(wanted) > 100
        for row, number in zip(rows, wanted, strict=True):
            assert row.row == number
            expected = traced[number]
            if row.segments is not None:
                expected = expected._replace(record=row.record)
            assert_as_traced(row, expected)
            assert number in {
                each.row
                for each in find_rows(
                    job, manifest, Wanted(split, input=('x.tsv', expected.number)), 1, 9
                )[1]
            }


@pytest.fixture
def small(tmp_path):
    """The folder of a dataset of one file, `x.tsv`."""
    path = write(tmp_path / 'x.tsv', as_columns(distinct_pairs(300, seed=6)))
    command = ('build', '--tsv', path, '--scheme', 'byte', '--name', 'x', '--shards', 2)
    succeed(*command, '--output', tmp_path / 'out')
    return tmp_path / 'out'


def test_a_corpus_that_has_changed(small):
    path = small.parent / 'x.tsv'
    text = path.read_bytes()
    [row] = pipelines.source(small, 'train', [7])
    assert row.is_stored
    first = row.texts[0].encode()
    path.write_bytes(text.replace(first, first[:-1] + b'#'))
    [row] = pipelines.source(small, 'train', [7])
    assert row.texts[0].endswith('#') and not row.is_stored
    path.write_bytes(text + b'more\tmore\n')
    assert f'{path} has changed' in refuse('where', small, 7)
    assert 'has changed' in refuse('where', small, 'x.tsv:1')
    path.write_bytes(b' ' * len(text))  # as large as before, and has no such line
    assert 'has changed' in refuse('where', small, 7)
    path.unlink()
    assert 'give --job' in refuse('where', small, 7)


def test_what_verify_says_of_the_index_of_the_corpus(small, printed):
    path = small / 'index' / 'corpus.jsonl'
    before = path.read_bytes()
    assert printed('verify', small, '--rerun', '1%')[1][0]['findings'] == []
    path.write_bytes(before[:-3])
    assert [each['file'] for each in printed('verify', small)[1][0]['findings']] == [
        'index/corpus.jsonl'
    ]
    [[first, *others]] = stretches.parse_corpus_index(before)
    path.write_bytes(stretches.corpus_index([(first + 1, *others)]))
    fields = json.loads((small / 'tokbeam.json').read_text())
    del fields['index']
    (small / 'tokbeam.json').write_text(json.dumps(fields))
    assert printed('verify', small)[1][0]['findings'] == []  # only the corpus shows it
    [finding] = printed('verify', small, '--rerun', '1%')[1][0]['findings']
    assert finding['file'] == 'index/corpus.jsonl'
    succeed('index', small)
    assert path.read_bytes() == before


def test_texts_with_labels(tmp_path):
    texts = write(tmp_path / 'x.txt', as_lines(english_lines(300, 7)))
    labels = write(tmp_path / 'x.labels', as_lines([str(number % 5) for number in range(300)]))
    command = ('build', '--text', texts, '--line-labels', labels, '--scheme', 'byte')
    succeed(*command, '--name', 'x', '--output', tmp_path / 'out')
    _, job, manifest = opened(tmp_path / 'out')
    for number, expected in enumerate(traced_by_a_pass(job, 'train')):
        if number % 30 == 0:
            for wanted in (
                Wanted('train', rows=(number,)),
                Wanted('train', input=('x.labels', expected.number)),
            ):
                [row] = find_rows(job, manifest, wanted, 1, 1)[1]
                assert_as_traced(row, expected)
