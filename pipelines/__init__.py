"""Beam jobs that count, learn and encode whole corpora.

`help(pipelines.NAME)` explains a name and shows an example.

Jobs, each as the command of its name
    build                       counts, learns, and writes shards of ids
    count, vocab, encode        the steps of `build`, one by one
    update                      adds files to a dataset, and removes rows
    source                      the lines that rows come from
    Result                      what a job returns: paths and manifests
    build_job                   the checked job of `build`, a BuildJob
    BuildKeywords, CountKeywords, VocabKeywords,
    EncodeKeywords, UpdateKeywords
                                the types of options, for type checkers

Transforms
    ReadCorpus                  files in any format to blocks of rows
    CountTokens                 blocks to tables of tokens and counts
    LearnVocabulary             counts to the file of a vocabulary
    EncodeBlocks                blocks to examples
    WriteShards                 examples to shuffled shards

Parts of transforms
    WriteCounts                 tables to Parquet files
    CountTokensByElement        counts with plain Beam, for comparison
    EncodedFeature, SplitShards what is encoded, and into which shards
"""

import typing

from tokcore import __version__ as __version__
from tokcore import exporter

if typing.TYPE_CHECKING:  # what `_NAMES` says, for type checkers
    from pipelines.calls import Result, build, build_job, count, encode, source, update, vocab
    from pipelines.jobs.job import BuildJob
    from pipelines.keyword_types import (
        BuildKeywords,
        CountKeywords,
        EncodeKeywords,
        UpdateKeywords,
        VocabKeywords,
    )
    from pipelines.transforms.count_tokens import CountTokens, CountTokensByElement, WriteCounts
    from pipelines.transforms.encode_blocks import EncodeBlocks, EncodedFeature, SplitShards
    from pipelines.transforms.learn_vocabulary import LearnVocabulary
    from pipelines.transforms.read import ReadCorpus
    from pipelines.transforms.write_shards import WriteShards

    __all__ = [
        'BuildJob', 'BuildKeywords', 'CountKeywords', 'CountTokens', 'CountTokensByElement',
        'EncodeBlocks', 'EncodeKeywords', 'EncodedFeature', 'LearnVocabulary', 'ReadCorpus', 'Result',
        'SplitShards', 'UpdateKeywords', 'VocabKeywords', 'WriteCounts', 'WriteShards', 'build',
        'build_job', 'count', 'encode', 'source', 'update', 'vocab',
    ]  # fmt: skip

_NAMES = {
    'pipelines.calls': ['Result', 'build', 'build_job', 'count', 'encode', 'source', 'update', 'vocab'],
    'pipelines.jobs.job': ['BuildJob'],
    'pipelines.keyword_types': [
        'BuildKeywords', 'CountKeywords', 'EncodeKeywords', 'UpdateKeywords', 'VocabKeywords',
    ],
    'pipelines.transforms.count_tokens': ['CountTokens', 'CountTokensByElement', 'WriteCounts'],
    'pipelines.transforms.encode_blocks': ['EncodeBlocks', 'EncodedFeature', 'SplitShards'],
    'pipelines.transforms.learn_vocabulary': ['LearnVocabulary'],
    'pipelines.transforms.read': ['ReadCorpus'],
    'pipelines.transforms.write_shards': ['WriteShards'],
}  # fmt: skip
"""The public names, by the modules that define them."""

if not typing.TYPE_CHECKING:
    __getattr__, __dir__ = exporter(__name__, _NAMES)
