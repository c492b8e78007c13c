"""Compiling the kernels of the learner that is spread over workers, before they start."""

import numpy as np

from tokcore.compiled.compilation import frozen
from tokcore.subword.partitioned.partition_sweep import claim_group, finish_claims, order_subtokens
from tokcore.subword.partitioned.prefix_partitions import PrefixGroups
from tokcore.subword.partitioned.segmenting import Cutter, escaped_batches, pack_all_suffixes
from tokcore.subword.partitioned.suffix_table import SuffixTable, merge_suffix_tables

_TOKENS = (b'one', b'ones', b'two')


def compile_learner_kernels() -> None:
    """Runs three tokens through two iterations, in both ways of counting."""
    data = frozen(np.frombuffer(b''.join(_TOKENS), np.uint8))
    offsets = frozen(np.cumsum([0, *map(len, _TOKENS)], dtype=np.int64))
    counts = frozen(np.ones(len(_TOKENS), np.int64))
    groups, every = PrefixGroups((b'n',)), (0, 2)
    [batch] = escaped_batches(data, offsets, counts, 9)
    suffixes = pack_all_suffixes(batch, 9, groups, every)
    claimed = [claim_group(table, *groups.bounds(group), 1, 1) for group, table in suffixes]
    alphabet = ''.join(sorted(set(b''.join(_TOKENS).decode() + '_')))
    vocabulary = finish_claims([claims for claims, _ in claimed], groups.borders, alphabet, 1)
    order_subtokens(vocabulary)
    heavy = [SuffixTable.from_bytes(table.to_bytes()) for _, table in claimed]
    cutter = Cutter(vocabulary, ('one_',), heavy)
    weights = cutter.empty_weights()
    cutter.weigh(batch, weights)
    tables = [*cutter.tables(weights), *Cutter(vocabulary, (), None).pack(batch, 9, groups, every)]
    merge_suffix_tables(table for _, table in tables)
