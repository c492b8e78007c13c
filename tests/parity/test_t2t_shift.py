"""What a decoder reads is what Tensor2Tensor's shifts make of targets, at each id that is learned."""

import ast
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_dataset import write_dataset

from tokcore import open_dataset

PAD, IGNORED = 0, -100
SHIFTS = ('shift_right', 'shift_right_3d', 'shift_right_2d')


@pytest.fixture(scope='module')
def shifts(t2t_tokenizer, tensorflow):
    """The original's functions, cut out of their module, which imports what TensorFlow 2 lacks."""
    [folder] = importlib.util.find_spec('tensor2tensor').submodule_search_locations
    tree = ast.parse((Path(folder) / 'layers' / 'common_layers.py').read_text())
    tree.body = [each for each in tree.body if getattr(each, 'name', None) in SHIFTS]
    found = {'tf': tensorflow}
    exec(compile(tree, 'common_layers.py', 'exec'), found)
    return [found[name] for name in SHIFTS]


@given(st.lists(st.tuples(*[st.lists(st.integers(2, 257), max_size=12)] * 2), min_size=1))
def test_targets_without_a_begin_id_are_shifted_as_there(shifts, tmp_path_factory, pairs):
    rows = [{'inputs': [*source, 1], 'targets': [*target, 1]} for source, target in pairs]
    dataset = open_dataset(write_dataset(tmp_path_factory.mktemp('pairs'), [rows]))
    arguments = {'tokens_per_batch': 64, 'seed': 1}
    learned = 0
    for stored, batch in zip(
        dataset.batches('train', **arguments),
        dataset.batches('train', for_model='seq2seq', **arguments),
        strict=True,
    ):
        targets, labels = stored['targets'], batch['labels']
        # Their embedding of the id of padding is zeros, so that an id may stand for its embedding.
        for shift, depths in zip(shifts, [(1, 1), (1,), ()], strict=True):
            read = np.asarray(shift(targets.reshape(*targets.shape, *depths)))
            read = read.reshape(targets.shape)
            assert (batch['decoder_inputs'] == np.where(labels == IGNORED, PAD, read)).all()
        assert (labels == np.where(targets == PAD, IGNORED, targets)).all()
        learned += (labels != IGNORED).sum()
    assert learned == sum(len(row['targets']) for row in rows)
