"""From a token table to words in cells, and to the symbols that are there before any merge."""

from dataclasses import dataclass

import numpy as np

from tokcore.bpe.learning.layout_kernels import (
    FINAL,
    INNER,
    cells_of_characters,
    lay_bytes,
    lay_characters,
    survey_characters,
)
from tokcore.bpe.learning.merge_rules import BpeRules
from tokcore.bpe.learning.word_cells import Words
from tokcore.compiled.compilation import read_only
from tokcore.compiled.wide_loads import CHUNK
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.text.byte_level.alphabet import (
    ALPHABET,
    BYTE_TO_CHARACTER,
    CHARACTER_TO_BYTE,
    spelled,
    token_bytes,
)
from tokcore.text.unicode_tables import CODE_POINTS

_MOST_CELLS = (1 << 31) - 1


@dataclass(frozen=True)
class Layout:
    """Words before any merge.

    Attributes:
        words: behind their text are the strings of the first symbols.
        entries: what these are, as files have them, by id: special tokens, then bytes or characters.
        strings: where words.text has each, (starts int64[n], lengths int32[n]); of no length if no
            word can hold it.
        units: int32[n], 1 for each byte or character that words can begin as.
        characters: the distinct ones that stay, in order of code points; of bytes none.
        character_symbols: how many of those words really begin as: within words, and at their ends.
    """

    words: Words
    entries: tuple[str, ...]
    strings: tuple[np.ndarray, np.ndarray]
    units: np.ndarray
    characters: str
    character_symbols: int


def lay_out(table: TokenTable, rules: BpeRules) -> Layout:
    """Returns the tokens of a table as words, in its order; those of no length are left out.

    Raises:
        InputError: there are 2 GiB of distinct tokens or more.
    """
    data, offsets = read_only(table.data), read_only(table.offsets)
    counts = read_only(np.ascontiguousarray(table.counts))
    return (_byte_layout if rules.byte_level else _character_layout)(data, offsets, counts, rules)


def shown(string: bytes, byte_level: bool) -> str:
    """Returns a symbol's string as files have it."""
    return spelled(string) if byte_level else string.decode()


def _byte_layout(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, rules: BpeRules
) -> Layout:
    if rules.end_of_word:
        raise ValueError('words of bytes have no end of word')
    entries = tuple(dict.fromkeys((*rules.special_tokens, *ALPHABET)))
    ids = {entry: id_ for id_, entry in enumerate(entries)}
    symbols = np.array([ids[BYTE_TO_CHARACTER[byte]] for byte in range(256)], np.int32)
    text, cells, strings = _room(
        len(data) + len(counts) + 1, [_bytes_of(entry) for entry in entries]
    )
    used = lay_bytes(data, offsets, read_only(symbols), text, cells)
    units = np.zeros(len(entries), np.int32)
    units[symbols] = 1
    return Layout(Words(text, cells[:used], counts), entries, strings, units, '', 256)


def _bytes_of(entry: str) -> bytes:
    """The bytes that an entry spells, none if it spells no bytes."""
    return token_bytes(entry) if CHARACTER_TO_BYTE.keys() >= set(entry) else b''


def _character_layout(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, rules: BpeRules
) -> Layout:
    are_met = np.zeros((2, CODE_POINTS), np.bool_)
    totals = np.zeros(CODE_POINTS, np.int64)
    survey_characters(data, offsets, counts, are_met, totals)
    found = np.flatnonzero(are_met.any(0))
    if rules.limit_alphabet is not None:
        most = found[np.argsort(-totals[found], kind='stable')]
        special = [ord(token) for token in rules.special_tokens if len(token) == 1]
        stays = np.isin(found, [*most[: rules.limit_alphabet], *special])
        found = found[stays]
    ending = rules.end_of_word
    plain = [chr(character) for character in found]
    final = [chr(character) + ending for character in found if are_met[FINAL, character]]
    entries = tuple(dict.fromkeys((*rules.special_tokens, *plain, *final)))
    ids = {entry: id_ for id_, entry in enumerate(entries)}
    symbols = np.full((2, CODE_POINTS), -1, np.int32)
    symbols[INNER, found] = [ids[character] for character in plain]
    symbols[FINAL, found] = [ids.get(character + ending, -1) for character in plain]
    end = np.frombuffer(ending.encode(), np.uint8)
    size = cells_of_characters(data, offsets, read_only(symbols), len(end))
    text, cells, strings = _room(size, [entry.encode() for entry in entries])
    used = lay_characters(data, offsets, read_only(symbols), end, text, cells)
    units = np.zeros(len(entries), np.int32)
    units[symbols[:, found][symbols[:, found] >= 0]] = 1
    return Layout(
        Words(text, cells[:used], counts),
        entries,
        strings,
        units,
        ''.join(plain),
        int(are_met[:, found].sum()),
    )


def _room(
    cells: int, strings: list[bytes]
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Returns text, with strings behind the room for cells, the cells, and where the strings are."""
    if cells > _MOST_CELLS:
        raise InputError(
            f'the distinct tokens are {cells:,} bytes, but merges are learned from fewer than 2^31; '
            'leave out the rarest tokens'
        )
    lengths = np.array([len(string) for string in strings], np.int32)
    ends = cells + np.cumsum(lengths, dtype=np.int64)
    text = np.zeros(int(ends[-1] if len(ends) else cells) + CHUNK, np.uint8)
    text[cells : len(text) - CHUNK] = np.frombuffer(b''.join(strings), np.uint8)
    return text, np.zeros((cells, 2), np.int32), (ends - lengths, lengths)
