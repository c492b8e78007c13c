"""Subword vocabularies, tokenizers and dataset readers; no Beam.

`help(tokcore.NAME)` explains a name and shows an example.

Datasets
    open_dataset                opens a folder that `tokbeam build` wrote
    mixture                     several datasets as one, by weights
    training_batches, inference_batches
                                batches of text files as in TensorFlow NMT
    read_records, parse_example records of a TFRecord file, and their ids

Tokenizers
    learn_vocabulary            learns a vocabulary, returns a tokenizer
    load_tokenizer              reads a vocabulary file of any scheme
    Tokenizer, Encoding         what all tokenizers can do and return
    BpeTokenizer, ByteTokenizer, SubwordTextEncoder, WordPieceTokenizer,
    WordTokenizer               the tokenizer of each scheme
    byte_lengths                the bytes of text that each id stands for

Learning step by step
    tokenize, detokenize        text to tokens and back, as in Tensor2Tensor
    TokenTable                  tokens with their counts
    merge_tables                the sum of several tables
    MemoryLearner               learns subwords from a table
    search_vocabulary           a SearchResult: the min-count for a size
    learn_wordpiece_vocabulary  learns pieces as TensorFlow Text does
    find_scheme, Scheme         a scheme with its options

Parts of pipelines
    Split, CorpusFile           a corpus and its files
    Block                       rows of a file, from `pipelines.ReadCorpus`
    Feature                     what a feature of the examples is made of
    SchemeKeywords, LearnKeywords, EncodeKeywords, FormatKeywords
                                the types of options, for type checkers

InputError is raised for a mistake in a file, line, option or output.
"""

import importlib.util
import sys
import typing
from collections.abc import Callable, Mapping, Sequence

if typing.TYPE_CHECKING:  # what `_NAMES` says, for type checkers
    from tokcore.bytes_of_ids import byte_lengths
    from tokcore.corpus.corpus import Block, CorpusFile, Split
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

    __all__ = [
        'Block', 'BpeTokenizer', 'ByteTokenizer', 'CorpusFile', 'EncodeKeywords', 'Encoding', 'Feature',
        'FormatKeywords', 'InputError', 'LearnKeywords', 'MemoryLearner', 'Scheme', 'SchemeKeywords',
        'SearchResult', 'Split', 'SubwordTextEncoder', 'TokenTable', 'Tokenizer', 'WordPieceTokenizer',
        'WordTokenizer', 'byte_lengths', 'detokenize', 'find_scheme', 'inference_batches',
        'learn_vocabulary', 'learn_wordpiece_vocabulary', 'load_tokenizer', 'merge_tables', 'mixture',
        'open_dataset', 'parse_example', 'read_records', 'search_vocabulary', 'tokenize',
        'training_batches',
    ]  # fmt: skip

_NAMES = {
    'tokcore.bytes_of_ids': ['byte_lengths'],
    'tokcore.corpus.corpus': ['Block', 'CorpusFile', 'Split'],
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

__version__ = '0.2.0'


_EXTRAS = {'tokcore.reading.tensorflow': 'tensorflow'}
"""Packages that may be missing, by the modules whose names are listed only where they are there."""


def exporter(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns a package's `__getattr__` and `__dir__`, which import public names when they are used.

    `tokbeam --help` imports the packages, but needs neither compiled kernels nor Beam.

    Args:
        package: the package's name.
        names: the public names, by the modules that define them.
    """
    origins = {name: module for module, exported in names.items() for name in exported}
    missing = {module for module, extra in _EXTRAS.items() if not importlib.util.find_spec(extra)}
    public = sorted(name for name, module in origins.items() if module not in missing)

    def __getattr__(name: str) -> object:
        # For each name in `__all__` pydoc prints all methods, thousands of lines in all. Without
        # the list, `help` of the package prints its docstring, which is an overview.
        if name == '__all__' and sys._getframe(1).f_code.co_name != 'docmodule':
            return public
        if name not in origins:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        value = getattr(importlib.import_module(origins[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__, lambda: public


if not typing.TYPE_CHECKING:
    __getattr__, __dir__ = exporter(__name__, _NAMES)
