"""Rows whose tokens the vocabulary's file cannot hold: left out before any of them is counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.rows import UNSTORABLE_TOKEN, Reject
from tokcore.corpus.sampling.sampled_rows import CountedRows
from tokcore.text.character_names import character_name
from tokcore.text.sides import Side


@dataclass(frozen=True)
class UnstorableTokens:
    """Which tokens cannot be entries of a vocabulary.

    Attributes:
        characters: of ASCII; a token with one of them is such.
        tokens: cuts the text of a row into tokens, in plain Python: it is called for rows that have
            such a character, which lines have not.
    """

    characters: str
    tokens: Callable[[str], Iterable[str]]

    def left_out(self, counted: CountedRows, sides: Iterable[int]) -> CountedRows:
        """Returns rows without those that have such a token on one of the sides counted.

        Lines of a sample that is of each side by itself stay as they are.
        """
        rows = counted.rows
        if counted.sides is not rows.sides:
            return counted
        rejects: dict[int, Reject] = {}
        for number in sides:
            for row in self._rows_with(rows.sides[number]):
                found = self._found(rows.sides[number].row(row))
                if found and row not in rejects:
                    at = int(rows.offsets[row])
                    line = rows.sides[number].row(row).encode()
                    rejects[row] = Reject(UNSTORABLE_TOKEN, 0, at, at, line, why=_why(found))
        if not rejects:
            return counted
        stays = np.ones(len(rows), bool)
        stays[list(rejects)] = False
        left = rows.at(np.flatnonzero(stays))
        more = tuple(rejects[row] for row in sorted(rejects))
        left = dataclasses.replace(left, rejects=(*rows.rejects, *more))
        return CountedRows(left, left.sides)

    def _rows_with(self, side: Side) -> Iterator[int]:
        """Yields the rows of a side that have one of the characters."""
        wanted = np.zeros(256, bool)
        wanted[list(self.characters.encode())] = True
        places = np.flatnonzero(wanted[side.text])
        # Between rows stands what is nobody's, line feeds above all.
        first = np.searchsorted(places, side.starts)
        is_within = np.append(places, np.iinfo(np.int64).max)[first] < side.ends
        yield from np.flatnonzero(is_within).tolist()

    def _found(self, text: str) -> str | None:
        """Returns the character that one of a text's tokens has."""
        for token in self.tokens(text):
            for character in self.characters:
                if character in token:
                    return character
        return None


def _why(character: str) -> str:
    return (
        f'a token of it has {character_name(character)}, and a vocabulary file of this scheme holds '
        'none; write it otherwise, or leave such rows out with --on-error=skip'
    )
