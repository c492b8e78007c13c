"""Pure algorithms over strings, bytes and arrays: no Beam, and no TensorFlow."""

import typing

from tokcore.lazy_exports import exporter

if typing.TYPE_CHECKING:  # what `_ORIGINS` says, for type checkers
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

_ORIGINS = {
    'Block': 'tokcore.corpus.corpus',
    'BpeTokenizer': 'tokcore.tokenizers',
    'ByteTokenizer': 'tokcore.tokenizers',
    'CorpusFile': 'tokcore.corpus.corpus',
    'EncodeKeywords': 'tokcore.keyword_types',
    'Encoding': 'tokcore.encoding.tokenizer',
    'Feature': 'tokcore.records.examples',
    'FormatKeywords': 'tokcore.keyword_types',
    'InputError': 'tokcore.errors',
    'LearnKeywords': 'tokcore.keyword_types',
    'MemoryLearner': 'tokcore.subword.learner',
    'Scheme': 'tokcore.encoding.scheme',
    'SchemeKeywords': 'tokcore.keyword_types',
    'SearchResult': 'tokcore.learning.size_search',
    'Split': 'tokcore.corpus.corpus',
    'SubwordTextEncoder': 'tokcore.subword.text_encoder',
    'TokenTable': 'tokcore.counts.token_table',
    'Tokenizer': 'tokcore.encoding.tokenizer',
    'WordPieceTokenizer': 'tokcore.tokenizers',
    'WordTokenizer': 'tokcore.tokenizers',
    'WorkItem': 'tokcore.corpus.corpus',
    'detokenize': 'tokcore.text.t2t',
    'find_scheme': 'tokcore.schemes',
    'inference_batches': 'tokcore.reading.tensorflow',
    'learn_vocabulary': 'tokcore.tokenizers',
    'learn_wordpiece_vocabulary': 'tokcore.tokenizers',
    'load_tokenizer': 'tokcore.tokenizers',
    'merge_tables': 'tokcore.counts.tables',
    'mixture': 'tokcore.reading.mixture',
    'open_dataset': 'tokcore.reading.dataset',
    'parse_example': 'tokcore.records.tfrecord',
    'read_records': 'tokcore.records.tfrecord',
    'search_vocabulary': 'tokcore.learning.size_search',
    'tokenize': 'tokcore.text.t2t',
    'training_batches': 'tokcore.reading.tensorflow',
}

__all__ = [
    'Block',
    'BpeTokenizer',
    'ByteTokenizer',
    'CorpusFile',
    'EncodeKeywords',
    'Encoding',
    'Feature',
    'FormatKeywords',
    'InputError',
    'LearnKeywords',
    'MemoryLearner',
    'Scheme',
    'SchemeKeywords',
    'SearchResult',
    'Split',
    'SubwordTextEncoder',
    'TokenTable',
    'Tokenizer',
    'WordPieceTokenizer',
    'WordTokenizer',
    'WorkItem',
    'detokenize',
    'find_scheme',
    'inference_batches',
    'learn_vocabulary',
    'learn_wordpiece_vocabulary',
    'load_tokenizer',
    'merge_tables',
    'mixture',
    'open_dataset',
    'parse_example',
    'read_records',
    'search_vocabulary',
    'tokenize',
    'training_batches',
]

if not typing.TYPE_CHECKING:
    __getattr__ = exporter(__name__, _ORIGINS)


def __dir__() -> list[str]:
    return __all__
