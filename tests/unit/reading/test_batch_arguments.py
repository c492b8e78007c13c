"""The arguments of `batches` stand in its signature, and in those of the other readers; `repr`."""

import dataclasses
import inspect
import sys

import pytest
from written_dataset import opened

from tokcore.errors import InputError
from tokcore.reading.batch_options import BatchOptions
from tokcore.reading.dataset import Dataset


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    rows = [{'inputs': [5, 1], 'targets': [6, 7, 1]}] * 3
    return opened(tmp_path_factory.mktemp('arguments') / 'd', [rows])


def test_every_option_is_an_argument_with_its_default():
    split, *others = list(inspect.signature(Dataset.batches).parameters.values())[1:]
    assert split.name == 'split'
    assert all(each.kind is each.KEYWORD_ONLY for each in others)
    assert {each.name: each.default for each in others} == {
        field.name: field.default for field in dataclasses.fields(BatchOptions)
    }


def test_every_argument_is_described():
    described = Dataset.batches.__doc__.partition('Args:')[2].partition('Raises:')[0]
    for name in inspect.signature(Dataset.batches).parameters:
        assert name == 'self' or f'{name}:' in described or f'{name},' in described


@pytest.mark.parametrize('reader', ['tensorflow', 'grain', 'torch'])
def test_other_readers_show_the_arguments_of_batches(reader):
    parameters = inspect.signature(getattr(Dataset, reader)).parameters
    assert parameters == inspect.signature(Dataset.batches).parameters


@pytest.mark.parametrize('reader', ['tensorflow', 'grain', 'torch'])
def test_a_package_that_is_missing_is_named_with_its_extra(dataset, reader, monkeypatch):
    monkeypatch.setitem(sys.modules, reader, None)
    monkeypatch.delitem(sys.modules, f'tokcore.reading.{reader}', raising=False)
    with pytest.raises(InputError, match=rf"run `pip install '\.\[{reader}\]'`") as raised:
        getattr(dataset, reader)('train', tokens_per_batch=9)
    assert raised.value.__suppress_context__


BATCHES = [
    ({}, 'give batch_size, or tokens_per_batch'),
    ({'batch_size': 2, 'tokens_per_batch': 9}, 'and not both'),
    ({'batch_size': 2, 'boundaries': [3]}, 'boundaries goes with tokens_per_batch'),
    ({'tokens_per_batch': 9, 'num_buckets': 2}, 'num_buckets goes with batch_size'),
    ({'tokens_per_batch': 9, 'boundaries': [3, 3]}, 'each larger than the one before'),
    ({'tokens_per_batch': 9, 'num_readers': 2, 'reader_index': 2}, 'one of 0 to 1'),
    ({'tokens_per_batch': 0}, 'tokens_per_batch is 0; give a whole number from 1 to'),
    ({'tokens_per_batch': 9, 'on_error': 'go on'}, "give 'stop' or 'skip'"),
    ({'tokens_per_batch': 9, 'end': 3}, 'end goes with batch_size, or with'),
    ({'batch_size': 9, 'end': False}, 'end each target; give an id'),
    ({'batch_size': 9, 'for_model': 'gpt'}, "for_model is 'gpt'; give"),
    ({'batch_size': 9, 'for_model': 'lm'}, "give for_model='seq2seq'"),
    ({'tokens_per_batch': 9, 'shuffle': 'exact', 'on_error': 'skip'}, "cannot be with shuffle='exact'"),
    ({'tokens_per_batch': 9, 'shuffle': 'corpus', 'on_error': 'skip'}, "with shuffle='corpus'"),
    ({'batchsize': 9}, 'batchsize'),
]  # fmt: skip
PACKED = [
    ({'length': 0}, 'length is 0'),
    ({'length': 1 << 40}, 'length is'),
    ({'length': 9, 'strategy': 'best'}, "strategy is 'best'; give 'best-fit' or 'greedy'"),
    ({'length': 9, 'strategy': 'concat'}, 'concat cuts rows, and these are pairs of inputs and tar'),
    ({'length': 9, 'batch_size': 0}, 'batch_size is 0'),
    ({'length': 9, 'end': True}, 'end is True; give .*False'),
    ({'length': 9, 'num_readers': 2, 'reader_index': 2}, 'reader_index is 2; give one of 0 to 1'),
    ({'length': 9, 'start': 3}, 'start goes with for_model'),
    ({'length': 9, 'positions': True}, "positions goes with for_model='lm'"),
    ({'length': 9, 'for_model': 'seq2seq', 'cross_documents': True}, "cross_documents goes with"),
]  # fmt: skip


@pytest.mark.parametrize(
    ('method', 'asked', 'said'),
    [('batches', *each) for each in BATCHES] + [('packed', *each) for each in PACKED],
)
def test_impossible_arguments_are_refused(dataset, method, asked, said):
    with pytest.raises((InputError, TypeError), match=said):
        getattr(dataset, method)('train', **asked)


def test_repr_tells_where_it_is_and_how_large(dataset):
    assert (
        repr(dataset)
        == str(dataset)
        == (
            f'<Dataset {dataset.folder}: examples of train 3; ids of inputs 258, targets 258; scheme byte>'
        )
    )
