"""Figures of the text of rows: characters, scripts, words, and the pieces that words are cut into.

Rows are counted in blocks, as arrays. Sums of parts of a text add up to those of the whole, and the words
of a text are a table, which may be added up and cut as those of tokens are: the figures are exact.
"""

from __future__ import annotations

import collections
import functools
import heapq
import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import regex

from tokcore.counts.counting import TokenAccumulator, TokenIndex
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.encoder import Encoder
from tokcore.encoding.vocabulary import Vocabulary, spelled_ids
from tokcore.kernels.bytes import row_offsets, with_margin
from tokcore.kernels.jit import read_only
from tokcore.text.pre_tokenizer import CharacterRuns
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS

_SCRIPTS = (
    'Latin', 'Greek', 'Cyrillic', 'Armenian', 'Hebrew', 'Arabic', 'Devanagari', 'Bengali', 'Gurmukhi',
    'Gujarati', 'Tamil', 'Telugu', 'Kannada', 'Malayalam', 'Sinhala', 'Thai', 'Lao', 'Tibetan', 'Myanmar',
    'Georgian', 'Ethiopic', 'Khmer', 'Mongolian', 'Han', 'Hiragana', 'Katakana', 'Hangul',
)  # fmt: skip

WITHOUT_SPACES = ('Han', 'Hiragana', 'Katakana', 'Thai', 'Lao', 'Tibetan', 'Myanmar', 'Khmer')
"""Scripts in which white space does not part words."""

_WORD = regex.compile(
    r'(?V1)[[\p{L}\p{M}\p{N}]--['
    + ''.join(rf'\p{{Script={script}}}' for script in WITHOUT_SPACES)
    + ']]+'
)

_WORST = 20
_LONGEST_WORD = 60

_ENCODED_WORDS = 1 << 16
"""Words that are encoded at once."""

_LETTER = Side(with_margin(np.frombuffer(b'a', np.uint8)), np.array([0]), np.array([1]))


Group = tuple[str, str, str]
"""Whose text it is: the split, the dataset ('' of the whole split) and the feature."""


@dataclass(frozen=True)
class TextSums:
    """What is counted of the text of rows; those of parts add up, if no word is in two of them.

    Attributes:
        group: whose text it is.
        rows, bytes: how many, as the text is encoded.
        scripts: characters by script; `other` are digits, signs and white space, and rarer scripts.
        words: runs of letters, marks and digits, of scripts that part words by white space.
        pieces: that the words are cut into; None if the tokenizer cannot cut them.
        worst: (word, how often it occurs, its pieces): the words that cost the most pieces beyond one
            each.
    """

    group: Group
    rows: int = 0
    bytes: int = 0
    scripts: Mapping[str, int] = field(default_factory=dict)
    words: int = 0
    pieces: int | None = 0
    worst: Sequence[Sequence] = ()

    def __add__(self, other: TextSums) -> TextSums:
        pieces = None
        if self.pieces is not None and other.pieces is not None:
            pieces = self.pieces + other.pieces
        return TextSums(
            self.group,
            self.rows + other.rows,
            self.bytes + other.bytes,
            dict(collections.Counter(self.scripts) + collections.Counter(other.scripts)),
            self.words + other.words,
            pieces,
            heapq.nsmallest(_WORST, itertools.chain(self.worst, other.worst), key=_by_cost),
        )

    def figures(self, ids: int, unknown: int | None) -> dict[str, object]:
        """Returns the figures of this text as values of JSON, the commonest scripts first.

        Args:
            ids: of the text, without templates.
            unknown: of these, ids of an unknown token; None if no id stands for one.
        """
        return {
            'rows': self.rows,
            'ids': ids,
            'unknown': unknown,
            'bytes': self.bytes,
            'characters': sum(self.scripts.values()),
            'scripts': dict(sorted(self.scripts.items(), key=lambda item: (-item[1], item[0]))),
            'words': self.words,
            'word_pieces': self.pieces,
            'worst': self.worst,
        }


class TextTally:
    """Counts the text of rows of a feature; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows = self._bytes = 0
        self._characters: collections.Counter[int] = collections.Counter()
        self._is_in_words = _is_in_words()  # not in the threads, each of which would make it
        self._index = TokenIndex()
        # As many as threads add at once.
        self._words: list[TokenAccumulator] = []
        self._idle: list[TokenAccumulator] = []

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the words."""
        return self._index.nbytes + sum(words.nbytes for words in self._words)

    def add(self, side: Side) -> None:
        """Adds the text of rows, with its prefix: valid UTF-8, or with lone surrogates."""
        runs = CharacterRuns.of(self._is_in_words, side.text)
        with self._lock:
            if not self._idle:
                self._words.append(TokenAccumulator(self._index))
                self._idle.append(self._words[-1])
            words = self._idle.pop()
        words.add_rows(side.text, side.starts, side.ends, runs)
        distinct = np.flatnonzero(runs.counts)
        characters = dict(zip(distinct.tolist(), runs.counts[distinct].tolist(), strict=True))
        with self._lock:
            self._rows += len(side)
            self._bytes += int((side.ends - side.starts).sum())
            self._characters.update(characters)
            self._idle.append(words)

    def add_texts(self, texts: Sequence[str]) -> None:
        """Adds the text of rows, one string each."""
        encoded = [text.encode('utf-8', 'surrogatepass') for text in texts]
        offsets = row_offsets([len(text) for text in encoded])
        data = with_margin(np.frombuffer(b''.join(encoded), np.uint8))
        self.add(Side(data, offsets[:-1], offsets[1:]))

    def sums(self, group: Group) -> TextSums:
        """Returns what was counted, without the words."""
        scripts: collections.Counter[str] = collections.Counter()
        for code, count in self._characters.items():
            scripts[script_of(chr(code))] += count
        return TextSums(group, self._rows, self._bytes, scripts)

    def words(self) -> TokenTable:
        """Returns the distinct words; nothing may be added afterwards."""
        return TokenTable(*TokenAccumulator(self._index).finish(self._words))


def word_sums(group: Group, words: TokenTable, encoder: Encoder) -> TextSums:
    """Returns the sums of words of a text: into how many pieces they are cut, and the worst of them.

    Many vocabularies have other pieces for a word after a space, so it is cut as it mostly stands in
    text: its pieces are what `a word` has more than `a`.
    """
    text, sums = with_margin(words.data), TextSums(group)
    for first in range(0, len(words), _ENCODED_WORDS):
        end = min(first + _ENCODED_WORDS, len(words))
        side = Side(text, words.offsets[first:end], words.offsets[first + 1 : end + 1])
        sums += _word_sums(group, side, words.counts[first:end], encoder)
    return sums


def _word_sums(group: Group, words: Side, counts: np.ndarray, encoder: Encoder) -> TextSums:
    total = int(counts.sum())
    try:
        letter, sizes = (
            np.diff(encoder.encode_side(side, prefix).offsets)
            for side, prefix in ((_LETTER, ''), (words, 'a '))
        )
    except ValueError:  # the vocabulary has no pieces for the letter
        return TextSums(group, words=total, pieces=None)
    pieces = np.maximum(1, sizes - letter)
    costs = counts * (pieces - 1)
    data = words.text[words.starts[0] : words.ends[-1]]
    # A character has one byte that continues none.
    characters = np.append(0, np.cumsum((data & 0xC0) != 0x80))
    begin, end = (characters[places - words.starts[0]] for places in (words.starts, words.ends))
    costs[end - begin > _LONGEST_WORD] = 0
    least = np.partition(costs, -_WORST)[-_WORST] if len(costs) > _WORST else 0
    worst = [
        (words.row(place), int(counts[place]), int(pieces[place]))
        for place in np.flatnonzero(costs >= max(1, least)).tolist()
    ]
    return TextSums(group, words=total, pieces=int(counts @ pieces), worst=worst)


def legible(ids: Iterable[int], vocabulary: Vocabulary) -> list[str]:
    """Returns the pieces of ids; of a byte-level vocabulary, which writes `字` as `åŃĹ`, their text."""
    ids = list(ids)
    pieces = spelled_ids(ids, vocabulary)
    for at, (id_, piece) in enumerate(zip(ids, pieces, strict=True)):
        text = vocabulary.decode([id_])
        # A character for each byte.
        if len(piece) == len(text.encode('utf-8', 'surrogatepass')) and '\ufffd' not in text:
            pieces[at] = text
    return pieces


def _by_cost(item: Sequence) -> tuple[int, str]:
    """The order of words: those that cost most pieces beyond one each come first."""
    word, count, pieces = item
    return -count * (pieces - 1), word


@functools.cache
def _is_in_words() -> np.ndarray:
    """1 for the code points that are parts of words, 0 for the others: uint8[0x110000]."""
    codes = np.arange(CODE_POINTS, dtype=np.uint32)
    text = codes.tobytes().decode('utf-32-le', 'surrogatepass')
    is_in_words = np.zeros(CODE_POINTS, np.uint8)
    for match in _WORD.finditer(text):
        is_in_words[match.start() : match.end()] = 1
    return read_only(is_in_words)


@functools.cache
def _script() -> regex.Pattern:
    """Matches a character of a script that has a name here, as the group of this name."""
    return regex.compile('|'.join(rf'(?P<{name}>\p{{Script={name}}})' for name in _SCRIPTS))


@functools.lru_cache(1 << 16)
def script_of(character: str) -> str:
    """Returns the script of a character, as Unicode names it; `other` for signs and rarer scripts."""
    match = _script().match(character)
    return 'other' if match is None else str(match.lastgroup)
