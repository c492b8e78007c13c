"""A report: the figures of a dataset as one HTML page, of two datasets side by side, or of two vocabularies.

The page needs nothing else: its charts are SVG within, and it has neither scripts nor addresses.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pipelines.trust.charts import bar_chart, dot_chart, line_chart, short
from pipelines.trust.figures import TEXT_ROWS, Figures, RowFigures, Search, VocabularyUse

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
    title = ' and '.join(figures.folder for _, figures in named)
    parts = [
        _head(named),
        section('Lines', _lines(named)),
        section('Rows', _rows(named)),
        section('Scripts', _scripts(named)),
        section('Vocabulary', _vocabularies(named)),
        section('Words in many pieces', _worst(named)),
        section('Search', _searches(named)),
        section('One row in a hundred', _samples(named)),
        section('Shuffle', _shuffles(named)),
        section('Left out', _rejected(named)),
        section('Time', _seconds(named)),
    ]
    return page(title, parts)


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


def _each(
    named: Named, what: Callable[[Figures], Iterable[Sequence[object]]]
) -> list[list[object]]:
    """The rows of a table of all datasets, which their names begin if there are several."""
    return [[*([name] if name else []), *row] for name, figures in named for row in what(figures)]


def _heads(named: Named, *heads: str) -> list[str]:
    return [*(['dataset'] if len(named) > 1 else []), *heads]


def _label(*words: str) -> str:
    return ' '.join(word for word in words if word)


def _head(named: Named) -> str:
    facts = [
        ('folder', lambda f: f.folder),
        ('root', lambda f: f.root),
        ('command', lambda f: f'tokbeam {f.stage}'),
        ('shards', lambda f: f.shards),
        ('bytes of shards', lambda f: f.bytes),
        (
            'bytes of text',
            lambda f: sum(part.text_bytes for part in f.left_out if not part.dataset),
        ),
        (
            'corpus',
            lambda f: f'was not read: {f.without_corpus}' if f.without_corpus else 'was read',
        ),
        ('Unicode', lambda f: f.unicode),
    ]
    names = dict.fromkeys(name for _, figures in named for name in sorted(figures.options))
    rows: list[list[object]] = [
        [what, *(_fact(value(figures)) for _, figures in named)] for what, value in facts
    ]
    options: list[list[object]] = [
        [f'--{name.replace("_", "-")}', *(_fact(f.options.get(name)) for _, f in named)]
        for name in names
    ]
    heads = ['', *(name or 'value' for name, _ in named)]
    more = table('', heads, options)
    return (
        f'<div class="facts">{table("", heads, rows)}'
        f'<details><summary>Options</summary>{more}</details></div>'
    )


def _fact(value: object) -> str:
    return f'{value:,}' if type(value) is int else '–' if value is None else str(value)


def _lines(named: Named) -> Iterator[str]:
    reasons = list(
        dict.fromkeys(name for _, f in named for part in f.left_out for name in part.reasons)
    )
    yield table(
        'Lines that were read, and what became of them',
        _heads(
            named,
            'split',
            'lines',
            'added by filters',
            'examples',
            'bytes of text',
            *reasons,
            'ids',
            'unknown',
            'coverage',
        ),
        _each(
            named,
            lambda f: (
                (
                    _label(part.split, part.dataset),
                    part.lines,
                    part.added,
                    part.examples,
                    part.text_bytes,
                    *(part.reasons.get(reason, 0) for reason in reasons),
                    part.ids,
                    part.unknown,
                    _percent(
                        None
                        if not part.ids or part.unknown is None
                        else 1 - part.unknown / part.ids
                    ),
                )
                for part in f.left_out
            ),
        ),
    )
    yield table(
        'Files',
        _heads(named, 'split', 'role', 'file', 'bytes of the file'),
        _each(named, lambda f: f.inputs),
    )


class _Percent(float):
    """A share, as it stands in a table."""


def _percent(share: float | None) -> _Percent | None:
    return None if share is None else _Percent(100 * share)


def _rows(named: Named) -> Iterator[str]:
    yield table(
        'Rows as they are stored, in ids, templates included',
        _heads(named, 'split', 'feature', 'rows', 'ids', 'mean', 'median', 'longest'),
        _each(
            named,
            lambda f: (
                (
                    _label(part.split, part.dataset),
                    feature,
                    part.rows,
                    own.ids,
                    own.mean,
                    own.median,
                    own.longest,
                )
                for part in f.rows
                for feature, own in part.lengths.items()
            ),
        ),
    )
    yield table(
        _whose_text(named),
        _heads(
            named, 'split', 'feature', 'rows', 'bytes an id', 'characters an id', 'words a row',
            'pieces a word', 'unknown',
        ),
        _each(
            named,
            lambda f: (
                (
                    _label(part.split, part.dataset),
                    feature,
                    text.rows,
                    _share(text.bytes, text.ids),
                    _share(text.characters, text.ids),
                    _share(text.words, text.rows),
                    None if text.word_pieces is None else _share(text.word_pieces, text.words),
                    None if text.unknown is None else _percent(_share(text.unknown, text.ids)),
                )
                for part in f.rows
                for feature, text in part.text.items()
            ),
        ),
    )  # fmt: skip
    lengths = {
        _label(name, feature): [
            (max(least, 0.5), 100 * count / max(1, part.rows)) for least, _, count in own.histogram
        ]
        for name, figures in named
        for part in _first(figures)
        for feature, own in part.lengths.items()
    }
    ratios = {
        name or 'rows': [(ratio, 100 * count / max(1, part.rows)) for ratio, count in part.ratios]
        for name, figures in named
        for part in _first(figures)
        if part.ratios
    }
    drawn = {}
    if lengths:
        split = _first(named[0][1])[0].split
        caption = f'Lengths of rows of {split}: each step is a fifth longer than the one before'
        drawn[caption] = line_chart(lengths, 'ids of a row', '% of rows', log='x')
    if ratios:
        caption = 'Length of targets to that of inputs, in quarters of a doubling'
        drawn[caption] = line_chart(ratios, 'targets : inputs', '% of pairs', log='x')
    yield charts(drawn)


def _whose_text(named: Named) -> str:
    """The caption of figures of text: of which rows it is."""
    if all(figures.without_corpus is None for _, figures in named):
        return 'Text of all rows, without templates'
    return (
        f'Text without templates; where the corpus was not read, that of the first {TEXT_ROWS:,} rows of a '
        'split, which the shuffle makes a uniform sample'
    )


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _first(figures: Figures) -> Sequence[RowFigures]:
    """The figures of the first split, which is that of training if there is one."""
    return figures.rows[:1]


def _scripts(named: Named) -> Iterator[str]:
    shares = {
        _label(name, part.split, feature): {
            script: count / text.characters for script, count in text.scripts.items()
        }
        for name, figures in named
        for part in figures.rows
        if not part.dataset
        for feature, text in part.text.items()
    }
    scripts = dict.fromkeys(script for own in shares.values() for script in own)
    yield table(
        'Characters of these texts by script; “other” are digits, signs, white space and rarer scripts',
        ['script', *shares],
        [(script, *(_percent(own.get(script)) for own in shares.values())) for script in scripts],
    )


def _vocabularies(named: Named) -> Iterator[str]:
    yield table(
        'Entries, and how many occur in all rows',
        _heads(
            named, 'side', 'entries', 'used', 'never used', 'single characters', 'ids that are such',
        ),
        _each(
            named,
            lambda f: (
                (
                    use.side, use.size, use.used, use.size - use.used, use.single_characters,
                    _percent(use.single_share),
                )
                for use in f.vocabularies
            ),
        ),
    )  # fmt: skip
    uses: dict[str, VocabularyUse] = {
        _label(name, use.side): use for name, f in named for use in f.vocabularies
    }
    ranks = {label: use.by_rank for label, use in uses.items() if use.by_rank}
    tokens = {
        _label(name, f'tokens of {counts.name}'): counts.by_rank
        for name, f in named
        for counts in f.counts
        if counts.by_rank
    }
    longest: Sequence[tuple[int, int, int]] = max(
        (use.by_count for use in uses.values()), key=len, default=()
    )
    drawn = {}
    if ranks:
        caption = 'Counts of entries by their rank'
        drawn[caption] = line_chart({**ranks, **tokens}, 'rank', 'count', log='xy')
    if longest:
        labels = [short(least) if least < 2 else f'{short(least)}+' for least, *_ in longest]
        values = {
            label: [entries for *_, entries in use.by_count]
            + [0] * (len(longest) - len(use.by_count))
            for label, use in uses.items()
        }
        caption = 'Entries by how often they occur'
        drawn[caption] = bar_chart(labels, values, 'occurrences in all rows', 'entries')
    yield charts(drawn)
    for label, use in uses.items():
        if use.commonest:
            yield f'<h3>{shown(_label("Commonest of", label))}</h3>' + pieces(
                piece for piece, _ in use.commonest
            )
        if use.unused:
            count = use.size - use.used
            more = f' (the first {len(use.unused)})' if count > len(use.unused) else ''
            title = f'{count:,} never used of {label}{more}'
            yield f'<details><summary>{shown(title)}</summary>{pieces(use.unused)}</details>'
    yield table(
        'Tables of counts',
        _heads(named, 'table', 'distinct tokens', 'running tokens'),
        _each(
            named, lambda f: ((counts.name, counts.distinct, counts.running) for counts in f.counts)
        ),
    )


def _worst(named: Named) -> Iterator[str]:
    tables = [
        table(
            _label(name, part.split, part.dataset, feature),
            ['word', 'occurs', 'pieces'],
            text.worst[:10],
        )
        for name, figures in named
        for part in figures.rows
        for feature, text in part.text.items()
        if text.worst
    ]
    if tables:
        yield _paragraph(
            'The words that cost the most pieces, beyond one each, in all that they occur.'
        )
        yield f'<div class="tables">{"".join(tables)}</div>'


def _searches(named: Named) -> Iterator[str]:
    searches: dict[str, Search] = {
        _label(name, search.side): search for name, f in named for search in f.searches
    }
    if not searches:
        return
    yield table(
        'What the search for a vocabulary took',
        ['vocabulary', 'wanted', 'entries', 'min-count', 'vocabularies made'],
        [
            (label, search.wanted, search.size, search.min_count, len(search.tried))
            for label, search in searches.items()
        ],
    )
    series: dict[str, Sequence[tuple[float, float]]] = {
        label: sorted(dict(search.tried).items()) for label, search in searches.items()
    }
    chart = line_chart(series, 'min-count', 'entries', log='xy', marks=True)
    yield charts({'Entries of each vocabulary that the search made': chart})


def _samples(named: Named) -> Iterator[str]:
    yield _paragraph(
        'What one row in a hundred would have told, against all rows: entries that only the whole uses '
        'are what a vocabulary, or a look at a sample, would miss.'
    )
    yield table(
        '',
        _heads(
            named, 'side', 'rows', 'of', 'ids', 'of', 'entries used', 'of', 'longest row', 'of',
            'entries unseen', 'their ids',
        ),
        _each(
            named,
            lambda f: (
                (
                    sample.side, *sample.rows, *sample.ids, *sample.used, *sample.longest,
                    sample.unseen_entries, sample.unseen_ids,
                )
                for sample in f.samples
            ),
        ),
    )  # fmt: skip


def _shuffles(named: Named) -> Iterator[str]:
    known = [(name, figures) for name, figures in named if figures.shuffles is not None]
    if not known:
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
    yield table(
        '',
        _heads(named, 'split', 'rows', 'with the place', 'with the neighbour', '3 / √rows'),
        _each(
            named,
            lambda f: (
                (
                    shuffle.split, shuffle.rows, shuffle.rank_correlation,
                    shuffle.serial_correlation, _share(3, shuffle.rows**0.5),
                )
                for shuffle in f.shuffles or ()
            ),
        ),
    )  # fmt: skip
    places = {
        name or 'rows': figures.shuffles[0].places for name, figures in known if figures.shuffles
    }
    caption = (
        'Places in the corpus and in the split, of some rows: stripes or clouds would be an order'
    )
    yield charts({caption: dot_chart(places, 'place in the corpus', 'place in the split')})


def _rejected(named: Named) -> Iterator[str]:
    for name, figures in named:
        for file in figures.rejected:
            lines = '\n'.join(map(shown, file.samples))
            title = _label(name, f'{file.name}: {file.lines:,} lines')
            yield f'<h3>{shown(title)}</h3><pre>{lines}</pre>'


def _seconds(named: Named) -> Iterator[str]:
    yield table(
        'Seconds of the last run that did something',
        _heads(named, 'stage', 'seconds'),
        _each(named, lambda f: ((stage, float(seconds)) for stage, seconds in f.seconds.items())),
    )
