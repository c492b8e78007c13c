"""Shards as nanoGPT's loader reads them: `train.bin`, and `val.bin` of the split `dev`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipelines.options.job import NANOGPT
from pipelines.shard_formats.flat import Flat
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.errors import InputError
from tokcore.records.flat import MOST_UINT16, flat_dtype
from tokcore.records.manifest import VocabularyRecord, file_of_shard, name_of_split

_DTYPE = 'uint16'
"""What the loader maps a file as; there is no other."""


class NanoGpt(Flat):
    """The one shard of each split as a flat stream, with the name that the loader opens."""

    name = NANOGPT
    endings = ('bin', 'csv.gz')

    def base_name(self, shard: str, feature: str) -> str:
        file = file_of_shard(shard)
        return shard if file is None else name_of_split(file.split)

    def dtype(self, vocab_size: int) -> str:
        return _DTYPE


def refuse_sides(sides: Sequence[str]) -> None:
    """Raises InputError if rows are pairs."""
    if len(sides) > 1:
        raise InputError(
            'nanoGPT reads one stream of ids, and pairs have two; give text, or the format flat'
        )


def refuse_ids(vocabularies: Iterable[VocabularyRecord], ends: Iterable[EndOfDocument]) -> None:
    """Raises InputError if ids of a vocabulary or the end of documents do not fit."""
    refuse_size(max([0, *(each.size for each in vocabularies), *(end.id + 1 for end in ends)]))


def refuse_size(ids: int) -> None:
    """Raises InputError if a vocabulary of so many ids does not fit."""
    if flat_dtype(ids) != _DTYPE:
        raise InputError(
            f'nanoGPT reads ids as {_DTYPE}, at most {MOST_UINT16:,} of them, and there are {ids:,}; take a '
            'smaller vocabulary, or the format flat'
        )
