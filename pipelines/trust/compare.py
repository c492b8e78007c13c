"""Two vocabularies side by side: their entries, those that they share, and those that only one has."""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.artifacts.vocabularies import read_vocabulary, scheme_of
from pipelines.trust.charts import bar_chart
from pipelines.trust.report import charts, page, pieces, section, shown, table
from pipelines.trust.row_text import script_of
from tokcore.encoding.vocabulary import Vocabulary

_EXAMPLES = 100

_LONGEST = 16
"""Entries of more characters are counted with those of so many."""


@dataclass(frozen=True)
class VocabularyFigures:
    """The entries of a vocabulary.

    Attributes:
        path: as it was given.
        scheme: its name.
        size: its entries.
        single_characters: entries that are one character or one byte.
        by_length: (characters, entries), without special ids; those of 16 and more are together.
        scripts: entries by the script of their first letter, the commonest first; `other` have none.
        own: texts that only this vocabulary has.
        examples: of these, the first in the order of ids.
    """

    path: str
    scheme: str
    size: int
    single_characters: int
    by_length: tuple[tuple[int, int], ...]
    scripts: dict[str, int]
    own: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Compared:
    """Two vocabularies.

    Attributes:
        unit: what is compared: `pieces` as their files have them, or, of two schemes, `texts` that they
            spell, without the white space around them.
        shared: units that both have.
        vocabularies: the first and the second.
    """

    unit: str
    shared: int
    vocabularies: tuple[VocabularyFigures, VocabularyFigures]


def compare_vocabularies(first: str, second: str) -> Compared:
    """Compares the vocabularies of two files.

    Raises:
        InputError: a file is not a vocabulary.
    """
    paths = (first, second)
    schemes = [scheme_of([path]) for path in paths]
    entries = [
        read_vocabulary(path, scheme).entries for path, scheme in zip(paths, schemes, strict=True)
    ]
    texts = [_texts(vocabulary) for vocabulary in entries]
    is_same = schemes[0].name == schemes[1].name
    units = [
        [*vocabulary.pieces] if is_same else [text.strip() for text in own]
        for vocabulary, own in zip(entries, texts, strict=True)
    ]
    sets = [set(own) for own in units]
    figures = [
        _figures(path, scheme.name, vocabulary, own, [*dict.fromkeys(unit)], other)
        for path, scheme, vocabulary, own, unit, other in zip(
            paths, schemes, entries, texts, units, reversed(sets), strict=True
        )
    ]
    return Compared(
        'pieces' if is_same else 'texts', len(sets[0] & sets[1]), (figures[0], figures[1])
    )


def _texts(vocabulary: Vocabulary) -> list[str]:
    """What each id spells alone."""
    return [vocabulary.decode([id_]) for id_ in range(vocabulary.vocab_size)]


def _figures(
    path: str,
    scheme: str,
    vocabulary: Vocabulary,
    texts: Sequence[str],
    units: Sequence[str],
    other: set[str],
) -> VocabularyFigures:
    special = {id_ for id_ in vocabulary.special_ids if id_ is not None}
    lengths = collections.Counter(
        min(len(text), _LONGEST) for id_, text in enumerate(texts) if id_ not in special
    )
    scripts = collections.Counter(map(_script, texts))
    own = [unit for unit in units if unit not in other]
    return VocabularyFigures(
        path,
        scheme,
        len(texts),
        sum(len(text) == 1 for text in texts),
        tuple(sorted(lengths.items())),
        dict(sorted(scripts.items(), key=lambda item: (-item[1], item[0]))),
        len(own),
        tuple(own[:_EXAMPLES]),
    )


def _script(text: str) -> str:
    letter = re.search(r'[^\W\d_]', text)
    return 'other' if letter is None else script_of(letter[0])


def comparison_page(compared: Compared) -> str:
    """Returns the page; raises InputError if Matplotlib is not installed."""
    named = list(zip('AB', compared.vocabularies, strict=True))
    names = [os.path.basename(figures.path) for figures in compared.vocabularies]
    return page(
        ' and '.join(names),
        [
            section('Entries', _entries(compared, named)),
            section('Scripts', [_scripts(named)]),
            section('What only one has', _own(compared, named)),
        ],
    )


def _entries(compared: Compared, named: Sequence[tuple[str, VocabularyFigures]]) -> Iterator[str]:
    yield table(
        f'{compared.shared:,} {compared.unit} are in both',
        ['', 'file', 'scheme', 'entries', 'single characters', f'{compared.unit} of its own'],
        [
            (
                name,
                figures.path,
                figures.scheme,
                figures.size,
                figures.single_characters,
                figures.own,
            )
            for name, figures in named
        ],
    )
    longest = max(length for _, figures in named for length, _ in figures.by_length)
    labels = [f'{length}+' if length == _LONGEST else str(length) for length in range(longest + 1)]
    values = {
        name: [dict(figures.by_length).get(length, 0) for length in range(longest + 1)]
        for name, figures in named
    }
    caption = 'Entries by their length; bytes that are not a whole character count as one'
    yield charts({caption: bar_chart(labels, values, 'characters', 'entries')})


def _scripts(named: Sequence[tuple[str, VocabularyFigures]]) -> str:
    scripts = dict.fromkeys(script for _, figures in named for script in figures.scripts)
    return table(
        'Entries by the script of their first letter',
        ['script', *(name for name, _ in named)],
        [(script, *(figures.scripts.get(script, 0) for _, figures in named)) for script in scripts],
    )


def _own(compared: Compared, named: Sequence[tuple[str, VocabularyFigures]]) -> Iterator[str]:
    for name, figures in named:
        more = f', the first {len(figures.examples)}' if figures.own > len(figures.examples) else ''
        yield f'<h3>{shown(f"{figures.own:,} {compared.unit} only in {name}{more}")}</h3>'
        yield pieces(figures.examples)
