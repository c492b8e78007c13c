"""A line that a vocabulary does not spell is named, with its file."""

import pytest

from tokcore.corpus.dataset import Block, BlockText, CorpusFile, Split
from tokcore.corpus.formats.bitext import Bitext
from tokcore.corpus.formats.lines import Lines
from tokcore.encoding.templates import NO_TEMPLATE
from tokcore.errors import InputError
from tokcore.records.example_encoding import Feature, FeatureEncoder, encode_block
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.t2t_lines import T2T_LINES

LACKING = SubwordTextEncoder(['<pad>_', '<EOS>_', 'a', '_', ' '])
"""Knows no escapes, so it spells nothing else."""

SOURCE, TARGET = (CorpusFile(name, name, 100, False) for name in ('/source', '/target'))


def encode(block, splits, sides):
    features = [
        FeatureEncoder(Feature(str(side), side), LACKING.row_encoder(), NO_TEMPLATE)
        for side in range(sides)
    ]
    encode_block(block, features, 0, splits, T2T_LINES)


def test_the_first_line_that_is_not_spelled_is_named():
    splits = (Split('train', Lines(), ((SOURCE,),)),)
    block = Block('train', Lines(), 0, (BlockText(10, b'a\n\na a\nab\nb\n'),))
    with pytest.raises(InputError, match="^/source: the line at byte 17: no subtoken .*'ab'.*; "):
        encode(block, splits, 1)


def test_of_a_pair_the_side_that_is_not_spelled_is_named():
    splits = (Split('train', Bitext(), ((SOURCE, TARGET),)),)
    block = Block('train', Bitext(), 0, (BlockText(0, b'a\naa\n'), BlockText(0, b'a\nb\n')))
    with pytest.raises(InputError, match='^/target: the pair of the line at byte 2 of /source: no'):
        encode(block, splits, 2)
