"""Pure algorithms over strings, bytes and arrays: no Beam, and no TensorFlow outside `reading`."""

from tokcore.lazy_exports import exporter

_ORIGINS = {
    'InputError': 'tokcore.errors',
    'MemoryLearner': 'tokcore.subword.learner',
    'SearchResult': 'tokcore.subword.search',
    'SubwordTextEncoder': 'tokcore.subword.encoder',
    'TokenTable': 'tokcore.counts',
    'detokenize': 'tokcore.pretokenization',
    'merge_tables': 'tokcore.counts',
    'parse_example': 'tokcore.records.reading_records',
    'read_records': 'tokcore.records.reading_records',
    'search_vocabulary': 'tokcore.subword.search',
    'tokenize': 'tokcore.pretokenization',
}

__all__ = list(_ORIGINS)
__getattr__ = exporter(__name__, _ORIGINS)
