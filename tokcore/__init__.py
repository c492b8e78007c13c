"""Pure algorithms over strings, bytes and arrays: no Beam, and no TensorFlow."""

import importlib
import sys
import typing
from collections.abc import Callable, Mapping, Sequence

if typing.TYPE_CHECKING:  # what `_NAMES` says, for type checkers
    from tokcore.bytes_of_ids import byte_lengths
    from tokcore.corpus.corpus import Block, CorpusFile, Split, WorkItem
    from tokcore.counts.tables import merge_tables
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.scheme import Scheme
    from tokcore.encoding.tokenizer import Encoding, Tokenizer
    from tokcore.errors import InputError
    from tokcore.keyword_types import EncodeKeywords, FormatKeywords, LearnKeywords, SchemeKeywords
    from tokcore.learning.size_search import SearchResult, search_vocabulary
    from tokcore.reading.dataset import open_dataset
    from tokcore.reading.mixture import mixture
    from tokcore.reading.tensorflow import inference_batches, training_batches
    from tokcore.records.examples import Feature
    from tokcore.records.tfrecord import parse_example, read_records
    from tokcore.schemes import find_scheme
    from tokcore.subword.learner import MemoryLearner
    from tokcore.subword.text_encoder import SubwordTextEncoder
    from tokcore.text.t2t import detokenize, tokenize
    from tokcore.tokenizers import (
        BpeTokenizer,
        ByteTokenizer,
        WordPieceTokenizer,
        WordTokenizer,
        learn_vocabulary,
        learn_wordpiece_vocabulary,
        load_tokenizer,
    )

_NAMES = {
    'tokcore.bytes_of_ids': ['byte_lengths'],
    'tokcore.corpus.corpus': ['Block', 'CorpusFile', 'Split', 'WorkItem'],
    'tokcore.counts.tables': ['merge_tables'],
    'tokcore.counts.token_table': ['TokenTable'],
    'tokcore.encoding.scheme': ['Scheme'],
    'tokcore.encoding.tokenizer': ['Encoding', 'Tokenizer'],
    'tokcore.errors': ['InputError'],
    'tokcore.keyword_types': [
        'EncodeKeywords', 'FormatKeywords', 'LearnKeywords', 'SchemeKeywords',
    ],
    'tokcore.learning.size_search': ['SearchResult', 'search_vocabulary'],
    'tokcore.reading.dataset': ['open_dataset'],
    'tokcore.reading.mixture': ['mixture'],
    'tokcore.reading.tensorflow': ['inference_batches', 'training_batches'],
    'tokcore.records.examples': ['Feature'],
    'tokcore.records.tfrecord': ['parse_example', 'read_records'],
    'tokcore.schemes': ['find_scheme'],
    'tokcore.subword.learner': ['MemoryLearner'],
    'tokcore.subword.text_encoder': ['SubwordTextEncoder'],
    'tokcore.text.t2t': ['detokenize', 'tokenize'],
    'tokcore.tokenizers': [
        'BpeTokenizer', 'ByteTokenizer', 'WordPieceTokenizer', 'WordTokenizer', 'learn_vocabulary',
        'learn_wordpiece_vocabulary', 'load_tokenizer',
    ],
}  # fmt: skip
"""The public names, by the modules that define them."""

__all__ = [
    'Block', 'BpeTokenizer', 'ByteTokenizer', 'CorpusFile', 'EncodeKeywords', 'Encoding', 'Feature',
    'FormatKeywords', 'InputError', 'LearnKeywords', 'MemoryLearner', 'Scheme', 'SchemeKeywords',
    'SearchResult', 'Split', 'SubwordTextEncoder', 'TokenTable', 'Tokenizer', 'WordPieceTokenizer',
    'WordTokenizer', 'WorkItem', 'byte_lengths', 'detokenize', 'find_scheme', 'inference_batches',
    'learn_vocabulary', 'learn_wordpiece_vocabulary', 'load_tokenizer', 'merge_tables', 'mixture',
    'open_dataset', 'parse_example', 'read_records', 'search_vocabulary', 'tokenize',
    'training_batches',
]  # fmt: skip


def exporter(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Returns a package's `__getattr__` (PEP 562), which imports public names when they are first used.

    `tokbeam --help` imports the packages, but needs neither compiled kernels nor Beam.

    Args:
        package: the package's name.
        names: the public names, by the modules that define them.
    """
    origins = {name: module for module, exported in names.items() for name in exported}

    def __getattr__(name: str) -> object:
        if name not in origins:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        value = getattr(importlib.import_module(origins[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__


if not typing.TYPE_CHECKING:
    __getattr__ = exporter(__name__, _NAMES)


def __dir__() -> list[str]:
    return __all__
