"""Apache Beam jobs over tokcore: reading, counting, learning and encoding whole corpora.

The transforms are dataclasses; they are not frozen because Beam sets attributes of its own on them.
"""

from tokcore.lazy_exports import exporter

_ORIGINS = {
    'CountSubstrings': 'pipelines.packed_substrings',
    'CountSubstringsByElement': 'pipelines.substrings',
    'CountTokens': 'pipelines.counting',
    'CountTokensByElement': 'pipelines.counting',
    'EncodeBlocks': 'pipelines.encoding',
    'ReadBlocks': 'pipelines.reading',
    'WriteCounts': 'pipelines.counting',
    'WriteShards': 'pipelines.shuffling',
}

__all__ = list(_ORIGINS)
__getattr__ = exporter(__name__, _ORIGINS)
