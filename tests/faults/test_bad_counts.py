"""Counts that were changed, damaged, or never were counts: one sentence, and nothing is made."""

import dataclasses
import io
import json
import random
import zlib
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from forked_commands import Lane
from jobs import refuse, run, succeed, write
from leftovers import assert_nothing_made

from tokcore.format_numbers import COUNTS
from tokcore.schemes import find_scheme

pytestmark = pytest.mark.slow

WORDS = ['ka', 'to', 'kato', 'ing', 'sting', '中文字', '文字', 'kaing', 'toing', 'st']
LEARNERS = [
    ('--learner', 'memory'),
    ('--learner', 'beam', '--min-count-range', '1:4'),
    ('--scheme', 'wordpiece', '--learner', 'memory'),
    ('--scheme', 'wordpiece', '--learner', 'beam'),
    ('--scheme', 'bpe', '--preset', 'subword-nmt'),
    ('--scheme', 'word'),
]
BPE_ON_BEAM = ('--scheme', 'bpe', '--preset', 'subword-nmt', '--learner', 'beam')


def learn(*counts: object, output: Path) -> list[object]:
    return ['vocab', '--counts', *counts, '--vocab-size', 60, '--output', output]


def parquet_bytes(columns: dict, metadata: dict | None = None, **how) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pa.table(columns).replace_schema_metadata(metadata), stream, **how)
    return stream.getvalue()


def sound_parquet() -> bytes:
    """Words and counts, each of the latter given once, so that there are no dictionaries."""
    return parquet_bytes({'token': WORDS, 'count': list(range(7, 7 + len(WORDS)))})


@pytest.fixture(scope='module')
def text(tmp_path_factory) -> Path:
    dice = random.Random(4)
    lines = [' '.join(dice.choices(WORDS, k=9)) for _ in range(300)]
    return write(tmp_path_factory.mktemp('text') / 'a.txt', '\n'.join(lines).encode())


@pytest.fixture
def counts(text, tmp_path) -> Path:
    folder = tmp_path / 'counts'
    succeed('count', '--text', text, '--output', folder)
    return folder


def flip_a_bit(path: Path, place: float) -> tuple[str, str]:
    """Flips one bit of a file; returns its CRC-32C before and after."""
    before = path.read_bytes()
    after = bytearray(before)
    after[int(place * len(before))] ^= 8
    path.write_bytes(after)
    return tuple(f'{google_crc32c.value(bytes(data)):08x}' for data in (before, after))


def fullest(folder: Path) -> Path:
    return max(folder.glob('*.parquet'), key=lambda path: path.stat().st_size)


class TestAFlippedBit:
    @pytest.mark.parametrize('place', [0.01, 0.04, 0.1, 0.3, 0.6])
    def test_in_a_counts_folder_to_be_learned_from(self, counts, tmp_path, place):
        stated, found = flip_a_bit(fullest(counts), place)
        sentence = refuse(*learn(counts, output=tmp_path / 'out' / 'vocab'))
        assert all(each in sentence for each in (str(fullest(counts)), stated, found))
        assert 'count again with --overwrite' in sentence
        assert_nothing_made(tmp_path / 'out')

    def test_in_a_counts_folder_to_be_merged(self, text, counts, tmp_path):
        other = tmp_path / 'other'
        succeed('count', '--text', text, '--output', other)
        stated, found = flip_a_bit(fullest(other), 0.1)
        sentence = refuse('count', '--counts', counts, other, '--output', tmp_path / 'out')
        assert f'{fullest(other)} has CRC-32C {found}' in sentence and stated in sentence
        assert_nothing_made(tmp_path / 'out')

    def test_in_the_counts_that_a_build_goes_on_with(self, text, tmp_path):
        folder = tmp_path / 'out'
        build = ['build', '--text', text, '--name', 'n', '--vocab-size', 60, '--output', folder]
        succeed(*build)
        (folder / 'tokbeam.json').unlink()
        stated, found = flip_a_bit(fullest(folder / 'counts'), 0.1)
        sentence = refuse(*build)
        assert all(each in sentence for each in (str(fullest(folder / 'counts')), stated, found))
        assert 'already done' not in run(*build, '--overwrite').said
        assert 'already done' in succeed(*build)

    def test_in_the_manifest_s_number_of_tokens(self, text, counts, tmp_path):
        other = tmp_path / 'other'
        succeed('count', '--text', text, '--output', other)
        path = other / 'tokbeam.json'
        manifest = json.loads(path.read_bytes())
        path.write_text(json.dumps({**manifest, 'tokens': manifest['tokens'] + 8}))
        sentence = refuse('count', '--counts', counts, other, '--output', tmp_path / 'out')
        assert 'tokens' in sentence and '--overwrite' in sentence
        assert_nothing_made(tmp_path / 'out')


def test_a_counts_folder_whose_manifest_lists_nothing(counts, tmp_path):
    path = counts / 'tokbeam.json'
    path.write_text(json.dumps({**json.loads(path.read_bytes()), 'files': []}))
    assert str(counts) in refuse(*learn(counts, output=tmp_path / 'vocab'))


@pytest.mark.parametrize('learner', [*LEARNERS, BPE_ON_BEAM], ids=' '.join)
@pytest.mark.parametrize(
    'name, data, token',
    [
        ('counts.txt', b'ka 4\na\rb 5\n', r"'a\rb'"),
        ('counts.txt.gz', b'ka 4\n\r 5\n', r"'\r'"),
        ('counts.parquet', parquet_bytes({'token': ['ka', '\r'], 'count': [4, 5]}), r"'\r'"),
    ],
    ids=['text', 'gzip', 'parquet'],
)
def test_a_token_that_no_vocabulary_file_can_hold(tmp_path, learner, name, data, token):
    path = write(tmp_path / name, data)
    sentence = refuse(*learn(path, output=tmp_path / 'out' / 'vocab'), *learner)
    assert f'{path} has the token {token}' in sentence
    assert_nothing_made(tmp_path / 'out')


def without_utf8_name() -> bytes:
    data = parquet_bytes({'token': WORDS, 'count': range(10), 'note': range(10)})
    assert data.count(b'note') >= 2  # in the schema and where its data are
    return data.replace(b'note', b'n\xff\xfee')


@pytest.mark.parametrize('learner', LEARNERS, ids=' '.join)
@pytest.mark.parametrize(
    'data, reason',
    [
        (without_utf8_name(), 'utf-8'),
        (
            parquet_bytes({'token': ['a'], 'count': [1]}, {b'tokbeam.unicode': b'\xff1'}),
            'tokbeam.unicode',
        ),
        (parquet_bytes({'token': ['a', 'b'], 'count': [1, -1]}), 'negative'),
        (parquet_bytes({'token': ['a', 'b'], 'count': [1, None]}), 'nulls'),
        (parquet_bytes({'token': ['a'], 'count': pa.array([1 << 63], pa.uint64())}), '2'),
        (parquet_bytes({'token': ['a', 'a'], 'count': [1 << 62, 1 << 62]}), 'a'),
        (parquet_bytes({'token': pa.array([b'\xff']).view(pa.string()), 'count': [1]}), 'UTF8'),
        (parquet_bytes({}), 'token'),
        (sound_parquet()[:-1], ''),
        (sound_parquet()[:40], ''),
        (b'PAR1', ''),
        (b'PARE' + bytes(30), 'encrypted'),
        (b'PK\x03\x04\xff\xff', 'is a zip archive'),
    ],
    ids=[
        'column-name', 'unicode', 'negative', 'null', 'unsigned', 'sum', 'not-utf8', 'no-columns',
        'cut-by-one', 'cut', 'magic', 'encrypted', 'zip',
    ],
)  # fmt: skip
def test_files_that_are_not_counts(tmp_path, learner, data, reason):
    path = write(tmp_path / 'counts', data)
    sentence = refuse(*learn(path, output=tmp_path / 'out' / 'vocab'), *learner)
    assert str(path) in sentence and reason in sentence
    assert_nothing_made(tmp_path / 'out')


def test_a_sum_of_merged_counts_that_is_too_large(tmp_path):
    # Folders as `count` makes them, for counts that no text here could give.
    for name in 'ab':
        folder = tmp_path / name
        data = parquet_bytes({'token': ['ka'], 'count': [1 << 62]})
        write(folder / 'counts-00000-of-00032.parquet', data)
        file = {
            'name': 'counts-00000-of-00032.parquet',
            'bytes': len(data),
            'crc32c': f'{google_crc32c.value(data):08x}',
            'rows': 1,
        }
        write(folder / 'tokbeam.json', json.dumps(manifest_of_counts([file])).encode())
    folders = [tmp_path / name for name in 'ab']
    sentence = refuse('count', '--counts', *folders, '--output', tmp_path / 'c')
    assert "'ka'" in sentence and 'counts-00000-of-00032.parquet' in sentence
    assert_nothing_made(tmp_path / 'c')


def manifest_of_counts(files: list[dict]) -> dict:
    from tokcore.text.unicode import UNICODE_VERSION

    return {
        'format': COUNTS, 'stage': 'count', 'unicode': UNICODE_VERSION, 'options': {'side': 'text'},
        'inputs': [], 'lines': [], 'tokens': 1 << 62, 'vocabularies': [],
        'files': files, 'rejected': [], **dataclasses.asdict(find_scheme('subword').rules),
    }  # fmt: skip


def assert_refused(lane: Lane, path: Path, *fragments: object) -> None:
    output = path.parent / 'out' / 'vocab'
    ended = lane.run(learn(path, output=output), path.parent)
    assert (ended.stopped, ended.left_processes) == (None, False)
    ended.assert_refused(path, *fragments)
    assert ended.peak < 1 << 30
    assert_nothing_made(output.parent)


def test_a_file_that_ends_the_process_which_reads_it(lane, tmp_path):
    # The token's type is made required where its statistics say that it was optional: of a field
    # of the footer, the repetition type (1, as the zigzag number 2) stands before the name.
    data = sound_parquet()
    assert data.count(b'\x02\x18\x05token') == 1
    damaged = data.replace(b'\x02\x18\x05token', b'\x00\x18\x05token')
    assert_refused(lane, write(tmp_path / 'counts.parquet', damaged))


def test_a_small_file_that_holds_a_gigabyte(lane, tmp_path):
    tokens = pa.DictionaryArray.from_arrays(pa.array([0] * 1000), pa.array(['x' * (1 << 20)]))
    data = parquet_bytes(
        {'token': tokens, 'count': [1] * 1000},
        compression='zstd',
        dictionary_pagesize_limit=8 << 20,
        write_statistics=False,
    )
    assert len(data) < 1000
    assert_refused(lane, write(tmp_path / 'counts.parquet', data), 'MiB of memory')


@pytest.mark.parametrize(
    'byte, reason', [(b'\n', 'no token in'), (b'x', 'more than 16777216')], ids=['lines', 'a-line']
)
def test_a_small_gzip_file_that_holds_very_much(lane, tmp_path, byte, reason):
    packer = zlib.compressobj(9, wbits=31)
    piece = byte * (1 << 20)
    data = b''.join([*(packer.compress(piece) for _ in range(128)), packer.flush()])
    path = tmp_path / 'counts.gz'
    path.write_bytes(data)
    assert_refused(lane, path, reason)
