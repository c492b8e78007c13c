"""What workers do for a learner that is spread over them: weights of words and endings as tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.counts.token_table import TokenTable
from tokcore.wordpiece.learning.greedy_cutting import Pieces, piece_trie, weigh_cuts
from tokcore.wordpiece.learning.word_endings import endings_of
from tokcore.wordpiece.learning.words import Words, fitting_words, words_of

WORD_MARK, ENDING_MARK = b'W', b'E'
"""What tokens of a table of weights begin with: whole words, and endings of words."""


@dataclass(frozen=True)
class ChosenWords:
    """Which words a vocabulary is learned from.

    Attributes:
        special_tokens: are not learned from.
        max_length: of a word, in characters.
        characters: words with others are left out; None before they are known.
    """

    special_tokens: frozenset[str]
    max_length: int
    characters: str | None = None

    def of(self, table: TokenTable) -> Words:
        """Returns those of a table."""
        words = words_of(table)
        return fitting_words(words, self.special_tokens, self.max_length, self.characters)


def first_weights(words: Words) -> TokenTable:
    """Returns whole words, and the endings that begin behind a word's first character."""
    endings = endings_of(words)
    whole = _table(words, WORD_MARK, words.starts[:-1], np.diff(words.starts), words.counts)
    rest = _table(words, ENDING_MARK, endings.begins[1:], endings.lengths[1:], endings.first_weights[1:])
    return _joined([whole, rest])


def later_weights(words: Words, pieces: Sequence[str], joiner: str) -> TokenTable:
    """Returns the endings that begin where words are cut into the longest of these pieces."""
    endings = endings_of(words)
    weights = np.zeros(len(endings.first_weights), np.int64)
    if len(words.counts):
        text = ''.join(pieces)
        codes = read_only(np.frombuffer(text.encode('utf-32-le', 'surrogatepass'), np.uint32))
        lengths = np.array([len(piece) for piece in pieces], np.int64)
        begins = read_only(np.cumsum(lengths) - lengths)
        spelt = Pieces(begins, lengths, np.zeros_like(lengths), np.zeros(len(lengths), np.bool_))
        mark = read_only(np.frombuffer(joiner.encode('utf-32-le'), np.uint32))
        trie = piece_trie(codes, spelt, read_only(np.unique(words.codes)), mark)
        weigh_cuts(words, trie, endings.numbers, weights)
    kept = np.flatnonzero(weights)
    return _table(words, ENDING_MARK, endings.begins[kept], endings.lengths[kept], weights[kept])


def split_weights(tables: Iterable[TokenTable]) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the weights of whole words, and those of endings."""
    found: Mapping[str, dict[str, int]] = {'W': {}, 'E': {}}
    for table in tables:
        for token, weight in table.items():
            found[token[0]][token[1:]] = weight
    return found['W'], found['E']


def _table(
    words: Words, mark: bytes, begins: np.ndarray, lengths: np.ndarray, weights: np.ndarray
) -> TokenTable:
    """A table of parts of the words' code points, each behind a mark."""
    room = int(np.sum(lengths)) * 4 + len(begins)
    data, offsets = np.empty(room, np.uint8), np.zeros(len(begins) + 1, np.int64)
    size = _spell(
        words.codes, read_only(np.ascontiguousarray(begins)),
        read_only(lengths.astype(np.int64)), mark[0], data, offsets,
    )  # fmt: skip
    return TokenTable(data[:size], offsets, np.ascontiguousarray(weights))


def _joined(tables: Sequence[TokenTable]) -> TokenTable:
    sizes = np.cumsum([0, *(len(table.data) for table in tables)])
    offsets = [table.offsets[:-1] + size for table, size in zip(tables, sizes.tolist())]
    return TokenTable(
        np.concatenate([table.data for table in tables]),
        np.concatenate([*offsets, sizes[-1:]]),
        np.concatenate([table.counts for table in tables]),
    )


@kernel_without_allocation
def _spell(codes, begins, lengths, mark, data, offsets):
    """Writes parts of code points as UTF-8, each behind a mark; returns how many bytes they are."""
    size = 0
    for part in range(len(begins)):
        data[size] = mark
        size += 1
        for place in range(begins[part], begins[part] + lengths[part]):
            code = np.int64(codes[place])
            if code < 0x80:
                data[size] = code
                size += 1
                continue
            if code < 0x800:
                data[size] = 0xC0 | code >> 6
                size += 1
            else:
                if code < 0x10000:
                    data[size] = 0xE0 | code >> 12
                else:
                    data[size] = 0xF0 | code >> 18
                    size += 1
                    data[size] = 0x80 | (code >> 12 & 0x3F)
                size += 1
                data[size] = 0x80 | (code >> 6 & 0x3F)
                size += 1
            data[size] = 0x80 | (code & 0x3F)
            size += 1
        offsets[part + 1] = size
    return size
