"""Job files: several datasets in one split, each with its format, prefixes and limit."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import files_of, manifest_of, read_shards
from jobs import refuse, run, succeed, write

OUTPUT = """
[vocabulary]
vocab_size = 900

[output]
name = "small"
output = "out"
shards = 3
"""

PARTS = """
[[train]]
name = "columns"
format = "tsv"
paths = "parts/first.tsv"
target_prefix = "<en> "

[[train]]
name = "objects"
format = "jsonl"
fields = ["pair.en", "pair.zh"]
paths = ["parts/second-*.jsonl.gz"]
max_examples = 50

[[train]]
name = "rows"
format = "parquet"
fields = ["en", "zh"]
paths = "parts/third.parquet"
source_prefix = "rows: "

[[train]]
name = "files"
format = "bitext"
paths = { source = "parts/fourth.en", target = "parts/fourth.zh" }

[[dev]]
format = "tsv"
paths = "parts/first.tsv"
"""


@pytest.fixture(scope='module')
def folder(small, tmp_path_factory):
    """Four parts of the small corpus, each in a format of its own, and a job of all of them."""
    folder = tmp_path_factory.mktemp('job')
    parts = [small.pairs[start : start + 75] for start in range(0, 300, 75)]
    columns = ''.join(f'{source}\t{target}\n' for source, target in parts[0])
    write(folder / 'parts' / 'first.tsv', columns.encode() + b'one column\n')
    for number, half in enumerate((parts[1][:40], parts[1][40:])):
        lines = [json.dumps({'pair': {'en': source, 'zh': target}}) for source, target in half]
        text = '\n'.join([*lines, '{"pair": {}}', '']).encode()
        write(folder / 'parts' / f'second-{number}.jsonl.gz', text)
    rows = pa.table({'en': [pair[0] for pair in parts[2]], 'zh': [pair[1] for pair in parts[2]]})
    pq.write_table(rows, folder / 'parts' / 'third.parquet', row_group_size=20)
    for side, ending in enumerate(('en', 'zh')):
        text = ''.join(f'{pair[side]}\n' for pair in parts[3])
        write(folder / 'parts' / f'fourth.{ending}', text.encode())
    write(folder / 'job.toml', (PARTS + OUTPUT).encode())
    return folder


SKIP = ['--on-error', 'skip']


def build(folder, output, *more):
    succeed('build', folder / 'job.toml', *SKIP, '--output', output, *more)
    return output


@pytest.fixture(scope='module')
def built(folder, tmp_path_factory):
    return build(folder, tmp_path_factory.mktemp('built') / 'out', '--workers', 1)


def has_text(pair):
    return all(side.strip() for side in pair)


def test_the_numbers_of_each_dataset_add_up(built, small):
    manifest = manifest_of(built)
    tallies = {each['dataset']: each for each in manifest['datasets'] if each['split'] == 'train'}
    assert list(tallies) == ['columns', 'objects', 'rows', 'files']
    train, tallies['dev'] = manifest['lines']
    for name in ('lines', 'examples', 'empty', 'beyond_max_examples'):
        assert train[name] == sum(tallies[each].get(name, 0) for each in tallies if each != 'dev')
    told = {'split', 'dataset', 'lines', 'ids', 'unknown', 'text_bytes'}
    for each in tallies.values():
        parts = {name: value for name, value in each.items() if name not in told}
        assert sum(parts.values()) == each['lines'], each
    whole = [sum(map(has_text, small.pairs[at : at + 75])) for at in range(0, 300, 75)]
    found = {name: each['examples'] for name, each in tallies.items()}
    assert found == {
        'columns': whole[0], 'objects': 50, 'rows': whole[2], 'files': whole[3], 'dev': whole[0],
    }  # fmt: skip
    objects = tallies['objects']
    assert objects['beyond_max_examples'] > 0
    assert objects['lines'] == 77
    assert tallies['columns']['missing_column'] == 1


def test_the_shards_hold_what_was_counted(built):
    for split in ('train', 'dev'):
        counted = sum(
            each['examples'] for each in manifest_of(built)['lines'] if each['split'] == split
        )
        assert sum(map(len, read_shards(built, split))) == counted


def test_what_was_left_out_has_a_file_for_each_dataset_and_reason(built):
    names = sorted(path.name for path in (built / 'rejected').iterdir())
    assert names == [
        'dev.missing_column.jsonl',
        'train.columns.missing_column.jsonl',
        'train.objects.missing_field.jsonl',
    ]


def test_prefixes_are_those_of_the_dataset(built, filter_lines):
    """The texts of the rows are read back from the ids."""
    pairs = {}
    for side, feature in (('source', 'inputs'), ('target', 'targets')):
        vocabulary = built / f'vocab.small.900.subwords.{feature}'
        ids = '\n'.join(
            ' '.join(map(str, row[feature])) for shard in read_shards(built) for row in shard
        )
        lines = filter_lines(ids.encode(), 'detokenize', '--vocab', vocabulary)
        pairs[side] = lines.decode().splitlines()
    assert sum(line.startswith('rows: ') for line in pairs['source']) == counted(built, 'rows')
    assert sum(line.startswith('<en> ') for line in pairs['target']) == counted(built, 'columns')


def counted(folder, dataset):
    return next(
        each['examples'] for each in manifest_of(folder)['datasets'] if each['dataset'] == dataset
    )


@pytest.mark.parametrize(
    'how',
    [('--workers', 2, '@item-size', 100), ('@shuffle', 'engine', '@item-size', '1KiB')],
    ids=str,
)
def test_bytes_do_not_depend_on_how_it_is_run(folder, built, tmp_path, how):
    assert files_of(build(folder, tmp_path / 'out', *how)) == files_of(built)


def test_the_printed_job_gives_the_same_bytes(small, folder, tmp_path, capsys):
    """Of a command line, and of a job file."""
    arguments = ['--tsv', small.tsv, '--columns', '1,0', '--name', 'x', '--vocab-size', 900]
    whole = ['--shards', 2, '--output', tmp_path / 'out']
    succeed('build', *arguments, *whole)
    capsys.readouterr()
    succeed('build', *arguments, *whole, '--print-job')
    write(tmp_path / 'printed.toml', capsys.readouterr().out.encode())
    succeed('build', tmp_path / 'printed.toml', '--output', tmp_path / 'again')
    assert files_of(tmp_path / 'again') == files_of(tmp_path / 'out')

    succeed('build', folder / 'job.toml', *SKIP, '--output', tmp_path / 'third')
    capsys.readouterr()
    succeed('build', folder / 'job.toml', *SKIP, '--output', tmp_path / 'third', '--print-job')
    write(tmp_path / 'elsewhere' / 'job.toml', capsys.readouterr().out.encode())
    succeed('build', tmp_path / 'elsewhere' / 'job.toml', '--output', tmp_path / 'fourth')
    assert files_of(tmp_path / 'fourth') == files_of(tmp_path / 'third')


def test_options_of_the_command_line_come_first(folder, tmp_path):
    succeed(
        'build', folder / 'job.toml', *SKIP, '--shards', 5, '--name', 'other', '--output', tmp_path / 'x'
    )  # fmt: skip
    assert len(list((tmp_path / 'x').glob('other-train-*-of-00005'))) == 5


def test_paths_are_relative_to_the_file(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = succeed('build', folder / 'job.toml', *SKIP)
    assert str(folder / 'out') in said
    assert (folder / 'out' / 'tokbeam.json').exists()


def test_other_commands_take_what_is_theirs(folder, built, tmp_path):
    succeed('count', folder / 'job.toml', *SKIP, '--side', 'both', '--output', tmp_path / 'counts')
    made = {path.name.removesuffix('.rejected') for path in (tmp_path / 'counts').iterdir()}
    assert made == {'columns', 'objects', 'rows', 'files'}
    for name in made:
        [tally] = manifest_of(tmp_path / 'counts' / name)['datasets']
        assert (tally['dataset'], tally['examples']) == (name, counted(built, name))


def test_a_dry_run_says_what_would_be_read_and_written(folder, tmp_path, capsys):
    succeed('build', folder / 'job.toml', *SKIP, '--output', tmp_path / 'out', '--dry-run')
    said = capsys.readouterr().out
    assert not (tmp_path / 'out').exists()
    for name in ('first.tsv', 'second-0.jsonl.gz', 'third.parquet', 'fourth.en', str(tmp_path)):
        assert name in said
    write(tmp_path / 'broken.tsv', b'a\tb\n\xff\tb\n')
    refused = run(
        'build', '--tsv', tmp_path / 'broken.tsv', '--name', 'x', '--vocab-size', 900,
        '--output', tmp_path / 'out', '--dry-run',
    )  # fmt: skip
    assert refused.status == 2
    assert 'invalid UTF-8 at byte 4' in refused.said.splitlines()[-1]


TEXT = '[[train]]\nformat = "text"\npaths = "a"\n'
LINES = '[[train]]\nformat = "jsonl"\npaths = "a.jsonl"\n'
WRONG = {
    'unknown key of a dataset': (f'{LINES}fields = "a,b"\nfeild = 3', 'line 5', 'mean fields?'),
    'key of another format': (f'{LINES}columns = [0, 1]', 'line 4', 'goes with the format tsv'),
    'number out of range': (f'{LINES}max_examples = 0', 'line 4', 'max_examples'),
    'wrong type': (f'{LINES}max_examples = [true]', 'line 4', 'max_examples'),
    'unknown format': ('[[train]]\nformat = "csv"\npaths = "a"', 'line 2', 'format'),
    'no TOML': ('[[train]\n', 'line 1', 'is not TOML'),
    'no names': (TEXT * 2, 'line 1', 'a name is missing'),
    'prefix of a side that is not there': (
        f'{TEXT}source_prefix = "w: "',
        'line 4',
        'only targets are text',
    ),
    'prefix of a label': (
        f'{LINES}label = "kind"\ntarget_prefix = "w: "',
        'line 5',
        'only inputs are text',
    ),
    'names twice': (f'{TEXT}name = "a"\n{TEXT}name = "a"', 'line 8', 'the name of two datasets'),
}


@pytest.mark.parametrize('name', WRONG)
def test_a_wrong_job_is_refused_with_file_line_and_what_helps(tmp_path, name):
    text, line, hint = WRONG[name]
    said = refuse('build', write(tmp_path / 'job.toml', f'{text}\n{OUTPUT}'.encode()))
    assert 'job.toml' in said and line in said and hint in said


def test_a_limit_takes_the_first_rows(small, tmp_path):
    """The rows that a file of the first lines would give."""
    texts = [source for source, _ in small.pairs if source.strip()]
    lines = ''.join(f'{text}\n' for text in texts)
    write(tmp_path / 'all.txt', lines.encode())
    write(tmp_path / 'first.txt', ''.join(f'{text}\n' for text in texts[:70]).encode())
    examples = {}
    for name, more in (('all', 'max_examples = 70'), ('first', '')):
        job = f'[[train]]\nformat = "text"\npaths = "{name}.txt"\n{more}\n{OUTPUT}'
        write(tmp_path / 'job.toml', job.encode())
        succeed('build', tmp_path / 'job.toml', '--vocab-size', 700, '--output', tmp_path / name)
        examples[name] = read_shards(tmp_path / name)
    assert examples['all'] == examples['first']
