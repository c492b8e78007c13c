"""`--vocab-sample`: vocabularies of a sample, whoever takes it, and what is told of that."""

import collections
import gzip
import json
import tarfile

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from dataset_files import files_of, manifest_of, read_shards, shards_and_vocabularies
from jobs import refuse, succeed, write

from pipelines.transforms.count_tokens import TABLES, CountTokens, CountTokensByElement
from pipelines.transforms.read import ReadBlocks
from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.declarations import PlainText
from tokcore.corpus.formats import plan_items
from tokcore.counts.sampling import LineSample, SampledLines, UniformSample, number_items
from tokcore.text.t2t import tokenize

pytestmark = pytest.mark.slow

SAMPLES = ['t2t:2kB', 'uniform:0.3']
DATASET = ['--name', 'small', '--shards', 3, '--vocab-size', 900]


def pairs_of(small):
    return ['--source', small.source, '--target', small.target]


@pytest.fixture(scope='module', params=SAMPLES)
def sample(request):
    return request.param


@pytest.fixture(scope='module')
def sampled(small, sample, tmp_path_factory):
    """A dataset whose vocabularies are of a sample."""
    folder = tmp_path_factory.mktemp('sampled') / 'out'
    succeed('build', *pairs_of(small), *DATASET, '--vocab-sample', sample, '--output', folder)
    return folder


@pytest.fixture(scope='module')
def whole(small, tmp_path_factory):
    """The same of all lines."""
    folder = tmp_path_factory.mktemp('whole') / 'out'
    succeed('build', *pairs_of(small), *DATASET, '--output', folder)
    return folder


def count_pairs(small, output, *options):
    return succeed('count', *pairs_of(small), *options, '--output', output)


def test_all_rows_are_encoded_and_the_sample_is_counted(sampled, whole, sample):
    assert (
        manifest_of(sampled)['lines'][0]['examples'] == manifest_of(whole)['lines'][0]['examples']
    )
    assert sum(map(len, read_shards(sampled))) == sum(map(len, read_shards(whole)))
    for side in ('inputs', 'targets'):
        counted, every = (manifest_of(each / f'counts.{side}') for each in (sampled, whole))
        assert 0 < counted['tokens'] < every['tokens'] * 0.8
        assert counted['inputs'] == every['inputs']
        [lines] = counted['lines']
        assert lines['not_sampled'] > 0
        parts = {name for name in lines if name not in ('split', 'lines')}
        assert lines['lines'] == sum(lines[name] for name in parts) == 300


def test_the_manifests_have_how_much_was_taken(sampled, whole, sample):
    told = {each['side']: each for each in manifest_of(sampled)['sample']}
    assert set(told) == {'inputs', 'targets'}
    how = {'t2t:2kB': 't2t:2000', 'uniform:0.3': 'uniform:0.3'}[sample]
    for side, each in told.items():
        assert manifest_of(sampled / f'counts.{side}')['sample'] == [each]
        assert each['how'] == how
        assert 0 < each['taken'] < each['lines'] <= 300
        assert each['fraction'] == round(each['taken'] / each['lines'], 6)
    assert manifest_of(sampled)['options']['vocab_sample'] == how
    for folder in (whole, whole / 'counts.inputs', whole / 'counts.targets'):
        assert 'sample' not in (folder / 'tokbeam.json').read_text()


def test_a_line_of_each_job_tells_what_was_left_out(small, sample, tmp_path):
    count = count_pairs(small, tmp_path / 'counts', '--vocab-sample', sample)
    vocab = succeed(
        'vocab', *pairs_of(small), '--vocab-size', 900, '--vocab-sample', sample,
        '--output', tmp_path / 'vocab',
    )  # fmt: skip
    build = succeed(
        'build', *pairs_of(small), *DATASET, '--shared-vocab', '--vocab-sample', sample,
        '--output', tmp_path / 'out',
    )  # fmt: skip
    told = {
        line
        for each in (count, vocab, build)
        for line in each.splitlines()
        if '(--vocab-sample ' in line
    }
    assert len(told) == 1
    parts = ' and '.join(
        f'{each["taken"]} of {each["lines"]} lines'
        + (f' of {each["side"]}' if sample.startswith('t2t') else '')
        for each in manifest_of(tmp_path / 'counts')['sample']
    )
    assert f'the vocabulary was counted from {parts} (--vocab-sample ' in told.pop()
    assert (
        manifest_of(tmp_path, 'vocab.tokbeam.json')['sample']
        == (manifest_of(tmp_path / 'counts')['sample'])
    )


@pytest.mark.parametrize('item_size, workers', [(64, 2), ('12MiB', 1)])
def test_neither_items_nor_workers_change_a_byte(small, sampled, build, sample, item_size, workers):
    folder = build(
        *pairs_of(small), '--vocab-sample', sample, '@item-size', item_size, '--workers', workers
    )
    assert files_of(folder) == files_of(sampled)


def test_nor_does_it_matter_how_files_are_stored(small, sampled, build, sample, tmp_path):
    packed = write(tmp_path / f'{small.source.name}.gz', small.source.read_bytes())
    archive = tmp_path / 'texts.tgz'
    with tarfile.open(archive, 'w:gz') as tar:
        tar.add(small.target, small.target.name)
    options = ['--source', packed, '--target', f'{archive}!{small.target.name}']
    folder = build(*options, '@item-size', '1KiB', '--vocab-sample', sample)
    assert shards_and_vocabularies(folder) == shards_and_vocabularies(sampled)
    assert manifest_of(folder)['sample'] == manifest_of(sampled)['sample']


def test_a_job_file_asks_for_it(small, sampled, sample, tmp_path, capsys):
    job = f"""
[[train]]
format = "bitext"
paths = {{ source = {json.dumps(str(small.source))}, target = {json.dumps(str(small.target))} }}

[vocabulary]
vocab_size = 900
vocab_sample = "{sample}"

[output]
name = "small"
shards = 3
output = "out"
"""
    path = write(tmp_path / 'job.toml', job.encode())
    succeed('build', path)
    assert files_of(tmp_path / 'out') == files_of(sampled)
    capsys.readouterr()
    succeed('build', path, '--print-job')
    printed = capsys.readouterr().out
    how = manifest_of(sampled)['options']['vocab_sample']
    assert f'vocab_sample = "{how}"' in printed
    # A job file's vocabulary section is that of all commands.
    for command in ('count', 'vocab'):
        succeed(command, path, '--dry-run', '--output', tmp_path / command)


def test_a_dry_run_tells_the_sample(small, tmp_path, capsys):
    asked = ['build', *pairs_of(small), *DATASET, '--dry-run', '--output', tmp_path / 'out']
    for sample, said in (
        ('t2t:100MB', 'every n-th line of each training file until they have 100,000,000 char'),
        ('uniform:0.25', '0.25 of the training rows'),
    ):
        capsys.readouterr()
        succeed(*asked, '--vocab-sample', sample)
        told = capsys.readouterr().out
        assert 'vocabulary: counted from a sample, ' in told and said in told
    capsys.readouterr()
    succeed(*asked)
    assert 'counted from a sample' not in capsys.readouterr().out
    assert not (tmp_path / 'out').exists()


def test_another_sample_is_another_result(small, sampled, sample, tmp_path):
    asked = ['build', *pairs_of(small), *DATASET, '--output', sampled]
    assert 'already done' in succeed(*asked, '--vocab-sample', sample)
    for other in (['--vocab-sample', 't2t:8kB'], ['--vocab-sample', 'uniform:0.2'], []):
        assert '--vocab-sample' in refuse(*asked, *other)
    counts = tmp_path / 'counts'
    count_pairs(small, counts, '--vocab-sample', sample)
    assert 'already done' in count_pairs(small, counts, '--vocab-sample', sample)
    assert '--vocab-sample' in refuse('count', *pairs_of(small), '--output', counts)


def test_another_shuffle_is_the_same_sample(small, sampled, build, sample):
    folder = build(*pairs_of(small), '--vocab-sample', sample, '--seed', 7)
    for side in ('inputs', 'targets'):
        assert files_of(folder / f'counts.{side}') == files_of(sampled / f'counts.{side}')
    assert shards_and_vocabularies(folder) != shards_and_vocabularies(sampled)


def test_a_uniform_sample_of_any_format_is_about_the_share_asked_for(small, tmp_path):
    lines = [json.dumps({'en': source, 'zh': target}) for source, target in small.pairs]
    path = tmp_path / 'pairs.jsonl.gz'
    path.write_bytes(gzip.compress('\n'.join(lines).encode(), mtime=0))
    for inputs in (['--tsv', small.tsv], ['--jsonl', path, '--fields', 'en,zh']):
        output = tmp_path / inputs[0]
        succeed('count', *inputs, '--vocab-sample', 'uniform:0.5', '--output', output)
        [told] = manifest_of(output)['sample']
        assert 0.4 < told['fraction'] < 0.6
        assert told['side'] == 'both'


def test_several_datasets_are_sampled_file_by_file(small, tmp_path):
    first, second = (write(tmp_path / name, small.source.read_bytes()) for name in ('a', 'b'))
    job = f"""
[[train]]
name = "one"
format = "text"
paths = {json.dumps(str(first))}

[[train]]
name = "two"
format = "text"
paths = {json.dumps(str(second))}
"""
    path = write(tmp_path / 'job.toml', job.encode())
    succeed('count', path, '--vocab-sample', 't2t:4kB', '--output', tmp_path / 'two')
    succeed('count', '--text', first, '--vocab-sample', 't2t:4kB', '--output', tmp_path / 'one')
    once = manifest_of(tmp_path / 'one')
    for name in ('one', 'two'):
        dataset = manifest_of(tmp_path / 'two' / name)
        assert dataset['tokens'] == once['tokens']
        assert dataset['sample'][0]['taken'] == once['sample'][0]['taken']
        assert dataset['datasets'][0]['not_sampled'] == once['lines'][0]['not_sampled']


def test_lines_are_sampled_before_filters_and_rows_after_them(small, sample, tmp_path):
    """As the original samples files that it cleans later."""
    asked = ['--vocab-sample', sample]
    count_pairs(small, tmp_path / 'all', *asked)
    count_pairs(small, tmp_path / 'cleaned', *asked, '--clean', 'length:30:1000')
    every, cleaned = (manifest_of(tmp_path / name) for name in ('all', 'cleaned'))
    [lines] = cleaned['lines']
    assert lines['filtered']['length'] > 50
    assert (
        lines['lines']
        == 300
        == (lines['examples'] + lines['empty'] + lines['not_sampled'] + lines['filtered']['length'])
    )
    if sample.startswith('t2t'):
        assert cleaned['tokens'] == every['tokens']
        assert cleaned['sample'] == every['sample']
    else:
        assert cleaned['tokens'] < every['tokens']
        assert cleaned['sample'][0]['lines'] == lines['examples'] + lines['not_sampled']


def test_counts_of_a_sample_are_learned_from_as_others(small, sample, tmp_path):
    count_pairs(small, tmp_path / 'counts', '--vocab-sample', sample)
    succeed(
        'vocab', '--counts', tmp_path / 'counts', '--vocab-size', 900, '--output', tmp_path / 'two'
    )
    succeed(
        'vocab', *pairs_of(small), '--vocab-sample', sample, '--vocab-size', 900,
        '--output', tmp_path / 'one',
    )  # fmt: skip
    assert (tmp_path / 'one').read_bytes() == (tmp_path / 'two').read_bytes()


@pytest.mark.parametrize(
    'taken',
    [LineSample({(0, 0): SampledLines(3, 40)}), UniformSample(1 << 62)],
    ids=['lines', 'rows'],
)
def test_packed_counts_of_a_sample_are_the_textbook_counts(small, taken):
    path = small.source
    file = CorpusFile(str(path), path.name, path.stat().st_size, compressed=False)
    split = Split('train', PlainText(), ((file,),))
    items = number_items(plan_items(split), {0: [0]})
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        blocks = pipeline | ReadBlocks(items, 1 << 20)
        packed = blocks | CountTokens(groups=((0,),), splits=(split,), workers=2, sample=taken)
        plain = blocks | CountTokensByElement((0,), (split,), sample=taken)
        if isinstance(taken, LineSample):
            lines = path.read_text().split('\n')[2:120:3]
            expected = collections.Counter(
                each for line in lines for each in tokenize(line.strip())
            )
            assert_that(plain, equal_to([*expected.items()]), 'plain')
        rows = packed[TABLES] | beam.FlatMap(lambda element: element[1].items())
        both = (rows, plain) | beam.Flatten() | beam.combiners.Count.PerElement()
        assert_that(both | beam.Values() | beam.Distinct(), equal_to([2]), 'packed')
