"""Output bytes depend on input, options and seed: not on how the work was cut and shared out."""

import pytest
from dataset_files import files_of, lines_of, read_shards, shards_and_vocabularies, texts_of
from generated_text import as_bitext, as_lines, as_tsv, english_lines, kept_pairs
from jobs import succeed, write

pytestmark = pytest.mark.slow

ITEM_SIZES = [64, '1KiB', '1MiB']


@pytest.mark.parametrize('item_size, workers', [(64, 2), ('1KiB', 1)])
def test_columns_cut_anywhere(small, small_build, build, item_size, workers):
    folder = build('--tsv', small.tsv, '@item-size', item_size, '--workers', workers)
    assert files_of(folder) == files_of(small_build)
    assert sorted(texts_of(folder)) == sorted(kept_pairs(small.pairs))


@pytest.fixture(scope='module')
def bitext_build(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp('bitext') / 'out'
    inputs = ['--source', small.source, '--target', small.target]
    options = ['--name', 'small', '--shards', 3, '--vocab-size', 900]
    succeed('build', *inputs, *options, '--output', folder)
    return folder


@pytest.mark.parametrize('item_size', ITEM_SIZES)
def test_bitext_cut_anywhere(small, bitext_build, build, item_size):
    inputs = ['--source', small.source, '--target', small.target]
    folder = build(*inputs, '@item-size', item_size)
    assert files_of(folder) == files_of(bitext_build)
    assert sorted(texts_of(folder)) == sorted(kept_pairs(small.pairs))


@pytest.mark.parametrize(
    'compressed, item_size', [('source', '1KiB'), ('target', '1KiB'), ('both', 64)]
)
def test_bitext_compressed(small, bitext_build, build, tmp_path, compressed, item_size):
    source, target = (
        write(tmp_path / f'{path.name}.gz', path.read_bytes())
        if compressed in (side, 'both')
        else path
        for side, path in (('source', small.source), ('target', small.target))
    )
    folder = build('--source', source, '--target', target, '@item-size', item_size)
    assert shards_and_vocabularies(folder) == shards_and_vocabularies(bitext_build)
    read_shards(folder)


def test_gzip_of_several_members_is_one_text(small, small_build, build, tmp_path):
    data = small.tsv.read_bytes()
    path = tmp_path / 'pairs.tsv'  # told by its content, not by its name
    parts = [data[:1000], data[1000:1001], data[1001:]]
    path.write_bytes(
        b''.join(
            write(tmp_path / f'{number}.gz', part).read_bytes() for number, part in enumerate(parts)
        )
    )
    assert files_of(build('--tsv', path)) == files_of(small_build)


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


def test_text_cut_anywhere(build, tmp_path):
    lines = english_lines(200, seed=12)
    lines[::9] = ['', ' ', '\t', '\u3000'] * 5 + [''] * 3
    path = write(tmp_path / 'corpus.txt', as_lines(lines))
    whole = build('--text', path)
    for item_size in ITEM_SIZES:
        cut = build('--text', path, '@item-size', item_size)
        assert files_of(cut) == files_of(whole)
    assert sorted(texts_of(whole)) == sorted((line.strip(),) for line in lines if line.strip())
    assert lines_of(whole)['empty'] == 23
