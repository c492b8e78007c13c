"""A gzip file that is cut off or damaged stops a job; Beam itself would read it short."""

import gzip

import pytest
from leftovers import assert_nothing_made, assert_only_counts_made
from small_corpus import KINDS


def compress(path):
    path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-20])


def flip_a_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def flip_the_checksum(path):
    data = bytearray(path.read_bytes())
    data[-8] ^= 0x01
    path.write_bytes(data)


def append_text(path):
    path.write_bytes(path.read_bytes() + b'appended\n')


DAMAGES = {
    cut_off: 'it was cut off',
    flip_a_byte: 'is damaged',
    flip_the_checksum: 'is damaged',
    append_text: 'something else than gzip data',
}


@pytest.mark.parametrize(
    ('kind', 'damage'),
    [*((kind, cut_off) for kind in KINDS), *(('bitext', damage) for damage in [*DAMAGES][1:])],
)
def test_a_damaged_file_is_named_with_the_byte(build, write_corpus, tmp_path, kind, damage):
    corpus = write_corpus(kind)
    compress(corpus.last)
    damage(corpus.last)
    build(corpus).assert_refused(corpus.last, DAMAGES[damage], 'byte')
    assert_nothing_made(tmp_path / 'out')


def test_a_gzip_file_of_no_bytes_was_cut_off_too(tokbeam, write_corpus, tmp_path):
    """A download that failed at once; only the name still says what it was to be."""
    corpus = write_corpus('text')
    zipped = corpus.last.rename(f'{corpus.last}.gz')
    zipped.write_bytes(b'')
    outcome = tokbeam('count', '--text', zipped, '--output', tmp_path / 'out')
    outcome.assert_refused(zipped, 'it was cut off')
    assert_nothing_made(tmp_path / 'out')


def test_damage_to_the_bitext_of_another_split_ends_it_before_counting(
    build, write_corpus, tmp_path
):
    train, dev = write_corpus('bitext'), write_corpus('bitext', 'dev')
    compress(dev.files[0])
    cut_off(dev.files[0])
    build(train, dev).assert_refused(dev.files[0], 'it was cut off')
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.parametrize('kind', ['tsv', 'text'])
def test_damage_to_another_split_leaves_no_dataset(build, write_corpus, tmp_path, kind):
    train, test = write_corpus(kind), write_corpus(kind, 'test')
    compress(test.last)
    cut_off(test.last)
    build(train, test).assert_refused(test.last, 'it was cut off')
    assert_only_counts_made(tmp_path / 'out')
