"""What subword-nmt's apply-bpe does beside merging: glossaries, pieces split up, and dropout.

A glossary keeps what its expression matches whole, and what lies around it is segmented as words of
their own. A piece that is not in the vocabulary is split into the two that it was merged of, and these
again. `dropout` has the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tokcore.errors import InputError

_STRIPPED = '\r\n '  # by subword-nmt, from what follows the last match of a glossary


@dataclass(frozen=True)
class NmtRules:
    """How words are segmented, beside merging.

    Attributes:
        glossary: regular expressions.
        split_unknown: whether pieces that have no id are split.
        dropout: the chance, from 0 to 1, that a merge is left out each time that it could be made.
        seed: of dropout.
    """

    glossary: tuple[str, ...] = ()
    split_unknown: bool = False
    dropout: float = 0.0
    seed: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether words are only merged."""
        return not (self.glossary or self.split_unknown or self.dropout)

    def check(self, is_nmt: bool, path: str) -> None:
        """Raises InputError, naming a vocabulary's file, if it is not of subword-nmt and needs to be."""
        if not is_nmt and not self.is_plain:
            raise InputError(
                f'{path}: --glossary, --split-unknown and --dropout are for codes of subword-nmt; '
                'leave them out'
            )

    def segments(self, word: str) -> list[str]:
        """Returns what is segmented by itself: of `12low` and the glossary `[0-9]+`, `12` and `low`."""
        segments = [word]
        for glossary in self.glossary:
            segments = [part for segment in segments for part in _cut(segment, glossary)]
        return segments

    def is_kept(self, segment: str) -> bool:
        """Whether a segment is a match of a glossary, which is not segmented."""
        return (
            bool(self.glossary) and re.match(f'^({"|".join(self.glossary)})$', segment) is not None
        )


def _cut(segment: str, glossary: str) -> list[str]:
    if re.match(f'^{glossary}$', segment) or not re.search(glossary, segment):
        return [segment]
    *parts, end = re.split(f'({glossary})', segment)
    return [part for part in (*parts, end.strip(_STRIPPED)) if part]


def split_up(
    pieces: Sequence[str],
    halves: Mapping[str, tuple[str, str]],
    known: Collection[str],
    separator: str,
) -> list[str]:
    """Returns the pieces of a word in the vocabulary, as far as merges that are undone lead to them.

    Args:
        pieces: of the word, without separators.
        halves: the pair that is merged to a string, which ends with `</w>` at the end of words.
        known: the vocabulary; pieces end with the separator but for the last of a word.
        separator: `@@`.
    """
    out: list[str] = []
    waiting = [(piece, number == 0) for number, piece in enumerate(reversed(pieces))]
    while waiting:
        piece, is_last = waiting.pop()
        pair = None
        if (piece if is_last else piece + separator) not in known:
            pair = halves.get(f'{piece}</w>' if is_last else piece)
        if pair is None:
            out.append(piece)
            continue
        left, right = pair
        waiting.append((right[: -len('</w>')] if is_last else right, is_last))
        waiting.append((left, False))
    return out
