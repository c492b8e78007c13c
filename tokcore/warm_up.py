"""Compiling all kernels of the block engine at once, before workers start.

Otherwise every worker process of a first run would compile the same kernels side by side; after
this they find them in the cache.
"""

import numpy as np

from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.corpus.dataset import Block, BlockText, CorpusFile, Split
from tokcore.corpus.formats.registry import all_formats
from tokcore.counts.block_counting import BlockCounter, TableMerger
from tokcore.counts.merging import partition_table
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Scheme
from tokcore.records.example_encoding import Feature, FeatureEncoder, encode_block
from tokcore.records.framing import FramedRows, sort_rows, split_by_bucket
from tokcore.records.key_sorting import SortedRows

_MANY_TOKENS = 3_000  # more than a table has room for at first, so that it grows
_TEXT = 'one two\tÄ 字 👍\r\nthree,\t四 5\n'.encode()


def compile_kernels(scheme: Scheme) -> None:
    """Runs a few lines of every format through a scheme's counting and encoding, and shuffling."""
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
