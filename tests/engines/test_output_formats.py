"""Shards as text and as Parquet: the rows of the TFRecords, in their order, under the same invariants."""

import numpy as np
import pytest
from dataset_files import manifest_of, read_shards
from jobs import refuse, succeed

from tokcore import open_dataset
from tokcore.errors import InputError

KINDS = {
    'subword': ['--vocab-size', 900],
    'wordpiece': ['--scheme', 'wordpiece', '--vocab-size', 700, '--min-count-range', '2:10000'],
    'bpe': ['--scheme', 'bpe', '--vocab-size', 500],
    'codes': ['--scheme', 'bpe', '--preset', 'subword-nmt', '--merges', 100],
    'word': ['--scheme', 'word', '--vocab-size', 300],
    'byte': ['--scheme', 'byte'],
}
QUICK = {'subword', 'codes', 'byte'}


@pytest.fixture(
    scope='module',
    params=[pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in KINDS],
)
def kind(request):
    return request.param


@pytest.fixture(scope='module')
def building(small, kind):
    pairs = ['--source', small.source, '--target', small.target, '--name', 'small', '--shards', 3]
    return ['build', *pairs, '--shared-vocab', '--template', '$A', *KINDS[kind]]


@pytest.fixture(scope='module')
def built(building, tmp_path_factory):
    """The same dataset in each of the formats."""
    folder = tmp_path_factory.mktemp('built')
    for output_format in ('tfrecord', 'text', 'parquet'):
        succeed(*building, '--output-format', output_format, '--output', folder / output_format)
    return folder


def lines_of(folder, feature):
    return [
        path.read_text().split('\n')[:-1]
        for path in sorted(folder.glob(f'small-train-*.{feature}'))
    ]


def test_text_is_the_rows_of_the_records_as_pieces(kind, built, filter_lines):
    records = read_shards(built / 'tfrecord')
    vocabulary = [*built.joinpath('text').glob('vocab.*[!b]')]
    given = ['--vocab', min(vocabulary)] if vocabulary else ['--scheme', 'byte']
    for feature in ('inputs', 'targets'):
        shards = lines_of(built / 'text', feature)
        assert [len(each) for each in shards] == [len(each) for each in records]
        rows = [row[feature] for shard in records for row in shard]
        lines = [line for shard in shards for line in shard]
        assert [len(line.split(' ')) for line in lines] == [max(1, len(row)) for row in rows]
        ids = ''.join(' '.join(map(str, row)) + '\n' for row in rows).encode()
        text = ''.join(f'{line}\n' for line in lines).encode()
        from_ids = filter_lines(ids, 'detokenize', *given)
        assert filter_lines(text, 'detokenize', '--pieces', *given) == from_ids


def test_what_is_read_of_parquet_is_what_is_read_of_records(kind, built):
    records, parquet = (open_dataset(built / each) for each in ('tfrecord', 'parquet'))
    assert parquet.splits == records.splits
    asked = {'tokens_per_batch': 500, 'pad': 0, 'window': 40}
    for one, other in zip(
        records.batches('train', **asked), parquet.batches('train', **asked), strict=True
    ):
        assert all(np.array_equal(one[name], other[name]) for name in one)
    with pytest.raises(InputError, match='holds its rows as text'):
        open_dataset(built / 'text')


def test_counts_are_conserved_and_another_format_is_refused(building, built):
    manifest = manifest_of(built / 'text')
    rows = {'inputs': 0, 'targets': 0}
    for each in manifest['files']:
        feature = each['name'].rpartition('.')[2]
        rows[feature] += each['rows']
        assert (built / 'text' / each['name']).read_bytes().count(b'\n') == each['rows']
    [lines] = manifest['lines']
    assert set(rows.values()) == {lines['examples']}
    assert 'already done' in succeed(
        *building, '--output-format', 'text', '--output', built / 'text'
    )
    said = refuse(*building, '--output-format', 'parquet', '--output', built / 'text')
    assert 'another --output-format: text there, parquet now' in said


def test_text_has_nothing_around_lines_unless_it_is_asked_for(small, tmp_path):
    text = ['--text', small.source, '--name', 'small', '--shards', 1, '--vocab-size', 900]
    for name, more in (('plain', []), ('ended', ['--template', '$A <EOS>'])):
        asked = ['--output-format', 'text', '--output', tmp_path / name]
        succeed('build', *text, *asked, *more)
    [plain], [ended] = (lines_of(tmp_path / name, 'targets') for name in ('plain', 'ended'))
    assert [f'{line} <EOS>_' for line in plain] == ended
