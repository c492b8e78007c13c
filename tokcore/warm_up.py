"""Compiles the kernels that all workers need, before they start.

Otherwise each worker process of a first run would compile the same kernels at the same time; now
they find them in the cache.
"""

import numpy as np

from tokcore.corpus.corpus import Block, BlockText, CorpusFile, Split
from tokcore.corpus.formats import all_formats
from tokcore.counts.tables import BlockCounter, TableMerger, partition_table
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Scheme
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import read_only
from tokcore.kernels.sorting import SortedRows
from tokcore.records.examples import Feature, FeatureEncoder, encode_block
from tokcore.records.tfrecord import FramedRows, sort_rows, split_by_bucket
from tokcore.subword.partitioned.segmenting import Segmenter, escaped_batches, pack_all_suffixes
from tokcore.subword.partitioned.suffix_tables import (
    PrefixPartitions,
    SuffixTable,
    merge_suffix_tables,
)
from tokcore.subword.partitioned.sweep import merge_selections, order_subtokens, select_partition

_TOKENS = (b'one', b'ones', b'two')

_MANY_TOKENS = (
    3_000  # more than a table has room for at first, so that the kernel that grows it runs
)
_TEXT = 'one two\tÄ 字 👍\r\nthree,\t四 5\n'.encode()


def compile_learner_kernels() -> None:
    """Runs three tokens through two iterations of the subword learner, in both ways of counting."""
    data = read_only(np.frombuffer(b''.join(_TOKENS), np.uint8))
    offsets = read_only(np.cumsum([0, *map(len, _TOKENS)], dtype=np.int64))
    counts = read_only(np.ones(len(_TOKENS), np.int64))
    groups, every = PrefixPartitions((b'n',)), (0, 2)
    [batch] = escaped_batches(data, offsets, counts, 9)
    suffixes = pack_all_suffixes(batch, 9, groups, every)
    claimed = [select_partition(table, *groups.bounds(group), 1, 1) for group, table in suffixes]
    alphabet = ''.join(sorted(set(b''.join(_TOKENS).decode() + '_')))
    vocabulary = merge_selections(
        [selected for selected, _ in claimed], groups.borders, alphabet, 1
    )
    order_subtokens(vocabulary)
    frequent = [SuffixTable.from_bytes(table.to_bytes()) for _, table in claimed]
    segmenter = Segmenter(vocabulary, ('one_',), frequent)
    weights = segmenter.empty_weights()
    segmenter.weigh(batch, weights)
    tables = [
        *segmenter.tables(weights),
        *Segmenter(vocabulary, (), None).pack(batch, 9, groups, every),
    ]
    merge_suffix_tables(table for _, table in tables)


def compile_kernels(scheme: Scheme) -> None:
    """Counts, encodes and shuffles a few lines of every format with a scheme."""
    file = CorpusFile('warm-up', 'warm-up', len(_TEXT), compressed=False)
    formats = [each() for each in all_formats() if each.takes_any_text]
    splits = tuple(Split(each.name, each, ((file,) * len(each.roles),)) for each in formats)
    TableMerger().add(TokenTable.from_items((str(number), 1) for number in range(_MANY_TOKENS)))
    vocabulary = scheme.vocabulary_of(sorted(set(_TEXT.decode())))
    template = scheme.template(vocabulary)
    for split in splits:
        texts = tuple(BlockText(0, _TEXT) for _ in split.format.roles)
        block = Block(split.name, split.format, 0, texts)
        counter = BlockCounter(((0,),), scheme.normalizer, scheme.pre_tokenizer)
        counter.add(block, splits)
        [counted] = counter.finish()
        merger = TableMerger()
        for _, table in partition_table(counted, 2):
            merger.add(TokenTable.from_bytes(table.to_bytes()))
        merger.merged()
        feature = FeatureEncoder(
            Feature('targets', 0, 'a prefix '),
            scheme.encoder(vocabulary),
            template,
            vocabulary.special_ids.unknown,
        )
        rows = encode_block(block, (feature,), 0, splits, scheme.normalizer).rows
        lengths = rows.lengths.astype(np.uint32)
        SortedRows.of(rows.keys, rows.records, row_offsets(lengths)[:-1], lengths).records()
        sort_rows([FramedRows.from_bytes(part.to_bytes()) for _, part in split_by_bucket(rows, 2)])
