"""Named datasets are counted apart, and learned from with weights: in memory, on Beam, and by `build`.

With whole factors a vocabulary is that of files which are repeated so often, for every scheme and
learner. With fractions it is that of a table which a plain form scales.
"""

from fractions import Fraction
from pathlib import Path

import pytest
from dataset_files import manifest_of
from generated_text import chinese_lines, english_lines
from hypothesis import given
from hypothesis import strategies as st
from jobs import refuse, succeed, write

from pipelines.artifacts.counts import find_counts, read_counts
from pipelines.learning import search

SCHEMES = {
    'subword': ['--vocab-size', 300],
    'wordpiece': ['--vocab-size', 150, '--min-count-range', '2:40'],
    'bpe': ['--vocab-size', 400],
    'word': ['--vocab-size', 60],
}

words = st.dictionaries(
    st.text('ab字é', min_size=1, max_size=5), st.integers(1, 9), min_size=1, max_size=8
)


def vocabulary(folder: Path, scheme: str, *options: object) -> bytes:
    command = ['vocab', '--scheme', scheme, *SCHEMES[scheme], *options]
    succeed(*command, '--output', folder / 'learned', '--overwrite')
    return (folder / 'learned').read_bytes()


@pytest.mark.parametrize('scheme', SCHEMES)
@given(
    tables=st.lists(words, min_size=1, max_size=3), factors=st.lists(st.integers(1, 4), min_size=3)
)
def test_whole_factors_are_repeated_files(tmp_path_factory, scheme, tables, factors):
    folder, paths = tmp_path_factory.mktemp('tables'), []
    for number, table in enumerate(tables):
        paths.append(folder / f'{number}.txt')
        paths[-1].write_text(''.join(f'{word} {count}\n' for word, count in table.items()))
    weighted = [f'{path}={factor}x' for path, factor in zip(paths, factors)]
    repeated = [path for path, factor in zip(paths, factors) for _ in range(factor)]
    assert vocabulary(folder, scheme, '--counts', *weighted) == vocabulary(
        folder, scheme, '--counts', *repeated
    )


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    """A job file of two datasets, their texts, and the counts of each scheme."""
    folder = tmp_path_factory.mktemp('corpus')
    texts = {'en': english_lines(150, seed=3), 'zh': chinese_lines(60, seed=4)}
    tables = []
    for name, lines in texts.items():
        write(folder / f'{name}.txt', '\n'.join(lines).encode())
        tables.append(f'[[train]]\nname = "{name}"\nformat = "text"\npaths = "{name}.txt"\n')
    (folder / 'job.toml').write_text('\n'.join(tables))
    weighted = [f'{tables[0]}weight = 0.7\n', f'{tables[1]}weight = "0.3"\n']
    (folder / 'weighted.toml').write_text('\n'.join(weighted))
    schemes = [word for scheme in SCHEMES for word in ('--scheme', scheme)]
    succeed('count', folder / 'job.toml', *schemes, '--output', folder / 'counts')
    return folder


LEARNERS = {
    'subword': ['--learner', 'beam'],
    'wordpiece': ['--learner', 'beam'],
    'bpe': ['--learner', 'beam'],
    'word': [],
}


@pytest.mark.parametrize('scheme', LEARNERS)
def test_both_learners_take_weights(corpus, tmp_path, scheme):
    tables = [corpus / 'counts' / scheme / name for name in ('en', 'zh')]
    whole = [f'{tables[0]}=2x', f'{tables[1]}=3x']
    repeated = vocabulary(tmp_path, scheme, '--counts', *tables, *tables, tables[1])
    assert vocabulary(tmp_path, scheme, '--counts', *whole) == repeated
    assert vocabulary(tmp_path, scheme, '--counts', *whole, *LEARNERS[scheme]) == repeated
    weighted = [f'{tables[0]}=0.2', f'{tables[1]}=0.8']
    in_memory = vocabulary(tmp_path, scheme, '--counts', *weighted)
    assert in_memory != repeated
    assert vocabulary(tmp_path, scheme, '--counts', *weighted, *LEARNERS[scheme]) == in_memory
    scaled = tmp_path / 'scaled.txt'
    scaled.write_text(plain_mixture(tables, [Fraction(2, 10), Fraction(8, 10)]))
    assert vocabulary(tmp_path, scheme, '--counts', scaled) == in_memory


def plain_mixture(folders, weights) -> str:
    """Returns the lines of counts that the rule of weights gives."""
    tables = [dict(read_counts(find_counts([str(folder)])).items()) for folder in folders]
    sizes = [sum(len(word.encode()) * n for word, n in table.items()) for table in tables]
    factors = [weight / size for weight, size in zip(weights, sizes)]
    sums: dict[str, int] = {}
    for table, factor in zip(tables, factors, strict=True):
        for word, count in table.items():
            sums[word] = sums.get(word, 0) + round(count * factor / min(factors))
    # By counts: what is ordered by the user keeps its order where counts are equal.
    ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0].encode()))
    return ''.join(f'{word}\t{count}\n' for word, count in ranked)


def test_words_that_do_not_fit_in_memory_have_weights_too(corpus, tmp_path, monkeypatch):
    tables = [f'{corpus}/counts/bpe/en=0.2', f'{corpus}/counts/bpe/zh=0.8']
    options = ['--pre-tokenizer', 'gpt2', '--counts', *tables]
    expected = vocabulary(tmp_path, 'bpe', *options)
    monkeypatch.setattr(search, 'available_bytes', lambda: (350 << 20) + 10_000)
    succeed('vocab', '--scheme', 'bpe', *SCHEMES['bpe'], *options, '--output', tmp_path / 'rounds')
    assert (tmp_path / 'rounds').read_bytes() == expected


def test_each_dataset_is_counted_as_if_it_were_alone(corpus, tmp_path):
    for name in ('en', 'zh'):
        succeed('count', '--text', corpus / f'{name}.txt', '--output', tmp_path / name)
        for path in (tmp_path / name).glob('*.parquet'):
            assert (corpus / 'counts' / 'subword' / name / path.name).read_bytes() == (
                path.read_bytes()
            )
        manifest = manifest_of(corpus / 'counts' / 'subword' / name)
        assert [text['name'] for text in manifest['inputs']] == [f'{name}.txt']
        assert manifest['tokens'] == manifest_of(tmp_path / name)['tokens']
    # A sample depends on the rows of the dataset alone, too.
    sample = ['--vocab-sample', 'uniform:0.5', '--output']
    succeed('count', corpus / 'job.toml', *sample, tmp_path / 'sampled')
    succeed('count', '--text', corpus / 'zh.txt', *sample, tmp_path / 'alone')
    for path in (tmp_path / 'alone').glob('*.parquet'):
        assert (tmp_path / 'sampled' / 'zh' / path.name).read_bytes() == path.read_bytes()


def test_a_second_count_does_what_is_missing(corpus, tmp_path):
    said = succeed('count', corpus / 'job.toml', '--output', tmp_path / 'counts')
    assert 'train, en: 150 lines read' in said and 'train, zh: 60 lines read' in said
    assert 'tokens, in 2 tables' in said
    for path in (tmp_path / 'counts' / 'zh').iterdir():
        path.unlink()
    said = succeed('count', corpus / 'job.toml', '--output', tmp_path / 'counts')
    assert 'already done' in said and 'train, en' not in said and 'train, zh: 60 lines' in said


def test_merged_tables_are_the_count_of_all_text(corpus, tmp_path):
    texts = [corpus / f'{name}.txt' for name in ('en', 'zh')]
    succeed('count', '--text', *texts, '--output', tmp_path / 'all')
    tables = [corpus / 'counts' / 'subword' / name for name in ('en', 'zh')]
    succeed('count', '--counts', *tables, '--output', tmp_path / 'merged')
    for path in (tmp_path / 'all').glob('*.parquet'):
        assert (tmp_path / 'merged' / path.name).read_bytes() == path.read_bytes()
    sentence = refuse('count', '--counts', corpus / 'counts', '--output', tmp_path / 'no')
    assert 'give the folders of datasets in it' in sentence


def build(job, output, *options):
    succeed('build', job, '--name', 'x', '--shards', 1, '--output', output, *options)
    return manifest_of(output)


def test_a_build_weights_the_datasets_of_its_job_file(corpus, tmp_path):
    options = ['--scheme', 'bpe', *SCHEMES['bpe']]
    plain = build(corpus / 'job.toml', tmp_path / 'plain', *options)
    manifest = build(corpus / 'weighted.toml', tmp_path / 'weighted', *options)
    tables = [f'{corpus}/counts/bpe/en=0.7', f'{corpus}/counts/bpe/zh=0.3']
    learned = vocabulary(tmp_path, 'bpe', '--counts', *tables)
    [record] = manifest['vocabularies']
    assert (tmp_path / 'weighted' / record['name']).read_bytes() == learned
    assert manifest['options']['weights'] == {'en': '0.7', 'zh': '0.3'}
    assert 'weights' not in plain['options']
    assert manifest['root'] != plain['root']
    assert manifest['lines'] == plain['lines']
    # Weights that give the same vocabulary are in the root all the same.
    job = (corpus / 'weighted.toml').read_text().replace('0.7', '7').replace('0.3', '3')
    (corpus / 'other.toml').write_text(job)
    other = build(corpus / 'other.toml', tmp_path / 'other', *options)
    assert (tmp_path / 'other' / record['name']).read_bytes() == learned
    assert other['root'] != manifest['root']
    said = succeed(
        'build', corpus / 'weighted.toml', '--name', 'x', '--shards', 1,
        '--output', tmp_path / 'weighted', *options,
    )  # fmt: skip
    assert 'already done' in said


def test_what_cannot_be_typed_is_not_shown_as_an_option(corpus, tmp_path, capsys):
    options = ['--scheme', 'bpe', *SCHEMES['bpe'], '--name', 'x', '--output', tmp_path / 'out']
    succeed('build', corpus / 'weighted.toml', *options)
    assert 'with other weights: ' in refuse('build', corpus / 'job.toml', *options)
    said = refuse('build', '--text', corpus / 'en.txt', *options)
    assert 'other datasets: ' in said and 'other input files: ' in said and '--datasets' not in said
    for shown in (['card'], ['card', '--croissant'], ['report', '--no-corpus']):
        capsys.readouterr()
        succeed(*shown, tmp_path / 'out')
        page = capsys.readouterr().out.replace('\\', '')
        assert '--vocab-size' in page and 'weights' in page
        assert '--weights' not in page and '--datasets' not in page


def test_a_build_samples_each_dataset_as_if_it_were_alone(corpus, tmp_path):
    options = ['--scheme', 'bpe', *SCHEMES['bpe']]
    sample = ['--vocab-sample', 'uniform:0.5']
    command = ['count', corpus / 'job.toml', '--scheme', 'bpe', *sample]
    succeed(*command, '--output', tmp_path / 'counts')
    manifest = build(corpus / 'weighted.toml', tmp_path / 'built', *options, *sample)
    for name in ('en', 'zh'):
        for path in (tmp_path / 'counts' / name).glob('*.parquet'):
            assert (tmp_path / 'built' / 'counts' / name / path.name).read_bytes() == (
                path.read_bytes()
            )
    tables = [f'{tmp_path}/counts/en=0.7', f'{tmp_path}/counts/zh=0.3']
    [record] = manifest['vocabularies']
    assert (tmp_path / 'built' / record['name']).read_bytes() == vocabulary(
        tmp_path, 'bpe', '--counts', *tables
    )


def test_a_build_weights_each_side_of_pairs(tmp_path):
    tables = []
    for name, seed in (('a', 1), ('b', 2)):
        write(tmp_path / f'{name}.en', '\n'.join(english_lines(40, seed)).encode())
        write(tmp_path / f'{name}.zh', '\n'.join(chinese_lines(40, seed)).encode())
        tables.append(
            f'[[train]]\nname = "{name}"\nformat = "bitext"\n'
            f'paths = {{source = "{name}.en", target = "{name}.zh"}}\n'
        )
    (tmp_path / 'job.toml').write_text(''.join(tables))
    options = ['--scheme', 'bpe', '--vocab-size', 350, '--temperature', 2]
    manifest = build(tmp_path / 'job.toml', tmp_path / 'out', *options)
    assert manifest['options']['temperature'] == '2'
    for record, side in zip(manifest['vocabularies'], ('inputs', 'targets'), strict=True):
        counts = [tmp_path / 'out' / f'counts.{side}' / name for name in ('a', 'b')]
        succeed('vocab', '--counts', *counts, *options, '--output', tmp_path / side, '--overwrite')
        assert (tmp_path / side).read_bytes() == (tmp_path / 'out' / record['name']).read_bytes()


def test_a_build_goes_on_with_counts_of_a_dataset_that_alone_has_lost_too_many_lines(tmp_path):
    write(tmp_path / 'en.txt', b'the cat sat\n' * 190)
    write(tmp_path / 'zh.txt', 5 * '字字\n'.encode() + 5 * b'\xff\n')  # 5 of 200 are bad
    (tmp_path / 'job.toml').write_text(
        ''.join(
            f'[[train]]\nname = "{name}"\nformat = "text"\npaths = "{name}.txt"\nweight = {weight}\n'
            for name, weight in (('en', 0.7), ('zh', 0.3))
        )
    )
    command = ['build', tmp_path / 'job.toml', '--name', 'x', '--on-error', '3%', '--shards', 1]
    command += ['--output', tmp_path / 'out']
    assert 'cannot hold the alphabet' in refuse(*command, '--vocab-size', 5)
    assert (tmp_path / 'out' / 'counts' / 'zh' / 'tokbeam.json').exists()
    succeed(*command, '--vocab-size', 40)


def test_weights_are_recorded_with_the_vocabulary(corpus, tmp_path):
    tables = [f'{corpus}/counts/word/en=0.70', f'{corpus}/counts/word/zh=0.3']
    vocabulary(tmp_path, 'word', '--counts', *tables)
    options = manifest_of(tmp_path, 'learned.tokbeam.json')['options']
    assert options['weights'] == [['en', 32, '0.7'], ['zh', 32, '0.3']]
    command = ['vocab', '--scheme', 'word', *SCHEMES['word'], '--output', tmp_path / 'learned']
    assert 'already done' in succeed(*command, '--counts', *tables)
    tables[1] = tables[1].replace('0.3', '0.4')
    assert 'en 32 0.7, zh 32 0.4 now' in refuse(*command, '--counts', *tables)


def test_a_job_file_of_a_command_has_the_weights(corpus, tmp_path, capsys):
    tables = [f'{corpus}/counts/word/en=0.7', f'{corpus}/counts/word/zh=0.3']
    command = ['vocab', '--scheme', 'word', *SCHEMES['word'], '--counts', *tables]
    succeed(*command, '--output', tmp_path / 'learned', '--print-job')
    (tmp_path / 'vocab.toml').write_text(capsys.readouterr().out)
    succeed('vocab', tmp_path / 'vocab.toml', '--output', tmp_path / 'again')
    assert (tmp_path / 'again').read_bytes() == vocabulary(tmp_path, 'word', '--counts', *tables)


@pytest.mark.parametrize(
    ('job', 'options', 'message'),
    [
        ('{}weight = 0.7\n', [], 'weights are of several datasets'),
        ('{}', ['--temperature', 3], 'weights are of several datasets'),
        ('{}{}weight = 1\n', [], 'some datasets have a weight and others do not'),
        ('{}weight = 1\n{}weight = "2x"\n', [], 'do not go together'),
        ('{}weight = 1\n{}weight = 2\n', ['--temperature', 3], 'takes the place of weights'),
        ('{}weight = 1\n{}weight = 0\n', [], "'0' is not a weight above 0"),
        ('{}{}', ['--scheme', 'byte', '--temperature', 3], 'byte learns nothing'),
    ],
)
def test_weights_that_do_not_go_together_are_refused(tmp_path, job, options, message):
    write(tmp_path / 'a.txt', b'a text\n')
    tables = [
        f'[[train]]\nname = "{name}"\nformat = "text"\npaths = "a.txt"\n' for name in ('a', 'b')
    ]
    (tmp_path / 'job.toml').write_text(job.format(*tables))
    size = [] if 'byte' in options else ['--vocab-size', 300]
    command = ['build', tmp_path / 'job.toml', '--name', 'x', *size, *options]
    assert message in refuse(*command, '--output', tmp_path / 'out')


def test_weights_of_text_and_of_other_splits_are_refused(corpus, tmp_path):
    command = ['vocab', corpus / 'weighted.toml', '--vocab-size', 300, '--output', tmp_path / 'v']
    assert 'count the text, and give --counts' in refuse(*command)
    job = (corpus / 'job.toml').read_text()
    (corpus / 'dev.toml').write_text(
        job + '[[dev]]\nformat = "text"\npaths = "en.txt"\nweight = 1\n'
    )
    command = ['build', corpus / 'dev.toml', '--name', 'x', '--output', tmp_path / 'out']
    assert 'a dataset of dev has no weight' in refuse(*command, '--vocab-size', 300)


CORPORA = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora'


@pytest.mark.corpora
@pytest.mark.parametrize('scheme', SCHEMES)
def test_whole_factors_on_the_corpora(tmp_path, scheme):
    tables = []
    for name in ('docs.en.txt.gz', 'poetry.zh.txt.gz'):
        tables.append(tmp_path / name)
        succeed('count', '--scheme', scheme, '--text', CORPORA / name, '--output', tables[-1])
    size = ['--vocab-size', 16384]  # subword needs an entry for each of 14,341 characters
    command = ['vocab', '--scheme', scheme, *size]
    whole = ['--counts', f'{tables[0]}=2x', f'{tables[1]}=3x']
    succeed(*command, '--counts', *tables, *tables, tables[1], '--output', tmp_path / 'repeated')
    for learner in ([], LEARNERS[scheme]):
        succeed(*command, *whole, *learner, '--output', tmp_path / 'whole', '--overwrite')
        assert (tmp_path / 'whole').read_bytes() == (tmp_path / 'repeated').read_bytes()
