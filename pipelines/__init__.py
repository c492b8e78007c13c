"""Apache Beam jobs over tokcore: reading, counting, learning and encoding whole corpora.

The transforms are for pipelines of one's own; `build`, `count`, `vocab`, `encode`, `update` and `source` are
the commands as calls.
"""

import typing

from tokcore import exporter

if typing.TYPE_CHECKING:  # what `_NAMES` says, for type checkers
    from pipelines.calls import Result, build, build_job, count, encode, source, update, vocab
    from pipelines.jobs.job import BuildJob, CountJob, EncodeJob, VocabJob
    from pipelines.keyword_types import (
        BuildKeywords,
        CountKeywords,
        EncodeKeywords,
        UpdateKeywords,
        VocabKeywords,
    )
    from pipelines.learning.suffix_transforms import CountSubstrings
    from pipelines.transforms.count_tokens import CountTokens, CountTokensByElement, WriteCounts
    from pipelines.transforms.encode_blocks import EncodeBlocks, EncodedFeature, SplitShards
    from pipelines.transforms.learn_vocabulary import LearnVocabulary
    from pipelines.transforms.read import ReadBlocks, ReadCorpus
    from pipelines.transforms.write_shards import WriteShards

_NAMES = {
    'pipelines.calls': ['Result', 'build', 'build_job', 'count', 'encode', 'source', 'update', 'vocab'],
    'pipelines.jobs.job': ['BuildJob', 'CountJob', 'EncodeJob', 'VocabJob'],
    'pipelines.keyword_types': [
        'BuildKeywords', 'CountKeywords', 'EncodeKeywords', 'UpdateKeywords', 'VocabKeywords',
    ],
    'pipelines.learning.suffix_transforms': ['CountSubstrings'],
    'pipelines.transforms.count_tokens': ['CountTokens', 'CountTokensByElement', 'WriteCounts'],
    'pipelines.transforms.encode_blocks': ['EncodeBlocks', 'EncodedFeature', 'SplitShards'],
    'pipelines.transforms.learn_vocabulary': ['LearnVocabulary'],
    'pipelines.transforms.read': ['ReadBlocks', 'ReadCorpus'],
    'pipelines.transforms.write_shards': ['WriteShards'],
}  # fmt: skip
"""The public names, by the modules that define them."""

__all__ = [
    'BuildJob', 'BuildKeywords', 'CountJob', 'CountKeywords', 'CountSubstrings',
    'CountTokens', 'CountTokensByElement', 'EncodeBlocks', 'EncodeJob',
    'EncodeKeywords', 'EncodedFeature', 'LearnVocabulary', 'ReadBlocks', 'ReadCorpus', 'Result',
    'SplitShards', 'UpdateKeywords', 'VocabJob', 'VocabKeywords', 'WriteCounts', 'WriteShards', 'build', 'build_job',
    'count', 'encode', 'source', 'update', 'vocab',
]  # fmt: skip

if not typing.TYPE_CHECKING:
    __getattr__ = exporter(__name__, _NAMES)


def __dir__() -> list[str]:
    return __all__
