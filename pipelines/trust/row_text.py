"""Figures of the text of rows: characters, scripts, words, and the pieces that words are cut into.

Rows are counted in blocks, as arrays of code points. Sums are exact for any number of rows. Memory is
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
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.tokenizer import Tokenizer
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets, with_margin
from tokcore.reading.dataset import Dataset
from tokcore.reading.manifest import DatasetManifest, DatasetVocabularies
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS
from tokcore.tokenizers import tokenizer_of

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

_PART_BYTES = 1 << 20
"""Text that is counted at once: its arrays take some twenty times as much memory."""

_MOST_WORDS = 1 << 20
"""Distinct words that are held, in some 80 MB. Texts of a gigabyte have about as many; of longer ones the
sums stay exact, and a word among the worst may miss occurrences."""

_CANDIDATES = 10_000
"""Words that may still be among the worst, when those that are held are summed up."""

_ENCODED_WORDS = 1 << 14
"""Words that are encoded at once."""


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
        has_fixed = contents.scheme.fixed is not None
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
        self._words = _Words(_tokenizer(vocabulary, scheme))

    def add(self, side: Side) -> None:
        """Adds the text of rows, with its prefix."""
        for rows in _parts(side):
            joined = rows.joined()  # each row ends with a line feed, which is in no word
            text = joined.text.tobytes().decode('utf-8', 'surrogatepass')
            codes = np.frombuffer(text.encode('utf-32-le', 'surrogatepass'), np.uint32)
            counts = np.bincount(codes, minlength=ord('\n') + 1)
            counts[ord('\n')] -= len(rows)
            distinct = np.flatnonzero(counts)
            characters = dict(zip(distinct.tolist(), counts[distinct].tolist(), strict=True))
            is_word = _is_in_words()[codes]
            begins = is_word & ~np.append(False, is_word[:-1])
            data = codes[is_word]
            offsets = np.append(np.flatnonzero(begins[is_word]), len(data))
            with self._lock:
                self._rows += len(rows)
                self._bytes += len(joined.text) - len(rows)
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


def _parts(side: Side) -> Iterator[Side]:
    """Yields the rows of a side, a mebibyte of text at once, or one row that is longer."""
    numbers = np.cumsum(side.ends - side.starts) // _PART_BYTES
    borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(side)]
    for first, end in zip(borders, borders[1:]):
        if first < end:
            yield side.take(slice(first, end))


class _Words:
    """Counts words, and the pieces that they are cut into."""

    def __init__(self, tokenizer: Tokenizer | None):
        self._tokenizer = tokenizer
        self._counts = TokenAccumulator()
        self._worst: dict[str, tuple[int, int]] = {}
        self.words = 0
        self.pieces: int | None = None if tokenizer is None else 0

    def add(self, data: np.ndarray, offsets: np.ndarray) -> None:
        """Adds words: code points `data[offsets[i]:offsets[i + 1]]`, uint32; they may repeat."""
        self.words += len(offsets) - 1
        if self._tokenizer is None:
            return
        ones = np.ones(len(offsets) - 1, np.int64)
        self._counts.add_tokens(data.view(np.uint8), offsets * data.itemsize, ones)
        if len(self._counts.index) > _MOST_WORDS:
            self.sum_up()

    def sum_up(self) -> None:
        """Adds up the pieces of the words that are held, and holds the worst of them alone."""
        data, offsets, counts = self._counts.finish()
        self._counts = TokenAccumulator()
        text = data.tobytes().decode('utf-32-le')
        ends = (offsets // np.dtype(np.uint32).itemsize).tolist()
        for first in range(0, len(counts), _ENCODED_WORDS):
            own = ends[first : first + _ENCODED_WORDS + 1]
            words = [text[start:end] for start, end in zip(own, own[1:])]
            self._sum_up(words, counts[first : first + _ENCODED_WORDS])

    def _sum_up(self, words: Sequence[str], counts: np.ndarray) -> None:
        assert self._tokenizer is not None, 'else no words are held'
        pieces = _pieces_of_words(self._tokenizer, words)
        self.pieces = (self.pieces or 0) + int(counts @ pieces)
        for place in np.flatnonzero(pieces > 1).tolist():
            before, _ = self._worst.get(words[place], (0, 0))
            self._worst[words[place]] = before + int(counts[place]), int(pieces[place])
        if len(self._worst) > 2 * _CANDIDATES:
            self._worst = dict(heapq.nsmallest(_CANDIDATES, self._worst.items(), key=_by_cost))

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


def _tokenizer(vocabulary: Vocabulary, scheme: Scheme) -> Tokenizer | None:
    try:
        return tokenizer_of(vocabulary, scheme)
    except InputError:  # a scheme of the user's
        return None


def _pieces_of_words(tokenizer: Tokenizer, words: Sequence[str]) -> np.ndarray:
    """Returns the number of pieces of each word, int64[words].

    Many vocabularies have other pieces for a word after a space, so it is cut as it mostly stands in
    text: its pieces are what `a word` has more than `a`.
    """
    texts = ['a', *(f'a {word}' for word in words)]
    encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
    sizes = np.array([len(ids) for ids in encoded], np.int64)
    return np.maximum(1, sizes[1:] - sizes[0])
