"""Pure algorithms over strings, bytes and arrays: no Beam, and no TensorFlow."""

from tokcore.lazy_exports import exporter

_ORIGINS = {
    'BpeTokenizer': 'tokcore.tokenizers',
    'ByteTokenizer': 'tokcore.tokenizers',
    'WordPieceTokenizer': 'tokcore.tokenizers',
    'WordTokenizer': 'tokcore.tokenizers',
    'learn_wordpiece_vocabulary': 'tokcore.tokenizers',
    'find_scheme': 'tokcore.schemes',
    'Block': 'tokcore.corpus.corpus',
    'CorpusFile': 'tokcore.corpus.corpus',
    'Feature': 'tokcore.records.examples',
    'InputError': 'tokcore.errors',
    'MemoryLearner': 'tokcore.subword.learner',
    'SearchResult': 'tokcore.learning.size_search',
    'Split': 'tokcore.corpus.corpus',
    'SubwordTextEncoder': 'tokcore.subword.text_encoder',
    'TokenTable': 'tokcore.counts.token_table',
    'WorkItem': 'tokcore.corpus.corpus',
    'detokenize': 'tokcore.text.t2t',
    'merge_tables': 'tokcore.counts.tables',
    'open_dataset': 'tokcore.reading.dataset',
    'parse_example': 'tokcore.records.tfrecord',
    'read_records': 'tokcore.records.tfrecord',
    'search_vocabulary': 'tokcore.learning.size_search',
    'inference_batches': 'tokcore.reading.tensorflow',
    'training_batches': 'tokcore.reading.tensorflow',
    'tokenize': 'tokcore.text.t2t',
}

__all__ = list(_ORIGINS)
__getattr__ = exporter(__name__, _ORIGINS)
