"""Apache Beam jobs over tokcore: reading, counting, learning and encoding whole corpora.

The transforms are for pipelines of one's own; `build`, `count`, `vocab`, `encode` and `source` are
the commands as calls.
"""

import typing

from tokcore.lazy_exports import exporter

if typing.TYPE_CHECKING:  # what `_ORIGINS` says, for type checkers
    from pipelines.calls import Result, build, build_job, count, encode, source, vocab
    from pipelines.jobs.job import BuildJob, CountJob, EncodeJob, VocabJob
    from pipelines.keyword_types import BuildKeywords, CountKeywords, EncodeKeywords, VocabKeywords
    from pipelines.learning.plain_learner import CountSubstringsByElement
    from pipelines.learning.suffix_transforms import CountSubstrings
    from pipelines.transforms.count_tokens import CountTokens, CountTokensByElement, WriteCounts
    from pipelines.transforms.encode_blocks import EncodeBlocks, EncodedFeature, SplitShards
    from pipelines.transforms.learn_vocabulary import LearnVocabulary
    from pipelines.transforms.read import ReadBlocks, ReadCorpus
    from pipelines.transforms.write_shards import WriteShards

_ORIGINS = {
    'BuildJob': 'pipelines.jobs.job',
    'BuildKeywords': 'pipelines.keyword_types',
    'CountJob': 'pipelines.jobs.job',
    'CountKeywords': 'pipelines.keyword_types',
    'CountSubstrings': 'pipelines.learning.suffix_transforms',
    'CountSubstringsByElement': 'pipelines.learning.plain_learner',
    'CountTokens': 'pipelines.transforms.count_tokens',
    'CountTokensByElement': 'pipelines.transforms.count_tokens',
    'EncodeBlocks': 'pipelines.transforms.encode_blocks',
    'EncodeJob': 'pipelines.jobs.job',
    'EncodeKeywords': 'pipelines.keyword_types',
    'EncodedFeature': 'pipelines.transforms.encode_blocks',
    'LearnVocabulary': 'pipelines.transforms.learn_vocabulary',
    'ReadBlocks': 'pipelines.transforms.read',
    'ReadCorpus': 'pipelines.transforms.read',
    'Result': 'pipelines.calls',
    'SplitShards': 'pipelines.transforms.encode_blocks',
    'VocabJob': 'pipelines.jobs.job',
    'VocabKeywords': 'pipelines.keyword_types',
    'WriteCounts': 'pipelines.transforms.count_tokens',
    'WriteShards': 'pipelines.transforms.write_shards',
    'build': 'pipelines.calls',
    'build_job': 'pipelines.calls',
    'count': 'pipelines.calls',
    'encode': 'pipelines.calls',
    'source': 'pipelines.calls',
    'vocab': 'pipelines.calls',
}

__all__ = [
    'BuildJob',
    'BuildKeywords',
    'CountJob',
    'CountKeywords',
    'CountSubstrings',
    'CountSubstringsByElement',
    'CountTokens',
    'CountTokensByElement',
    'EncodeBlocks',
    'EncodeJob',
    'EncodeKeywords',
    'EncodedFeature',
    'LearnVocabulary',
    'ReadBlocks',
    'ReadCorpus',
    'Result',
    'SplitShards',
    'VocabJob',
    'VocabKeywords',
    'WriteCounts',
    'WriteShards',
    'build',
    'build_job',
    'count',
    'encode',
    'source',
    'vocab',
]

if not typing.TYPE_CHECKING:
    __getattr__ = exporter(__name__, _ORIGINS)


def __dir__() -> list[str]:
    return __all__
