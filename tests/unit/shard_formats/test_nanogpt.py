"""The names and the ids of nanoGPT's files, and what its loader could not read."""

import pytest

from pipelines.options.job import one_shard
from pipelines.shard_formats.flat import NanoGpt, refuse_ids, refuse_sides, refuse_size
from pipelines.shard_formats.formats import CONVERTED
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.errors import InputError
from tokcore.records.manifest import file_of_shard, shard_name


@pytest.mark.parametrize(('split', 'name'), [('train', 'train'), ('dev', 'val'), ('test', 'test')])
def test_a_file_of_a_split_leads_back_to_it(split, name):
    shard = shard_name('d-dev', split, 0, 1)
    names = CONVERTED['nanogpt'].file_names(shard, ['targets'])
    assert names == [f'{name}.bin', f'{name}.csv.gz']
    for each in names:
        file = file_of_shard(each)
        assert file == (name, split, 0, each.removeprefix(name))
        assert CONVERTED['nanogpt'].file_names(file.shard, ['targets']) == names


def test_names_of_shards():
    assert file_of_shard('a-dev-b-train-00012-of-00020_text_document.idx') == (
        'a-dev-b-train-00012-of-00020', 'train', 12, '_text_document.idx',
    )  # fmt: skip
    assert file_of_shard('n-test-00000-of-00001') == (
        'n-test-00000-of-00001', 'test', 0, '',
    )  # fmt: skip
    for other in ('dev.bin', 'x/val.bin', 'val.bin.gz', 'train', 'xtrain.bin', 'vocab.txt', ''):
        assert file_of_shard(other) is None


def test_ids_have_16_bits_or_are_refused():
    assert isinstance(CONVERTED['nanogpt'], NanoGpt)
    assert {NanoGpt().dtype(size) for size in (1, 65_536)} == {'uint16'}
    refuse_size(65_536)
    with pytest.raises(InputError, match='at most 65,536 of them, and there are 65,537; take a'):
        refuse_size(65_537)
    refuse_ids([], [EndOfDocument('targets', 65_535, '', False)])
    with pytest.raises(InputError, match='there are 65,537'):
        refuse_ids([], [EndOfDocument('targets', 65_536, '', False)])


def test_pairs_and_several_shards_are_refused():
    refuse_sides(['targets'])
    with pytest.raises(InputError, match='pairs have two; give text, or the format flat'):
        refuse_sides(['inputs', 'targets'])
    assert one_shard({}) == one_shard({'shards': 1, 'seed': 3}) == {'shards': 1}
    with pytest.raises(InputError, match='--shards 2 asks for more; leave it out'):
        one_shard({'shards': 2})
