"""Rows made again and rows traced: `verify --rerun` and `where`, each against what the test knows itself.

The corpus has datasets in six formats, in archives and compressed, filtered and limited.
"""

import functools
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import framed, manifest_of, records_of
from generated_text import kept_pairs, pairs_with_gaps
from jobs import refuse, run, succeed, write

import pipelines
from pipelines.trust.rerun import rerun
from pipelines.trust.where import row_fields
from tokcore import open_dataset
from tokcore.corpus.order_keys import order_keys, order_of_corpus, places_of
from tokcore.errors import InputError
from tokcore.reading.manifest import DatasetManifest
from tokcore.reading.record_index import Addresses, read_index, write_index
from tokcore.records.manifest import Manifest, file_of_shard, root_hash
from tokcore.records.tfrecord import parse_example, read_records

JOB = """
[vocabulary]
scheme = "byte"
[output]
name = "six"
output = "out"
shards = 3
[running]
[[train]]
name = "columns"
format = "tsv"
paths = "pairs.tsv.gz"
clean = ["length:2:60"]
[[train]]
name = "objects"
format = "jsonl"
fields = ["en", "zh"]
paths = "texts.tgz!a/*.jsonl"
max_examples = 31
[[train]]
name = "rows"
format = "parquet"
fields = ["en", "zh"]
paths = "pairs.parquet"
[[train]]
name = "files"
format = "bitext"
paths = { source = "pairs.en", target = "pairs.zh" }
target_prefix = "<zh> "
[[train]]
name = "units"
format = "tmx"
languages = ["en", "zh"]
paths = "pairs.tmx"
[[train]]
name = "segments"
format = "sgm"
paths = { source = "pairs.en.sgm", target = "pairs.zh.sgm" }
"""


def as_tmx(pairs):
    units = '\n'.join(
        f'<tu>\n<tuv xml:lang="en"><seg>{en}</seg></tuv>\n<tuv xml:lang="zh"><seg>{zh}</seg></tuv></tu>'
        for en, zh in pairs
    )
    head = '<header srclang="en" segtype="sentence" datatype="plaintext"/>'
    return f'<?xml version="1.0"?>\n<tmx version="1.4">{head}<body>\n{units}\n</body></tmx>\n'


def as_sgm(texts):
    lines = '\n'.join(f'<seg id="{n}">{text}</seg>' for n, text in enumerate(texts, 1))
    return f'<srcset setid="s">\n<doc docid="d">\n{lines}\n</doc>\n</srcset>\n'


def plain(text):
    """A text without what XML escapes and tabs; a test compares raw lines."""
    return ''.join(char for char in text if char not in '<>&\t"\\')


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    """The folder of a corpus, its job file, and the dataset that was made of it."""
    return build_corpus(tmp_path_factory.mktemp('six'), 240, JOB)


def build_corpus(folder, lines, job):
    pairs = [tuple(map(plain, pair)) for pair in pairs_with_gaps(lines, seed=3)]
    parts = [pairs[start : start + lines // 6] for start in range(0, lines, lines // 6)]
    write(folder / 'pairs.tsv.gz', ''.join(f'{en}\t{zh}\n' for en, zh in parts[0]).encode())
    objects = ''.join(
        json.dumps({'en': en, 'zh': zh}, ensure_ascii=False) + '\n' for en, zh in parts[1]
    ).encode()
    with tarfile.open(folder / 'texts.tgz', 'w:gz') as tar:
        for name, data in (('a/1.jsonl', objects), ('a/2.jsonl', objects)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    table = pa.table({'en': [en for en, _ in parts[2]], 'zh': [zh for _, zh in parts[2]]})
    pq.write_table(table, folder / 'pairs.parquet', row_group_size=7)
    for side, ending in enumerate(('en', 'zh')):
        write(folder / f'pairs.{ending}', ''.join(f'{pair[side]}\n' for pair in parts[3]).encode())
        sgm = as_sgm([pair[side] for pair in parts[5]])
        write(folder / f'pairs.{ending}.sgm', sgm.encode())
    write(folder / 'pairs.tmx', as_tmx(parts[4]).encode())
    write(folder / 'job.toml', job.encode())
    succeed('build', folder / 'job.toml')
    return folder


@pytest.fixture
def output(corpus, tmp_path):
    """A copy of corpus and dataset, to be changed; the dataset's record names the copy."""
    folder = tmp_path / 'six'
    shutil.copytree(corpus, folder)
    record = folder / 'out' / 'tokbeam.run.json'
    record.write_text(record.read_text().replace(str(corpus), str(folder)))
    return folder / 'out'


def raw_line(path, number):
    """A line of a file, by its number from 1, as the test itself reads it."""
    return raw_lines(path)[number - 1].decode()


@functools.cache
def raw_lines(path):
    name, _, member = path.partition('!')
    if member:
        with tarfile.open(name) as tar:
            data = tar.extractfile(member).read()
    else:
        data = open(name, 'rb').read()
        data = gzip.decompress(data) if name.endswith('.gz') else data
    return data.split(b'\n')


def raw_row(path, place):
    """What a file has at a place, as the test itself reads it; a unit of TMX has several lines."""
    if place.line is None:
        return ' '.join(pq.read_table(path).to_pylist()[place.row].values())
    lines = 3 if path.endswith('.tmx') else 1
    return ' '.join(raw_line(path, place.line + more) for more in range(lines))


def raw_texts(place):
    """The two texts that a line has, or a line of each of two files, as the test itself reads them."""
    path = place.files[0].path
    if place.line is None:
        return list(parquet_rows(path)[place.row].values())
    raw = [raw_row(file.path, place) for file in place.files]
    if path.endswith('.jsonl'):
        return list(json.loads(raw[0]).values())
    if path.endswith('.tsv.gz'):
        return raw[0].split('\t')
    if path.endswith(('.tmx', '.sgm')):
        return [text for line in raw for text in re.findall('<seg.*?>(.*?)</seg>', line)]
    return raw


@functools.cache
def parquet_rows(path):
    return pq.read_table(path).to_pylist()


def assert_lines_encode_to_rows(folder, numbers):
    """The lines that rows come from, encoded as bytes by the test itself, are the rows of the shards.

    Returns the files of these lines.
    """
    stored = [
        parse_example(payload)
        for path in sorted((folder / 'out').glob('six-train-0*'))
        for payload in read_records(path.read_bytes(), path.name)
    ]
    rows = pipelines.source(folder / 'out', 'train', numbers, workers=2)
    assert [row.row for row in rows] == numbers
    for row in rows:
        inputs, targets = (text.strip() for text in raw_texts(row.place))
        prefix = '<zh> ' if row.place.files[0].path.endswith('pairs.en') else ''
        expected = {
            'inputs': [byte + 2 for byte in inputs.encode()] + [1],
            'targets': [byte + 2 for byte in (prefix + targets).encode()] + [1],
        }
        assert stored[row.row] == row.ids == expected, row
    return {row.place.files[0].path for row in rows}


def test_the_lines_of_some_rows_encode_to_them(corpus):
    assert len(assert_lines_encode_to_rows(corpus, list(range(0, 180, 2)))) >= 6


def test_a_row_is_found_by_its_number_its_shard_its_text_and_its_line(corpus, printed):
    out = corpus / 'out'
    status, [row] = printed('where', out, 100)
    assert status == 0 and row['is_stored']
    shard = int(row['shard'].split('-')[2])
    assert printed('where', out, f'{shard}:{row["record"]}') == (0, [row])
    number = row['file_row'] if row['line'] is None else row['line']
    assert printed('where', out, f'{row["files"][0]}:{number}') == (0, [row])
    status, rows = printed('where', out, '--text', row['texts'][0], '--head', 1000)
    assert status == 0 and row in rows
    assert all(any(row['texts'][0] in text for text in each['texts']) for each in rows)
    assert bytes(id_ - 3 for id_ in row['ids']['inputs'][:-1]).decode() or row['ids']


def test_rows_are_found_by_a_call(corpus, printed):
    out = corpus / 'out'
    _, [row] = printed('where', out, 100)
    [last, found, same] = pipelines.source(out, 'train', [120, np.int64(100), 100], workers=2)
    assert found == same and (last.row, found.row) == (120, 100)
    assert row == json.loads(json.dumps(row_fields(found), ensure_ascii=False))
    assert [found] == pipelines.source(out, 'train', [100], job=corpus / 'job.toml')
    assert pipelines.source(out, 'train', []) == []
    with pytest.raises(InputError, match='there is no -1'):
        pipelines.source(out, 'train', [-1])
    with pytest.raises(InputError, match='not a whole dataset'):
        pipelines.source(corpus, 'train', [1])


def test_all_rows_are_found_by_their_lines(corpus, printed):
    out = corpus / 'out'
    for path, number in (('pairs.en', 1), ('pairs.zh', 40), ('pairs.parquet', 0)):
        status, rows = printed('where', out, f'{path}:{number}')
        assert status == 0
        for row in rows:
            assert row['line' if row['line'] is not None else 'file_row'] == number
    assert printed('where', out, 'pairs.en:41') == (0, [])
    assert printed('where', out, 'pairs.en:1000000') == (0, [])


@pytest.mark.parametrize(
    'arguments',
    [
        [], [1, '--text', 'x'], ['x:-1'], [9999], ['3:0'], [1, '--split', 'dev'], ['nowhere:1'], ['pairs.en'],
    ],
    ids=str,
)  # fmt: skip
def test_what_where_refuses(corpus, arguments):
    assert refuse('where', corpus / 'out', *arguments)


def rows_in_corpus_order(folder, split='train'):
    """The ids of rows, by batches of one row each."""
    batches = open_dataset(folder).batches(split, tokens_per_batch=1, shuffle='corpus')
    return [
        {
            side: batch[side][0, : batch[f'{side}_length'][0]].tolist()
            for side in ('inputs', 'targets')
        }
        for batch in batches
    ]


@pytest.mark.slow
def test_rows_of_six_formats_come_in_the_order_of_the_corpus(output):
    dataset = open_dataset(output)
    order = order_of_corpus(dataset['train'].keys(), 0)
    found = pipelines.source(output, 'train', order, workers=2)
    assert [row.ids for row in found] == rows_in_corpus_order(output)
    paths = [row.place.files[0].path for row in found]
    endings = ['tsv.gz', '1.jsonl', '.parquet', '.en', '.tmx', '.en.sgm']
    assert [
        path.endswith(end) for path, end in zip(dict.fromkeys(paths), endings, strict=True)
    ] == [True] * 6
    places = [
        ([*dict.fromkeys(paths)].index(path), row.place.number)
        for path, row in zip(paths, found, strict=True)
    ]
    assert places == sorted(set(places)) and len(places) == len(order) > 150
    assert run('verify', output).status == 0


@pytest.mark.parametrize('kind', ['tfrecord', pytest.param('parquet', marks=pytest.mark.slow)])
def test_splits_of_one_corpus_come_in_its_order(kind, small, tmp_path):
    out = tmp_path / 'out'
    succeed(
        *('build', '--tsv', small.tsv, '--scheme', 'byte', '--name', 'd', '--shards', 3),
        *('--dev-share', '20%', '@item-size', 700, '--output-format', kind, '--output', out),
    )
    kept = [
        {
            side: [byte + 2 for byte in text.encode()] + [1]
            for side, text in zip(('inputs', 'targets'), pair)
        }
        for pair in kept_pairs(small.pairs)
    ]
    splits = [rows_in_corpus_order(out, split) for split in ('train', 'dev')]
    assert splits == [[row for row in kept if row in rows] for rows in splits]
    assert sum(map(len, splits)) == len(kept) and all(splits)


def test_an_index_is_made_again_of_the_corpus_and_of_no_other(output, capsys):
    folder = output / 'index'
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    shutil.rmtree(folder)
    succeed('index', output)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    path = output.parent / 'pairs.en'
    text = path.read_bytes()
    path.write_bytes(text.replace(b'e', b'a', 1))
    capsys.readouterr()
    succeed('index', output)
    assert f'which was made without the corpus: {path} has' in capsys.readouterr().out
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    shutil.rmtree(folder)
    succeed('index', output)
    assert not read_index(DatasetManifest.read(output).splits['train'][0]).has_keys
    path.write_bytes(b'more\n' + text)
    with open(output.parent / 'pairs.zh', 'ab') as file:
        file.write(b'more\n')
    succeed('index', output)
    assert 'the corpus gives' in capsys.readouterr().out


@pytest.mark.parametrize('kind', ['tfrecord', 'parquet'])
def test_an_index_of_other_rows_is_named(kind, small, printed, tmp_path):
    out = tmp_path / 'out'
    succeed(
        *('build', '--tsv', small.tsv, '--scheme', 'byte', '--name', 'd', '--shards', 1),
        *('--output-format', kind, '--output', out),
    )
    [shard] = DatasetManifest.read(out).splits['train']
    index = read_index(shard)
    sizes = np.column_stack([index.lengths, index.text_bytes])
    lengths = np.diff(np.append(index.bounds(np.arange(len(index)))[0], shard.bytes)) if index.has_offsets else sizes[:, 0]  # fmt: skip

    def findings(keys, sizes, *more):
        write_index(shard, 2, [Addresses(lengths, keys, sizes)], index.has_offsets)
        status, [report] = printed('verify', out, *more)
        assert (status == 3) == bool(report['findings'])
        return [(each['file'], each['problem']) for each in report['findings']]

    name = f'index/{os.path.basename(shard.path)}'
    keys, text, ids = index.keys.copy(), sizes.copy(), sizes.copy()
    assert findings(keys, sizes, '--rerun', '1%') == []
    assert [*dict(findings(keys[::-1], sizes))] == [name]
    text[3, 2] += 1
    problems = dict(findings(keys, text))
    assert 'bytes of text of train' in problems['tokbeam.json']
    if kind == 'tfrecord':
        ids[3, 0] += 1
        assert 'other records' in dict(findings(keys, ids))[name]
    keys[5] += np.uint64(1)
    assert findings(keys, sizes, '--rerun', '1%')[-1][1].startswith(
        'its order keys are not those of'
    )


@pytest.mark.parametrize(
    'output_format', ['tfrecord', 'parquet', pytest.param('text', marks=pytest.mark.slow)]
)
def test_a_rerun_makes_the_same_rows(output_format, corpus, printed, tmp_path):
    out = corpus / 'out'
    if output_format != 'tfrecord':
        out = tmp_path / 'out'
        succeed(*('build', corpus / 'job.toml', '--output-format', output_format, '--output', out))
    status, [report] = printed('verify', out, '--rerun', 'all')
    assert report['findings'] == [] and status == 0
    assert report['rerun'] == {
        'rows': manifest_of(out)['lines'][0]['examples'],
        'of': manifest_of(out)['lines'][0]['examples'],
    }
    _, [sample] = printed('verify', out, '--rerun', '20%')
    _, [other] = printed('verify', out, '--rerun', '20%', '--seed', 1)
    assert 0 < sample['rerun']['rows'] < report['rerun']['rows']
    assert sample['rerun']['rows'] != other['rerun']['rows']


def test_rows_are_made_in_several_passes_where_memory_is_short(corpus):
    job = pipelines.build_job(corpus / 'job.toml')
    path = corpus / 'out' / 'tokbeam.json'
    manifest = Manifest.from_json(path.read_bytes(), str(path))
    made = rerun(job, manifest, share=1, memory_bytes=5000)
    assert made.findings == () and made.rows == made.all_rows == manifest.lines[0].examples


def test_the_work_of_a_rerun_grows_with_the_files_and_not_with_their_square(corpus, monkeypatch):
    parsed = []

    def counted(name):
        parsed.append(name)
        return file_of_shard(name)

    monkeypatch.setattr('pipelines.trust.rerun.file_of_shard', counted)
    path = corpus / 'out' / 'tokbeam.json'
    manifest = Manifest.from_json(path.read_bytes(), str(path))
    rerun(pipelines.build_job(corpus / 'job.toml'), manifest, share=1)
    assert len(parsed) == len(manifest.files) * len(manifest.lines)


def test_a_changed_line_is_named(output, printed):
    path = output.parent / 'pairs.en'
    lines = path.read_bytes().split(b'\n')
    number = next(n for n, line in enumerate(lines) if len(line) > 20)
    lines[number] = lines[number][:-4] + b'none'
    path.write_bytes(b'\n'.join(lines))
    assert printed('verify', output)[0] == 0
    status, [report] = printed('verify', output, '--rerun', 'all')
    changed, row = report['findings']
    assert status == 3
    assert changed['input'] == str(path) and 'has changed' in changed['problem']
    assert (row['input'], row['line']) == (str(path), number + 1)
    assert row['file'].startswith('six-train-') and row['record'] is not None


def test_a_line_added_changes_the_counts(output, printed):
    path = output.parent / 'pairs.en'
    path.write_bytes(path.read_bytes() + b'one more\n')
    other = output.parent / 'pairs.zh'
    other.write_bytes(other.read_bytes() + b'one more\n')
    _, [report] = printed('verify', output, '--rerun', '1%')
    problems = ' '.join(each['problem'] for each in report['findings'])
    assert 'has changed' in problems and 'other numbers of lines' in problems
    assert 'rows of it, and it has' in problems


def forge(output, change):
    """Changes the records of a shard and makes the manifest go with it."""
    path = output / 'six-train-00000-of-00003'
    records = records_of(path)
    change(records)
    path.write_bytes(b''.join(records))
    fields = manifest_of(output)

    data = path.read_bytes()
    fields['files'][0] |= {
        'bytes': len(data),
        'crc32c': f'{google_crc32c.value(data):08x}',
        'sha256': hashlib.sha256(data).hexdigest(),
        'rows': len(records),
    }
    manifest = Manifest.from_json(json.dumps(fields).encode(), 'm')
    fields['root'] = root_hash(manifest)
    (output / 'tokbeam.json').write_text(json.dumps(fields))
    open_dataset(output).write_index()
    for entry in fields['index']:
        data = (output / entry['name']).read_bytes()
        entry |= {'bytes': len(data), 'crc32c': f'{google_crc32c.value(data):08x}'}
    fields['index'][0]['rows'] = len(records)
    (output / 'tokbeam.json').write_text(json.dumps(fields))
    return fields['root']


def exchange(records):
    records[3], records[8] = records[8], records[3]


def test_records_exchanged_by_who_can_write_manifests(output, printed):
    stated = manifest_of(output)['root']
    forged = forge(output, exchange)
    assert forged != stated
    status, [report] = printed('verify', output)
    assert status == 0 and report['root'] == forged
    assert printed('verify', output, '--root', stated)[0] == 3
    _, [report] = printed('verify', output, '--rerun', 'all')
    assert [each['record'] for each in report['findings']] == [3, 8]
    succeed('index', output)  # whoever forged it had no order keys
    status, [row] = printed('where', output, '0:3')
    assert status == 3 and not row['is_stored']


def test_a_row_that_is_not_a_row_of_the_corpus(output, printed):
    forge(output, lambda records: records.__setitem__(5, framed(records[5][12:-4] + b'')))
    assert printed('verify', output, '--rerun', 'all')[0] == 0
    forge(output, lambda records: records.__setitem__(5, records[6]))
    _, [report] = printed('verify', output, '--rerun', 'all')
    assert [each['record'] for each in report['findings']] == [5]


def test_the_job_of_a_rerun(output, printed, tmp_path):
    job = output.parent / 'job.toml'
    other = write(output.parent / 'other.toml', job.read_bytes().replace(b'shards', b'seed'))
    assert 'another --shards, 3 there and 10' in refuse(
        'verify', output, '--rerun', 'all', '--job', other
    )
    write(other, job.read_bytes().replace(b'max_examples = 31', b'max_examples = 30'))
    said = refuse('verify', output, '--rerun', 'all', '--job', other)
    assert f'the one that made {output}: other datasets, ' in said
    (output / 'tokbeam.run.json').unlink()
    assert 'give --job' in refuse('verify', output, '--rerun', '1%')
    status, [report] = printed('verify', output, '--rerun', '50%', '--job', job)
    assert status == 0 and report['rerun']['rows'] > 0
    (output.parent / 'pairs.en').unlink()
    assert 'pairs.en' in refuse('verify', output, '--rerun', '1%', '--job', job)


def test_a_record_of_another_runs_no_code(output):
    record = output / 'tokbeam.run.json'
    fields = json.loads(record.read_text())
    fields['job'] = fields['job'].replace('length:2:60', 'os:system')
    record.write_text(json.dumps(fields))
    sentence = refuse('verify', output, '--rerun', 'all')
    assert 'os:system, which is code' in sentence


def test_places_are_the_inverse_of_keys():
    offsets = np.array([0, 1, 77, (1 << 44) - 1])
    for file_index in (0, 5, (1 << 20) - 1):
        for seed in (0, 1, (1 << 64) - 1):
            files, found = places_of(order_keys(file_index, offsets, seed), seed)
            assert (found == offsets).all() and (files == file_index).all()
