"""A report: the figures of a dataset as one HTML page, or of two datasets side by side.

The page needs nothing else: its charts are SVG within, and it has neither scripts nor addresses.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.artifacts.manifest import shown_key
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
    sentences = ''.join(f'<li>{shown(each)}</li>\n' for pair in named for each in _summary(*pair))
    title = ' and '.join(figures['folder'] for _, figures in named)
    return page(title, f'<ul>\n{sentences}</ul>', {**(compared or {}), **bodies})


def page(title: str, summary: str, sections: Mapping[str, str]) -> str:
    """Returns a page with the style of reports: a summary, links to the sections, and these by title."""
    names = {title: re.sub(r'\W+', '-', f'section {title}') for title in sections}
    links = ''.join(f'<li><a href="#{name}">{shown(of)}</a></li>' for of, name in names.items())
    bodies = (
        f'<section>\n<h2 id="{names[of]}">{shown(of)}</h2>\n{body}\n</section>\n'
        for of, body in sections.items()
    )
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{shown(title)}</title>
<style>
{_STYLE}</style>
</head>
<body>
<h1>{shown(title)}</h1>
{summary}
<nav aria-label="Contents"><ul>{links}</ul></nav>
{''.join(bodies)}</body>
</html>"""


def shown(text: object) -> str:
    """Returns text for a page: escaped, and without characters that cannot be seen."""
    return html.escape(''.join(c if c.isprintable() else repr(c)[1:-1] for c in str(text)))


def table(caption: str, heads: Sequence[str], rows: Sequence[Iterable[object]]) -> str:
    """Returns a table; numbers stand right, None is a dash, and a column of these alone is left out."""
    columns = []
    for name, *values in zip(heads, *rows, strict=True):
        if any(value is not None for value in values):
            cells = [_cell(value) for value in values]
            kind = ' class="number"' if all(is_number for _, is_number in cells) else ''
            drawn = [f'<th scope="col"{kind}>{shown(name)}</th>']
            columns.append(drawn + [f'<td{kind}>{text}</td>' for text, _ in cells])
    if not columns:
        return ''
    top, *lines = (f'<tr>{"".join(row)}</tr>' for row in zip(*columns, strict=True))
    # Above what scrolls, so that a narrow window shows all of it.
    title = f'<p class="caption">{shown(caption)}</p>' if caption else ''
    head = f'<thead>{top}</thead>' if any(heads) else ''
    body = f'<tbody>{"".join(lines)}</tbody>'
    return f'<div>{title}<div class="wide"><table>{head}{body}</table></div></div>'


def table_by_name(
    caption: str, head: str, columns: Mapping[str, Mapping[str, object]], missing: object = None
) -> str:
    """Returns a table of columns by their heads; a row has what each of them has under a name."""
    names = dict.fromkeys(name for column in columns.values() for name in column)
    rows = [(name, *(column.get(name, missing) for column in columns.values())) for name in names]
    return table(caption, [head, *columns], rows)


def charts(drawn: Mapping[str, str]) -> str:
    """Returns charts by what each shows, side by side where there is room."""
    figures = [
        f'<figure>{svg}<figcaption>{shown(caption)}</figcaption></figure>'
        for caption, svg in drawn.items()
        if svg
    ]
    return f'<div class="charts">{"".join(figures)}</div>' if figures else ''


def _paragraph(text: str) -> str:
    return f'<p>{shown(text)}</p>'


class Html(str):
    """What stands in a table as it is."""


def piece_boxes(pieces: Iterable[str], titles: Iterable[str] = itertools.repeat('')) -> Html:
    """Returns pieces as boxes, with their white space visible; a pointer shows their titles."""
    return Html(
        ''.join(
            f'<span class="piece" title="{shown(title)}">{shown(piece.replace(" ", "␣"))}</span>'
            for piece, title in zip(pieces, titles)
        )
    )


def some_of(count: int, listed: int, of_them: str = '') -> str:
    """Returns what a title adds if fewer are listed than there are."""
    return f', the first {listed}{of_them}' if count > listed else ''


class _Share(float):
    """A share of 1, which a table has in percent."""


def _cell(value: object) -> tuple[str, bool]:
    """Returns the text of a cell, and whether it is a number."""
    if value is None:
        return '–', True
    if isinstance(value, Html):
        return value, False
    if isinstance(value, int):
        return f'{value:,}', True
    if isinstance(value, _Share):
        return _percent(100 * value), True
    if isinstance(value, float):
        return f'{value:,.4g}' if abs(value) < 1000 else f'{value:,.0f}', True
    return shown(value), False


def _percent(value: float) -> str:
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
    caption: str, figures: Iterable[tuple[str, Any]], row_of: Callable[[Any], Mapping[str, object]]
) -> str:
    """Returns a table with a row for each of some figures, after the name of their dataset."""
    rows = [{'dataset': name or None, **row_of(own)} for name, own in figures]
    return table(caption, [*rows[0]], [row.values() for row in rows]) if rows else ''


def _label(*words: str) -> str:
    return ' '.join(word for word in words if word)


def _part(figures: Figures) -> str:
    """What part of the rows some figures are of."""
    return _label(figures['split'], figures['dataset'])


def _has_words(text: Figures) -> bool:
    """Whether most of a text is of scripts that put spaces between words."""
    without = sum(text['scripts'].get(script, 0) for script in WITHOUT_SPACES)
    return 2 * without <= text['characters']


def _quotient(part: float | None, whole: float) -> float | None:
    return part / whole if whole and part is not None else None


def _share(part: float | None, whole: float = 1) -> _Share | None:
    quotient = _quotient(part, whole)
    return None if quotient is None else _Share(quotient)


def _summary(name: str, figures: Figures) -> Iterator[str]:
    """Yields sentences that say what a dataset is."""
    splits = [rows for rows in figures['rows'] if not rows['dataset']]
    sizes = ' and '.join(f'{rows["rows"]:,} rows of {rows["split"]}' for rows in splits)
    yield f'{_label(name and f"{name}:", figures["folder"])} has {sizes or "no rows"}.'
    for use in figures['vocabularies']:
        yield f'The vocabulary of {use["side"]} has {use["size"]:,} entries; {use["used"]:,} of them occur.'
    for rows in splits[:1]:
        for feature, own in rows['lengths'].items():
            size = _quotient(rows['text'][feature]['bytes'], rows['text'][feature]['ids'])
            yield (
                f'{feature.capitalize()} of {rows["split"]} have {own["mean"]:,.1f} tokens a row on average'
                f'{f", of {size:.2f} bytes each" if size else ""}; the longest has {own["longest"]:,}.'
            )
    for own in figures['repeats']:
        overlap = '' if own['in_train'] is None else f'; {own["in_train"]:,} occur in train, too'
        repeated = own['rows'] - own['distinct']
        yield f'In {own["split"]}, {repeated:,} rows repeat an earlier row{overlap}.'


def _facts(named: Named) -> Iterator[str]:
    facts, options = {}, {}
    for name, f in named:
        facts[name] = {
            'root': _fact(f['root']),
            'command': f'tokbeam {f["stage"]}',
            'shards': f'{f["bytes"]:,} bytes in {f["shards"]:,} files',
            'bytes of text': _fact(
                sum(part['text_bytes'] for part in f['left_out'] if not part['dataset'])
            ),
            'corpus': (
                f'was not read: {f["without_corpus"]}' if f['without_corpus'] else 'was read'
            ),
            'Unicode': f['unicode'],
        }
        options[name] = {
            shown_key(key): _fact(value) for key, value in sorted(f['options'].items())
        }
    yield (
        f'<div class="facts">{table_by_name("", "", facts)}<details><summary>Options</summary>'
        f'{table_by_name("", "", options, "–")}</details></div>'
    )


def _fact(value: object) -> str:
    return f'{value:,}' if type(value) is int else '–' if value is None else str(value)


def _examples(named: Named) -> Iterator[str]:
    yield _paragraph(
        'The first rows of each split, which the shuffle makes a random choice. Point at a piece for its id.'
    )
    for name, row in _each(named, 'examples'):
        yield f'<h3>{shown(_label(name, row["split"], "row", str(row["row"])))}</h3>'
        for feature, own in row['pieces'].items():
            ids = row['ids'][feature]
            more = some_of(ids, len(own), ' of them')
            yield f'<p class="caption">{feature}: {ids:,} ids{more}</p>'
            boxes = piece_boxes((piece for piece, _ in own), (f'id {id_}' for _, id_ in own))
            yield f'<div>{boxes}</div>'


def _longest(named: Named) -> Iterator[str]:
    places = dict.fromkeys(['file', 'line', 'byte', 'row of the file'])
    yield _table(
        'The rows of the most ids, and the lines of the corpus that they were made from',
        _each(named, 'longest_rows'),
        lambda own: {
            'split': own['split'],
            'row': own['row'],
            'ids': own['ids'],
            **places,
            **(own['position'] or {}),
            'begins with': ' / '.join(own['text'].values()),
        },
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
        '',
        _each(named, 'padding'),
        lambda own: {
            'split': own['split'],
            'of the first rows': own['rows'],
            'batch': own['batch'],
            'mixed lengths': _share(own['mixed']),
            'similar lengths': _share(own['similar']),
        },
    )


def _repeats(named: Named) -> Iterator[str]:
    yield _table(
        'Rows of which all ids are equal',
        _each(named, 'repeats'),
        lambda own: {
            'split': own['split'],
            'rows': own['rows'],
            'repeat an earlier row': own['rows'] - own['distinct'],
            'share': _share(1 - own['distinct'] / max(1, own['rows'])),
            'the commonest row occurs': own['most'],
            'occur in train, too': own['in_train'],
            'share of these': _share(own['in_train'], own['rows']),
        },
    )


def _lines(named: Named) -> Iterator[str]:
    every = [*_each(named, 'left_out')]
    reasons = dict.fromkeys(reason for _, own in every for reason in own['reasons'])
    yield _table(
        'Lines that were read, and what became of them',
        every,
        lambda own: {
            'split': _part(own),
            'lines': own['lines'],
            'added by filters': own['added'],
            'rows made': own['examples'],
            'bytes of their text': own['text_bytes'],
            **{f'left out: {reason}': own['reasons'].get(reason, 0) for reason in reasons},
            'ids': own['ids'],
            'unknown ids': own['unknown'],
            'share of these': _share(own['unknown'], own['ids']),
        },
    )
    if any(own['unknown'] is None for _, own in every):
        yield _paragraph(
            'Unknown ids are not counted, because no id of the vocabulary is for these.'
        )
    heads = 'split', 'role', 'file', 'bytes of text in the whole file'
    yield _table(
        'Files; splits that are shares of the same file have the same size here',
        _each(named, 'inputs'),
        lambda own: dict(zip(heads, own, strict=True)),
    )


def _rows(named: Named) -> Iterator[str]:
    yield _table(
        'Ids of the rows as they are stored, with the ids that a template puts around each',
        _each_feature(named, 'lengths'),
        lambda own: {
            'split': _part(own),
            'feature': own['feature'],
            'rows': own['rows'],
            'ids': own['ids'],
            'mean of a row': own['mean'],
            'median': own['median'],
            'longest row': own['longest'],
        },
    )
    whose = 'Text of all rows, and its ids without templates'
    if any(figures['without_corpus'] is not None for _, figures in named):
        whose += (
            f'; where the corpus was not read, only of the first {TEXT_ROWS:,} rows of a split, which the '
            'shuffle makes a random choice'
        )
    texts = [*_each_feature(named, 'text')]

    def row_of(own: Figures) -> Mapping[str, object]:
        words, pieces = (own['words'], own['word_pieces']) if _has_words(own) else (None, None)
        return {
            'split': _part(own),
            'feature': own['feature'],
            'rows': own['rows'],
            'bytes per id': _quotient(own['bytes'], own['ids']),
            'characters per id': _quotient(own['characters'], own['ids']),
            'words per row': _quotient(words, own['rows']),
            'pieces per word': _quotient(pieces, own['words']),
            'unknown ids': _share(own['unknown'], own['ids']),
        }

    yield _table(whose, texts, row_of)
    if not all(_has_words(text) for _, text in texts):
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
    split = ''.join(rows['split'] for _, rows in firsts[:1])
    yield charts(
        {
            f'Lengths of rows of {split}, counted in steps that grow by a fifth': line_chart(
                lengths, 'ids of a row', '% of rows', log='x'
            ),
            'Pairs of train by ids of targets / ids of inputs: 1 is equally long, 2 is twice as long': (
                line_chart(ratios, 'ids of targets / ids of inputs', '% of pairs', log='x')
            ),
        }
    )


def _scripts(named: Named) -> Iterator[str]:
    shares = {
        _label(name, text['split'], text['feature']): {
            script: _Share(count / text['characters']) for script, count in text['scripts'].items()
        }
        for name, text in _each_feature(named, 'text')
        if not text['dataset']
    }
    caption = (
        'Characters of the text by script; “other” are digits, signs, white space and rarer scripts'
    )
    yield table_by_name(caption, 'script', shares)


def _vocabularies(named: Named) -> Iterator[str]:
    yield _table(
        'Entries, and how many of them occur in the rows of all splits',
        _each(named, 'vocabularies'),
        lambda use: {
            'side': use['side'],
            'entries wanted': use['wanted'],
            'entries': use['size'],
            'each occurs at least': use['min_count'],
            'used': use['used'],
            'never used': use['size'] - use['used'],
            'entries of one character': use['single_characters'],
            'their share of ids': _share(use['single_share']),
        },
    )
    uses = {_label(name, use['side']): use for name, use in _each(named, 'vocabularies')}
    ranks = {label: use['by_rank'] for label, use in uses.items() if use['by_rank']}
    longest = max((use['by_count'] for use in uses.values()), key=len, default=())
    labels = [short(least) if least < 2 else f'{short(least)}+' for least, *_ in longest]
    values = {
        label: [n for *_, n in use['by_count']] + [0] * (len(longest) - len(use['by_count']))
        for label, use in uses.items()
    }
    yield charts(
        {
            'How often each entry occurs; the most frequent one has rank 1': line_chart(
                ranks, 'rank', 'count', log='xy'
            ),
            'How many entries occur never, once, 2 to 9 times, 10 to 99 times and so on': bar_chart(
                labels, values, 'occurrences in all rows', 'entries'
            ),
        }
    )
    for label, use in uses.items():
        whose = '' if len(uses) == 1 else f' of {label}'
        for kind in ('commonest', 'longest'):
            titles = [
                ', '.join([*(f'{n:,} characters' for n in size), f'occurs {count:,} times'])
                for _, *size, count in use[kind]
            ]
            if titles:
                boxes = piece_boxes((piece for piece, *_ in use[kind]), titles)
                yield f'<h3>{kind.capitalize()} entries{shown(whose)}</h3>{boxes}'
        if use['unused']:
            count = use['size'] - use['used']
            more = some_of(count, len(use['unused']))
            title = shown(f'{count:,} entries{whose} that never occur{more}')
            boxes = piece_boxes(use['unused'], itertools.repeat('never occurs'))
            yield f'<details><summary>{title}</summary>{boxes}</details>'


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
        '',
        _each(named, 'shuffles'),
        lambda own: {
            'split': own['split'],
            'rows': own['rows'],
            'with the place in the split': own['rank_correlation'],
            'with the row before': own['serial_correlation'],
            '3/√rows': _quotient(3, own['rows'] ** 0.5),
        },
    )


def _rejected(named: Named) -> Iterator[str]:
    for name, file in _each(named, 'rejected'):
        lines = '\n'.join(map(shown, file['samples']))
        title = _label(name, f'{file["name"]}: the first of {file["lines"]:,} lines')
        yield f'<h3>{shown(title)}</h3><pre>{lines}</pre>'


def _seconds(named: Named) -> Iterator[str]:
    yield _table(
        'Seconds of the last run that made something',
        ((name, pair) for name, f in named for pair in f['seconds'].items()),
        lambda pair: {'stage': pair[0], 'seconds': float(pair[1])},
    )
