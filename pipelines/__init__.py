"""Apache Beam jobs over tokcore: reading, counting, learning and encoding whole corpora.

The transforms are dataclasses; they are not frozen because Beam sets attributes of its own on them.
"""

from tokcore.lazy_exports import exporter

_ORIGINS = {
    'BuildJob': 'pipelines.jobs.job',
    'BuildKeywords': 'pipelines.keyword_types',
    'CountJob': 'pipelines.jobs.job',
    'CountKeywords': 'pipelines.keyword_types',
    'EncodeJob': 'pipelines.jobs.job',
    'EncodeKeywords': 'pipelines.keyword_types',
    'Result': 'pipelines.calls',
    'VocabJob': 'pipelines.jobs.job',
    'VocabKeywords': 'pipelines.keyword_types',
    'build': 'pipelines.calls',
    'build_job': 'pipelines.calls',
    'count': 'pipelines.calls',
    'encode': 'pipelines.calls',
    'vocab': 'pipelines.calls',
    'CountSubstrings': 'pipelines.learning.suffix_transforms',
    'CountSubstringsByElement': 'pipelines.learning.plain_learner',
    'CountTokens': 'pipelines.transforms.count_tokens',
    'CountTokensByElement': 'pipelines.transforms.count_tokens',
    'EncodedFeature': 'pipelines.transforms.encode_blocks',
    'EncodeBlocks': 'pipelines.transforms.encode_blocks',
    'LearnVocabulary': 'pipelines.transforms.learn_vocabulary',
    'ReadBlocks': 'pipelines.transforms.read',
    'ReadCorpus': 'pipelines.transforms.read',
    'SplitShards': 'pipelines.transforms.encode_blocks',
    'WriteCounts': 'pipelines.transforms.count_tokens',
    'WriteShards': 'pipelines.transforms.write_shards',
}

__all__ = list(_ORIGINS)
__getattr__ = exporter(__name__, _ORIGINS)
