"""Compiling the kernels of the learner that is spread over workers, before they start."""

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.subword.partitioned.partition_sweep import (
    merge_selections,
    order_subtokens,
    select_partition,
)
from tokcore.subword.partitioned.prefix_partitions import PrefixPartitions
from tokcore.subword.partitioned.segmenting import Segmenter, escaped_batches, pack_all_suffixes
from tokcore.subword.partitioned.suffix_table import SuffixTable, merge_suffix_tables

_TOKENS = (b'one', b'ones', b'two')


def compile_learner_kernels() -> None:
    """Runs three tokens through two iterations, in both ways of counting."""
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
