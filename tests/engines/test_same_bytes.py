"""Line ends change no text. Other ways to cut and store a corpus are cells of `test_every_format`."""

import pytest
from dataset_files import lines_of, shards_and_vocabularies, texts_of
from generated_text import as_bitext, as_tsv
from jobs import succeed, write

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def bitext_build(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp('bitext') / 'out'
    inputs = ['--source', small.source, '--target', small.target]
    options = ['--name', 'small', '--shards', 3, '--vocab-size', 900]
    succeed('build', *inputs, *options, '--output', folder)
    return folder


@pytest.mark.parametrize('line_end, item_size', [('\r\n', '12MiB'), ('\r\r\n', 64)])
def test_carriage_returns_change_places_but_no_text(
    small, small_build, build, tmp_path, line_end, item_size
):
    path = write(tmp_path / 'pairs.tsv', as_tsv(small.pairs, line_end))
    folder = build('--tsv', path, '@item-size', item_size)
    for vocabulary in small_build.glob('vocab.*'):
        assert (folder / vocabulary.name).read_bytes() == vocabulary.read_bytes()
    assert sorted(texts_of(folder)) == sorted(texts_of(small_build))
    assert lines_of(folder) == lines_of(small_build)


def test_line_ends_of_the_two_sides_may_differ(small, bitext_build, build, tmp_path):
    target = write(tmp_path / 'pairs.zh', as_bitext(small.pairs, '\r\n')[1])
    folder = build('--source', small.source, '--target', target, '@item-size', '1KiB')
    # An example's place is its line's in the source, so the order stays.
    assert shards_and_vocabularies(folder) == shards_and_vocabularies(bitext_build)
    assert lines_of(folder) == lines_of(bitext_build)


def test_a_last_line_without_an_end(small, bitext_build, small_build, build, tmp_path):
    tsv = write(tmp_path / 'pairs.tsv', small.tsv.read_bytes().removesuffix(b'\n'))
    folder = build('--tsv', tsv, '@item-size', '1KiB')
    assert shards_and_vocabularies(folder) == shards_and_vocabularies(small_build)
    source = write(tmp_path / 'pairs.en', small.source.read_bytes().removesuffix(b'\n'))
    folder = build('--source', source, '--target', small.target, '@item-size', '1KiB')
    assert shards_and_vocabularies(folder) == shards_and_vocabularies(bitext_build)
    assert lines_of(folder) == lines_of(bitext_build)
