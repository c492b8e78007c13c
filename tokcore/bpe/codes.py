"""Codes: merges as lines of two symbols, as subword-nmt 0.2 writes them, and the textbook's.

    #version: 0.2            #version: tokbeam textbook
    e s                      _aeflrst
    es t</w>                 t a

The second line of the textbook's lists the characters of the tokens that it was learned from, and
its words end with `_`. Here a symbol is a number: a character is its code point, the last of a word
`CODE_POINTS` more. Symbols get ids from a list of pieces, whose counts are learned from a text;
lines of pieces are written as subword-nmt's apply-bpe does.
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.encoding.encoder import RowEncoder
from tokcore.encoding.vocabulary import SpecialIds, special_ids_by_name
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets, with_margin
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, PreTokenizer, RowPart, TextRows, scan_tokens
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS
from tokcore.text.whitespace import SpacePreTokenizer

if typing.TYPE_CHECKING:
    from tokcore.bpe.model import LongestPieceModel, MergeModel

SPECIAL_TOKENS = ('<pad>', '</s>', '<unk>')
"""What comes before pieces, unless others are asked for."""

BLANK = '\r\n '
"""What is no part of a line's words at its ends."""

_MOST_WORDS = 1 << 20
"""Words remembered, some 200 MB; beyond it all are forgotten."""

END_OF_WORD = '</w>'
SEPARATOR = '@@'
UNKNOWN = '[UNK]'

_NO_ENTRY = -1
_SEPARATED = re.compile(f'{SEPARATOR} |{SEPARATOR} ?$')

NMT_VERSION = '#version: 0.2'
TEXTBOOK_VERSION = '#version: tokbeam textbook'

_BLANK = '\r\n '

Merges = tuple[tuple[str, str], ...]


def count_pieces(codes: CodesVocabulary, table: TokenTable) -> list[tuple[str, int]]:
    """Returns (piece, count) as `apply-bpe` writes pieces, by count descending, then by piece.

    subword-nmt's `get-vocab` leaves pieces that are met equally often in the order of the text,
    which a table does not know.

    Args:
        codes: which cut tokens into pieces.
        table: the tokens of a text, a word each.
    """
    encoder = RowEncoder(WholeRows(), codes.piece_model, 0)
    found = encoder.encode_side(Side(table.data, table.offsets[:-1], table.offsets[1:]))
    is_last = np.zeros(len(found.ids), np.int64)
    is_last[found.offsets[1:][np.diff(found.offsets) > 0] - 1] = 1
    keys, places = np.unique(2 * found.ids.astype(np.int64) + is_last, return_inverse=True)
    counts = np.repeat(table.counts, np.diff(found.offsets))
    # Sums beyond 2^63: each half of a count is added up for itself.
    halves = np.zeros((2, len(keys)), np.int64)
    np.add.at(halves[0], places, counts >> 32)
    np.add.at(halves[1], places, counts & 0xFFFFFFFF)
    totals: dict[str, int] = {}
    for key, high, low in zip(keys.tolist(), *halves.tolist(), strict=True):
        symbol, last = divmod(key, 2)
        piece = codes.written([symbol] if last else [symbol, symbol])[0]
        totals[piece] = totals.get(piece, 0) + (high << 32) + low
    return sorted(
        ((piece, count) for piece, count in totals.items() if count),
        key=lambda item: (-item[1], item[0]),
    )


def piece_table(pieces: Iterable[tuple[str, int]]) -> bytes:
    """Returns a line `piece count` of each, as `get-vocab` writes them."""
    return ''.join(f'{piece} {count}\n' for piece, count in pieces).encode()


def entries_file(
    pieces: Iterable[tuple[str, int]], special_tokens: Sequence[str] = SPECIAL_TOKENS
) -> bytes:
    """Returns a .vocab file: special tokens and then pieces, a line for each id."""
    entries = dict.fromkeys((*special_tokens, *(piece for piece, _ in pieces)))
    return ''.join(f'{entry}\n' for entry in entries).encode()


@dataclass(frozen=True)
class MarkedWords:
    """A `PreTokenizer` that puts a mark behind each token of another.

    Tokens are found by that one's `row_parts`, some microseconds each: it is for small texts.
    """

    words: PreTokenizer
    mark: str = '_'

    @property
    def name(self) -> str:
        return f'marked-{self.words.name}'

    @property
    def options(self) -> Mapping[str, object]:
        return {**self.words.options, 'mark': self.mark}

    def prepare(self, rows: TextRows) -> tuple[MarkedTokens, np.ndarray]:
        mark = self.mark.encode()
        text, starts, ends, counts = bytearray(), [], [], [0]
        for row in range(len(rows.starts)):
            for part in self.words.row_parts(rows, row, 0):
                starts.append(len(text))
                text += part.text[part.start : part.end].tobytes() + mark
                ends.append(len(text))
            counts.append(len(starts))
        places = (read_only(np.array(each, np.uint64)) for each in (starts, ends))
        state = MarkedTokens(*places, read_only(np.array(counts, np.int64)))
        return state, with_margin(np.frombuffer(bytes(text), np.uint8))

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        for part in self.words.row_parts(rows, row, 0):
            word = part.text[part.start : part.end]
            if len(word) + len(self.mark.encode()) <= longest:
                # A row of this word alone: its mark comes when it is scanned.
                yield RowPart(part.text, part.start, part.end, False)
            else:
                marked = np.concatenate([word, np.frombuffer(self.mark.encode(), np.uint8)])
                yield RowPart(with_margin(marked), 0, len(marked), True)


class MarkedTokens(NamedTuple):
    """The state: the tokens of all rows, found already; arrays are read-only."""

    starts: np.ndarray  # uint64[tokens]
    ends: np.ndarray  # uint64[tokens]
    row_tokens: np.ndarray  # int64[rows + 1]


@scan_tokens.register(MarkedTokens)
@kernel_without_allocation
def scan_marked_tokens(rows, row, position, pre_tokenizer, tokens):
    """As `scan_tokens` says; a position is the number of a token."""
    room = len(tokens.starts) - CHUNK_TOKENS
    count = 0
    while row < len(rows.starts):
        token = pre_tokenizer.row_tokens[row] if position < 0 else position
        while token < pre_tokenizer.row_tokens[row + 1]:
            if count == room:
                return row, token, count
            tokens.starts[count] = pre_tokenizer.starts[token]
            tokens.ends[count] = pre_tokenizer.ends[token]
            count += 1
            token += 1
        row += 1
        position = -1
        tokens.row_tokens[row] = count
    return row, position, count


@dataclass(frozen=True)
class WholeRows:
    """A `PreTokenizer` whose tokens are the rows: for words that are known already."""

    name = 'whole-rows'

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def prepare(self, rows: TextRows) -> tuple[MarkedTokens, np.ndarray]:
        bounds = (read_only(each.astype(np.uint64)) for each in (rows.starts, rows.ends))
        return MarkedTokens(*bounds, read_only(np.arange(len(rows.starts) + 1))), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        yield RowPart(rows.text, start, end, end - start > longest)


class PieceLines:
    """Segments lines; for one thread."""

    def __init__(self, vocabulary: CodesVocabulary):
        """Takes codes; their pieces need no ids."""
        self._vocabulary = vocabulary
        self._mark = '_' if isinstance(vocabulary, TextbookVocabulary) else ''
        self._encoder = RowEncoder(SpacePreTokenizer('space'), vocabulary.piece_model, 0)
        self._known: dict[str, list[str]] = {}

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Returns the pieces of each line, separated by spaces; lines may end in line breaks."""
        words = [self.words(line) for line in lines]
        self._learn(word for row in words for word in row)
        return [self._line(line, row) for line, row in zip(lines, words, strict=True)]

    def text(self, line: str) -> str:
        """Returns the text of a line of pieces, whether or not these have ids."""
        return self._vocabulary.joined(line.split(' '))

    def pieces(self, text: str) -> list[str]:
        """Returns the pieces of a text."""
        words = self.words(text)
        self._learn(words)
        return [piece for word in words for piece in self._known[word]]

    @staticmethod
    def words(line: str) -> list[str]:
        """Returns what stands between spaces; other white space is part of words."""
        return [word for word in line.strip(BLANK).split(' ') if word]

    def _line(self, line: str, words: Sequence[str]) -> str:
        rest = line.lstrip(BLANK)
        before, after = line[: len(line) - len(rest)], rest[len(rest.rstrip(BLANK)) :]
        return before + ' '.join(piece for word in words for piece in self._known[word]) + after

    def _learn(self, words: Iterable[str]) -> None:
        if len(self._known) > _MOST_WORDS:
            self._known.clear()
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        if not new:
            return
        coded = [(word + self._mark).encode('utf-8', 'surrogatepass') for word in new]
        offsets = row_offsets([len(word) for word in coded])
        text = np.frombuffer(b''.join(coded), np.uint8)
        found = self._encoder.encode_side(Side(text, offsets[:-1], offsets[1:]))
        symbols, bounds = found.ids.tolist(), found.offsets.tolist()
        for number, word in enumerate(new):
            own = symbols[bounds[number] : bounds[number + 1]]
            self._known[word] = self._vocabulary.written(own)


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
        from tokcore.bpe.model import MergeModel, merge_numbers
        from tokcore.bpe.model_kernels import NONE, Units

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
        from tokcore.bpe.model import LongestPieceModel

        return LongestPieceModel(self.symbols[1:], range(1, len(self.symbols)), 0, self._without_id)

    @functools.cached_property
    def model(self) -> LongestPieceModel:
        from tokcore.bpe.model import LongestPieceModel

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


def _character_symbol(text: str) -> int | None:
    if len(text) == 1:
        return ord(text)
    is_last = len(text) == 1 + len(END_OF_WORD) and text.endswith(END_OF_WORD)
    return CODE_POINTS + ord(text[0]) if is_last else None


def is_codes_file(data: bytes) -> bool:
    """Whether a file says in its first line that it holds codes."""
    first = data.split(b'\n', 1)[0].rstrip(b'\r ')
    return first in (NMT_VERSION.encode(), TEXTBOOK_VERSION.encode())


def is_textbook_file(data: bytes) -> bool:
    """Whether a file of codes is the textbook's."""
    return data.split(b'\n', 1)[0].rstrip(b'\r ') == TEXTBOOK_VERSION.encode()


def parse_nmt_codes(data: bytes, path: str) -> Merges:
    """Returns the merges of subword-nmt's codes; of equal ones only the first.

    Raises:
        InputError: another version, or a line that is no pair.
    """
    first, *lines = _lines(data, path)
    if not first.startswith('#version:'):
        raise InputError(
            f'{path} does not begin with {NMT_VERSION!r}: its codes are of version 0.1, whose '
            'words end otherwise; learn them again'
        )
    if first.rstrip() != NMT_VERSION:
        raise InputError(
            f'{path} begins with {first[:40]!r}, not with {NMT_VERSION!r}; learn the codes again'
        )
    merges = tuple(_pairs(lines, path, 2))
    if not merges:
        raise InputError(f'{path} has no merges; learn codes from more text')
    return tuple(dict.fromkeys(merges))


def parse_textbook_codes(data: bytes, path: str) -> tuple[str, Merges]:
    """Returns the characters and the merges.

    Raises:
        InputError: this is no such file.
    """
    first, *lines = _lines(data, path)
    if first.rstrip() != TEXTBOOK_VERSION or not lines:
        raise InputError(
            f'{path} does not begin with {TEXTBOOK_VERSION!r} and the characters that there were; '
            'learn the codes again'
        )
    return lines[0].removesuffix('\r'), tuple(_pairs(lines[1:], path, 3))


def dump_nmt_codes(merges: Iterable[tuple[str, str]]) -> bytes:
    """Returns the file that subword-nmt 0.3.8 writes."""
    return '\n'.join([NMT_VERSION, *map(' '.join, merges), '']).encode()


def dump_textbook_codes(characters: str, merges: Iterable[tuple[str, str]]) -> bytes:
    """Returns the textbook's file."""
    return '\n'.join([TEXTBOOK_VERSION, characters, *map(' '.join, merges), '']).encode()


def _lines(data: bytes, path: str) -> list[str]:
    try:
        return data.decode('utf-8').rstrip('\n').split('\n')
    except UnicodeDecodeError as error:
        raise InputError(f'{path} is not UTF-8 ({error.reason}); give a file of codes') from None


def _pairs(lines: list[str], path: str, first: int) -> Iterable[tuple[str, str]]:
    for number, line in enumerate(lines, first):
        pair = line.strip(_BLANK).split(' ')
        if len(pair) != 2:
            raise InputError(f'{path}, line {number}: {line[:80]!r} is no pair; give whole codes')
        yield pair[0], pair[1]
