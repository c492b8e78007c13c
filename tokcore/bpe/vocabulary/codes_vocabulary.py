"""Codes as vocabularies: symbols are numbers for kernels, and get ids from a list of pieces.

subword-nmt's symbols are strings, and two that are spelt alike are one, however they were merged.
Here a character is its code point, as the end of a word `CODE_POINTS` more, and what else the codes
name follows.
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.bpe.vocabulary.codes_file import Merges, dump_nmt_codes, dump_textbook_codes
from tokcore.encoding.special_ids import SpecialIds, special_ids_by_name
from tokcore.errors import InputError
from tokcore.text.unicode_tables import CODE_POINTS

if typing.TYPE_CHECKING:
    from tokcore.bpe.merging.longest_pieces import LongestPieceModel
    from tokcore.bpe.merging.merge_model import MergeModel

END_OF_WORD = '</w>'
SEPARATOR = '@@'
UNKNOWN = '[UNK]'

_NO_ENTRY = -1
_SEPARATED = re.compile(f'{SEPARATOR} |{SEPARATOR} ?$')


@dataclass(frozen=True)
class CodesVocabulary:
    """What subword-nmt's codes and the textbook's have in common.

    Attributes:
        merges: (left, right) by rank.
        entries: the pieces by id, special ones among them; None: nothing has an id.
        path: that errors name.
    """

    merges: Merges
    entries: tuple[str, ...] | None = None
    path: str = 'the codes'

    @property
    def vocab_size(self) -> int:
        """How many ids there are; without any, merges."""
        return len(self.merges) if self.entries is None else len(self.entries)

    @functools.cached_property
    def ids(self) -> Mapping[str, int]:
        """The id of each piece, of equal ones the first.

        Raises:
            InputError: nothing has an id.
        """
        if self.entries is None:
            raise InputError(
                f'{self.path} has no ids: they are the lines of a .vocab file beside it, which '
                '`tokbeam count --text … --pieces --vocab X.codes --output T` writes with T'
            )
        return {entry: id_ for id_, entry in reversed([*enumerate(self.entries)])}

    @functools.cached_property
    def special_ids(self) -> SpecialIds:
        return SpecialIds() if self.entries is None else special_ids_by_name(self.ids.get)

    def id_of(self, token: str) -> int | None:
        return None if self.entries is None else self.ids.get(token)

    def dump_entries(self) -> bytes:
        """Returns the .vocab file: a piece a line, by id."""
        return ''.join(f'{entry}\n' for entry in self.entries or ()).encode()

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces by id, as they are written."""
        return self.entries or ()

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns what `decode` gives, in UTF-8."""
        return self.decode(ids).encode()

    def pieces_of(self, ids: Iterable[int]) -> list[str]:
        """Returns the pieces of ids; nothing for one out of range."""
        entries = self.entries or ()
        return [entries[id_] for id_ in ids if 0 <= id_ < len(entries)]

    def _text_ids(self) -> dict[str, int]:
        """The ids of pieces that text can have: special ones cannot be written in it."""
        special = {id_ for id_ in self.special_ids if id_ is not None}
        return {entry: id_ for entry, id_ in self.ids.items() if id_ not in special}

    def _without_id(self, token: str, number: int) -> str:
        piece = self.pieces_in(token)[number]
        return (
            f'the piece {piece[:60]!r} of {token[:60]!r} is no line of the .vocab file beside '
            f'{self.path}, and there is none for unknown ones; count the pieces again, or add <unk>'
        )

    def pieces_in(self, token: str) -> list[str]:
        """Returns the pieces of one token of text, as they are written."""
        from tokcore.text.padded_text import with_margin
        from tokcore.text.pre_tokenizer import RowPart

        data = np.frombuffer(token.encode('utf-8', 'surrogatepass'), np.uint8)
        part = RowPart(with_margin(data), 0, len(data), True)
        [symbols] = self.piece_model.segment_long_token(part)
        return self.written(symbols)


@dataclass(frozen=True)
class NmtVocabulary(CodesVocabulary):
    """Codes of subword-nmt: merges by rank, and an end of word glued to the last character."""

    @functools.cached_property
    def _symbols(self) -> dict[str, int]:
        """The numbers of symbols that are no characters."""
        mentioned = (each for left, right in self.merges for each in (left, right, left + right))
        others = dict.fromkeys(each for each in mentioned if _character_symbol(each) is None)
        return {each: 2 * CODE_POINTS + number for number, each in enumerate(others)}

    @functools.cached_property
    def _texts(self) -> list[str]:
        return list(self._symbols)

    def _symbol(self, text: str) -> int | None:
        found = _character_symbol(text)
        return self._symbols.get(text) if found is None else found

    def _text(self, symbol: int) -> str:
        if symbol < CODE_POINTS:
            return chr(symbol)
        if symbol < 2 * CODE_POINTS:
            return chr(symbol - CODE_POINTS) + END_OF_WORD
        return self._texts[symbol - 2 * CODE_POINTS]

    @functools.cached_property
    def piece_model(self) -> MergeModel:
        """A model whose ids are numbers of symbols: every text has such, see `written`."""
        return self._model(2 * CODE_POINTS + len(self._symbols), None)

    @functools.cached_property
    def model(self) -> MergeModel:
        unknown = self.special_ids.unknown
        outputs = np.full(
            2 * CODE_POINTS + len(self._symbols),
            _NO_ENTRY if unknown is None else unknown,
            np.int32,
        )
        for piece, id_ in self._text_ids().items():
            within = piece.removesuffix(SEPARATOR)
            texts = [piece + END_OF_WORD] if within == piece else [piece + END_OF_WORD, within]
            for symbol in map(self._symbol, texts):
                if symbol is not None:
                    outputs[symbol] = id_
        return self._model(self.vocab_size, outputs)

    def _model(self, size: int, outputs: np.ndarray | None) -> MergeModel:
        from tokcore.bpe.merging.merge_model import MergeModel, merge_numbers
        from tokcore.bpe.merging.token_symbols import NONE, Units
        from tokcore.compiled.compilation import read_only

        numbers = [
            tuple(map(self._symbol, (left, right, left + right))) for left, right in self.merges
        ]
        none, no_bytes = np.empty(0, np.int32), np.empty(0, np.uint32)
        arrays = map(read_only, (none, no_bytes, none, np.full(256, NONE, np.int32)))
        units = Units(*arrays, NONE, 0)
        return MergeModel(
            read_only(merge_numbers(numbers)),
            units,
            size=size,
            outputs=outputs,
            at_once=True,
            describe=self._without_id,
        )

    def written(self, symbols: Iterable[int]) -> list[str]:
        """Returns the pieces of one token from its symbols, `@@` behind all but the last."""
        texts = [self._text(int(symbol)) for symbol in symbols]
        return [
            *(text + SEPARATOR for text in texts[:-1]),
            *(text.removesuffix(END_OF_WORD) for text in texts[-1:]),
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the words of ids, whose pieces are joined."""
        return self.joined(self.pieces_of(ids))

    def joined(self, pieces: Iterable[str]) -> str:
        """Returns the words of pieces."""
        return _SEPARATED.sub('', ' '.join(pieces))

    def dump(self) -> bytes:
        return dump_nmt_codes(self.merges)


def _character_symbol(text: str) -> int | None:
    if len(text) == 1:
        return ord(text)
    is_last = len(text) == 1 + len(END_OF_WORD) and text.endswith(END_OF_WORD)
    return CODE_POINTS + ord(text[0]) if is_last else None


@dataclass(frozen=True)
class TextbookVocabulary(CodesVocabulary):
    """The textbook's: characters and merged pieces, of which the longest is taken from the left.

    Attributes:
        characters: those of the tokens that it was learned from; no other has a piece.
    """

    characters: str = ''

    @functools.cached_property
    def symbols(self) -> tuple[str, ...]:
        """What text is cut into, by number, `UNKNOWN` first."""
        merged = (left + right for left, right in self.merges)
        return tuple(dict.fromkeys((UNKNOWN, *self.characters, *merged)))

    @functools.cached_property
    def piece_model(self) -> LongestPieceModel:
        """A model whose ids are numbers of `symbols`."""
        from tokcore.bpe.merging.longest_pieces import LongestPieceModel

        return LongestPieceModel(
            self.symbols[1:], range(1, len(self.symbols)), 0, self._without_id
        )

    @functools.cached_property
    def model(self) -> LongestPieceModel:
        from tokcore.bpe.merging.longest_pieces import LongestPieceModel

        unknown = self.special_ids.unknown
        unknown = _NO_ENTRY if unknown is None else unknown
        ids = self._text_ids()
        found = [ids.get(piece, unknown) for piece in self.symbols[1:]]
        return LongestPieceModel(self.symbols[1:], found, unknown, self._without_id)

    def written(self, symbols: Iterable[int]) -> list[str]:
        """Returns the pieces of numbers."""
        return [self.symbols[symbol] for symbol in symbols]

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the words of ids: pieces are joined, and `_` ends a word."""
        return self.joined(self.pieces_of(ids))

    def joined(self, pieces: Iterable[str]) -> str:
        """Returns the words of pieces."""
        return ''.join(pieces).replace('_', ' ').removesuffix(' ')

    def dump(self) -> bytes:
        return dump_textbook_codes(self.characters, self.merges)
