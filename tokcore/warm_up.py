"""Compiling all kernels of the block engine at once, before workers start.

Otherwise every worker process of a first run would compile the same kernels side by side; after
this they find them in the cache.
"""

import numpy as np

from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.corpus.dataset import Block, CorpusFile, Split
from tokcore.counts.block_counting import BlockCounter, TableMerger
from tokcore.counts.merging import partition_table
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.block_encoder import SubwordBlockEncoder
from tokcore.records.example_encoding import Feature, encode_block
from tokcore.records.framing import FramedRows, sort_rows, split_by_bucket
from tokcore.records.key_sorting import SortedRows
from tokcore.subword.text_encoder import SubwordTextEncoder

_MANY_TOKENS = 3_000  # more than a table has room for at first, so that it grows
_TEXT = 'one two\tÄ 字 👍\r\nthree,\t四 5\n'.encode()


def compile_kernels() -> None:
    """Runs a few lines of every kind through counting, encoding and shuffling."""
    file = CorpusFile('warm-up', 'warm-up', len(_TEXT), compressed=False)
    splits = (
        Split('text', 'text', (file,)),
        Split('tsv', 'tsv', (file,), columns=(0, 1)),
        Split('bitext', 'bitext', (file,), (file,)),
    )
    TableMerger().add(TokenTable.from_items((str(number), 1) for number in range(_MANY_TOKENS)))
    alphabet = sorted(set('<pad>EOS_\\u;0123456789') | set(_TEXT.decode()))
    encoder = SubwordTextEncoder(['<pad>_', '<EOS>_', *alphabet, 'one_'])
    for split in splits:
        target = _TEXT if split.kind == 'bitext' else None
        block = Block(split.name, split.kind, split.columns, 0, 0, _TEXT, 0, target)
        counter = BlockCounter(((0,),))
        counter.add(block, splits)
        [counted] = counter.finish()
        merger = TableMerger()
        for _, table in partition_table(counted, 2):
            merger.add(TokenTable.from_bytes(table.to_bytes()))
        merger.merged()
        feature = Feature('targets', 0, 'a prefix ')
        rows = encode_block(block, (feature,), (SubwordBlockEncoder(encoder),), 0, splits).rows
        lengths = rows.lengths.astype(np.uint32)
        SortedRows.of(rows.keys, rows.records, row_offsets(lengths)[:-1], lengths).records()
        sort_rows([FramedRows.from_bytes(part.to_bytes()) for _, part in split_by_bucket(rows, 2)])
