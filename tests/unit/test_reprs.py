"""Everything public has a repr of one short line, however large it is."""

import inspect
import typing

from written_dataset import write_dataset

import pipelines
import tokcore
from tokcore.corpus.corpus import Block, BlockText
from tokcore.corpus.formats import corpus_format
from tokcore.reading.batch_iterator import BatchIterator, PrefetchedBatches
from tokcore.reading.dataset import Dataset
from tokcore.reading.mixture import Mixture
from tokcore.reading.ordered_rows import SplitRows

PUBLIC = [
    value
    for package in (tokcore, pipelines)
    for value in (getattr(package, name) for name in package.__all__)
    if inspect.isclass(value) and not typing.is_typeddict(value)
] + [Dataset, Mixture, BatchIterator, PrefetchedBatches, SplitRows]


def test_every_public_class_has_a_repr():
    assert not [kind for kind in PUBLIC if kind.__repr__ is object.__repr__]


def test_large_values_are_counted_and_not_shown(tmp_path):
    table = tokcore.TokenTable.from_items([(f'token{n}', n) for n in range(1, 2000)])
    learner = tokcore.MemoryLearner(table)
    found = tokcore.search_vocabulary(
        learner.build, 500, smallest_size=learner.smallest_size, largest_count=learner.largest_count
    )
    block = Block('train', corpus_format('text')(), 0, (BlockText(0, b'x' * 9999),))
    rows = [{'targets': [2 + number % 9, 1]} for number in range(1234)]
    dataset = tokcore.open_dataset(write_dataset(tmp_path / 'd', [rows]))
    batches = dataset.packed('train', 99, for_model='lm', num_readers=3, reader_index=1)
    assert repr(table) == '<TokenTable: 1,999 distinct tokens of 1,999,000>'
    assert repr(learner) == '<MemoryLearner of 1,999 distinct tokens>'
    assert repr(dataset['train']) == '<SplitRows: 1,234 rows of targets>'
    assert repr(batches) == (
        f"<BatchIterator over {dataset.folder}: split='train', for_model='lm', length=99, num_readers=3, "
        'reader_index=1>'
    )
    assert repr(batches.prefetch(2)) == f'<PrefetchedBatches, 2 ahead: {batches!r}>'
    assert len(repr(found)) < 400 and len(repr(block)) < 400
