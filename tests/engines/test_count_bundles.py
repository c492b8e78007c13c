"""What a bundle of the count puts out is bounded; what is too much goes to files instead."""

import random

import apache_beam as beam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs import write

from pipelines.engines.pool import BUNDLE_BYTES, MOST_BUNDLE_BYTES, PackedCoder
from pipelines.transforms.count_tokens import METRICS, TABLES, CountTokens, TableOrPath
from pipelines.transforms.read import ReadBlocks
from pipelines.transforms.stats import REJECTED
from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.declarations import PlainText
from tokcore.corpus.formats import plan_items
from tokcore.counts.tables import merge_tables
from tokcore.counts.token_table import TokenTable

TOKENS = st.text(st.characters(exclude_categories=['Cs']), max_size=200)


@pytest.fixture
def split(tmp_path):
    """Some thousand distinct tokens, and a common one."""
    dice = random.Random(3)
    words = [''.join(dice.choices('abcdefgh', k=7)) for _ in range(4000)]
    text = ''.join(f'the {first} {second}\n' for first, second in zip(words, words[1:]))
    path = write(tmp_path / 'text.txt', text.encode())
    file = CorpusFile(str(path), path.name, path.stat().st_size, compressed=False)
    return Split('train', PlainText(), ((file,),))


def count(split, folder, **options):
    """Returns the merged counts, and the most bytes that a bundle put out."""
    pipeline = beam.Pipeline(runner='FnApiRunner')
    counted = (
        pipeline
        | ReadBlocks(plan_items(split, (), 10_000), 10_000)
        | CountTokens(groups=((0,),), splits=(split,), workers=2, **options)
    )
    (
        counted[TABLES]
        | 'Pack' >> beam.MapTuple(lambda key, table: (key, table.to_bytes()))
        | 'Write' >> beam.MapTuple(lambda key, packed: write(folder / f'table-{key}', packed))
    )
    counted[REJECTED] | 'Drop' >> beam.Map(str)
    result = pipeline.run()
    result.wait_until_finish()
    [found] = [
        each.result
        for each in result.metrics().query()['distributions']
        if (each.key.metric.namespace, each.key.metric.name) == (METRICS, BUNDLE_BYTES)
    ]
    packed = [path.read_bytes() for path in folder.glob('table-*')]
    return dict(merge_tables(map(TokenTable.from_bytes, packed)).items()), found.max


def test_no_bundle_puts_out_more_than_its_bound(split, tmp_path):
    (tmp_path / 'within').mkdir()
    expected, freely = count(split, tmp_path / 'within')
    assert expected['the'] == 3999
    spilled = tmp_path / 'spilled'
    bound = freely // 2
    (tmp_path / 'beyond').mkdir()
    counts, most = count(
        split, tmp_path / 'beyond', spill_folder=str(spilled), most_bundle_bytes=bound
    )
    assert counts == expected
    assert bound / 4 < most <= bound
    # What had no room is in files, and they are not much more than that.
    left = sum(path.stat().st_size for path in spilled.iterdir())
    assert freely - bound <= left < freely


def test_too_many_tokens_without_a_folder_for_them_are_refused(split, tmp_path):
    with pytest.raises(Exception, match='OversizedBundleError|a spill_folder'):
        count(split, tmp_path, most_bundle_bytes=5000)


def test_too_many_rejected_lines_are_refused(tmp_path):
    path = write(tmp_path / 'text.txt', b'a\n' + b'\xff\xfe not text\n' * 1000)
    file = CorpusFile(str(path), path.name, path.stat().st_size, compressed=False)
    with pytest.raises(Exception, match='cannot be used are more than a worker may send'):
        count(
            Split('train', PlainText(), ((file,),)),
            tmp_path,
            on_error='skip',
            most_bundle_bytes=5000,
        )


def test_the_bound_is_below_what_hangs():
    assert MOST_BUNDLE_BYTES <= 1 << 29


@given(TOKENS)
def test_paths_and_tables_cross_as_bytes(text):
    coder = PackedCoder(TableOrPath)
    packed = TokenTable.from_items([(text, 3)]).to_bytes()
    for sent in (TableOrPath(b'', text), TableOrPath(packed)):
        assert coder.decode(coder.encode(sent)) == sent
