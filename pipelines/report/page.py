"""A report: the figures of a dataset as one HTML page, of two datasets side by side, or of two vocabularies.

The page needs nothing else: its charts are SVG within, and it has neither scripts nor addresses.
"""

from __future__ import annotations

import collections
import html
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.artifacts.vocabularies import read_vocabulary, scheme_of
from pipelines.report.charts import bar_chart, dot_chart, line_chart, short
from pipelines.report.figures import TEXT_ROWS, Figures
from pipelines.report.row_text import script_of
from tokcore.encoding.vocabulary import Vocabulary

Named = Sequence[tuple[str, Figures]]
"""Figures with what they are called where there are several; a single one is called ''."""

_STYLE = """\
:root { color-scheme: light dark; --back: #fff; --ink: #1c2024; --faint: #5b646d; --grid: #b9c0c7;
  --series-0: #0a63b0; --series-1: #b3470a; --series-2: #1b7a43; --series-3: #7d3c98; }
@media (prefers-color-scheme: dark) { :root { --back: #14181c; --ink: #e6e9ec; --faint: #a3acb5;
  --grid: #59636d; --series-0: #6cb6ff; --series-1: #ffa45c; --series-2: #6fd08c; --series-3: #d2a1f0; } }
@media print { :root { color-scheme: light; --back: #fff; --ink: #000; --faint: #333; --grid: #999;
  --series-0: #0a63b0; --series-1: #b3470a; --series-2: #1b7a43; --series-3: #7d3c98; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--back); color: var(--ink);
  font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--grid); }
p { max-width: 46rem; } figcaption, .caption { color: var(--faint); }
.wide { overflow-x: auto; margin: 0 0 1rem; } .caption { margin: 1rem 0 .3rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.facts td { overflow-wrap: anywhere; } .facts td:first-child { white-space: nowrap; }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--grid); }
td.number, th.number { text-align: right; } td.number { white-space: nowrap; } thead th { font-weight: 600; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1.5rem; }
.tables { display: flex; flex-wrap: wrap; gap: 0 2.5rem; }
figure { margin: 0; max-width: 38rem; } figure svg { display: block; width: 100%; height: auto; }
code, .piece { font-family: ui-monospace, monospace; }
.piece { display: inline-block; margin: 0 .35rem .35rem 0; padding: 0 .3rem; border: 1px solid var(--grid);
  border-radius: .2rem; white-space: pre; max-width: 100%; overflow: hidden; text-overflow: ellipsis; }
pre { white-space: pre-wrap; }
"""


def report_page(named: Named) -> str:
    """Returns the page of one dataset, or of several side by side.

    Raises:
        InputError: Matplotlib is not installed.
    """
    sections = {
        'Lines': _lines,
        'Rows': _rows,
        'Scripts': _scripts,
        'Vocabulary': _vocabularies,
        'Words in many pieces': _worst,
        'Search': _searches,
        'One row in a hundred': _samples,
        'Shuffle': _shuffles,
        'Left out': _rejected,
        'Time': _seconds,
    }
    parts = [section(title, parts_of(named)) for title, parts_of in sections.items()]
    return page(' and '.join(figures['folder'] for _, figures in named), [_head(named), *parts])


def page(title: str, parts: Iterable[str]) -> str:
    """Returns a page with the style of reports."""
    return '\n'.join(
        [
            '<!DOCTYPE html>',
            '<html lang="en">',
            '<head>',
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<title>{shown(title)}</title>',
            f'<style>\n{_STYLE}</style>',
            '</head>',
            '<body>',
            f'<h1>{shown(title)}</h1>',
            *parts,
            '</body>',
            '</html>',
        ]
    )


def shown(text: object) -> str:
    """Returns text for a page: escaped, and without characters that cannot be seen."""
    return html.escape(''.join(c if c.isprintable() else repr(c)[1:-1] for c in str(text)))


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a table; numbers stand right, None is a dash, and a column of these alone is left out."""
    rows = list(rows)
    if not rows:
        return ''
    columns = zip(head, zip(*rows, strict=True), strict=True)
    known = [(name, values) for name, values in columns if any(v is not None for v in values)]
    head = [name for name, _ in known]
    cells = [list(map(_cell, row)) for row in zip(*(values for _, values in known), strict=True)]
    numbers = [all(is_number for _, is_number in column) for column in zip(*cells, strict=True)]
    kind = [' class="number"' if is_number else '' for is_number in numbers]
    lines = [
        f'<tr>{"".join(f"<td{k}>{text}</td>" for k, (text, _) in zip(kind, row, strict=True))}</tr>'
        for row in cells
    ]
    # Above what scrolls, so that a narrow window shows all of it.
    title = f'<p class="caption">{shown(caption)}</p>' if caption else ''
    heads = ''.join(
        f'<th scope="col"{k}>{shown(name)}</th>' for k, name in zip(kind, head, strict=True)
    )
    return (
        f'<div>{title}<div class="wide"><table><thead><tr>{heads}</tr></thead>'
        f'<tbody>{"".join(lines)}</tbody></table></div></div>'
    )


def charts(drawn: Mapping[str, str]) -> str:
    """Returns charts by what each shows, side by side where there is room."""
    figures = [
        f'<figure>{svg}<figcaption>{shown(caption)}</figcaption></figure>'
        for caption, svg in drawn.items()
    ]
    return f'<div class="charts">{"".join(figures)}</div>' if figures else ''


def _paragraph(text: str) -> str:
    return f'<p>{shown(text)}</p>'


def pieces(words: Iterable[str]) -> str:
    """Returns words as boxes, with their white space visible."""
    return ''.join(f'<span class="piece">{shown(word.replace(" ", "␣"))}</span>' for word in words)


def _cell(value: object) -> tuple[str, bool]:
    if value is None:
        return '–', True
    if isinstance(value, int):
        return f'{value:,}', True
    if isinstance(value, _Percent):
        return _percent_shown(value), True
    if isinstance(value, float):
        return f'{value:,.4g}' if abs(value) < 1000 else f'{value:,.0f}', True
    return shown(value), False


def _percent_shown(value: float) -> str:
    """A share in digits, without an exponent."""
    if 0 < abs(value) < 0.001:
        return '< 0.001 %'
    return f'{value:.3f} %' if abs(value) < 1 else f'{value:.4g} %'


def section(title: str, parts: Iterable[str]) -> str:
    """Returns a part of the page with its title; nothing if all its parts are empty."""
    body = '\n'.join(part for part in parts if part)
    return f'<section>\n<h2>{shown(title)}</h2>\n{body}\n</section>' if body else ''


def _each(named: Named, key: str) -> Iterator[tuple[str, Any]]:
    """Yields what is under a key of each dataset's figures, one by one, after the name of the dataset."""
    return ((name, figures) for name, all_ in named for figures in all_[key] or ())


def _each_feature(named: Named, key: str) -> Iterator[tuple[str, Figures]]:
    """Yields the `lengths` or the `text` of each feature, with the other figures of the rows."""
    for name, rows in _each(named, 'rows'):
        for feature, figures in rows[key].items():
            yield name, {**rows, 'feature': feature, **figures}


def _table(
    named: Named,
    caption: str,
    figures: Iterable[tuple[str, Any]],
    *columns: str | tuple[str, str | int | Callable[[Any], object]],
) -> str:
    """Returns a table of all datasets, whose names begin the rows if there are several.

    Args:
        named: the datasets.
        caption: of the table.
        figures: of each row, after the name of the dataset.
        columns: heads, each with the key of what stands below it, or with what returns that; a head alone
            is a key.
    """
    pairs = [(column, column) if isinstance(column, str) else column for column in columns]
    heads = [head for head, _ in pairs]
    values = [value if callable(value) else operator.itemgetter(value) for _, value in pairs]
    rows = [(name, [value(own) for value in values]) for name, own in figures]
    if len(named) > 1:
        return table(caption, ['dataset', *heads], [[name, *cells] for name, cells in rows])
    return table(caption, heads, [cells for _, cells in rows])


def _label(*words: str) -> str:
    return ' '.join(word for word in words if word)


def _part(figures: Figures) -> str:
    """What part of the rows some figures are of."""
    return _label(figures['split'], figures['dataset'])


class _Percent(float):
    """A share, as it stands in a table."""


def _percent(share: float | None) -> _Percent | None:
    return None if share is None else _Percent(100 * share)


def _share(part: str, whole: str) -> Callable[[Figures], float | None]:
    """Returns what divides a figure by another; there is no quotient without a part or by 0."""
    return lambda own: own[part] / own[whole] if own[whole] and own[part] is not None else None


def _head(named: Named) -> str:
    facts: dict[str, Callable[[Figures], object]] = {
        'folder': lambda f: f['folder'],
        'root': lambda f: f['root'],
        'command': lambda f: f'tokbeam {f["stage"]}',
        'shards': lambda f: f['shards'],
        'bytes of shards': lambda f: f['bytes'],
        'bytes of text': lambda f: sum(
            part['text_bytes'] for part in f['left_out'] if not part['dataset']
        ),
        'corpus': lambda f: (
            f'was not read: {f["without_corpus"]}' if f['without_corpus'] else 'was read'
        ),
        'Unicode': lambda f: f['unicode'],
    }
    names = dict.fromkeys(name for _, f in named for name in sorted(f['options']))
    rows = [[what, *(_fact(value(f)) for _, f in named)] for what, value in facts.items()]
    options = [
        [f'--{name.replace("_", "-")}', *(_fact(f['options'].get(name)) for _, f in named)]
        for name in names
    ]
    heads = ['', *(name or 'value' for name, _ in named)]
    return (
        f'<div class="facts">{table("", heads, rows)}'
        f'<details><summary>Options</summary>{table("", heads, options)}</details></div>'
    )


def _fact(value: object) -> str:
    return f'{value:,}' if type(value) is int else '–' if value is None else str(value)


def _lines(named: Named) -> Iterator[str]:
    def of_reason(reason: str) -> Callable[[Figures], object]:
        return lambda own: own['reasons'].get(reason, 0)

    def coverage(own: Figures) -> float | None:
        share = _share('unknown', 'ids')(own)
        return None if share is None else _percent(1 - share)

    reasons = dict.fromkeys(name for _, own in _each(named, 'left_out') for name in own['reasons'])
    yield _table(
        named,
        'Lines that were read, and what became of them',
        _each(named, 'left_out'),
        ('split', _part),
        'lines',
        ('added by filters', 'added'),
        'examples',
        ('bytes of text', 'text_bytes'),
        *((reason, of_reason(reason)) for reason in reasons),
        'ids',
        'unknown',
        ('coverage', coverage),
    )
    of_file = ('split', 0), ('role', 1), ('file', 2), ('bytes of the file', 3)
    yield _table(named, 'Files', _each(named, 'inputs'), *of_file)


def _rows(named: Named) -> Iterator[str]:
    of_lengths = ('split', _part), 'feature', 'rows', 'ids', 'mean', 'median', 'longest'
    yield _table(
        named,
        'Rows as they are stored, in ids, templates included',
        _each_feature(named, 'lengths'),
        *of_lengths,
    )
    whose = 'Text of all rows, without templates'
    if any(figures['without_corpus'] is not None for _, figures in named):
        whose = (
            f'Text without templates; where the corpus was not read, that of the first {TEXT_ROWS:,} rows of '
            'a split, which the shuffle makes a uniform sample'
        )
    yield _table(
        named,
        whose,
        _each_feature(named, 'text'),
        ('split', _part),
        'feature',
        'rows',
        ('bytes an id', _share('bytes', 'ids')),
        ('characters an id', _share('characters', 'ids')),
        ('words a row', _share('words', 'rows')),
        ('pieces a word', _share('word_pieces', 'words')),
        ('unknown', lambda text: _percent(_share('unknown', 'ids')(text))),
    )
    # The first split is that of training if there is one.
    firsts = [(name, figures['rows'][0]) for name, figures in named if figures['rows']]
    lengths = {
        _label(name, feature): [
            (max(least, 0.5), 100 * count / max(1, rows['rows']))
            for least, _, count in of_feature['histogram']
        ]
        for name, rows in firsts
        for feature, of_feature in rows['lengths'].items()
    }
    ratios = {
        name or 'rows': [(ratio, 100 * n / max(1, rows['rows'])) for ratio, n in rows['ratios']]
        for name, rows in firsts
        if rows['ratios']
    }
    drawn = {}
    if lengths:
        split = firsts[0][1]['split']
        caption = f'Lengths of rows of {split}: each step is a fifth longer than the one before'
        drawn[caption] = line_chart(lengths, 'ids of a row', '% of rows', log='x')
    if ratios:
        caption = 'Length of targets to that of inputs, in quarters of a doubling'
        drawn[caption] = line_chart(ratios, 'targets : inputs', '% of pairs', log='x')
    yield charts(drawn)


def _scripts(named: Named) -> Iterator[str]:
    shares = {
        _label(name, text['split'], text['feature']): {
            script: count / text['characters'] for script, count in text['scripts'].items()
        }
        for name, text in _each_feature(named, 'text')
        if not text['dataset']
    }
    scripts = dict.fromkeys(script for of_text in shares.values() for script in of_text)
    yield table(
        'Characters of these texts by script; “other” are digits, signs, white space and rarer scripts',
        ['script', *shares],
        [
            (script, *(_percent(of_text.get(script)) for of_text in shares.values()))
            for script in scripts
        ],
    )


def _vocabularies(named: Named) -> Iterator[str]:
    yield _table(
        named,
        'Entries, and how many occur in all rows',
        _each(named, 'vocabularies'),
        'side',
        ('entries', 'size'),
        'used',
        ('never used', lambda use: use['size'] - use['used']),
        ('single characters', 'single_characters'),
        ('ids that are such', lambda use: _percent(use['single_share'])),
    )
    uses = {_label(name, use['side']): use for name, use in _each(named, 'vocabularies')}
    ranks = {label: use['by_rank'] for label, use in uses.items() if use['by_rank']}
    tokens = {
        _label(name, f'tokens of {counts["name"]}'): counts['by_rank']
        for name, counts in _each(named, 'counts')
        if counts['by_rank']
    }
    longest = max((use['by_count'] for use in uses.values()), key=len, default=())
    drawn = {}
    if ranks:
        caption = 'Counts of entries by their rank'
        drawn[caption] = line_chart({**ranks, **tokens}, 'rank', 'count', log='xy')
    if longest:
        labels = [short(least) if least < 2 else f'{short(least)}+' for least, *_ in longest]
        values = {
            label: [n for *_, n in use['by_count']] + [0] * (len(longest) - len(use['by_count']))
            for label, use in uses.items()
        }
        caption = 'Entries by how often they occur'
        drawn[caption] = bar_chart(labels, values, 'occurrences in all rows', 'entries')
    yield charts(drawn)
    for label, use in uses.items():
        if use['commonest']:
            boxes = pieces(piece for piece, _ in use['commonest'])
            yield f'<h3>{shown(_label("Commonest of", label))}</h3>{boxes}'
        if use['unused']:
            count, listed = use['size'] - use['used'], len(use['unused'])
            more = f' (the first {listed})' if count > listed else ''
            title = f'{count:,} never used of {label}{more}'
            yield f'<details><summary>{shown(title)}</summary>{pieces(use["unused"])}</details>'
    yield _table(
        named,
        'Tables of counts',
        _each(named, 'counts'),
        ('table', 'name'),
        ('distinct tokens', 'distinct'),
        ('running tokens', 'running'),
    )


def _worst(named: Named) -> Iterator[str]:
    heads = ['word', 'occurs', 'pieces']
    tables = [
        table(_label(name, _part(text), text['feature']), heads, text['worst'][:10])
        for name, text in _each_feature(named, 'text')
        if text['worst']
    ]
    if tables:
        yield _paragraph(
            'The words that cost the most pieces, beyond one each, in all that they occur.'
        )
        yield f'<div class="tables">{"".join(tables)}</div>'


def _searches(named: Named) -> Iterator[str]:
    searches = {_label(name, search['side']): search for name, search in _each(named, 'searches')}
    if not searches:
        return
    yield table(
        'What the search for a vocabulary took',
        ['vocabulary', 'wanted', 'entries', 'min-count', 'vocabularies made'],
        [
            (label, search['wanted'], search['size'], search['min_count'], len(search['tried']))
            for label, search in searches.items()
        ],
    )
    series = {label: sorted(dict(search['tried']).items()) for label, search in searches.items()}
    chart = line_chart(series, 'min-count', 'entries', log='xy', marks=True)
    yield charts({'Entries of each vocabulary that the search made': chart})


def _samples(named: Named) -> Iterator[str]:
    yield _paragraph(
        'What one row in a hundred would have told, against all rows: entries that only the whole uses '
        'are what a vocabulary, or a look at a sample, would miss.'
    )
    yield _table(
        named,
        '',
        _each(named, 'samples'),
        'side',
        ('rows', lambda sample: sample['rows'][0]),
        ('of', lambda sample: sample['rows'][1]),
        ('ids', lambda sample: sample['ids'][0]),
        ('of', lambda sample: sample['ids'][1]),
        ('entries used', lambda sample: sample['used'][0]),
        ('of', lambda sample: sample['used'][1]),
        ('longest row', lambda sample: sample['longest'][0]),
        ('of', lambda sample: sample['longest'][1]),
        ('entries unseen', 'unseen_entries'),
        ('their ids', 'unseen_ids'),
    )


def _shuffles(named: Named) -> Iterator[str]:
    if all(figures['shuffles'] is None for _, figures in named):
        yield _paragraph(
            'Rows do not hold their places in the corpus, which was not read. Where its files have moved, '
            'tokbeam report --job JOB.toml tells where they are.'
        )
        return
    yield _paragraph(
        'Correlations of the rows’ ranks in the corpus with their places in the split, and with the ranks '
        'of the rows before them. Of a random order both are within 3 / √rows of 0, in all but three of a '
        'thousand cases.'
    )
    yield _table(
        named,
        '',
        _each(named, 'shuffles'),
        'split',
        'rows',
        ('with the place', 'rank_correlation'),
        ('with the neighbour', 'serial_correlation'),
        ('3 / √rows', lambda shuffle: 3 / shuffle['rows'] ** 0.5 if shuffle['rows'] else None),
    )
    # Of the first split, as above.
    places = {name or 'rows': f['shuffles'][0]['places'] for name, f in named if f['shuffles']}
    caption = (
        'Places in the corpus and in the split, of some rows: stripes or clouds would be an order'
    )
    yield charts({caption: dot_chart(places, 'place in the corpus', 'place in the split')})


def _rejected(named: Named) -> Iterator[str]:
    for name, file in _each(named, 'rejected'):
        lines = '\n'.join(map(shown, file['samples']))
        title = _label(name, f'{file["name"]}: {file["lines"]:,} lines')
        yield f'<h3>{shown(title)}</h3><pre>{lines}</pre>'


def _seconds(named: Named) -> Iterator[str]:
    seconds = ((name, pair) for name, f in named for pair in f['seconds'].items())
    columns = ('stage', 0), ('seconds', lambda pair: float(pair[1]))
    yield _table(named, 'Seconds of the last run that did something', seconds, *columns)


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
        _vocabulary_figures(path, scheme.name, vocabulary, own, [*dict.fromkeys(unit)], other)
        for path, scheme, vocabulary, own, unit, other in zip(
            paths, schemes, entries, texts, units, reversed(sets), strict=True
        )
    ]
    return {
        'unit': 'pieces' if is_same else 'texts',
        'shared': len(sets[0] & sets[1]),
        'vocabularies': figures,
    }


def _vocabulary_figures(
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
    scripts = collections.Counter(map(_script_of_entry, texts))
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


def _script_of_entry(text: str) -> str:
    letter = re.search(r'[^\W\d_]', text)
    return 'other' if letter is None else script_of(letter[0])


def comparison_page(compared: Figures) -> str:
    """Returns the page; raises InputError if Matplotlib is not installed."""
    named = list(zip('AB', compared['vocabularies'], strict=True))
    parts = {
        'Entries': _entries(compared, named),
        'Scripts': [_entry_scripts(named)],
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


def _entry_scripts(named: Named) -> str:
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
