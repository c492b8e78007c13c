"""Figures of the text of some rows: characters, scripts, words, and the pieces that words are cut into."""

from __future__ import annotations

import collections
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import regex

from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import Vocabulary, without_special_ids
from tokcore.errors import InputError
from tokcore.reading.dataset import Dataset
from tokcore.reading.manifest import DatasetManifest, DatasetVocabularies
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
    """The text of some rows of a feature.

    Attributes:
        rows: how many.
        ids: of their text, without templates.
        unknown: of these, ids of an unknown token; None if no id stands for one.
        bytes, characters: of the text, as its ids spell it.
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


def text_figures(
    dataset: ReadableDataset, feature: str, rows: Sequence[Sequence[int]]
) -> TextFigures:
    """Returns figures of the text of rows.

    Args:
        dataset: whose rows these are.
        feature: of them, whose vocabulary is at hand.
        rows: the ids of each, as stored.
    """
    vocabulary, template = dataset.vocabularies[feature], dataset.rows.template(feature)
    special = vocabulary.special_ids
    own = [without_special_ids(list(row), template, special) for row in rows]
    texts = [vocabulary.decode(row) for row in own]
    unknown = None
    if special.unknown is not None:
        unknown = sum(row.count(special.unknown) for row in own)
    characters: collections.Counter[str] = collections.Counter()
    words: collections.Counter[str] = collections.Counter()
    for text in texts:
        characters.update(text)
        words.update(_WORD.findall(text))
    scripts: collections.Counter[str] = collections.Counter()
    for character, count in characters.items():
        scripts[script_of(character)] += count
    pieces = _pieces_of_words(vocabulary, dataset.rows.scheme, list(words))
    worst: list[tuple[str, int, int]] = []
    if pieces is not None:
        costs = sorted(
            ((count * (pieces[word] - 1), word) for word, count in words.items()),
            key=lambda cost: (-cost[0], cost[1]),
        )
        worst = [
            (word, words[word], pieces[word])
            for cost, word in costs[:_WORST]
            if cost > 0 and len(word) <= _LONGEST_WORD
        ]
    return TextFigures(
        rows=len(rows),
        ids=sum(map(len, own)),
        unknown=unknown,
        bytes=sum(len(text.encode('utf-8', 'surrogatepass')) for text in texts),
        characters=characters.total(),
        scripts=dict(sorted(scripts.items(), key=lambda item: (-item[1], item[0]))),
        words=words.total(),
        word_pieces=(
            None if pieces is None else sum(pieces[word] * count for word, count in words.items())
        ),
        worst=tuple(worst),
    )


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


def _pieces_of_words(
    vocabulary: Vocabulary, scheme: Scheme, words: Sequence[str]
) -> dict[str, int] | None:
    """Returns the number of pieces of each word; None if no tokenizer tells that.

    Many vocabularies have other pieces for a word after a space, so it is cut as it mostly stands in
    text: its pieces are what `a word` has more than `a`.
    """
    try:
        tokenizer = tokenizer_of(vocabulary, scheme)
    except InputError:  # a scheme of the user's
        return None
    before = len(tokenizer.encode_batch(['a'], add_special_tokens=False)[0])
    encoded = tokenizer.encode_batch([f'a {word}' for word in words], add_special_tokens=False)
    return {word: max(1, len(ids) - before) for word, ids in zip(words, encoded, strict=True)}
