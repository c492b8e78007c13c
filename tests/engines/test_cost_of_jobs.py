"""What a dry run says that a job takes, compared with what it takes."""

import io
import json
import re
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import manifest_of
from generated_text import as_lines, chinese_lines, english_lines
from jobs import run, succeed, write

from tokcore import open_dataset

NUMBER = r'about ([\d,]+) ± (\d+|\?) %'
ENGLISH = english_lines(12_000, 1)
CHINESE = chinese_lines(12_000, 2)
LINES = [*ENGLISH, *CHINESE[:4000], *ENGLISH[:3000]]
"""A corpus whose middle is another text."""


@pytest.fixture
def small_samples(monkeypatch):
    """A sixth of the corpus is encoded, and not all of it, as of a large one."""
    monkeypatch.setattr('pipelines.shuffle.encoded_sample.THOROUGH_BYTES', 4 << 10)
    monkeypatch.setattr('pipelines.stages.cost.THOROUGH_BYTES', 4 << 10)
    monkeypatch.setattr('pipelines.shuffle.encoded_sample._THOROUGH_ITEMS', 64)


@pytest.fixture
def said(capsys):
    """Returns the lines about the cost of a job."""

    def dry_run(*arguments) -> str:
        capsys.readouterr()
        ended = run(*arguments, '--dry-run')
        assert ended.status == 0, ended.said
        out = capsys.readouterr().out
        cost = out[out.index('by a sample of') :]
        assert max(map(len, cost.splitlines())) <= 80
        return cost

    return dry_run


def number(text: str) -> float:
    """Returns a number, or MiB of a size."""
    digits, _, unit = text.replace(',', '').partition(' ')
    return float(digits) / (1024 if unit == 'KiB' else 1)


def estimates(cost: str) -> dict[str, float]:
    """Returns rows and ids, and the MiB of text, of shards and of these with their indexes."""
    size = r'([\d.,]+ [KM]iB)'
    rows, text = re.search(rf'{NUMBER} rows of {size}', cost).group(1, 3)
    ids, shards = re.search(rf'{NUMBER} ids in {size}', cost).group(1, 3)
    [end] = re.findall(rf'at most, {size} at the end', cost)
    names = ('rows', 'text', 'ids', 'shards', 'all')
    return dict(zip(names, map(number, (rows, text, ids, shards, end)), strict=True))


def taken(folder) -> dict[str, float]:
    manifest = manifest_of(folder)
    shards, index = (
        sum(file['bytes'] for file in manifest[name]) / 2**20 for name in ('files', 'index')
    )
    return {
        'rows': sum(tally['examples'] for tally in manifest['lines']),
        'text': sum(tally['text_bytes'] for tally in manifest['lines']) / 2**20,
        'shards': shards,
        'all': shards + index,
    }


def files_of_lines(folder) -> list:
    return ['--text', write(folder / 'a.txt', as_lines(LINES))]


def uneven_files(folder) -> list:
    """A large file, many small ones, one without text."""
    paths = [write(folder / 'large.txt', as_lines(ENGLISH)), write(folder / 'empty.txt', b'')]
    for number in range(40):
        own = CHINESE[number * 100 : number * 100 + number * 3]
        paths.append(write(folder / f'small-{number}.txt', as_lines(own)))
    return ['--text', *paths]


def one_gzip(folder) -> list:
    return ['--text', write(folder / 'a.txt.gz', as_lines(LINES))]


def some_gzips(folder) -> list:
    parts = [LINES[:9000], LINES[9000:15_000], LINES[15_000:]]
    return [
        '--text',
        *(write(folder / f'{number}.txt.gz', as_lines(part)) for number, part in enumerate(parts)),
    ]


def archive(folder) -> list:
    path = folder / 'a.tar'
    with tarfile.open(path, 'w') as tar:
        for number in range(0, len(LINES), 500):
            data = as_lines(LINES[number : number + 500])
            member = tarfile.TarInfo(f'{number:06d}.txt')
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return ['--text', f'{path}!*']


def columns(folder) -> list:
    data = ''.join(f'{line}\t{line[::-1]}\n' for line in LINES)
    return ['--tsv', write(folder / 'a.tsv', data.encode())]


def objects(folder) -> list:
    data = ''.join(json.dumps({'text': line, 'x': 'y' * (len(line) % 50)}) + '\n' for line in LINES)
    return ['--jsonl', write(folder / 'a.jsonl', data.encode()), '--fields', 'text']


def pairs(folder) -> list:
    english = write(folder / 'a.en', as_lines(ENGLISH))
    return ['--source', english, '--target', write(folder / 'a.zh', as_lines(CHINESE))]


def rows_of_parquet(folder) -> list:
    pq.write_table(pa.table({'text': LINES}), folder / 'a.parquet', row_group_size=500)
    return ['--parquet', folder / 'a.parquet', '--fields', 'text']


CORPORA = [
    files_of_lines, uneven_files, one_gzip, some_gzips, archive, columns, objects, pairs,
    rows_of_parquet,
]  # fmt: skip


def check(cost: str, folder) -> None:
    estimated, real = estimates(cost), taken(folder)
    real['ids'] = sum(
        len(ids) for row in open_dataset(folder).examples('train') for ids in row.values()
    )
    for name, value in real.items():
        assert estimated[name] == pytest.approx(value, rel=0.1, abs=0.05), (name, cost)


@pytest.mark.parametrize('corpus', CORPORA)
def test_rows_ids_and_bytes_are_within_a_tenth(corpus, said, small_samples, tmp_path):
    job = [*corpus(tmp_path), '--name', 'n', '--scheme', 'byte', '--shards', 3]
    cost = said('build', *job, '--output', tmp_path / 'out')
    assert not (tmp_path / 'out').exists()
    succeed('build', *job, '--output', tmp_path / 'out')
    check(cost, tmp_path / 'out')


@pytest.mark.parametrize('options', [['--clean', 'script:Latn:0.5'], ['--dev-share', '30%']])
def test_so_they_are_with_filters_and_shares(options, said, small_samples, tmp_path):
    job = [*files_of_lines(tmp_path), '--name', 'n', '--scheme', 'byte', *options]
    cost = said('build', *job, '--output', tmp_path / 'out')
    succeed('build', *job, '--output', tmp_path / 'out')
    estimated, real = estimates(cost), taken(tmp_path / 'out')
    for name, value in real.items():
        assert estimated[name] == pytest.approx(value, rel=0.1, abs=0.05), (name, cost)


@pytest.fixture(scope='module')
def learned(tmp_path_factory):
    folder = tmp_path_factory.mktemp('learned')
    text = write(folder / 'text', as_lines(ENGLISH[:2000] + CHINESE[:2000]))
    job = ['--name', 'n', '--scheme', 'bpe', '--vocab-size', 2000, '--shards', 1]
    succeed('build', '--text', text, *job, '--output', folder / 'out')
    [vocabulary] = (folder / 'out').glob('vocab.*')
    return vocabulary


FORMATS = ['tfrecord', 'parquet', 'megatron', 'flat', 'text', 'packed', 'nanogpt']


@pytest.mark.parametrize('output_format', FORMATS)
def test_so_are_the_bytes_of_every_format(output_format, learned, said, small_samples, tmp_path):
    job = [*one_gzip(tmp_path), '--name', 'n', '--vocab', learned, '--shards', 1]
    job += ['--output-format', output_format]
    job += ['--pack', 512] if output_format == 'packed' else []
    cost = said('encode', *job, '--output', tmp_path / 'out')
    succeed('encode', *job, '--output', tmp_path / 'out')
    estimated, real = estimates(cost), taken(tmp_path / 'out')
    for name, value in real.items():
        assert estimated[name] == pytest.approx(value, rel=0.1, abs=0.1), (name, cost)


def test_a_text_that_is_all_in_the_sample_is_counted(said, tmp_path):
    text = write(tmp_path / 'a.txt', as_lines(LINES[:777]))
    job = ['--text', text, '--name', 'n', '--scheme', 'byte', '--output', tmp_path / 'out']
    cost = said('build', *job)
    assert '± 0 % rows' in cost and '± 0 % of text' in cost
    assert estimates(cost)['rows'] == pytest.approx(777, rel=0.005)


def test_what_is_not_known_before_a_vocabulary_is_said(said, small_samples, tmp_path):
    job = [*files_of_lines(tmp_path), '--name', 'n', '--vocab-size', 1000]
    cost = said('build', *job, '--output', tmp_path / 'out')
    assert 'yet to be learned' in cost and '4 bytes a token' in cost
    rows = float(re.search(rf'{NUMBER} rows', cost)[1].replace(',', ''))
    assert rows == pytest.approx(len(LINES), rel=0.1)


def test_time_memory_and_clusters_are_named(said, tmp_path):
    job = [*files_of_lines(tmp_path), '--name', 'n', '--scheme', 'byte', '--output', 'out']
    cost = said('build', *job)
    assert re.search(r'time: \d+:\d\d:\d\d here', cost)
    assert re.search(r'memory: up to [\d.,]+ MiB to encode with \d+ threads?', cost)
    assert 'deploy/scale.md' in cost


def test_a_job_without_shards_has_no_such_lines(capsys, tmp_path):
    run('count', *files_of_lines(tmp_path), '--output', tmp_path / 'counts', '--dry-run')
    assert 'by a sample of' not in capsys.readouterr().out
