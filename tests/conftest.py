"""The reference systems. With CI=true a missing one is a failure, not a skip."""

import importlib
import os

import pytest

pytest.register_assert_rewrite('corpus_specification', 'dataset_files', 'jobs')


def _reference(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        reason = f'{name} cannot be imported ({error}); the README says how to install it'
        if os.environ.get('CI') == 'true':
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope='session')
def t2t_text_encoder():
    return _reference('tensor2tensor.data_generators.text_encoder')


@pytest.fixture(scope='session')
def t2t_tokenizer():
    return _reference('tensor2tensor.data_generators.tokenizer')


@pytest.fixture(scope='session')
def t2t_generator_utils():
    return _reference('tensor2tensor.data_generators.generator_utils')


@pytest.fixture(scope='session')
def tensorflow():
    return _reference('tensorflow')
