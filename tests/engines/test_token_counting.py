"""Counts: the packed form equals the textbook one, and every form of COUNTS means the same."""

import collections
import random
import re
from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from dataset_files import manifest_of
from generated_text import as_tsv, kept_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs import succeed, write

from pipelines.transforms.count_tokens import TABLES, CountTokens, CountTokensByElement
from pipelines.transforms.read import ReadBlocks
from pipelines.transforms.stats import STATS, WriteStats, read_stats
from tokcore.corpus.corpus import Block, BlockText, CorpusFile, Split
from tokcore.corpus.declarations import Tsv
from tokcore.corpus.formats import plan_items
from tokcore.corpus.stats import LineTally, RangeChecksum, add_tallies
from tokcore.counts.tables import COUNT_PARTITIONS

# Letters, digits, marks, spaces that are stripped and such that are not, and characters that
# take part in no rule; a TAB and line ends come from the lines' joining.
CHARACTERS = st.one_of(
    st.sampled_from('aab zé中文７ ,.-_\\\'"\r\x85\u3000\ufeff\u0301ि😀'),
    st.characters(exclude_categories=['Cs'], exclude_characters='\n\t'),
)
SIDES = st.text(CHARACTERS, max_size=12)
PAIRS = st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=40)


@given(data=st.binary(max_size=2000), target=st.none() | st.binary(max_size=50))
def test_a_block_crosses_whole_and_its_size_is_told_without_packing_it(data, target):
    texts = (BlockText(1 << 40, data),)
    if target is not None:
        texts += (BlockText(7, target),)
    block = Block('train', Tsv(), 3, texts)
    coder = beam.coders.registry.get_coder(Block)
    assert coder.decode(coder.encode(block)) == block
    assert coder.get_impl().estimate_size(block) == len(data) + len(target or b'')


@dataclass(frozen=True)
class Counted:
    token: str
    count: int
    group: int = 0


def _rows_of_table(element):
    key, table = element
    for token, count in table.items():
        yield Counted(token, count, key // COUNT_PARTITIONS)


def plain_tokens(text: str) -> list[str]:
    """Tensor2Tensor's tokens, restated with a regular expression."""
    runs = re.findall(r'[^\W_]+|[\W_]+', text)
    return [run for place, run in enumerate(runs) if run != ' ' or place in (0, len(runs) - 1)]


@settings(max_examples=5)
@given(pairs=PAIRS, item_bytes=st.sampled_from([16, 64, 1024]))
def test_packed_counts_are_the_textbook_counts(tmp_path_factory, pairs, item_bytes):
    folder = tmp_path_factory.mktemp('counts')
    path = write(folder / 'pairs.tsv', as_tsv(pairs))
    file = CorpusFile(str(path), path.name, path.stat().st_size, compressed=False)
    split = Split('train', Tsv((0, 1)), ((file,),))
    groups = ((0,), (1,), (0, 1))
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        items = plan_items(split, (), item_bytes)
        blocks = pipeline | ReadBlocks(items, item_bytes)
        packed = blocks | CountTokens(groups=groups, splits=(split,), workers=2)
        (
            packed[TABLES]
            | beam.FlatMap(_rows_of_table)
            | 'ReportPacked' >> WriteStats(str(folder / 'packed'))
        )
        packed[STATS] | 'WriteStats' >> WriteStats(str(folder / 'stats'))
        for number, sides in enumerate(groups):
            (
                blocks
                | f'Count{number}' >> CountTokensByElement(sides, (split,))
                | f'Row{number}' >> beam.MapTuple(Counted)
                | f'Report{number}' >> WriteStats(str(folder / f'textbook-{number}'))
            )

    stripped = [tuple(side.replace('\r', '').strip() for side in pair) for pair in pairs]
    kept = [pair for pair in stripped if all(pair)]
    packed_rows = list(read_stats(str(folder / 'packed'), Counted))
    for number, sides in enumerate(groups):
        expected = collections.Counter(
            token for pair in kept for side in sides for token in plain_tokens(pair[side])
        )
        textbook = read_stats(str(folder / f'textbook-{number}'), Counted)
        assert {each.token: each.count for each in textbook} == expected
        ours = [(each.token, each.count) for each in packed_rows if each.group == number]
        assert sorted(ours) == sorted(expected.items())
    stats = read_stats(str(folder / 'stats'), LineTally, RangeChecksum)
    tally = add_tallies('train', [each for each in stats if isinstance(each, LineTally)])
    assert tally == LineTally('train', len(pairs), len(kept), len(pairs) - len(kept))


@pytest.fixture(scope='module')
def counts(small, tmp_path_factory):
    """The counts of the small corpus, both sides, and the vocabulary that is learned from them."""
    folder = tmp_path_factory.mktemp('small-counts')
    succeed('count', '--tsv', small.tsv, '--output', folder / 'counts')
    learn(folder / 'vocab', folder / 'counts')
    return folder


def learn(path, *given):
    succeed('vocab', '--counts', *given, '--vocab-size', 900, '--output', path)
    return path.read_bytes()


def whole_table(folder) -> pa.Table:
    return pa.concat_tables(parquet.read_table(path) for path in sorted(folder.glob('*.parquet')))


def rows_of(folder) -> list[tuple[str, int]]:
    table = whole_table(folder)
    return list(zip(table['token'].to_pylist(), table['count'].to_pylist(), strict=True))


def test_counts_are_partitioned_sorted_and_conserved(counts):
    manifest = manifest_of(counts / 'counts')
    names = [f'counts-{number:05d}-of-00032.parquet' for number in range(32)]
    assert sorted(path.name for path in (counts / 'counts').glob('counts-*')) == names
    assert [each['name'] for each in manifest['files']] == names
    total = 0
    for each in manifest['files']:
        table = parquet.read_table(counts / 'counts' / each['name'])
        assert table.schema.names == ['token', 'count']
        assert table.schema.types == [pa.string(), pa.int64()]
        tokens = [token.encode() for token in table['token'].to_pylist()]
        assert tokens == sorted(set(tokens))
        assert len(tokens) == each['rows']
        total += sum(table['count'].to_pylist())
    assert total == manifest['tokens']
    [lines] = manifest['lines']
    assert lines['lines'] == lines['examples'] + lines['empty'] == 300


def test_the_counts_are_those_of_the_plain_program(small, counts):
    expected = collections.Counter(
        token for pair in kept_pairs(small.pairs) for side in pair for token in plain_tokens(side)
    )
    assert sorted(rows_of(counts / 'counts')) == sorted(expected.items())


def test_a_single_parquet_file_in_any_order(counts, tmp_path):
    table = whole_table(counts / 'counts')
    order = list(range(len(table)))
    random.Random(1).shuffle(order)
    # Told by its content: neither name nor other columns matter.
    mixed = table.take(order).append_column('note', pa.array(['x'] * len(order)))
    parquet.write_table(mixed.select(['count', 'note', 'token']), tmp_path / 'counts.txt')
    assert learn(tmp_path / 'vocab', tmp_path / 'counts.txt') == (counts / 'vocab').read_bytes()


@pytest.mark.parametrize('separator', ['\t', ' '])
@pytest.mark.parametrize('name', ['counts.txt', 'counts.txt.gz', 'counts.parquet'])
def test_lines_of_text(counts, tmp_path, separator, name):
    rows = rows_of(counts / 'counts')
    assert any(' ' in token for token, _ in rows)
    lines = ''.join(f'{token}{separator}{count}\n' for token, count in rows)
    path = write(tmp_path / name, lines.encode())
    assert learn(tmp_path / 'vocab', path) == (counts / 'vocab').read_bytes()


def test_several_are_added_up(counts, tmp_path):
    rows = rows_of(counts / 'counts')
    halves = ''.join(f'{token}\t{count // 2}\n{token}\t0\n' for token, count in rows)
    text = write(tmp_path / 'halves', halves.encode())
    rest = [(token, count - count // 2) for token, count in rows]
    tokens, numbers = zip(*rest, strict=True)
    table = pa.table({'token': pa.array(tokens, pa.large_string()), 'count': list(numbers)})
    parquet.write_table(table, tmp_path / 'rest.parquet')
    learned = learn(tmp_path / 'vocab', text, tmp_path / 'rest.parquet')
    assert learned == (counts / 'vocab').read_bytes()


def test_folders_of_parts_are_added_up(small, counts, tmp_path):
    for number, part in enumerate([slice(0, 100), slice(100, 300)]):
        path = write(tmp_path / f'{number}.tsv', as_tsv(small.pairs[part]))
        succeed('count', '--tsv', path, '--output', tmp_path / f'counts-{number}')
    learned = learn(tmp_path / 'vocab', tmp_path / 'counts-0', tmp_path / 'counts-1')
    assert learned == (counts / 'vocab').read_bytes()
    # So are the two sides.
    for side in ('inputs', 'targets'):
        succeed('count', '--tsv', small.tsv, '--side', side, '--output', tmp_path / side)
    learned = learn(tmp_path / 'vocab-of-sides', tmp_path / 'inputs', tmp_path / 'targets')
    assert learned == (counts / 'vocab').read_bytes()


def test_columns_and_bitext_are_counted_alike(small, counts, tmp_path):
    inputs = ['--source', small.source, '--target', small.target]
    succeed('count', *inputs, '--output', tmp_path / 'counts')
    assert rows_of(tmp_path / 'counts') == rows_of(counts / 'counts')
    assert manifest_of(tmp_path / 'counts')['lines'] == manifest_of(counts / 'counts')['lines']
