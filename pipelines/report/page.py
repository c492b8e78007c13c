"""A report: the figures of a dataset as one HTML page, or of two datasets side by side.

The page needs nothing else: its charts are SVG within, and it has neither scripts nor addresses.
"""

from __future__ import annotations

import html
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.report.charts import bar_chart, line_chart, short
from pipelines.report.figures import TEXT_ROWS, Figures
from pipelines.report.row_text import WITHOUT_SPACES

_NO_WORDS = 'Words are not counted in scripts without spaces between them, such as Chinese.'
_MOVED = 'If its files have moved, tokbeam report --job JOB.toml says where they are.'

Named = Sequence[tuple[str, Figures]]
"""Figures with what they are called where there are several; a single one is called ''."""

_STYLE = """\
:root { color-scheme: light dark; --back: #fff; --ink: #1c2024; --faint: #5b646d; --grid: #b9c0c7; --tint: #eef2f6;
  --series-0: #0a63b0; --series-1: #b3470a; --series-2: #1b7a43; --series-3: #7d3c98; }
@media (prefers-color-scheme: dark) { :root { --back: #14181c; --ink: #e6e9ec; --faint: #a3acb5;
  --grid: #59636d; --tint: #232b33; --series-0: #6cb6ff; --series-1: #ffa45c; --series-2: #6fd08c; --series-3: #d2a1f0; } }
@media print { :root { color-scheme: light; --back: #fff; --ink: #000; --faint: #333; --grid: #999; --tint: #eee;
  --series-0: #0a63b0; --series-1: #b3470a; --series-2: #1b7a43; --series-3: #7d3c98; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--back); color: var(--ink);
  font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--grid); }
p { max-width: 46rem; } figcaption, .caption { color: var(--faint); }
.wide { overflow-x: auto; margin: 0 0 1rem; } .caption { margin: .6rem 0 .2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
td { white-space: nowrap; } .facts td + td { white-space: normal; overflow-wrap: anywhere; }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--grid); }
td.number, th.number { text-align: right; } thead th { font-weight: 600; vertical-align: bottom; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1.5rem; }
.tables { display: flex; flex-wrap: wrap; gap: 0 2.5rem; } .tables > div { max-width: 100%; }
figure { margin: 0; max-width: 38rem; } figure svg { display: block; width: 100%; height: auto; }
code, .piece { font-family: ui-monospace, monospace; }
.piece { display: inline-block; margin: 0 .2rem .2rem 0; padding: 0 .25rem; border: 1px solid var(--grid);
  border-radius: .2rem; white-space: pre; max-width: 100%; overflow: hidden; text-overflow: ellipsis;
  vertical-align: top; }
.piece:nth-child(even) { background: var(--tint); } td .piece { margin-bottom: 0; }
pre { white-space: pre-wrap; } h3 { font-size: 1.05rem; margin: 1.2rem 0 .3rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: 0; list-style: none; }
a { color: var(--series-0); }
"""


def report_page(named: Named, compared: Mapping[str, str] | None = None) -> str:
    """Returns the page of one dataset, or of several side by side.

    Args:
        named: the datasets.
        compared: sections, by their titles, that come before those of the datasets.

    Raises:
        InputError: Matplotlib is not installed.
    """
    unread = '; '.join({f['without_corpus']: None for _, f in named if f['without_corpus']})
    sections = {
        'Dataset': _facts,
        'Sample rows': _examples,
        'Lengths': _rows,
        'Longest rows': _longest,
        'Padding': _padding,
        'Repeated rows': _repeats,
        'Scripts': _scripts,
        'Vocabulary': _vocabularies,
        'Words in many pieces': _worst,
        'Shuffle': _shuffles,
        'Lines read': _lines,
        'Lines left out': _rejected,
        'Time': _seconds,
    }
    if_empty = {
        'Words in many pieces': f'No word has several pieces. {_NO_WORDS}',
        'Shuffle': f'Not measured, because the corpus was not read: {unread}. {_MOVED}',
        'Lines left out': 'The folder has no such lines; build and encode keep them with --on-error skip.',
        'Time': 'Not known, because the folder has no record of a run.',
    }
    bodies = {
        title: '\n'.join(filter(None, parts_of(named)))
        or _paragraph(if_empty.get(title, 'There are no rows.'))
        for title, parts_of in sections.items()
    }
    sentences = [f'<li>{shown(each)}</li>' for pair in named for each in _summary(*pair)]
    title = ' and '.join(figures['folder'] for _, figures in named)
    return page(title, ['<ul>', *sentences, '</ul>'], {**(compared or {}), **bodies})


def page(title: str, summary: Iterable[str], sections: Mapping[str, str]) -> str:
    """Returns a page with the style of reports: a summary, links to the sections, and these by title."""
    names = {title: re.sub(r'\W+', '-', f'section {title}') for title in sections}
    links = ''.join(f'<li><a href="#{name}">{shown(of)}</a></li>' for of, name in names.items())
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
            *summary,
            f'<nav aria-label="Contents"><ul>{links}</ul></nav>',
            *(
                f'<section>\n<h2 id="{names[of]}">{shown(of)}</h2>\n{body}\n</section>'
                for of, body in sections.items()
            ),
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
    top = f'<thead><tr>{heads}</tr></thead>' if any(head) else ''
    body = f'<tbody>{"".join(lines)}</tbody>'
    return f'<div>{title}<div class="wide"><table>{top}{body}</table></div></div>'


def charts(drawn: Mapping[str, str]) -> str:
    """Returns charts by what each shows, side by side where there is room."""
    figures = [
        f'<figure>{svg}<figcaption>{shown(caption)}</figcaption></figure>'
        for caption, svg in drawn.items()
    ]
    return f'<div class="charts">{"".join(figures)}</div>' if figures else ''


def _paragraph(text: str) -> str:
    return f'<p>{shown(text)}</p>'


class Boxes(str):
    """HTML that stands in a table as it is."""


def pieces(words: Iterable[tuple[str, str]]) -> Boxes:
    """Returns pieces as boxes, with their white space visible; each has a title that a pointer shows."""
    return Boxes(
        ''.join(
            f'<span class="piece" title="{shown(title)}">{shown(word.replace(" ", "␣"))}</span>'
            for word, title in words
        )
    )


def _cell(value: object) -> tuple[str, bool]:
    if value is None:
        return '–', True
    if isinstance(value, Boxes):
        return value, False
    if isinstance(value, int):
        return f'{value:,}', True
    if isinstance(value, _Percent):
        return _percent_shown(value), True
    if isinstance(value, float):
        return f'{value:,.4g}' if abs(value) < 1000 else f'{value:,.0f}', True
    return shown(value), False


def _percent_shown(value: float) -> str:
    """A share in digits, without an exponent."""
    if abs(value) < 0.001:
        return '< 0.001 %' if value else '0 %'
    return f'{value:.3f} %' if abs(value) < 1 else f'{value:.4g} %'


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


def _has_words(text: Figures) -> bool:
    """Whether most of a text is of scripts that put spaces between words."""
    without = sum(text['scripts'].get(script, 0) for script in WITHOUT_SPACES)
    return 2 * without <= text['characters']


class _Percent(float):
    """A share, as it stands in a table."""


def _percent(share: float | None) -> _Percent | None:
    return None if share is None else _Percent(100 * share)


def _share(part: str, whole: str) -> Callable[[Figures], float | None]:
    """Returns what divides a figure by another; there is no quotient without a part or by 0."""
    return lambda own: own[part] / own[whole] if own[whole] and own[part] is not None else None


def _summary(name: str, figures: Figures) -> Iterator[str]:
    """Yields sentences that say what a dataset is."""
    splits = [rows for rows in figures['rows'] if not rows['dataset']]
    sizes = ' and '.join(f'{rows["rows"]:,} rows of {rows["split"]}' for rows in splits)
    yield f'{_label(name and f"{name}:", figures["folder"])} has {sizes or "no rows"}.'
    for use in figures['vocabularies']:
        yield f'The vocabulary of {use["side"]} has {use["size"]:,} entries; {use["used"]:,} of them occur.'
    for rows in splits[:1]:
        for feature, own in rows['lengths'].items():
            size = _share('bytes', 'ids')(rows['text'][feature])
            yield (
                f'{feature.capitalize()} of {rows["split"]} have {own["mean"]:,.1f} tokens a row on average'
                f'{f", of {size:.2f} bytes each" if size else ""}; the longest has {own["longest"]:,}.'
            )
    for own in figures['repeats']:
        overlap = '' if own['in_train'] is None else f'; {own["in_train"]:,} occur in train, too'
        repeated = own['rows'] - own['distinct']
        yield f'In {own["split"]}, {repeated:,} rows repeat an earlier row{overlap}.'


def _facts(named: Named) -> Iterator[str]:
    facts: dict[str, Callable[[Figures], object]] = {
        'root': lambda f: f['root'],
        'command': lambda f: f'tokbeam {f["stage"]}',
        'shards': lambda f: f'{f["bytes"]:,} bytes in {f["shards"]:,} files',
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
    heads = ['', *(name for name, _ in named)]
    yield (
        f'<div class="facts">{table("", heads, rows)}'
        f'<details><summary>Options</summary>{table("", heads, options)}</details></div>'
    )


def _examples(named: Named) -> Iterator[str]:
    yield _paragraph(
        'The first rows of each split, which the shuffle makes a random choice. Point at a piece for its id.'
    )
    for name, row in _each(named, 'examples'):
        yield f'<h3>{shown(_label(name, row["split"], "row", str(row["row"])))}</h3>'
        for feature, own in row['pieces'].items():
            ids = row['ids'][feature]
            more = f', the first {len(own)} of them' if ids > len(own) else ''
            yield f'<p class="caption">{feature}: {ids:,} ids{more}</p>'
            yield f'<div>{pieces((piece, f"id {id_}") for piece, id_ in own)}</div>'


def _longest(named: Named) -> Iterator[str]:
    def of_position(key: str) -> Callable[[Figures], object]:
        return lambda row: (row['position'] or {}).get(key)

    yield _table(
        named,
        'The rows of the most ids, and the lines of the corpus that they were made from',
        _each(named, 'longest_rows'),
        'split',
        'row',
        'ids',
        *((key, of_position(key)) for key in ('file', 'line', 'byte', 'row of the file')),
        ('begins with', lambda row: ' / '.join(row['text'].values())),
    )
    if any(figures['without_corpus'] is not None for _, figures in named):
        yield _paragraph(f'Some lines are missing, because the corpus was not read. {_MOVED}')


def _padding(named: Named) -> Iterator[str]:
    yield _paragraph(
        'The share of padding in batches that are as wide as their longest row. Mixed lengths: rows as they '
        'come, as batches(batch_size=N, num_buckets=1) takes them. Similar lengths: rows in buckets, as with '
        'batches(batch_size=N), or with batches(tokens_per_batch=N), which always sorts them so.'
    )
    yield _table(
        named,
        '',
        _each(named, 'padding'),
        'split',
        ('of the first rows', 'rows'),
        'batch',
        ('mixed lengths', lambda own: _percent(own['mixed'])),
        ('similar lengths', lambda own: _percent(own['similar'])),
    )


def _repeats(named: Named) -> Iterator[str]:
    yield _table(
        named,
        'Rows of which all ids are equal',
        _each(named, 'repeats'),
        'split',
        'rows',
        ('repeat an earlier row', lambda own: own['rows'] - own['distinct']),
        ('share', lambda own: _percent(1 - own['distinct'] / max(1, own['rows']))),
        ('the commonest row occurs', 'most'),
        ('occur in train, too', 'in_train'),
        ('share of these', lambda own: _percent(_share('in_train', 'rows')(own))),
    )


def _fact(value: object) -> str:
    return f'{value:,}' if type(value) is int else '–' if value is None else str(value)


def _lines(named: Named) -> Iterator[str]:
    def of_reason(reason: str) -> Callable[[Figures], object]:
        return lambda own: own['reasons'].get(reason, 0)

    reasons = dict.fromkeys(name for _, own in _each(named, 'left_out') for name in own['reasons'])
    yield _table(
        named,
        'Lines that were read, and what became of them',
        _each(named, 'left_out'),
        ('split', _part),
        'lines',
        ('added by filters', 'added'),
        ('rows made', 'examples'),
        ('bytes of their text', 'text_bytes'),
        *((f'left out: {reason}', of_reason(reason)) for reason in reasons),
        'ids',
        ('unknown ids', 'unknown'),
        ('share of these', lambda own: _percent(_share('unknown', 'ids')(own))),
    )
    if any(own['unknown'] is None for _, own in _each(named, 'left_out')):
        yield _paragraph(
            'Unknown ids are not counted, because no id of the vocabulary is for these.'
        )
    of_file = ('split', 0), ('role', 1), ('file', 2), ('bytes of text in the whole file', 3)
    yield _table(
        named,
        'Files; splits that are shares of the same file have the same size here',
        _each(named, 'inputs'),
        *of_file,
    )


def _rows(named: Named) -> Iterator[str]:
    yield _table(
        named,
        'Ids of the rows as they are stored, with the ids that a template puts around each',
        _each_feature(named, 'lengths'),
        ('split', _part),
        'feature',
        'rows',
        'ids',
        ('mean of a row', 'mean'),
        ('median', 'median'),
        ('longest row', 'longest'),
    )
    whose = 'Text of all rows, and its ids without templates'
    if any(figures['without_corpus'] is not None for _, figures in named):
        whose += (
            f'; where the corpus was not read, only of the first {TEXT_ROWS:,} rows of a split, which the '
            'shuffle makes a random choice'
        )

    def of_words(part: str, whole: str) -> Callable[[Figures], float | None]:
        return lambda text: _share(part, whole)(text) if _has_words(text) else None

    yield _table(
        named,
        whose,
        _each_feature(named, 'text'),
        ('split', _part),
        'feature',
        'rows',
        ('bytes per id', _share('bytes', 'ids')),
        ('characters per id', _share('characters', 'ids')),
        ('words per row', of_words('words', 'rows')),
        ('pieces per word', of_words('word_pieces', 'words')),
        ('unknown ids', lambda text: _percent(_share('unknown', 'ids')(text))),
    )
    if not all(_has_words(text) for _, text in _each_feature(named, 'text')):
        yield _paragraph(_NO_WORDS)
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
        caption = f'Lengths of rows of {split}, counted in steps that grow by a fifth'
        drawn[caption] = line_chart(lengths, 'ids of a row', '% of rows', log='x')
    if ratios:
        caption = 'Pairs of train by ids of targets / ids of inputs: 1 is equally long, 2 is twice as long'
        drawn[caption] = line_chart(ratios, 'ids of targets / ids of inputs', '% of pairs', log='x')
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
        'Characters of the text by script; “other” are digits, signs, white space and rarer scripts',
        ['script', *shares],
        [
            (script, *(_percent(of_text.get(script)) for of_text in shares.values()))
            for script in scripts
        ],
    )


def _vocabularies(named: Named) -> Iterator[str]:
    yield _table(
        named,
        'Entries, and how many of them occur in the rows of all splits',
        _each(named, 'vocabularies'),
        'side',
        ('entries wanted', 'wanted'),
        ('entries', 'size'),
        ('each occurs at least', 'min_count'),
        'used',
        ('never used', lambda use: use['size'] - use['used']),
        ('entries of one character', 'single_characters'),
        ('their share of ids', lambda use: _percent(use['single_share'])),
    )
    uses = {_label(name, use['side']): use for name, use in _each(named, 'vocabularies')}
    ranks = {label: use['by_rank'] for label, use in uses.items() if use['by_rank']}
    longest = max((use['by_count'] for use in uses.values()), key=len, default=())
    drawn = {}
    if ranks:
        caption = 'How often each entry occurs; the most frequent one has rank 1'
        drawn[caption] = line_chart(ranks, 'rank', 'count', log='xy')
    if longest:
        labels = [short(least) if least < 2 else f'{short(least)}+' for least, *_ in longest]
        values = {
            label: [n for *_, n in use['by_count']] + [0] * (len(longest) - len(use['by_count']))
            for label, use in uses.items()
        }
        caption = 'How many entries occur never, once, 2 to 9 times, 10 to 99 times and so on'
        drawn[caption] = bar_chart(labels, values, 'occurrences in all rows', 'entries')
    yield charts(drawn)
    for label, use in uses.items():
        whose = '' if len(uses) == 1 else f' of {label}'
        commonest = [(piece, f'occurs {count:,} times') for piece, count in use['commonest']]
        longest_pieces = [
            (piece, f'{size:,} characters, occurs {count:,} times')
            for piece, size, count in use['longest']
        ]
        for title, boxes in (('Commonest', commonest), ('Longest', longest_pieces)):
            if boxes:
                yield f'<h3>{title} entries{shown(whose)}</h3>{pieces(boxes)}'
        if use['unused']:
            count, listed = use['size'] - use['used'], len(use['unused'])
            more = f', the first {listed}' if count > listed else ''
            title = shown(f'{count:,} entries{whose} that never occur{more}')
            boxes = [(piece, 'never occurs') for piece in use['unused']]
            yield f'<details><summary>{title}</summary>{pieces(boxes)}</details>'


def _worst(named: Named) -> Iterator[str]:
    heads = ['word', 'occurs', 'pieces']
    tables = [
        table(_label(name, _part(text), text['feature']), heads, text['worst'][:10])
        for name, text in _each_feature(named, 'text')
        if text['worst']
    ]
    if tables:
        yield _paragraph(
            'The words that cost the most: how often a word occurs, times its pieces beyond the first.'
        )
        yield f'<div class="tables">{"".join(tables)}</div>'


def _shuffles(named: Named) -> Iterator[str]:
    if all(figures['shuffles'] is None for _, figures in named):
        return
    yield _paragraph(
        'Whether the order of the corpus is gone: correlations of where rows stood in the corpus with where '
        'they stand in the split, and with where the rows before them stood. For a random order both are '
        'between -3/√rows and 3/√rows, in 997 of 1,000 cases.'
    )
    yield _table(
        named,
        '',
        _each(named, 'shuffles'),
        'split',
        'rows',
        ('with the place in the split', 'rank_correlation'),
        ('with the row before', 'serial_correlation'),
        ('3/√rows', lambda shuffle: 3 / shuffle['rows'] ** 0.5 if shuffle['rows'] else None),
    )


def _rejected(named: Named) -> Iterator[str]:
    for name, file in _each(named, 'rejected'):
        lines = '\n'.join(map(shown, file['samples']))
        title = _label(name, f'{file["name"]}: the first of {file["lines"]:,} lines')
        yield f'<h3>{shown(title)}</h3><pre>{lines}</pre>'


def _seconds(named: Named) -> Iterator[str]:
    seconds = ((name, pair) for name, f in named for pair in f['seconds'].items())
    columns = ('stage', 0), ('seconds', lambda pair: float(pair[1]))
    yield _table(named, 'Seconds of the last run that made something', seconds, *columns)
