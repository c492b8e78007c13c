"""The arguments of `batches` stand in its signature, and in those of the other readers; `repr`."""

import dataclasses
import inspect
import sys

import pytest
from written_dataset import write_dataset

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.reading.batch_options import BatchOptions
from tokcore.reading.dataset import Dataset


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    rows = [{'inputs': [5, 1], 'targets': [6, 7, 1]}] * 3
    return open_dataset(write_dataset(tmp_path_factory.mktemp('arguments') / 'd', [rows]))


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
    with pytest.raises(InputError, match=rf"pip install 'tokbeam\[{reader}\]'") as raised:
        getattr(dataset, reader)('train', tokens_per_batch=9)
    assert raised.value.__suppress_context__


@pytest.mark.parametrize('reader', ['batches', 'tensorflow'])
def test_an_unknown_argument_is_a_mistake_in_the_call(dataset, reader):
    if reader == 'tensorflow':
        pytest.importorskip('tensorflow')
    with pytest.raises((TypeError, InputError), match='batchsize'):
        getattr(dataset, reader)('train', batchsize=9)


def test_repr_tells_where_it_is_and_how_large(dataset):
    assert (
        repr(dataset)
        == str(dataset)
        == (
            f'<Dataset {dataset.folder}: examples of train 3; ids of inputs 258, targets 258; scheme byte>'
        )
    )
