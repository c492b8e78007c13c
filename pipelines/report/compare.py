"""Two vocabularies side by side: their entries, those that they share, and those that only one has."""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Iterator, Sequence

from pipelines.artifacts.vocabularies import read_vocabulary, scheme_of
from pipelines.report.charts import bar_chart
from pipelines.report.figures import Figures
from pipelines.report.page import Named, charts, page, pieces, section, shown, table
from pipelines.report.row_text import script_of
from tokcore.encoding.vocabulary import Vocabulary

_EXAMPLES = 100

_LONGEST = 16
"""Entries of more characters are counted with those of so many."""


def compare_vocabularies(first: str, second: str) -> Figures:
    """Compares the vocabularies of two files.

    Returns:
        unit: what is compared: `pieces` as their files have them, or, for two schemes, `texts` that they
            spell, without the white space around them.
        shared: units that both have.
        vocabularies: of the first and of the second: its path and scheme; size; single_characters, entries
            of one character or byte; by_length: (characters, entries) without special ids, 16 and more
            together; scripts: entries by the script of their first letter, the commonest first, `other` if
            they have none; own, how many units only this one has; examples, the first of these.

    Raises:
        InputError: a file is not a vocabulary.
    """
    paths = (first, second)
    schemes = [scheme_of([path]) for path in paths]
    entries = [
        read_vocabulary(path, scheme).entries for path, scheme in zip(paths, schemes, strict=True)
    ]
    texts = [  # that each id spells alone
        [vocabulary.decode([id_]) for id_ in range(vocabulary.vocab_size)] for vocabulary in entries
    ]
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
    return {
        'unit': 'pieces' if is_same else 'texts',
        'shared': len(sets[0] & sets[1]),
        'vocabularies': figures,
    }


def _figures(
    path: str,
    scheme: str,
    vocabulary: Vocabulary,
    texts: Sequence[str],
    units: Sequence[str],
    other: set[str],
) -> Figures:
    special = {id_ for id_ in vocabulary.special_ids if id_ is not None}
    lengths = collections.Counter(
        min(len(text), _LONGEST) for id_, text in enumerate(texts) if id_ not in special
    )
    scripts = collections.Counter(map(_script, texts))
    own = [unit for unit in units if unit not in other]
    return {
        'path': path,
        'scheme': scheme,
        'size': len(texts),
        'single_characters': sum(len(text) == 1 for text in texts),
        'by_length': sorted(lengths.items()),
        'scripts': dict(sorted(scripts.items(), key=lambda item: (-item[1], item[0]))),
        'own': len(own),
        'examples': own[:_EXAMPLES],
    }


def _script(text: str) -> str:
    letter = re.search(r'[^\W\d_]', text)
    return 'other' if letter is None else script_of(letter[0])


def comparison_page(compared: Figures) -> str:
    """Returns the page; raises InputError if Matplotlib is not installed."""
    named = list(zip('AB', compared['vocabularies'], strict=True))
    parts = {
        'Entries': _entries(compared, named),
        'Scripts': [_scripts(named)],
        'What only one has': _own(compared['unit'], named),
    }
    return page(
        ' and '.join(os.path.basename(figures['path']) for _, figures in named),
        [section(title, of_section) for title, of_section in parts.items()],
    )


def _entries(compared: Figures, named: Named) -> Iterator[str]:
    unit = compared['unit']
    keys = ['path', 'scheme', 'size', 'single_characters', 'own']
    yield table(
        f'{compared["shared"]:,} {unit} are in both',
        ['', 'file', 'scheme', 'entries', 'single characters', f'{unit} of its own'],
        [(name, *(figures[key] for key in keys)) for name, figures in named],
    )
    longest = max(length for _, figures in named for length, _ in figures['by_length'])
    labels = [f'{length}+' if length == _LONGEST else str(length) for length in range(longest + 1)]
    values = {
        name: [dict(figures['by_length']).get(length, 0) for length in range(longest + 1)]
        for name, figures in named
    }
    caption = 'Entries by their length; bytes that are not a whole character count as one'
    yield charts({caption: bar_chart(labels, values, 'characters', 'entries')})


def _scripts(named: Named) -> str:
    scripts = dict.fromkeys(script for _, figures in named for script in figures['scripts'])
    return table(
        'Entries by the script of their first letter',
        ['script', *(name for name, _ in named)],
        [(script, *(f['scripts'].get(script, 0) for _, f in named)) for script in scripts],
    )


def _own(unit: str, named: Named) -> Iterator[str]:
    for name, figures in named:
        own, listed = figures['own'], len(figures['examples'])
        more = f', the first {listed}' if own > listed else ''
        yield f'<h3>{shown(f"{own:,} {unit} only in {name}{more}")}</h3>'
        yield pieces(figures['examples'])
