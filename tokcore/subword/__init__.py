"""Tensor2Tensor's subword scheme: encoder, learner, and the search over min-counts."""

from tokcore.lazy_exports import exporter

_ORIGINS = {
    'MemoryLearner': 'tokcore.subword.learner',
    'SearchResult': 'tokcore.subword.search',
    'SubwordBlockEncoder': 'tokcore.subword.block_encoding',
    'SubwordTextEncoder': 'tokcore.subword.encoder',
    'search_vocabulary': 'tokcore.subword.search',
}

__all__ = list(_ORIGINS)
__getattr__ = exporter(__name__, _ORIGINS)
