"""`--dev-share` and `--test-share`: splits cut off one corpus, with each of its rows in one of them."""

import unicodedata

import pytest
from dataset_files import files_of, lines_of, manifest_of, shards_and_vocabularies, texts_of
from generated_text import as_lines, as_tsv, kept_pairs, pairs_with_gaps
from jobs import refuse, succeed, write

PAIRS = pairs_with_gaps(900, 7)
SPLITS = ('train', 'dev', 'test')
SHARES = ['--dev-share', '10%', '--test-share', '5%']
OPTIONS = ['--name', 'n', '--vocab-size', 500, '--shards', 3]


@pytest.fixture(scope='module')
def tsv(tmp_path_factory):
    return write(tmp_path_factory.mktemp('corpus') / 'pairs.tsv', as_tsv(PAIRS))


@pytest.fixture(scope='module')
def cut(tsv, tmp_path_factory):
    """A corpus from which a dev and a test split are cut off."""
    folder = tmp_path_factory.mktemp('cut') / 'out'
    succeed('build', '--tsv', tsv, *OPTIONS, *SHARES, '--output', folder)
    return folder


def test_each_row_is_in_one_split_and_each_line_is_counted_once(cut):
    texts = {split: texts_of(cut, split) for split in SPLITS}
    assert sorted(sum(texts.values(), [])) == sorted(kept_pairs(PAIRS))
    assert sum(lines_of(cut, split)['lines'] for split in SPLITS) == len(PAIRS)
    assert 50 < len(texts['dev']) < 120 and 20 < len(texts['test']) < 70
    rows = [each['rows'] for each in manifest_of(cut)['files'] if '-train-' in each['name']]
    assert min(rows) > 0.7 * max(rows)


def test_what_has_no_text_or_cannot_be_used_is_counted_with_the_training_lines(tmp_path):
    text = write(tmp_path / 'text', as_lines([source for source, _ in PAIRS]) + b'\n\xff\n')
    succeed(
        *('build', '--text', text, *OPTIONS, *SHARES),
        *('--on-error', '0.2%', '--output', tmp_path / 'out'),
    )
    train, dev, test = (lines_of(tmp_path / 'out', split) for split in SPLITS)
    assert train['invalid_utf8'] == 1 and train['empty'] > 0
    assert dev['invalid_utf8'] == test['invalid_utf8'] == dev['empty'] == test['empty'] == 0
    assert train['lines'] + dev['lines'] + test['lines'] == len(PAIRS) + 2


def test_the_vocabulary_is_learned_from_the_training_rows_alone(cut, tmp_path):
    training = write(tmp_path / 'training.tsv', as_tsv(texts_of(cut, 'train')))
    vocab = tmp_path / 'vocab'
    for side in ('inputs', 'targets'):
        learning = ['--vocab-size', 500, '--side', side, '--output', vocab, '--overwrite']
        succeed('vocab', '--tsv', training, *learning)
        assert vocab.read_bytes() == (cut / f'vocab.n.500.subwords.{side}').read_bytes()


@pytest.mark.parametrize('running', [['@item-size', 512, '--workers', 2], ['@shuffle', 'engine']])
def test_the_cut_does_not_depend_on_who_does_the_work(tsv, cut, tmp_path, running):
    succeed('build', '--tsv', tsv, *OPTIONS, *SHARES, '--output', tmp_path / 'out', *running)
    assert files_of(tmp_path / 'out') == files_of(cut)


def test_another_seed_is_another_cut_and_a_test_share_leaves_dev_as_it_is(tsv, cut, tmp_path):
    for name, options in [('seed', [*SHARES, '--seed', 1]), ('dev', SHARES[:2])]:
        succeed('build', '--tsv', tsv, *OPTIONS, *options, '--output', tmp_path / name)
    dev = sorted(texts_of(cut, 'dev'))
    assert sorted(texts_of(tmp_path / 'seed', 'dev')) != dev
    assert sorted(texts_of(tmp_path / 'dev', 'dev')) == dev


def test_filters_that_only_convert_text_apply_to_what_is_cut_off_too(tsv, cut, tmp_path):
    clean = ['--clean', 'length:1:60,nfkc']
    succeed('build', '--tsv', tsv, *OPTIONS, *SHARES, *clean, '--output', tmp_path / 'out')
    assert lines_of(tmp_path / 'out')['filtered']['length'] > 0
    for split in ('dev', 'test'):
        converted = [
            tuple(unicodedata.normalize('NFKC', text) for text in pair)
            for pair in texts_of(cut, split)
        ]
        assert converted != texts_of(cut, split)
        assert any(len(text) > 60 for pair in converted for text in pair)
        assert texts_of(tmp_path / 'out', split) == converted


def test_a_job_file_has_them_too(tsv, cut, tmp_path):
    job = write(
        tmp_path / 'job.toml',
        (
            f'[[train]]\nformat = "tsv"\npaths = "{tsv}"\n[output]\nname = "n"\nshards = 3\n'
            'dev_share = "10%"\ntest_share = "5.0%"\n[vocabulary]\nvocab_size = 500\n'
        ).encode(),
    )
    succeed('build', job, '--output', tmp_path / 'out')
    assert shards_and_vocabularies(tmp_path / 'out') == shards_and_vocabularies(cut)
    assert 'already done' in succeed(
        'build', '--tsv', tsv, *OPTIONS, *SHARES, '--output', tmp_path / 'out'
    )


@pytest.mark.parametrize('key', ['dev_share = "1%"', 'leave_out = "list"'])
def test_text_is_not_counted_with_rows_that_the_job_file_takes_away(tsv, tmp_path, key):
    job = write(tmp_path / 'job.toml', f'[output]\n{key}\n'.encode())
    counts = tmp_path / 'counts'
    succeed('count', '--tsv', tsv, '--output', counts)
    for command, *more in (['count'], ['vocab', '--vocab-size', 500]):
        words = [command, job, *more, '--output', tmp_path / command]
        said = refuse(*words, '--tsv', tsv)
        assert f'{job}: {key.split()[0]} takes rows from the training corpus' in said
        succeed(*words, '--counts', counts)  # who counted them chose the rows


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (['--dev-share', '100%'], 'between 0% and 100%'),
        (['--dev-share', '0.5'], 'is not a share of rows'),
        (['--dev-share', '60%', '--test-share', '40%'], 'leave no rows to train on'),
        (['--dev-share', '1%', '--dev', 'TSV'], 'there are files for it; give one of the two'),
        (['--dev-share', '0.000001%'], 'give a larger --dev-share'),
        (['--dev-share', '1%', '--vocab-sample', 't2t:1kB', '--text'], 'is cut off by --dev-share'),
    ],
)
def test_what_cannot_be_cut_is_refused(tsv, tmp_path, options, message):
    options = [tsv if option == 'TSV' else option for option in options]
    options += [tsv] if options[-1] == '--text' else ['--tsv', tsv]
    assert message in refuse('build', *OPTIONS, *options, '--output', tmp_path / 'o')
