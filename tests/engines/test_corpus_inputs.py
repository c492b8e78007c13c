"""Which files make a corpus: several, globs, pairs, splits, prefixes; and what counts as empty."""

import collections

import pytest
from dataset_files import (
    decoded,
    encoders_of,
    lines_of,
    manifest_of,
    read_shards,
    shards_and_vocabularies,
    texts_of,
)
from generated_text import (
    as_bitext,
    as_lines,
    as_tsv,
    distinct_pairs,
    english_lines,
    kept_pairs,
    pairs_with_gaps,
)
from jobs import refuse, succeed, write

from tokcore.subword.text_encoder import SubwordTextEncoder

THREE_PARTS = [slice(0, 40), slice(40, 200), slice(200, 300)]


def vocabularies(folder):
    return {path.name: path.read_bytes() for path in folder.glob('vocab.*')}


def examples(folder, split='train'):
    return sorted(repr(each) for shard in read_shards(folder, split) for each in shard)


@pytest.mark.parametrize(
    ('long_side', 'item_size'),
    [('target', '1KiB'), pytest.param('source', '12MiB', marks=pytest.mark.slow)],
)
def test_files_may_differ_fiftyfold_in_size(build, tmp_path, long_side, item_size):
    words = [f'{number:x}' for number in range(400)]
    joined = iter(english_lines(7_000, seed=2))
    sentences = [' '.join(next(joined) for _ in range(number % 9)) for number in range(400)]
    pairs = list(zip(words, sentences, strict=True))
    if long_side == 'source':
        pairs = [(target, source) for source, target in pairs]
    source, target = as_bitext(pairs)
    assert max(len(source), len(target)) > 50 * min(len(source), len(target))
    inputs = [
        *('--source', write(tmp_path / 'a.en', source)),
        *('--target', write(tmp_path / 'a.zh', target)),
    ]
    folder = build(*inputs, '@item-size', item_size)
    columns = build('--tsv', write(tmp_path / 'a.tsv', as_tsv(pairs)))
    assert vocabularies(folder) == vocabularies(columns)
    assert examples(folder) == examples(columns)
    assert sorted(texts_of(folder)) == sorted(kept_pairs(pairs))
    assert lines_of(folder) == lines_of(columns)


def test_blank_lines_and_empty_sides_are_left_out_and_counted(build, tmp_path):
    pairs = distinct_pairs(60, seed=3)
    gaps = [('', 'x'), ('x', ''), ('', ''), (' \u3000\x85', 'x'), ('x', '\x1c\xa0 ')]
    source, target = as_bitext(pairs[:30] + gaps + pairs[30:])
    folder = build(
        *('--source', write(tmp_path / 'a.en', source)),
        *('--target', write(tmp_path / 'a.zh', target)),
    )
    assert sorted(texts_of(folder)) == sorted(pairs)
    assert (lines_of(folder)['lines'], lines_of(folder)['empty']) == (65, 5)
    # Columns: a line of white space alone has no columns to miss.
    tsv = write(tmp_path / 'a.tsv', as_tsv(pairs[:30] + gaps) + b'\n \r\n' + as_tsv(pairs[30:]))
    folder = build('--tsv', tsv)
    assert sorted(texts_of(folder)) == sorted(pairs)
    assert (lines_of(folder)['lines'], lines_of(folder)['empty']) == (67, 7)


def test_several_files_of_columns(small, small_build, build, tmp_path):
    paths = [
        write(tmp_path / name, as_tsv(small.pairs[part]))
        for name, part in zip(['z.tsv', 'm.tsv.gz', 'a.tsv'], THREE_PARTS, strict=True)
    ]
    folder = build('--tsv', *paths)
    assert vocabularies(folder) == vocabularies(small_build)
    assert examples(folder) == examples(small_build)
    assert [each['name'] for each in manifest_of(folder)['inputs']] == [
        'z.tsv',
        'm.tsv.gz',
        'a.tsv',
    ]
    # An option may be repeated instead.
    again = build('--tsv', paths[0], '--tsv', *paths[1:])
    assert shards_and_vocabularies(again) == shards_and_vocabularies(folder)
    # The order given is part of an example's identity, so another order is another shuffle.
    other = build('--tsv', *reversed(paths))
    assert examples(other) == examples(folder)
    assert shards_and_vocabularies(other) != shards_and_vocabularies(folder)


def test_a_glob_stands_for_its_files_sorted_by_the_bytes_of_their_names(small, build, tmp_path):
    names = ['a/B.tsv', 'a/a.tsv', 'b/a.tsv']
    paths = [
        write(tmp_path / 'corpus' / name, as_tsv(small.pairs[part]))
        for name, part in zip(names, THREE_PARTS, strict=True)
    ]
    listed = build('--tsv', *paths)
    folder = build('--tsv', tmp_path / 'corpus' / '*' / '*.tsv')
    assert shards_and_vocabularies(folder) == shards_and_vocabularies(listed)
    assert [each['name'] for each in manifest_of(folder)['inputs']] == names
    assert sorted(texts_of(folder)) == sorted(kept_pairs(small.pairs))


def test_bitext_files_pair_in_the_order_given(build, tmp_path):
    pairs = distinct_pairs(80, seed=6)
    first, second = as_bitext(pairs[:40]), as_bitext(pairs[40:])
    sources = [write(tmp_path / '1.en', first[0]), write(tmp_path / '2.en', second[0])]
    targets = [write(tmp_path / 'y.zh', first[1]), write(tmp_path / 'x.zh', second[1])]
    folder = build('--source', *sources, '--target', *targets)
    assert sorted(texts_of(folder)) == sorted(pairs)
    assert [(each['role'], each['name']) for each in manifest_of(folder)['inputs']] == [
        ('source', '1.en'),
        ('target', 'y.zh'),
        ('source', '2.en'),
        ('target', 'x.zh'),
    ]
    # A glob sorts: the targets change places, and so do the pairs.
    swapped = build('--source', tmp_path / '*.en', '--target', tmp_path / '*.zh')
    targets_swapped = [target for _, target in pairs[40:] + pairs[:40]]
    assert sorted(texts_of(swapped)) == sorted(
        (source, target) for (source, _), target in zip(pairs, targets_swapped, strict=True)
    )


def test_other_numbers_of_files_are_refused(small, tmp_path):
    sentence = refuse(
        *('build', '--source', small.source, small.source, '--target', small.target),
        *('--name', 'x', '--vocab-size', 900, '--output', tmp_path / 'out'),
    )
    assert '--source names 2 files' in sentence and '--target names 1' in sentence
    assert not (tmp_path / 'out' / 'tokbeam.json').exists()


def test_prefixes_stand_before_each_text_and_are_not_counted(small, small_build, build):
    prefixes = ['--source-prefix', 'translate to Chinese: ', '--target-prefix', '<2zh>']
    folder = build('--tsv', small.tsv, *prefixes)
    assert vocabularies(folder) == vocabularies(small_build)
    assert lines_of(folder) == lines_of(small_build)
    encoders = encoders_of(folder)
    expected = collections.Counter()
    for source, target in kept_pairs(small.pairs):
        inputs = [*encoders['inputs'].encode('translate to Chinese: ' + source), 1]
        targets = [*encoders['targets'].encode('<2zh>' + target), 1]
        expected[repr({'inputs': inputs, 'targets': targets})] += 1
    assert collections.Counter(examples(folder)) == expected
    assert sorted(texts_of(folder)) == sorted(
        ('translate to Chinese: ' + source, '<2zh>' + target)
        for source, target in kept_pairs(small.pairs)
    )


def test_dev_and_test_are_encoded_with_the_vocabulary_of_training(
    small, small_build, build, tmp_path
):
    # Scripts that training never saw are escaped, not lost.
    dev = [*pairs_with_gaps(30, seed=20), ('Ελληνικά κείμενα', 'कखग'), ('مرحبا', '')]
    test = [*distinct_pairs(25, seed=30), ('ไทย', 'Ωμέγα\u0301')]
    source, target = as_bitext(dev)
    folder = build(
        *('--tsv', small.tsv),
        *('--dev-source', write(tmp_path / 'dev.en', source)),
        *('--dev-target', write(tmp_path / 'dev.zh', target)),
        *('--test', write(tmp_path / 'test.tsv.gz', as_tsv(test))),
    )
    assert vocabularies(folder) == vocabularies(small_build)
    for name, data in shards_and_vocabularies(small_build).items():
        assert (folder / name).read_bytes() == data
    assert len(read_shards(folder, 'dev')) == 1 and len(read_shards(folder, 'test')) == 1
    assert sorted(texts_of(folder, 'dev')) == sorted(kept_pairs(dev))
    assert sorted(texts_of(folder, 'test')) == sorted(kept_pairs(test))
    assert lines_of(folder, 'dev')['empty'] == len(dev) - len(kept_pairs(dev))


@pytest.mark.slow
def test_every_character_survives_a_vocabulary_that_never_saw_it(small_build, tmp_path):
    characters = [chr(code) for code in range(0, 0x110000, 7) if not 0xD800 <= code < 0xE000]
    # '|' at both ends keeps white space from being stripped, and letters beside it tell apart what
    # joins a word.
    lines = [
        '|' + ''.join(characters[start : start + 50]) + f'|{start:x}'
        for start in range(0, len(characters), 50)
    ]
    unwanted = str.maketrans('', '', '\n\r')
    lines = [line.translate(unwanted) for line in lines]
    vocabulary = small_build / 'vocab.small.900.subwords.inputs'
    text = write(tmp_path / 'corpus.txt', as_lines(lines))
    succeed(
        *('encode', '--text', text, '--vocab', vocabulary, '--name', 'small'),
        *('--shards', 2, '@item-size', '64KiB', '--output', tmp_path / 'out'),
    )
    encoder = SubwordTextEncoder.load(vocabulary)
    found = [
        text
        for shard in read_shards(tmp_path / 'out')
        for [text] in decoded(shard, {'targets': encoder})
    ]
    assert sorted(found) == sorted(lines)
