"""Tensor2Tensor's subword scheme: encoder, learner, and the search over min-counts."""

from tokcore.lazy_exports import exporter

_ORIGINS = {
    'MemoryLearner': 'tokcore.subword.learner',
    'SearchResult': 'tokcore.learning.size_search',
    'SubwordTextEncoder': 'tokcore.subword.text_encoder',
    'search_vocabulary': 'tokcore.learning.size_search',
}

__all__ = list(_ORIGINS)
__getattr__ = exporter(__name__, _ORIGINS)
