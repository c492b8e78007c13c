"""Codes: merges as lines of two symbols, as subword-nmt 0.2 writes them, and the textbook's.

    #version: 0.2            #version: tokbeam textbook
    e s                      _aeflrst
    es t</w>                 t a

The second line of the textbook's lists the characters of the tokens that it was learned from; its
words end with `_`. Here a symbol is a number: a character's code point, plus `CODE_POINTS` if it is
the last of its word, and numbers from 2 * `CODE_POINTS` on for others. Codes have no ids: these
come from a list of the pieces of a text, which is counted with the codes.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.bpe.model import LongestPieceModel, MergeModel
from tokcore.bpe.model_kernels import NO_ENTRY, numbered_units
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.encoder import RowEncoder
from tokcore.encoding.vocabulary import SpecialIds, special_ids_by_name
from tokcore.errors import InputError
from tokcore.kernels.bytes import with_margin
from tokcore.text.pre_tokenizer import ListedTokens, PreTokenizer, RowPart, RowTokens, TextRows
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS

SPECIAL_TOKENS = ('<pad>', '</s>', '<unk>')
"""The entries before pieces, by default."""

BLANK = '\r\n '
"""The characters that subword-nmt strips from lines."""

END_OF_WORD = '</w>'
SEPARATOR = '@@'
UNKNOWN = '[UNK]'

_NMT_VERSION = '#version: 0.2'
_TEXTBOOK_VERSION = '#version: tokbeam textbook'

_SEPARATED = re.compile(f'{SEPARATOR} |{SEPARATOR} ?$')

Merges = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CodesVocabulary(abc.ABC):
    """Merges, and ids of pieces if there is a list of them.

    Attributes:
        merges: (left, right) by rank.
        entries: the pieces by id, with special tokens; None if there is no list.
        path: of the file, for errors.
    """

    merges: Merges
    entries: tuple[str, ...] | None = None
    path: str = 'the codes'

    @property
    def vocab_size(self) -> int:
        """The number of ids; without ids, the number of merges."""
        return len(self.merges) if self.entries is None else len(self.entries)

    @functools.cached_property
    def ids(self) -> Mapping[str, int]:
        """The id of each piece; the first of equal ones counts.

        Raises:
            InputError: there is no list of pieces.
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
        """Returns the .vocab file: a piece on each line, by id."""
        return ''.join(f'{entry}\n' for entry in self.entries or ()).encode()

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces by id."""
        return self.entries or ()

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids."""
        return self.joined(self.pieces_of(ids))

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns `decode` in UTF-8."""
        return self.decode(ids).encode()

    def pieces_of(self, ids: Iterable[int]) -> list[str]:
        """Returns the pieces of ids; ids out of range have none."""
        return [self.pieces[id_] for id_ in ids if 0 <= id_ < len(self.pieces)]

    def text_ids(self) -> dict[str, int]:
        """Returns the ids of pieces of text: special tokens cannot occur in it."""
        special = {id_ for id_ in self.special_ids if id_ is not None}
        return {entry: id_ for entry, id_ in self.ids.items() if id_ not in special}

    def _describe_missing_id(self, token: str, index: int) -> str:
        piece = self.pieces_in(token)[index]
        return (
            f'the piece {piece[:60]!r} of {token[:60]!r} is not in the .vocab file beside {self.path}, '
            'which has no <unk>; count the pieces again, or add <unk>'
        )

    def pieces_in(self, token: str) -> list[str]:
        """Returns the pieces of one token of text."""
        data = np.frombuffer(token.encode('utf-8', 'surrogatepass'), np.uint8)
        part = RowPart(with_margin(data), 0, len(data), True)
        [symbols] = self.piece_model.segment_long_token(part)
        return self.pieces_of_symbols(symbols)

    @property
    @abc.abstractmethod
    def piece_model(self) -> MergeModel | LongestPieceModel:
        """The model whose ids are symbols, of which every text has some."""

    @property
    @abc.abstractmethod
    def model(self) -> MergeModel | LongestPieceModel:
        """The model that gives ids."""

    @abc.abstractmethod
    def dump(self) -> bytes:
        """Returns the file of codes. Raises ValueError if a space is in a merge, whose sides it separates."""

    @abc.abstractmethod
    def pieces_of_symbols(self, symbols: Iterable[int]) -> list[str]:
        """Returns the pieces of one token from its symbols."""

    @abc.abstractmethod
    def joined(self, pieces: Iterable[str]) -> str:
        """Returns the text of pieces."""


@dataclass(frozen=True)
class NmtVocabulary(CodesVocabulary):
    """subword-nmt's codes: the last character of a word is a symbol with the suffix `</w>`."""

    @functools.cached_property
    def _symbols(self) -> dict[str, int]:
        """The symbols of strings that are not single characters."""
        strings = (text for left, right in self.merges for text in (left, right, left + right))
        others = dict.fromkeys(text for text in strings if _character_symbol(text) is None)
        return {text: 2 * CODE_POINTS + index for index, text in enumerate(others)}

    @functools.cached_property
    def _strings(self) -> list[str]:
        return list(self._symbols)

    def _symbol(self, text: str) -> int:
        symbol = _character_symbol(text)
        return self._symbols[text] if symbol is None else symbol

    def _text(self, symbol: int) -> str:
        if symbol < CODE_POINTS:
            return chr(symbol)
        if symbol < 2 * CODE_POINTS:
            return chr(symbol - CODE_POINTS) + END_OF_WORD
        return self._strings[symbol - 2 * CODE_POINTS]

    @functools.cached_property
    def piece_model(self) -> MergeModel:
        return self._model(2 * CODE_POINTS + len(self._symbols), None)

    @functools.cached_property
    def model(self) -> MergeModel:
        unknown = NO_ENTRY if self.special_ids.unknown is None else self.special_ids.unknown
        outputs = np.full(2 * CODE_POINTS + len(self._symbols), unknown, np.int32)
        for text, id_ in self.ids_of_symbols().items():
            outputs[self._symbol(text)] = id_
        return self._model(self.vocab_size, outputs)

    def ids_of_symbols(self) -> dict[str, int]:
        """Returns the ids of symbols, spelled as in merges, without special tokens."""
        # `a@@` is a piece within a word, but also the last piece of a word that ends with @@.
        return {
            text: id_
            for piece, id_ in self.text_ids().items()
            for text in {piece + END_OF_WORD, piece.removesuffix(SEPARATOR)} - {piece}
            if _character_symbol(text) is not None or text in self._symbols
        }

    def with_all_symbols(self) -> NmtVocabulary:
        """Returns these codes with ids for all symbols of merges: those without one get the next."""
        pieces = {
            text.removesuffix(END_OF_WORD) if text.endswith(END_OF_WORD) else text + SEPARATOR
            for left, right in self.merges
            for text in (left, right, left + right)
        }
        return dataclasses.replace(self, entries=(*self.pieces, *sorted(pieces - self.ids.keys())))

    def _model(self, size: int, outputs: np.ndarray | None) -> MergeModel:
        merges = [
            (self._symbol(left), self._symbol(right), self._symbol(left + right))
            for left, right in self.merges
        ]
        return MergeModel(
            merges,
            numbered_units(),
            size=size,
            outputs=outputs,
            batched_merges=True,
            describe=self._describe_missing_id,
        )

    def pieces_of_symbols(self, symbols: Iterable[int]) -> list[str]:
        """Returns the pieces of one token, with `@@` after all but the last."""
        texts = [self._text(int(symbol)) for symbol in symbols]
        return [
            *(text + SEPARATOR for text in texts[:-1]),
            *(text.removesuffix(END_OF_WORD) for text in texts[-1:]),
        ]

    def joined(self, pieces: Iterable[str]) -> str:
        return _SEPARATED.sub('', ' '.join(pieces))

    def dump(self) -> bytes:
        """Returns the file, as subword-nmt 0.3.8 writes it."""
        return '\n'.join([_NMT_VERSION, *map(_merge_line, self.merges), '']).encode()


@dataclass(frozen=True)
class TextbookVocabulary(CodesVocabulary):
    """The textbook's codes: text is segmented into the longest pieces from the left.

    Attributes:
        characters: of the tokens that it was learned from; others are `UNKNOWN`.
    """

    characters: str = ''

    @functools.cached_property
    def symbols(self) -> tuple[str, ...]:
        """The pieces by symbol, `UNKNOWN` first."""
        merged = (left + right for left, right in self.merges)
        return tuple(dict.fromkeys((UNKNOWN, *self.characters, *merged)))

    @functools.cached_property
    def piece_model(self) -> LongestPieceModel:
        pieces = self.symbols[1:]
        return LongestPieceModel(pieces, range(1, len(self.symbols)), 0, self._describe_missing_id)

    @functools.cached_property
    def model(self) -> LongestPieceModel:
        unknown = NO_ENTRY if self.special_ids.unknown is None else self.special_ids.unknown
        ids = self.text_ids()
        outputs = [ids.get(piece, unknown) for piece in self.symbols[1:]]
        return LongestPieceModel(self.symbols[1:], outputs, unknown, self._describe_missing_id)

    def pieces_of_symbols(self, symbols: Iterable[int]) -> list[str]:
        return [self.symbols[symbol] for symbol in symbols]

    def joined(self, pieces: Iterable[str]) -> str:
        return ''.join(pieces).replace('_', ' ').removesuffix(' ')

    def dump(self) -> bytes:
        lines = [_TEXTBOOK_VERSION, self.characters, *map(_merge_line, self.merges), '']
        return '\n'.join(lines).encode()


def _merge_line(pair: tuple[str, str]) -> str:
    if ' ' in ''.join(pair):
        raise ValueError(
            f'the merge of {pair[0]!r} and {pair[1]!r} has a space, which separates the two in a file of '
            'codes; leave out tokens with spaces'
        )
    return ' '.join(pair)


def _character_symbol(text: str) -> int | None:
    """Returns the symbol of a character, or of one with the suffix; None for other strings."""
    if len(text) == 1:
        return ord(text)
    is_last = len(text) == 1 + len(END_OF_WORD) and text.endswith(END_OF_WORD)
    return CODE_POINTS + ord(text[0]) if is_last else None


def is_codes_file(data: bytes) -> bool:
    """Whether the first line of a file is that of codes."""
    return data.split(b'\n', 1)[0].rstrip(b'\r ') == _NMT_VERSION.encode() or is_textbook_file(data)


def is_textbook_file(data: bytes) -> bool:
    """Whether the first line of a file is that of the textbook's codes."""
    return data.split(b'\n', 1)[0].rstrip(b'\r ') == _TEXTBOOK_VERSION.encode()


def parse_nmt_codes(data: bytes, path: str) -> Merges:
    """Returns the merges of subword-nmt's codes, only the first of equal ones.

    Raises:
        InputError: the version is not 0.2, or a line is not a pair.
    """
    first, *lines = _lines(data, path)
    if not first.startswith('#version:'):
        raise InputError(
            f'{path} does not start with {_NMT_VERSION!r}: codes of version 0.1 mark the ends of words '
            'differently; learn the codes again'
        )
    if first.rstrip() != _NMT_VERSION:
        raise InputError(
            f'{path} starts with {first[:40]!r}, not with {_NMT_VERSION!r}; learn the codes again'
        )
    merges = tuple(_pairs(lines, path, 2))
    if not merges:
        raise InputError(f'{path} has no merges; learn codes from more text')
    return tuple(dict.fromkeys(merges))


def parse_textbook_codes(data: bytes, path: str) -> tuple[str, Merges]:
    """Returns the characters and the merges.

    Raises:
        InputError: the file is not the textbook's.
    """
    first, *lines = _lines(data, path)
    if first.rstrip() != _TEXTBOOK_VERSION or not lines:
        raise InputError(
            f'{path} does not start with {_TEXTBOOK_VERSION!r} and a line of characters; learn the '
            'codes again'
        )
    return lines[0].removesuffix('\r'), tuple(_pairs(lines[1:], path, 3))


def _lines(data: bytes, path: str) -> list[str]:
    try:
        return data.decode('utf-8').rstrip('\n').split('\n')
    except UnicodeDecodeError as error:
        raise InputError(f'{path} is not UTF-8 ({error.reason}); give a file of codes') from None


def _pairs(lines: list[str], path: str, first: int) -> Iterable[tuple[str, str]]:
    for number, line in enumerate(lines, first):
        pair = line.strip(BLANK).split(' ')
        if len(pair) != 2:
            raise InputError(
                f'{path}, line {number}: {line[:80]!r} is not a pair; give whole codes'
            )
        yield pair[0], pair[1]


def count_pieces(codes: CodesVocabulary, table: TokenTable) -> list[tuple[str, int]]:
    """Returns (piece, count) of a text, by count descending, then by piece.

    Pieces are as `apply-bpe` writes them. subword-nmt's `get-vocab` orders pieces of equal count as
    they occur in the text, which a table does not record.

    Args:
        codes: segment the tokens.
        table: the tokens of the text, each a word.
    """
    encoder = RowEncoder(RowTokens(), codes.piece_model, 0)
    encoded = encoder.encode_side(Side(table.data, table.offsets[:-1], table.offsets[1:]))
    is_last = np.zeros(len(encoded.ids), np.int64)
    is_last[encoded.offsets[1:][np.diff(encoded.offsets) > 0] - 1] = 1
    keys, indices = np.unique(2 * encoded.ids.astype(np.int64) + is_last, return_inverse=True)
    counts = np.repeat(table.counts, np.diff(encoded.offsets))
    # The halves of counts are summed apart, since sums may exceed 2^63.
    halves = np.zeros((2, len(keys)), np.int64)
    np.add.at(halves[0], indices, counts >> 32)
    np.add.at(halves[1], indices, counts & 0xFFFFFFFF)
    totals: dict[str, int] = {}
    for key, high, low in zip(keys.tolist(), *halves.tolist(), strict=True):
        symbol, last = divmod(key, 2)
        piece = codes.pieces_of_symbols([symbol] if last else [symbol, symbol])[0]
        totals[piece] = totals.get(piece, 0) + (high << 32) + low
    return sorted(
        ((piece, count) for piece, count in totals.items() if count),
        key=lambda item: (-item[1], item[0]),
    )


def piece_table(pieces: Iterable[tuple[str, int]]) -> bytes:
    """Returns lines of `piece count`, as `get-vocab` writes them."""
    return ''.join(f'{piece} {count}\n' for piece, count in pieces).encode()


def entries_file(
    pieces: Iterable[tuple[str, int]], special_tokens: Sequence[str] = SPECIAL_TOKENS
) -> bytes:
    """Returns a .vocab file: special tokens, then pieces, a line for each id."""
    entries = dict.fromkeys((*special_tokens, *(piece for piece, _ in pieces)))
    return ''.join(f'{entry}\n' for entry in entries).encode()


@dataclass(frozen=True)
class EndOfWordSuffix:
    """A `PreTokenizer` that appends `_` to each token of another.

    It calls `row_parts` of the other, which takes some microseconds a token: it is for small texts.
    """

    words: PreTokenizer

    # Count files record the name and the options.
    @property
    def name(self) -> str:
        return f'marked-{self.words.name}'

    @property
    def options(self) -> Mapping[str, object]:
        return {**self.words.options, 'mark': '_'}

    def prepare(self, rows: TextRows) -> tuple[ListedTokens, np.ndarray]:
        text, starts, ends, counts = bytearray(), [], [], [0]
        for row in range(len(rows.starts)):
            for part in self.words.row_parts(rows, row, 0):
                starts.append(len(text))
                text += part.text[part.start : part.end].tobytes() + b'_'
                ends.append(len(text))
            counts.append(len(starts))
        state = ListedTokens.of(starts, ends, counts)
        return state, with_margin(np.frombuffer(bytes(text), np.uint8))

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        for part in self.words.row_parts(rows, row, 0):
            word = part.text[part.start : part.end]
            if len(word) < longest:
                # This part is scanned as a row of its own, which appends the `_`.
                yield RowPart(part.text, part.start, part.end, False)
            else:
                token = np.append(word, np.uint8(ord('_')))
                yield RowPart(with_margin(token), 0, len(token), True)
