"""The reference systems. With CI=true a missing one is a failure, not a skip."""

import importlib
import os
import pathlib
import sys

import faster_beam
import pytest
from hypothesis import settings

# Processes that tests start import the packages from where the tests do, whatever their folder is:
# numba finds compiled kernels by the path of their source, and would compile those of an installed
# copy once more. `pythonpath` in pyproject.toml is for the processes of pytest.
_ROOT = str(pathlib.Path(__file__).parents[1])
os.environ['PYTHONPATH'] = os.pathsep.join(filter(None, [_ROOT, os.environ.get('PYTHONPATH')]))
# Servers of tests are on this machine, whatever proxy leads out of it.
os.environ['NO_PROXY'] = '127.0.0.1'

# The same examples in every run, so that a change alone makes a test fail. Before a release and for a new
# kernel, --hypothesis-profile=thorough draws others, and more.
settings.register_profile('quick', deadline=None, max_examples=12, derandomize=True)
settings.register_profile('thorough', deadline=None, max_examples=200)
settings.load_profile('quick')

pytest.register_assert_rewrite('corpus_specification', 'dataset_files', 'jobs', 'same_encodings')

pytest_plugins = ['refusals']


@pytest.fixture
def sample_alone(tmp_path, monkeypatch):
    """An empty folder but for the files of the sample."""
    for name in ('train.en', 'train.zh', 'dev.en', 'dev.zh'):
        content = (pathlib.Path(_ROOT) / 'pipelines' / 'sample' / name).read_bytes()
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pytest_collection_finish():
    if 'apache_beam' in sys.modules:  # otherwise whoever runs a job imports it
        faster_beam.install()
    engine = sys.modules.get('pipelines.engines.engine')
    if engine is not None:
        # What a job needs is compiled when it is called. To compile it ahead, two or three processes
        # import numba for each of dozens of options; processes that tests start do so.
        engine.missing_parts = lambda scheme, parts: []  # type: ignore[attr-defined]


def _reference(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        _miss(f'{name} cannot be imported ({error}); the README says how to install it')


def _miss(reason: str) -> None:
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


@pytest.fixture(scope='session')
def transformers():
    return _reference('transformers')


@pytest.fixture(scope='session')
def tokenizers():
    return _reference('tokenizers')


@pytest.fixture(scope='session')
def sentencepiece():
    return _reference('sentencepiece')


@pytest.fixture(scope='session')
def tensorflow_text_learner():
    """TensorFlow Text's learner of WordPiece vocabularies."""
    return _reference('tensorflow_text.tools.wordpiece_vocab.wordpiece_tokenizer_learner_lib')


@pytest.fixture(scope='session')
def nanotoken():
    return _reference('nanotoken')


@pytest.fixture(scope='session')
def subword_nmt():
    """subword-nmt's modules `learn_bpe`, `apply_bpe` and `get_vocab`."""
    names = ('learn_bpe', 'apply_bpe', 'get_vocab')
    return tuple(_reference(f'subword_nmt.{name}') for name in names)


@pytest.fixture(scope='session')
def tiktoken():
    return _reference('tiktoken')


@pytest.fixture(scope='module')
def store():
    """A store on this machine, with one empty bucket."""
    from object_store import served_store

    with served_store() as store:
        yield store
