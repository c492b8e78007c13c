"""Reversed words by id, a line each in their file."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from tokcore.encoding.vocabulary import SpecialIds


@dataclass(frozen=True)
class ReverseVocabulary:
    """The entries by id, the special ones among them."""

    entries: tuple[str, ...]

    @classmethod
    def of(cls, words: Iterable[str]) -> ReverseVocabulary:
        """Puts the special ones before others."""
        return cls(('<pad>', '<unk>', '<s>', '</s>', *words))

    @property
    def vocab_size(self) -> int:
        return len(self.entries)

    @property
    def special_ids(self) -> SpecialIds:
        return SpecialIds(pad=0, begin=2, end=3, unknown=1)

    def id_of(self, token: str) -> int | None:
        return self.entries.index(token) if token in self.entries else None

    @functools.cached_property
    def model(self):
        from reverse_model import ReverseModel

        return ReverseModel(self.entries, self.special_ids.unknown)

    def dump(self) -> bytes:
        return ''.join(f'{entry}\n' for entry in self.entries).encode()

    def decode(self, ids: Iterable[int]) -> str:
        return ' '.join(self.entries[id_][:: 1 if id_ < 4 else -1] for id_ in ids)
