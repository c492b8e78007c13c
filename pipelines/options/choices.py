"""Options that are one of a few words: the words, as types."""

from typing import Literal, get_args

OutputFormat = Literal['tfrecord', 'text', 'parquet']
"""What the shards of a dataset are."""

TFRECORD, TEXT, PARQUET = get_args(OutputFormat)

NameStyle = Literal['plain', 't2t']
"""How the vocabularies of a dataset are called."""

PairSide = Literal['inputs', 'targets', 'both']
"""What `--side` chooses of a pair, and what a vocabulary is of."""
