"""Compressed files that are cut where their index of parts allows give the bytes of their text."""

import pytest
from dataset_files import files_of
from jobs import refuse, succeed, write
from packed_in_parts import xz_of_blocks, zstd_with_table

PACKERS = {'xz': xz_of_blocks, 'zst': zstd_with_table}
KINDS = pytest.mark.parametrize('kind', PACKERS)
LINES = [b'line %d of a text with some words\n' % (number % 301) for number in range(4000)]


def packed(tmp_path, kind, lines=LINES):
    # Parts end anywhere: that lines do too would be luck.
    text = b''.join(lines)
    texts = [text[start : start + 1999] for start in range(0, len(text), 1999)]
    return write(tmp_path / f'corpus.txt.{kind}.packed', PACKERS[kind](texts))


def building(path, *options):
    return ('build', '--text', path, '--name', 'some', '--scheme', 'byte', '--shards', 3, *options)


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp('whole')
    path = write(folder / 'corpus.txt', b''.join(LINES))
    succeed(*building(path, '--output', folder / 'out'))
    return shards(folder / 'out')


def shards(folder):
    # Manifests name the input, which is called otherwise here.
    files = files_of(folder).items()
    return {name: data for name, data in files if not name.endswith('tokbeam.json')}


@pytest.mark.parametrize(
    ('kind', 'how'),
    [
        ('xz', ('--workers', 1, '@item-size', '1KiB')),
        ('zst', ('--workers', 2, '@item-size', '1KiB')),
        ('xz', ('--workers', 2, '@item-size', '5KiB', '@shuffle', 'engine')),
    ],
    ids=str,
)
def test_bytes_are_those_of_the_plain_text(tmp_path, whole, kind, how):
    path = packed(tmp_path, kind)
    succeed(*building(path, *how, '--output', tmp_path / 'out'))
    assert shards(tmp_path / 'out') == whole


@KINDS
def test_a_sample_of_lines_is_that_of_the_plain_text(tmp_path, kind):
    plain = write(tmp_path / 'plain' / 'corpus.txt', b''.join(LINES))
    outputs = []
    for path in (plain, packed(tmp_path, kind)):
        outputs.append(tmp_path / f'counts-{path.name}')
        sampled = ['--vocab-sample', 't2t:7kB', '@item-size', '4KiB', '--workers', 2]
        succeed('count', '--text', path, *sampled, '--output', outputs[-1])
    assert shards(outputs[0]) == shards(outputs[1])


@KINDS
@pytest.mark.parametrize('workers', [1, 2])
def test_a_part_that_is_damaged_ends_the_job_with_its_place(tmp_path, kind, workers):
    path = packed(tmp_path, kind)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8] = bytes(8)
    path.write_bytes(bytes(content))
    output = ['--output', tmp_path / 'counts', '--workers', workers, '@item-size', '2KiB']
    said = refuse('count', '--text', path, *output)
    assert f'{path} is damaged within' in said and 'get the file again' in said
    assert not (tmp_path / 'counts').exists()


@KINDS
def test_a_limit_of_lines_is_met_as_in_the_plain_text(tmp_path, kind):
    lines = [*LINES[:3000], b'an invalid \xff line\n', *LINES[3000:]]
    path = packed(tmp_path, kind, lines)
    counting = ['count', '--text', path, '@item-size', '2KiB', '--workers', 2]
    said = refuse(*counting, '--output', tmp_path / 'stopped')
    place = sum(map(len, lines[:3000]))
    assert f'at byte {place + 11}' in said or f'at byte {place}' in said
    said = succeed(*counting, '--on-error', 'skip', '--output', tmp_path / 'counts')
    assert '32000 tokens' in said.replace(',', '') and 'train.invalid_utf8.jsonl' in said
