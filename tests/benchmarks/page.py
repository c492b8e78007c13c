"""`python -m tests.benchmarks.page FIGURES.json`: the figures of the README and of two other pages.

`--page` measures `ROWS` and tokbench's cells, and then calls this; no figure is typed. A page has
comments `<!-- figures: NAME -->` and `<!-- end of figures -->`, and what is between them is replaced.
"""

import json
import re
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import tokbench
from .corpora import CHINESE, ENGLISH, MIXED
from .running import ROOT
from .speed_plot import draw_speeds, with_version

ROWS = (
    'merges/*', 'bpe-ids/*', 'model-ids/cl100k/*', 'model-ids/qwen3/*', 'model-ids/gemma3/*',
    'unigram-ids/*', 'wordpiece-ids/*', 'learn/*/1', 'budget/*', 'row/*', 'rows/*', 'open/*',
    'command/*', 'large/*', 'start-up/*/warm',
)  # fmt: skip
"""What the pages show, whether tokbeam is ahead or behind."""

PAGES = ('README.md', 'docs/benchmarks.md', 'deploy/scale.md')
PLOT = ROOT / 'docs' / 'speed.svg'

_CORPORA = {
    ENGLISH: 'English documentation', MIXED: 'English and Chinese', CHINESE: 'Chinese poetry',
}  # fmt: skip
_WITHOUT_TOOLS = ('large', 'start-up', 'open')
"""Groups of rows whose peers are no tools: imports, kernels, fewer workers."""

_BLOCK = re.compile(r'(<!-- figures: ([\w-]+) -->\n).*?(<!-- end of figures -->)', re.DOTALL)

Figures = dict[str, Any]


def write_pages(figures: Path, root: Path = ROOT) -> None:
    """Replaces the figures of all pages, and the plot if matplotlib is there."""
    measured = json.loads(figures.read_text(encoding='utf-8'))
    for name in PAGES:
        page = root / name
        page.write_text(with_figures(page.read_text(encoding='utf-8'), measured), encoding='utf-8')
    try:
        draw_speeds(figures, root / PLOT.relative_to(ROOT))
    except ImportError as error:
        print(f'no plot: {error}')


def with_figures(page: str, measured: Figures) -> str:
    """Returns a page with the figures between its comments; raises KeyError for an unknown name."""

    def block(match: re.Match) -> str:
        lines = '\n'.join(TABLES[match[2]](measured)).rstrip('\n')
        return f'{match[1]}\n{lines}\n\n{match[3]}'

    return _BLOCK.sub(block, page)


def _rows(measured: Figures, *groups: str) -> list[Figures]:
    return [row for row in measured['rows'] if row['name'].partition('/')[0] in groups]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f'| {" | ".join(head)} |'
    yield f'| {" | ".join(["---"] * len(head))} |'
    for row in rows:
        yield f'| {" | ".join(row)} |'


def _speeds(group: str) -> Callable[[Figures], Iterator[str]]:
    """Returns what writes a table of MB of text a second: a row for each corpus, a column for each tool."""

    def lines(measured: Figures) -> Iterator[str]:
        columns: dict[str, str] = {}
        rows = []
        for row in _rows(measured, group):
            cells = {'tokbeam': _speed(row['comparisons'][0], 'ours')}
            for comparison in row['comparisons']:
                if (peer := comparison['peer']) is None:
                    continue
                columns.setdefault(peer['label'], with_version(peer, measured['versions']))
                cells[peer['label']] = _speed(comparison, 'peer') + _ratio(comparison)
            corpus = next(each for each in _CORPORA if each in row['name'].split('/'))
            rows.append((corpus, cells))
        labels = list(columns)
        rows.sort(key=lambda item: list(_CORPORA).index(item[0]))
        yield from _table(
            ['', 'tokbeam', *columns.values()],
            [
                [_CORPORA[corpus], *(cells.get(label, '') for label in ('tokbeam', *labels))]
                for corpus, cells in rows
            ],
        )

    return lines


def _speed(comparison: Figures, whose: str) -> str:
    contender = comparison[whose]
    if not contender['median_seconds']:
        return contender['problem'] or ''
    return tokbench.with_spread(
        [comparison['text_bytes'] / 1e6 / seconds for seconds in contender['all_seconds']]
    )


def _seconds(contender: Figures) -> str:
    if not contender['median_seconds']:
        return contender['problem'] or ''
    middle = tokbench.with_spread(contender['all_seconds'])
    speed, _, spread = middle.partition(' ')
    return f'{speed} s {spread}'.rstrip()


def _ratio(comparison: Figures) -> str:
    return f' ({comparison["ratio"]:.2g})' if comparison['ratio'] else ''


def _of_models(measured: Figures) -> Iterator[str]:
    rows = _rows(measured, 'model-ids')
    peers = list(dict.fromkeys(
        comparison['peer']['label'] for row in rows for comparison in row['comparisons']
        if comparison['peer'] is not None
    ))  # fmt: skip
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        _, model, corpus = row['name'].split('/')
        ratios = {
            each['peer']['label']: each['ratio'] for each in row['comparisons'] if each['peer']
        }
        shown = ', '.join(f'{ratios[peer]:.2g}' if ratios.get(peer) else '–' for peer in peers)
        speed = _speed(row['comparisons'][0], 'ours')
        cells.setdefault(model, {})[corpus] = f'{speed} ({shown})'
    yield f'The ratios in parentheses are to {", ".join(peers[:-1])} and {peers[-1]}.'
    yield ''
    yield from _table(
        ['', *_CORPORA.values()],
        [[model, *(of.get(each, '') for each in _CORPORA)] for model, of in cells.items()],
    )


def _by_seconds(*groups: str) -> Callable[[Figures], Iterator[str]]:
    """Returns what writes a table of seconds: a row for each comparison."""

    def lines(measured: Figures) -> Iterator[str]:
        yield from _table(
            ['', 'tokbeam', 'other', 'ratio'],
            [
                [
                    row['task'] if number == 0 else '',
                    _seconds(comparison['ours']),
                    f'{with_version(peer, measured["versions"])}: {_seconds(peer)}' if peer else '',
                    f'{comparison["ratio"]:.2g}' if comparison['ratio'] else '',
                ]
                for row in _rows(measured, *groups)
                for number, comparison in enumerate(row['comparisons'])
                for peer in [comparison['peer']]
            ],
        )

    return lines


def _scale(measured: Figures) -> Iterator[str]:
    yield from _table(
        ['', 'one worker, MB/s', 'two workers, MB/s'],
        [[command, *map(tokbench.with_spread, speeds)] for command, *speeds in _large(measured)],
    )


def _large(measured: Figures) -> Iterator[tuple[str, list[float], list[float]]]:
    """Yields a command, and the speeds of all rounds with one worker and with two, if it has both."""
    for row in _rows(measured, 'large'):
        comparison = row['comparisons'][0]
        if not comparison['ratio']:
            continue
        one, two = (
            [comparison['text_bytes'] / 1e6 / seconds for seconds in contender['all_seconds']]
            for contender in (comparison['peer'], comparison['ours'])
        )
        yield row['name'].partition('/')[2], one, two


def _hours(measured: Figures) -> Iterator[str]:
    """Worker hours of 100 GB, 1 TB and 10 TB: see the formulas of deploy/scale.md."""
    speeds = {command: statistics.median(one) for command, one, _ in _large(measured)}
    if len(speeds) < 2:
        return

    def hours(gigabytes: int, million_tokens: int) -> str:
        count, encode = (1000 * gigabytes / speeds[name] / 3600 for name in ('count', 'encode'))
        least, most = ((each + 9 * 1.5) * million_tokens / 3600 for each in (5.4, 9.7))
        return f'{count:.2g} + {least:.2g} to {most:.2g} + {encode:.2g}'

    yield from _table(
        ['', '100 GB', '1 TB', '10 TB'],
        [
            [
                'worker hours: count + learn + encode',
                hours(100, 100),
                hours(1000, 400),
                hours(10_000, 1500),
            ]
        ],
    )


def _comparisons(measured: Figures) -> list[tuple[str, str, float]]:
    """Returns the row, peer and ratio of every comparison of tokbeam with another tool."""
    return [
        (row['name'], with_version(comparison['peer'], measured['versions']), comparison['ratio'])
        for row in measured['rows']
        if row['name'].partition('/')[0] not in _WITHOUT_TOOLS
        for comparison in row['comparisons']
        if comparison['ratio']
    ]


def _behind(measured: Figures) -> Iterator[str]:
    compared = _comparisons(measured)
    behind = sorted((item for item in compared if item[2] < 1), key=lambda item: item[2])
    yield f'tokbeam is behind in {len(behind)} of {len(compared)} comparisons of this run.'
    yield ''
    if behind:
        rows = [[f'`{row}`', tool, f'{ratio:.2f}'] for row, tool, ratio in behind]
        yield from _table(['row', 'faster tool', 'ratio'], rows)
        yield ''
    if measured.get('tokbench'):
        yield from _wrapped(_behind_in_tokbench(measured['tokbench'], ''))


def _behind_in_tokbench(cells: Sequence[Figures], page: str) -> str:
    """Counts the cells in which another library is faster than tokbeam's encoder."""
    equal = [cell for cell in cells if cell['ids'] == 'equal']
    ours = [cell for cell in equal if cell['library'] == 'tokbeam']
    counts = {}
    for speed in tokbench.SPEEDS:
        fastest: dict[tuple, float] = {}
        for cell in equal:
            place = cell['model'], cell['kind'], cell['cores']
            fastest[place] = max(fastest.get(place, 0), statistics.median(cell[speed]))
        counts[speed] = sum(
            statistics.median(cell[speed]) < fastest[cell['model'], cell['kind'], cell['cores']]
            for cell in ours
        )
    found = ', '.join(f'{count} {speed}' for speed, count in counts.items())
    return (
        f"With one document a call, in [tokbench's protocol]({page}#tokbenchs-protocol), another library is "
        f'faster in these of {len(ours)} cells: {found}.'
    )


def _summary(measured: Figures) -> Iterator[str]:
    ratios = [ratio for _, _, ratio in _comparisons(measured)]
    behind, cells = sum(ratio < 1 for ratio in ratios), measured.get('tokbench')
    yield from _wrapped(
        f'Byte-level BPE with 32,768 entries, geometric means over three texts, with the range of '
        f'{_rounds(measured)} ({measured["machine"]["processor"]}, {measured["date"]}). In '
        f'{behind} of {len(ratios)} [comparisons](docs/benchmarks.md#where-tokbeam-is-behind), the '
        'other tool is faster. '
        + (_behind_in_tokbench(cells, 'docs/benchmarks.md') if cells else '')
    )


def _run(measured: Figures) -> Iterator[str]:
    machine, lanes = measured['machine'], measured['lanes']
    generated = [name for name, origin in measured['corpora'].items() if origin != 'real']
    yield from _wrapped(
        f'{measured["date"]}, {machine["cores"]} cores of {machine["processor"]}, Python '
        f'{machine["python"]}, {_rounds(measured)} in {measured["seconds"] / 60:.0f} minutes'
        + (f', {lanes} rows of one core at a time' if lanes > 1 else '')
        + (f'; generated texts: {", ".join(generated)}' if generated else '')
        + '. Versions: '
        + ', '.join(
            f'{name} {version}'
            for name, version in measured['versions'].items()
            if version != 'missing'
        )
        + '.'
    )


def _wrapped(paragraph: str) -> list[str]:
    return textwrap.wrap(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def _rounds(measured: Figures) -> str:
    most = max(len(row['comparisons'][0]['ours']['all_seconds']) for row in measured['rows'])
    return f'{most} rounds' if most > 1 else 'one round'


def _tokbench(measured: Figures) -> Iterator[str]:
    """A table for each model: medians over the kinds of text for which all libraries' ids are equal."""
    cells = measured.get('tokbench', [])
    if not cells:
        yield 'This run did not measure it.'
    for model in dict.fromkeys(cell['model'] for cell in cells):
        chosen = [cell for cell in cells if cell['model'] == model and 'library' in cell]
        yield f'**{model}**'
        yield ''
        if not chosen:
            yield next(cell['ids'] for cell in cells if cell['model'] == model)
            yield ''
            continue
        yield from _table(
            ['', 'opened', *tokbench.SPEEDS, *_on_all_cores(chosen), 'ids'],
            list(_libraries(chosen)),
        )
        yield ''


def _on_all_cores(cells: list[Figures]) -> dict[str, str]:
    """Returns by head the kinds of text that were measured on all cores."""
    kinds = dict.fromkeys(cell['kind'] for cell in cells if cell['cores'] == 'all')
    return {f'all cores, {kind}': kind for kind in kinds}


def _libraries(cells: list[Figures]) -> Iterator[list[str]]:
    one = [cell for cell in cells if cell['cores'] == 'one']
    labels = list(dict.fromkeys(cell['library'] for cell in one))
    runs_at_all = {cell['library'] for cell in one if cell['ids'] == 'equal'}
    kinds = [
        kind
        for kind in dict.fromkeys(cell['kind'] for cell in one)
        if all(
            cell['ids'] == 'equal'
            for cell in one
            if cell['kind'] == kind and cell['library'] in runs_at_all
        )
    ]
    for label in labels:
        of = [cell for cell in one if cell['library'] == label]
        counted = [cell for cell in of if cell['kind'] in kinds and cell['ids'] == 'equal']
        name = label if 'version' not in of[0] else _with_number(label, of[0]['version'])
        speeds = ['', '', '', '']
        if counted:
            first, later = (
                statistics.median(cell['opened'][n] for cell in counted) for n in (0, 1)
            )
            speeds = [f'{first:.2g} s, {later:.2g} s'] + [
                f'{statistics.median(statistics.median(cell[speed]) for cell in counted):.3g}'
                for speed in tokbench.SPEEDS
            ]
        everywhere = {
            cell['kind']: tokbench.with_spread(cell['unseen'])
            for cell in cells
            if cell['cores'] == 'all' and cell['library'] == label and cell['ids'] == 'equal'
        }
        on_all = [everywhere.get(kind, '') for kind in _on_all_cores(cells).values()]
        yield [name, *speeds, *on_all, _verdict(of)]


def _with_number(label: str, version: str) -> str:
    package, _, rest = label.partition(',')
    return f'{package.split()[0]} {version}' + (f',{rest}' if rest else '')


def _verdict(cells: list[Figures]) -> str:
    equal = sum(cell['ids'] == 'equal' for cell in cells)
    others = dict.fromkeys(
        f'{cell["kind"]}: {cell["ids"]}' if cell['ids'].startswith('differ') else cell['ids']
        for cell in cells
        if cell['ids'] != 'equal'
    )
    return '; '.join([f'{equal} of {len(cells)} equal', *others] if equal else others)


TABLES: dict[str, Callable[[Figures], Iterator[str]]] = {
    'run': _run,
    'summary': _summary,
    'behind': _behind,
    'merges': _speeds('merges'),
    'bpe-ids': _speeds('bpe-ids'),
    'model-ids': _of_models,
    'unigram-ids': _speeds('unigram-ids'),
    'wordpiece-ids': _speeds('wordpiece-ids'),
    'learn': _speeds('learn'),
    'reading': _by_seconds('budget', 'row', 'rows', 'open'),
    'commands': _by_seconds('command', 'large', 'start-up'),
    'tokbench': _tokbench,
    'scale': _scale,
    'hours': _hours,
}
"""By their names in the pages."""


if __name__ == '__main__':
    write_pages(Path(sys.argv[1]))
