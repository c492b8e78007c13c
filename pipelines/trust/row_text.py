"""Figures of the text of rows: characters, scripts, words, and the pieces that words are cut into.

Rows are counted in blocks, as arrays. Sums are exact for any number of rows. Memory is
bounded: of words so many distinct ones are held, and then they are summed up, but for the worst.
"""

from __future__ import annotations

import collections
import functools
import heapq
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import regex

from tokcore.counts.counting import TokenAccumulator
from tokcore.encoding.encoder import Encoder
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.kernels.bytes import row_offsets, with_margin
from tokcore.reading.dataset import Dataset
from tokcore.reading.manifest import DatasetManifest, DatasetVocabularies
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS

_SCRIPTS = (
    'Latin', 'Greek', 'Cyrillic', 'Armenian', 'Hebrew', 'Arabic', 'Devanagari', 'Bengali', 'Gurmukhi',
    'Gujarati', 'Tamil', 'Telugu', 'Kannada', 'Malayalam', 'Sinhala', 'Thai', 'Lao', 'Tibetan', 'Myanmar',
    'Georgian', 'Ethiopic', 'Khmer', 'Mongolian', 'Han', 'Hiragana', 'Katakana', 'Hangul',
)  # fmt: skip

_WITHOUT_SPACES = ('Han', 'Hiragana', 'Katakana', 'Thai', 'Lao', 'Tibetan', 'Myanmar', 'Khmer')
"""Scripts in which white space does not part words."""

_WORD = regex.compile(
    r'(?V1)[[\p{L}\p{M}\p{N}]--['
    + ''.join(rf'\p{{Script={each}}}' for each in _WITHOUT_SPACES)
    + ']]+'
)

_WORST = 20
_LONGEST_WORD = 60

_PART_BYTES = 1 << 17
"""Text that is counted at once: its arrays fit a core's cache, and much of English is ASCII alone."""

_MOST_WORDS = 1 << 20
"""Distinct words that are held, in some 40 MB. Texts of a gigabyte have about as many; of longer ones the
sums stay exact, and a word among the worst may miss occurrences."""

_CANDIDATES = 2_000
"""Words that may still be among the worst, when those that are held are summed up."""

_ENCODED_WORDS = 1 << 16
"""Words that are encoded at once."""

_LETTER = Side(with_margin(np.frombuffer(b'a', np.uint8)), np.array([0]), np.array([1]))


@dataclass(frozen=True)
class ReadableDataset:
    """A dataset, and what is at hand to read its text.

    Attributes:
        rows: of it.
        sizes: of the vocabulary of each feature.
        vocabularies: by feature, those that are in the folder or were given.
    """

    rows: Dataset
    sizes: Mapping[str, int]
    vocabularies: Mapping[str, Vocabulary]

    @classmethod
    def of(
        cls, contents: DatasetManifest, vocabulary: str | None, target_vocabulary: str | None
    ) -> ReadableDataset:
        """Raises InputError if a vocabulary is not the one that the rows were made with."""
        files = DatasetVocabularies.of(contents, vocabulary, target_vocabulary)
        rows = Dataset(contents, files)
        has_fixed = files.scheme.fixed is not None
        at_hand = [
            feature
            for feature in contents.features
            if has_fixed or {feature, 'both'} & files.paths.keys()
        ]
        return cls(
            rows,
            {feature: rows.vocab_size(feature) for feature in contents.features},
            {feature: rows.vocabulary(feature) for feature in at_hand},
        )


@dataclass(frozen=True)
class TextFigures:
    """The text of rows of a feature.

    Attributes:
        rows: how many.
        ids: of their text, without templates.
        unknown: of these, ids of an unknown token; None if no id stands for one.
        bytes, characters: of the text, as it is encoded.
        scripts: characters by script, the commonest first; `other` are digits, signs and white space, and
            rarer scripts.
        words: runs of letters, marks and digits, of scripts that part words by white space.
        word_pieces: the pieces that these words are cut into; None if no tokenizer tells that.
        worst: (word, how often it occurs, its pieces): the words that cost the most pieces beyond one
            each.
    """

    rows: int
    ids: int
    unknown: int | None
    bytes: int
    characters: int
    scripts: Mapping[str, int]
    words: int
    word_pieces: int | None
    worst: tuple[tuple[str, int, int], ...]


class TextTally:
    """Counts the text of rows of a feature; threads share it."""

    def __init__(self, vocabulary: Vocabulary, scheme: Scheme):
        """Takes the vocabulary that cuts words into pieces, and its scheme."""
        self._lock = threading.Lock()
        self._rows = self._bytes = 0
        self._characters: collections.Counter[int] = collections.Counter()
        self._words = _Words(scheme.encoder(vocabulary, scheme.encoding()))

    def add(self, side: Side) -> None:
        """Adds the text of rows, with its prefix."""
        for rows in _parts(side):
            text = rows.joined().text  # each row ends with a line feed, which is in no word
            codes, is_word = _characters(text)
            counts = np.bincount(codes, minlength=ord('\n') + 1)
            counts[ord('\n')] -= len(rows)
            distinct = np.flatnonzero(counts)
            characters = dict(zip(distinct.tolist(), counts[distinct].tolist(), strict=True))
            begins = is_word & ~np.append(False, is_word[:-1])
            data = text[is_word]
            offsets = np.append(np.flatnonzero(begins[is_word]), len(data))
            with self._lock:
                self._rows += len(rows)
                self._bytes += len(text) - len(rows)
                self._characters.update(characters)
                self._words.add(data, offsets)

    def add_texts(self, texts: Sequence[str]) -> None:
        """Adds the text of rows, one string each."""
        encoded = [text.encode('utf-8', 'surrogatepass') for text in texts]
        offsets = row_offsets([len(text) for text in encoded])
        data = with_margin(np.frombuffer(b''.join(encoded), np.uint8))
        self.add(Side(data, offsets[:-1], offsets[1:]))

    def figures(self, ids: int, unknown: int | None) -> TextFigures:
        """Returns what was counted; nothing may be added afterwards.

        Args:
            ids: of the text.
            unknown: of these, ids of an unknown token; None if no id stands for one.
        """
        scripts: collections.Counter[str] = collections.Counter()
        for code, count in self._characters.items():
            scripts[script_of(chr(code))] += count
        words = self._words
        words.sum_up()
        return TextFigures(
            rows=self._rows,
            ids=ids,
            unknown=unknown,
            bytes=self._bytes,
            characters=self._characters.total(),
            scripts=dict(sorted(scripts.items(), key=lambda item: (-item[1], item[0]))),
            words=words.words,
            word_pieces=words.pieces,
            worst=tuple(words.worst()),
        )


def _characters(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the code points of UTF-8, and of each of its bytes whether it is a part of a word."""
    data, is_in_words = text.tobytes(), _is_in_words()
    is_word = is_in_words[text]
    if data.isascii():
        return text, is_word
    encoded = data.decode('utf-8', 'surrogatepass').encode('utf-32-le', 'surrogatepass')
    codes = np.frombuffer(encoded, np.uint32)
    others = codes[codes >= 0x80]
    sizes = 2 + (others >= 0x800).astype(np.uint8) + (others >= 0x10000)
    is_word[text >= 0x80] = np.repeat(is_in_words[others], sizes)
    return codes, is_word


def _parts(side: Side) -> Iterator[Side]:
    """Yields the rows of a side, so much text at once, or one row that is longer."""
    numbers = np.cumsum(side.ends - side.starts) // _PART_BYTES
    borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(side)]
    for first, end in zip(borders, borders[1:]):
        if first < end:
            yield side.take(slice(first, end))


class _Words:
    """Counts words, and the pieces that they are cut into.

    Many vocabularies have other pieces for a word after a space, so it is cut as it mostly stands in
    text: its pieces are what `a word` has more than `a`.
    """

    def __init__(self, encoder: Encoder):
        self._encoder = encoder
        self._counts = TokenAccumulator()
        self._worst: dict[str, tuple[int, int]] = {}
        self.words = 0
        self.pieces: int | None = 0

    def add(self, data: np.ndarray, offsets: np.ndarray) -> None:
        """Adds words: UTF-8 `data[offsets[i]:offsets[i + 1]]`; they may repeat."""
        self.words += len(offsets) - 1
        self._counts.add_tokens(data, offsets, np.ones(len(offsets) - 1, np.int64))
        if len(self._counts.index) > _MOST_WORDS:
            self.sum_up()

    def sum_up(self) -> None:
        """Adds up the pieces of the words that are held, and holds the worst of them alone."""
        data, offsets, counts = self._counts.finish()
        self._counts = TokenAccumulator()
        text = with_margin(data)
        for first in range(0, len(counts), _ENCODED_WORDS):
            end = min(first + _ENCODED_WORDS, len(counts))
            words = Side(text, offsets[first:end], offsets[first + 1 : end + 1])
            self._sum_up(words, counts[first:end])

    def _sum_up(self, words: Side, counts: np.ndarray) -> None:
        if self.pieces is None:
            return
        try:
            pieces = np.maximum(1, self._sizes(words, 'a ') - self._sizes(_LETTER, ''))
        except ValueError:  # the vocabulary has no pieces for the letter
            self.pieces, self._worst = None, {}
            return
        self.pieces += int(counts @ pieces)
        costs = counts * (pieces - 1)
        least = np.partition(costs, -_CANDIDATES)[-_CANDIDATES] if len(costs) > _CANDIDATES else 1
        for place in np.flatnonzero(costs >= max(1, least)).tolist():
            word = words.row(place)
            before, _ = self._worst.get(word, (0, 0))
            self._worst[word] = before + int(counts[place]), int(pieces[place])
        if len(self._worst) > 2 * _CANDIDATES:
            self._worst = dict(heapq.nsmallest(_CANDIDATES, self._worst.items(), key=_by_cost))

    def _sizes(self, rows: Side, prefix: str) -> np.ndarray:
        """The numbers of ids of rows, without a template."""
        return np.diff(self._encoder.encode_side(rows, prefix).offsets)

    def worst(self) -> Iterator[tuple[str, int, int]]:
        """Yields the words that cost most: each with its count and its pieces."""
        shown = (item for item in self._worst.items() if len(item[0]) <= _LONGEST_WORD)
        for word, (count, pieces) in heapq.nsmallest(_WORST, shown, key=_by_cost):
            yield word, count, pieces


def _by_cost(item: tuple[str, tuple[int, int]]) -> tuple[int, str]:
    """The order of words: those that cost most pieces beyond one each come first."""
    word, (count, pieces) = item
    return -count * (pieces - 1), word


@functools.cache
def _is_in_words() -> np.ndarray:
    """Whether a code point is a part of words: bool[0x110000]."""
    codes = np.arange(CODE_POINTS, dtype=np.uint32)
    text = codes.tobytes().decode('utf-32-le', 'surrogatepass')
    is_in_words = np.zeros(CODE_POINTS, bool)
    for match in _WORD.finditer(text):
        is_in_words[match.start() : match.end()] = True
    return is_in_words


@functools.cache
def _patterns() -> dict[str, regex.Pattern]:
    return {name: regex.compile(rf'\p{{Script={name}}}') for name in _SCRIPTS}


@functools.lru_cache(1 << 16)
def script_of(character: str) -> str:
    """Returns the script of a character, as Unicode names it; `other` for signs and rarer scripts."""
    for name, pattern in _patterns().items():
        if pattern.match(character):
            return name
    return 'other'
