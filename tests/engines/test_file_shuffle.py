"""The shuffle through files gives the bytes of the engine's, however the work is cut and dealt."""

import pytest
from dataset_files import files_of, read_shards
from generated_text import (
    as_bitext,
    as_lines,
    as_tsv,
    chinese_lines,
    english_lines,
    pairs_with_gaps,
)
from jobs import refuse, succeed, write

from pipelines.shuffle import merge_runs
from pipelines.transforms import encode_blocks
from tokcore.records.sorted_runs import bucket_groups

pytestmark = pytest.mark.slow

DATASET = ['--name', 'x', '--shards', 4]


@pytest.fixture(scope='module')
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp('corpora')
    train, dev = as_tsv(pairs_with_gaps(2500, 41)), as_tsv(pairs_with_gaps(90, 42))
    bad = b'\xff\tx\n' + train[:90_000] + b'short\n\xc3\t\n' * 40 + train
    source, target = as_bitext(pairs_with_gaps(2500, 41))
    return {
        'tsv': write(folder / 'train.tsv', train),
        'gz': write(folder / 'train.gz', train),
        'bad': write(folder / 'bad.tsv', bad),
        'dev': write(folder / 'dev.tsv', dev),
        'source': write(folder / 'train.en', source),
        'target': write(folder / 'train.zh', target),
        'text': write(folder / 'text.txt', as_lines(english_lines(900, 1) + chinese_lines(900, 2))),
    }


@pytest.fixture(scope='module')
def vocabulary(corpora, tmp_path_factory):
    path = tmp_path_factory.mktemp('vocabulary') / 'vocab'
    succeed('vocab', '--tsv', corpora['tsv'], '--vocab-size', 1500, '--output', path)
    return path


@pytest.fixture(scope='module')
def inputs(corpora):
    pairs = ['--dev', corpora['dev']]
    files = ['--source', corpora['source'], '--target', corpora['target']]
    return {
        'tsv': ['--tsv', corpora['tsv'], *pairs],
        'gz': ['--tsv', corpora['gz'], *pairs],
        'bad': ['--tsv', corpora['bad'], *pairs, '--on-error', 'skip'],
        'bitext': [*files, '--dev-source', files[1], '--dev-target', files[3]],
    }


@pytest.fixture(scope='module')
def encode(inputs, vocabulary, tmp_path_factory):
    """Encodes one of the inputs into a new folder, which is returned."""

    def run(kind, *options):
        folder = tmp_path_factory.mktemp(kind) / 'out'
        succeed(
            'encode', *inputs[kind], '--vocab', vocabulary, *DATASET, '--output', folder, *options
        )
        return folder

    return run


@pytest.fixture(scope='module')
def through_engine(encode):
    """The reference for each input: what the engine's shuffle gives."""
    made = {}

    def reference(kind):
        if kind not in made:
            folder = encode(kind, '@shuffle', 'engine')
            read_shards(folder)
            made[kind] = files_of(folder)
        return made[kind]

    return reference


@pytest.mark.parametrize(
    ('kind', 'options'),
    [
        ('bitext', []),
        ('tsv', ['@buffer', '100KiB', '@item-size', '10KiB', '--workers', 1]),
        ('bad', ['@buffer', '100KiB', '@item-size', '10KiB', '--workers', 3]),
        ('tsv', ['@buffer', '3KiB', '@item-size', '7KiB', '--workers', 2]),
        ('bitext', ['@buffer', '3KiB', '@item-size', '7KiB', '--workers', 2]),
        ('gz', ['@buffer', '10KiB', '@item-size', '1MiB', '--workers', 2]),
        ('bad', ['@buffer', '10KiB', '@item-size', '1MiB', '--workers', 2]),
    ],
    ids=lambda given: given if isinstance(given, str) else ' '.join(map(str, given)),
)
def test_any_buffer_item_and_workers(encode, through_engine, kind, options):
    folder = encode(kind, '@shuffle', 'files', *options)
    assert files_of(folder) == through_engine(kind)
    read_shards(folder)
    read_shards(folder, 'dev')
    assert not (folder / '.tokbeam').exists()


@pytest.mark.parametrize('workers', [2, 3])
def test_threads_share_the_shards_that_are_left(encode, through_engine, monkeypatch, workers):
    monkeypatch.setattr(encode_blocks, '_BUCKET_BYTES', 2 << 10)
    monkeypatch.setattr(merge_runs, '_LEAST_SHARE', 1)
    groups = []

    def counted_groups(*arguments):
        made = bucket_groups(*arguments)
        groups.append(len(made))
        return made

    monkeypatch.setattr(merge_runs, 'bucket_groups', counted_groups)
    assert files_of(encode('tsv', '--workers', workers)) == through_engine('tsv')
    left = len(groups) % workers
    assert len(groups) == 5 and {*groups[:-left]} == {1} and min(groups[-left:]) > 1


def test_it_is_the_default(encode, through_engine, monkeypatch):
    expected = through_engine('tsv')
    monkeypatch.setattr('pipelines.stages.encode.encode_blocks', None)
    assert files_of(encode('tsv')) == expected


@pytest.mark.parametrize(
    'options', [['--direct_runner_bundle_repeat=1'], ['--direct_runner_bundle_repeat=2']]
)
def test_bundles_that_run_more_than_once(encode, through_engine, options):
    assert files_of(encode('bad', '@buffer', '50KiB', '@item-size', '9KiB', *options)) == (
        through_engine('bad')
    )


@pytest.mark.parametrize('shards', [1, 300])
def test_text_build_with_shards_of_any_size(corpora, tmp_path, shards):
    for form in ('engine', 'files'):
        succeed(
            'build', '--text', corpora['text'], '--dev', corpora['text'], '--name', 'x',
            '--vocab-size', 1200, '--shards', shards, '@shuffle', form, '@buffer', '30KiB',
            '--output', tmp_path / form,
        )  # fmt: skip
    assert files_of(tmp_path / 'files') == files_of(tmp_path / 'engine')


def test_a_work_folder_elsewhere_is_swept_too(encode, through_engine, tmp_path):
    work = tmp_path / 'work'
    assert files_of(encode('tsv', '--work', work)) == through_engine('tsv')
    assert not work.exists()


def test_another_jobs_runs_in_the_same_work_folder_stay(encode, tmp_path):
    theirs = write(tmp_path / 'work' / 'shuffle-0123' / 'plan.json', b'{"output": "/elsewhere"}')
    encode('tsv', '--work', tmp_path / 'work')
    assert theirs.exists()


class TestMemory:
    def test_buffers_are_cut_down_to_what_there_is(self, encode, through_engine):
        folder = encode('tsv', '--memory', '8GiB', '@buffer', '900GiB', '@item-size', '10KiB')
        assert files_of(folder) == through_engine('tsv')

    def test_too_little_is_refused_in_a_sentence(self, inputs, vocabulary, tmp_path):
        sentence = refuse(
            'encode', *inputs['tsv'], '--vocab', vocabulary, *DATASET, '--output', tmp_path / 'out',
            '--memory', '30MiB',
        )  # fmt: skip
        assert '--memory' in sentence and 'MiB' in sentence
        assert not (tmp_path / 'out').exists()
