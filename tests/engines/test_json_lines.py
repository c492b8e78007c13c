"""JSON lines, and compressed corpora: the same vocabularies and examples as of lines and columns."""

import bz2
import gzip
import json
import lzma

import pytest
import zstandard
from dataset_files import files_of, lines_of, read_shards, shards_and_vocabularies
from jobs import refuse, succeed, succeed_elsewhere, write

PACKERS = {
    'gz': gzip.compress,
    'bz2': bz2.compress,
    'xz': lzma.compress,
    'zst': zstandard.ZstdCompressor().compress,
}
ASKED = ['--name', 'small', '--shards', 3, '--vocab-size', 900]


def as_jsonl(pairs):
    """Objects with the texts inside another, and fields that nobody asks for."""
    return ''.join(
        json.dumps(
            {'id': number, 'pair': {'en': source, 'z.h': target}}, ensure_ascii=number % 2 > 0
        )
        + '\n'
        for number, (source, target) in enumerate(pairs)
    ).encode()


@pytest.fixture(scope='module')
def objects(small, tmp_path_factory):
    path = tmp_path_factory.mktemp('json') / 'pairs.jsonl'
    return write(path, as_jsonl(small.pairs))


FIELDS = ['--fields', 'pair.en,pair.z\\.h']


def examples(folder):
    return sorted((row['inputs'], row['targets']) for shard in read_shards(folder) for row in shard)


@pytest.fixture(scope='module')
def built(objects, tmp_path_factory):
    folder = tmp_path_factory.mktemp('built') / 'out'
    succeed('build', '--jsonl', objects, *FIELDS, *ASKED, '--workers', 1, '--output', folder)
    return folder


def test_objects_give_what_columns_give(small_build, built, small):
    for side in ('inputs', 'targets'):
        name = f'vocab.small.900.subwords.{side}'
        assert (built / name).read_bytes() == (small_build / name).read_bytes()
    assert examples(built) == examples(small_build)
    assert lines_of(built)['lines'] == len(small.pairs)
    assert {**lines_of(built)} == {**lines_of(small_build)}


@pytest.mark.parametrize(
    'cut',
    [
        ('--workers', 2),
        ('--item-size', 64, '--workers', 2),
        ('--item-size', '1KiB', '--shuffle', 'engine'),
    ],
    ids=str,
)
def test_bytes_do_not_depend_on_how_it_is_cut(objects, built, tmp_path, cut):
    succeed('build', '--jsonl', objects, *FIELDS, *ASKED, *cut, '--output', tmp_path / 'out')
    assert files_of(tmp_path / 'out') == files_of(built)


@pytest.mark.slow
def test_worker_processes_give_the_same_bytes(objects, built, tmp_path):
    workers = ['--direct_running_mode=multi_processing', '--direct_num_workers=2']
    command = ['build', '--jsonl', objects, *FIELDS, *ASKED, '--item-size', '1KiB', *workers]
    succeed_elsewhere(*command, '--output', tmp_path / 'out')
    assert files_of(tmp_path / 'out') == files_of(built)


BAD = {
    'invalid_json': b'{"pair": \n',
    'missing_field': b'{"pair": {"en": "x"}}\n',
    'not_a_string': b'{"pair": {"en": "x", "z.h": null}}\n',
    'lone_surrogate': b'{"pair": {"en": "\\ud800", "z.h": "y"}}\n',
    'invalid_utf8': b'{"pair": {"en": "\xff", "z.h": "y"}}\n',
}


@pytest.mark.parametrize('reason', BAD)
def test_an_object_that_cannot_be_used_stops_or_is_kept_aside(objects, built, tmp_path, reason):
    whole = objects.read_bytes()
    place = whole.index(b'\n', len(whole) // 2) + 1
    bad = write(tmp_path / 'bad.jsonl', whole[:place] + BAD[reason] + whole[place:])
    command = ['build', '--jsonl', bad, *FIELDS, *ASKED, '--output', tmp_path / 'out']
    said = refuse(*command)
    assert f'{bad}' in said and f'byte {place}' in said
    assert '1 line was left out' in succeed(*command, '--on-error', 'skip')
    [kept] = (tmp_path / 'out' / 'rejected').glob(f'train.{reason}.jsonl')
    assert len(kept.read_text().splitlines()) == 1
    assert examples(tmp_path / 'out') == examples(built)
    tally = lines_of(tmp_path / 'out')
    assert tally[reason] == 1 and tally['lines'] == tally['examples'] + tally['empty'] + 1


def test_one_field_is_a_text_and_may_hold_line_feeds(tmp_path, filter_lines):
    texts = ['two\nlines', 'one line', '', 'é']
    path = write(
        tmp_path / 'a.jsonl', ''.join(json.dumps({'text': each}) + '\n' for each in texts).encode()
    )
    asked = ['--name', 'docs', '--shards', 1, '--scheme', 'bpe', '--vocab-size', 260]
    succeed('build', '--jsonl', path, *asked, '--output', tmp_path / 'out')
    [rows] = read_shards(tmp_path / 'out')
    ids = ''.join(' '.join(map(str, row['targets'])) + '\n' for row in rows).encode()
    said = filter_lines(
        ids, 'detokenize', '--raw', '--vocab', tmp_path / 'out' / 'vocab.docs.260.bpe.json'
    )
    assert sorted(said.decode().removesuffix('\n').split('\n')) == sorted(
        ['two', 'lines', 'one line', 'é']
    )
    assert lines_of(tmp_path / 'out')['empty'] == 1


@pytest.mark.parametrize('suffix', PACKERS)
def test_every_compression_gives_the_same_bytes(small, small_build, tmp_path, suffix):
    text = small.tsv.read_bytes()
    cut = text.index(b'\n', len(text) // 2) + 1
    # Two streams, one after the other.
    packed = PACKERS[suffix](text[:cut]) + PACKERS[suffix](text[cut:])
    path = tmp_path / f'pairs.tsv.{suffix}'
    path.write_bytes(packed)
    succeed('build', '--tsv', path, *ASKED, '--output', tmp_path / 'out')
    expected = shards_and_vocabularies(small_build)
    assert shards_and_vocabularies(tmp_path / 'out') == expected
    bad = write(tmp_path / 'bad', packed[:-9])
    assert 'was cut off' in refuse('build', '--tsv', bad, *ASKED, '--output', tmp_path / 'bad-out')
