"""Pure algorithms over strings, bytes and arrays: no Beam, and no TensorFlow."""

from tokcore.lazy_exports import exporter

_ORIGINS = {
    'BpeTokenizer': 'tokcore.bpe.tokenizer',
    'ByteTokenizer': 'tokcore.byte.tokenizer',
    'WordPieceTokenizer': 'tokcore.wordpiece.tokenizer',
    'WordTokenizer': 'tokcore.word.tokenizer',
    'learn_wordpiece_vocabulary': 'tokcore.wordpiece.learn_from_text',
    'Block': 'tokcore.corpus.dataset',
    'CorpusFile': 'tokcore.corpus.dataset',
    'Feature': 'tokcore.records.example_encoding',
    'InputError': 'tokcore.errors',
    'MemoryLearner': 'tokcore.subword.learner',
    'SearchResult': 'tokcore.learning.size_search',
    'Split': 'tokcore.corpus.dataset',
    'SubwordTextEncoder': 'tokcore.subword.text_encoder',
    'TokenTable': 'tokcore.counts.token_table',
    'WorkItem': 'tokcore.corpus.dataset',
    'detokenize': 'tokcore.text.t2t_tokens',
    'merge_tables': 'tokcore.counts.merging',
    'open_dataset': 'tokcore.reading.dataset',
    'parse_example': 'tokcore.records.tfrecord_reader',
    'read_records': 'tokcore.records.tfrecord_reader',
    'search_vocabulary': 'tokcore.learning.size_search',
    'inference_batches': 'tokcore.reading.text.inference_batches',
    'training_batches': 'tokcore.reading.text.training_batches',
    'tokenize': 'tokcore.text.t2t_tokens',
}

__all__ = list(_ORIGINS)
__getattr__ = exporter(__name__, _ORIGINS)
