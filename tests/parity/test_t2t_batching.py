"""Bounds and sizes of batches by a budget of tokens are Tensor2Tensor's."""

import ast
import importlib.util
from pathlib import Path

import pytest

from tokcore.reading.batching import batch_sizes, growing_boundaries


@pytest.fixture(scope='module')
def batching_scheme(t2t_tokenizer):
    """The original's function, cut out of its module, which imports what TensorFlow 2 lacks."""
    [folder] = importlib.util.find_spec('tensor2tensor').submodule_search_locations
    tree = ast.parse((Path(folder) / 'utils' / 'data_reader.py').read_text())
    names = ('_bucket_boundaries', 'batching_scheme')
    tree.body = [each for each in tree.body if getattr(each, 'name', None) in names]
    for each in tree.body:
        each.body = [line for line in each.body if 'tf.logging' not in ast.unparse(line)]
    found = {}
    exec(compile(tree, 'data_reader.py', 'exec'), found)
    return found['batching_scheme']


@pytest.mark.parametrize('tokens', [8, 100, 1000, 4096, 25_000])
@pytest.mark.parametrize('longest', [None, 8, 9, 50, 256, 1000])
def test_bounds_and_sizes(batching_scheme, tokens, longest):
    theirs = batching_scheme(
        batch_size=tokens, max_length=longest or tokens, min_length_bucket=8, length_bucket_step=1.1
    )
    bounds = growing_boundaries(longest or tokens)
    assert list(bounds) == theirs['boundaries']
    assert list(batch_sizes(tokens, (*bounds, longest or tokens))) == theirs['batch_sizes']
