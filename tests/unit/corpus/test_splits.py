"""A file's dataset is found among thousands as by a look at each."""

from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.corpus import CorpusFile, Split, split_of
from tokcore.corpus.line_formats import PlainText

SIZES = st.lists(st.integers(1, 4), max_size=6)


@given(st.dictionaries(st.sampled_from(['train', 'dev', 'test']), SIZES))
def test_each_file_index_has_the_dataset_that_has_the_file(sizes):
    splits, files = [], {}
    for name, counts in sizes.items():
        for number, count in enumerate(counts):
            first = sum(counts[:number])
            split = Split(
                name, PlainText(), ((CorpusFile('f', 'f', 1, False),),) * count, str(number), first
            )
            splits.append(split)
            files |= {(name, index): split for index in range(first, first + count)}
    for name in ('train', 'dev', 'test'):
        for index in range(-1, 30):
            assert split_of(splits, name, index) is files.get((name, index))
