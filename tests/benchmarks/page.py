"""`python -m tests.benchmarks.page FIGURES.json`: writes figures into the README and two other pages.

In a page, what is between `<!-- figures: NAME -->` and `<!-- end of figures -->` is replaced.
`python -m tests.benchmarks --page` measures the limits of the machine, `ROWS` and tokbench's cells, and then
calls this.
"""

import json
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import tokbench
from .corpora import CHINESE, ENGLISH, MIXED
from .rows.commands import ONE_WORKER
from .running import ROOT
from .speed_plot import draw_speeds, labelled
from .tokbench_lines import library_lines, times_behind

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
"""Groups of rows that compare with imports, kernels or fewer workers, and not with another tool."""

_MACHINE = """\
In nanoseconds a byte, the machine takes {scan} to read memory, {copy} to copy it, {first-copy} to copy it to new
memory, {crc32c} for CRC32C, {sha256} for SHA-256, {write} to write a file and {read} to read it from the page
cache. A prefetched look-up takes {near-look-up} ns in a table of 256 KiB, {look-up} ns in one of 8 MiB, and
{far-look-up} ns in one of 256 MiB."""

_BLOCK = re.compile(r'(<!-- figures: ([\w-]+) -->\n).*?(<!-- end of figures -->)', re.DOTALL)

Figures = dict[str, Any]


def write_pages(figures: Path, root: Path = ROOT) -> None:
    """Replaces the figures of all pages, and draws the plot if matplotlib is installed."""
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
    return _BLOCK.sub(lambda match: f'{match[1]}\n{BLOCKS[match[2]](measured)}\n\n{match[3]}', page)


def _table(*lines: Sequence[str]) -> str:
    """Returns a table in Markdown; the first line is its head."""
    head, *rows = lines
    return '\n'.join(f'| {" | ".join(cells)} |' for cells in (head, ['---'] * len(head), *rows))


def _grid(lines: Mapping[str, Mapping[str, str]], heads: Mapping[str, str] = {}) -> str:
    """Returns a table from its cells by line and column, with other heads for some columns."""
    columns = list(dict.fromkeys(column for cells in lines.values() for column in cells))
    return _table(
        ['', *(heads.get(column, column) for column in columns)],
        *([name, *(cells.get(column, '') for column in columns)] for name, cells in lines.items()),
    )


def _paragraph(text: str) -> str:
    return '\n'.join(textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False))


def _rows(measured: Figures, *groups: str) -> list[Figures]:
    return [row for row in measured['rows'] if row['name'].partition('/')[0] in groups]


def _speed(comparison: Figures, contender: Figures) -> str:
    """Returns MB of text a second, or why there is no figure."""
    megabytes = comparison['text_bytes'] / 1e6
    return contender['problem'] or tokbench.with_spread(
        [megabytes / seconds for seconds in contender['all_seconds']]
    )


def _seconds(contender: Figures) -> str:
    problem = re.sub('^missing: .*', 'not installed', contender['problem'] or '')
    return problem or tokbench.with_spread(contender['all_seconds'], ' s')


def _ratio(comparison: Figures) -> str:
    ratio = comparison['ratio']
    return f'{float(f"{ratio:.2g}"):g}' if ratio else ''


def _speeds(group: str, measured: Figures) -> str:
    """A line for each row of the group, and a column for each tool."""
    heads = {}
    lines: dict[str, dict[str, str]] = {}
    for row in _rows(measured, group):
        cells = lines[_texts(row)] = {}
        for comparison in row['comparisons']:
            cells.setdefault('tokbeam', _speed(comparison, comparison['ours']))
            if peer := comparison['peer']:
                heads[peer['label']] = labelled(peer, measured['versions'])
                ratio = f' ({_ratio(comparison)})' if comparison['ratio'] else ''
                cells[peer['label']] = _speed(comparison, peer) + ratio
    return _grid(lines, heads)


def _texts(row: Figures) -> str:
    """Returns 'cl100k, Chinese poetry' for the row 'model-ids/cl100k/poetry.zh'."""
    _, *parts = row['name'].split('/')
    return ', '.join(_CORPORA.get(part, part) for part in parts if not part.isdigit())


def _times(groups: Sequence[str], measured: Figures) -> str:
    """A line for each comparison."""
    lines = []
    for row in _rows(measured, *groups):
        task = row['task']
        compared = [each for each in row['comparisons'] if each['peer']] or row['comparisons']
        for comparison in compared:
            peer = comparison['peer']
            other = f'{labelled(peer, measured["versions"])}: {_seconds(peer)}' if peer else ''
            lines.append([task, _seconds(comparison['ours']), other, _ratio(comparison)])
            task = ''
    return _table(['', 'tokbeam', 'other', 'ratio'], *lines)


def _workers(measured: Figures) -> str:
    """A line for each command on the large text, and a column for each way to run it."""
    lines: dict[str, dict[str, str]] = {}
    for row in _rows(measured, 'large'):
        cells = lines[_command(row)] = {}
        contenders = _contenders(row)
        one = contenders.get(ONE_WORKER, {}).get('median_seconds')
        for way, contender in contenders.items():
            cells[way] = _speed(row['comparisons'][0], contender)
            if way != ONE_WORKER and one and contender['median_seconds']:
                cells[way] += f' ({one / contender["median_seconds"]:.2f})'
    return _grid(lines)


def _contenders(row: Figures) -> dict[str, Figures]:
    pairs = ((each['peer'], each['ours']) for each in row['comparisons'])
    return {each['label']: each for pair in pairs for each in pair if each is not None}


def _command(row: Figures) -> str:
    return row['name'].partition('/')[2]


def _hours(measured: Figures) -> str:
    """Worker hours for 100 GB, 1 TB and 10 TB, by the formulas of deploy/scale.md."""
    speeds = {}
    for row in _rows(measured, 'large'):
        if seconds := _contenders(row).get(ONE_WORKER, {}).get('median_seconds'):
            speeds[_command(row)] = row['comparisons'][0]['text_bytes'] / 1e6 / seconds
    if len(speeds) < 2:
        return 'This run did not measure them.'

    def hours(gigabytes: int, million_tokens: int) -> str:
        count, encode = (1000 * gigabytes / speeds[name] / 3600 for name in ('count', 'encode'))
        least, most = ((each + 9 * 1.5) * million_tokens / 3600 for each in (5.4, 9.7))
        return f'{count:.2g} + {least:.2g} to {most:.2g} + {encode:.2g}'

    sizes = {'100 GB': (100, 100), '1 TB': (1000, 400), '10 TB': (10_000, 1500)}
    return _table(
        ['', *sizes],
        ['worker hours: count + learn + encode', *(hours(*size) for size in sizes.values())],
    )


def _ratios_to_tools(measured: Figures) -> list[tuple[str, str, float]]:
    """Returns the row, the other tool and the ratio of every comparison with another tool."""
    return [
        (row['name'], labelled(comparison['peer'], measured['versions']), comparison['ratio'])
        for row in measured['rows']
        if row['name'].partition('/')[0] not in _WITHOUT_TOOLS
        for comparison in row['comparisons']
        if comparison['ratio']
    ]


def _summary(measured: Figures) -> str:
    return _paragraph(
        'Byte-level BPE with 32,768 entries: geometric means over three texts, with the range of '
        f'{_rounds(measured)}. ' + _times_behind(measured, 'docs/benchmarks.md')
    )


def _behind(measured: Figures) -> str:
    compared = sorted(_ratios_to_tools(measured), key=lambda each: each[2])
    lines = [[f'`{row}`', tool, f'{ratio:.2f}'] for row, tool, ratio in compared if ratio < 1]
    count = _paragraph(_times_behind(measured))
    return f'{count}\n\n{_table(["row", "faster tool", "ratio"], *lines)}' if lines else count


def _times_behind(measured: Figures, page: str = '') -> str:
    """Says in how many comparisons tokbeam is behind, with links to a page, or within it."""
    ratios = [ratio for _, _, ratio in _ratios_to_tools(measured)]
    behind = sum(ratio < 1 for ratio in ratios)
    comparisons = f'[comparisons]({page}#where-tokbeam-is-behind)' if page else 'comparisons'
    sentence = (
        f'On whole corpora, another tool is faster in {behind} of {len(ratios)} {comparisons}.'
    )
    if not (cells := measured['tokbench']):
        return sentence
    unseen, cold, repeated = (
        times_behind(cells, 'one', speed) for speed in ('unseen', 'cold', 'repeated')
    )
    sentence += (
        f' With one document a call, another library is faster for {unseen} [pairs of model and unseen '
        f'text]({page}#tokbenchs-protocol)'
    )
    if page:
        return f'{sentence}.'
    sentence += f', {cold} with a new encoder and {repeated} with repeated text'
    if any(cell.get('cores') == 'all' for cell in cells):
        sentence += (
            f'; on all cores, with unseen batches, for {times_behind(cells, "all", "unseen")}'
        )
    return f'{sentence}.'


def _run(measured: Figures) -> str:
    machine, lanes = measured['machine'], measured['lanes']
    generated = [name for name, origin in measured['corpora'].items() if origin != 'real']
    versions = [
        f'{name} {each}' for name, each in measured['versions'].items() if each != 'missing'
    ]
    return _paragraph(
        f'{measured["date"]}, {machine["cores"]} cores of {machine["processor"]}, Python '
        f'{machine["python"]}, {_rounds(measured)} in {measured["seconds"] / 60:.0f} minutes'
        + (f', {lanes} comparisons of one core at a time' if lanes > 1 else '')
        + (f'; generated texts: {", ".join(generated)}' if generated else '')
        + f'. Versions: {", ".join(versions)}.'
    )


def _rounds(measured: Figures) -> str:
    most = max(len(row['comparisons'][0]['ours']['all_seconds']) for row in measured['rows'])
    return f'{most} rounds' if most > 1 else 'one round'


def _limits(measured: Figures) -> str:
    limits = measured['limits']
    return limits_table(limits) if limits else 'This run did not measure them.'


def limits_table(limits: Figures) -> str:
    """Returns what the machine allows, and the stages of `build` next to it."""
    lines = []
    texts = list(limits['texts'].items())
    for phase in texts[0][1]['phases']:
        phases = [text['phases'][phase] for _, text in texts]
        lines.append([f'**{phase}**', *(f'**{each["whole"]:.2f}**' for each in phases)])
        for stage in dict.fromkeys(stage for each in phases for stage in each['stages']):
            lines.append([stage, *(_with_limit(each['stages'].get(stage)) for each in phases)])
        lines.append(['the rest', *(f'{each["rest"]:.2f}' for each in phases)])
    heads = [f'{_CORPORA[name]}, {text["bytes"] / 1e6:.0f} MB' for name, text in texts]
    machine = {name: f'{nanoseconds:.2g}' for name, nanoseconds in limits['machine'].items()}
    sentences = _paragraph(_MACHINE.format_map(machine))
    return f'{sentences}\n\n{_table(["stage", *heads], *lines)}'


def _with_limit(figures: Sequence[float] | None) -> str:
    if figures is None:
        return ''
    spent, least = figures
    return f'{spent:.2f} ({least:.2f})' if least else f'{spent:.2f}'


def _tokbench(measured: Figures) -> str:
    """A table for each model, or why it was not measured."""
    cells = measured['tokbench']
    parts = []
    for model in dict.fromkeys(cell['model'] for cell in cells):
        of_model = [cell for cell in cells if cell['model'] == model]
        is_measured = 'library' in of_model[0]
        parts += [
            f'**{model}**',
            _table(*library_lines(of_model)) if is_measured else of_model[0]['ids'],
        ]
    return '\n\n'.join(parts) or 'This run did not measure it.'


BLOCKS: dict[str, Callable[[Figures], str]] = {
    'run': _run,
    'summary': _summary,
    'behind': _behind,
    'tokbench': _tokbench,
    'reading': partial(_times, ('budget', 'row', 'rows', 'open')),
    'commands': partial(_times, ('command', 'start-up')),
    'workers': _workers,
    'hours': _hours,
    'limits': _limits,
    **{
        group: partial(_speeds, group)
        for group in ('merges', 'bpe-ids', 'model-ids', 'unigram-ids', 'wordpiece-ids', 'learn')
    },
}
"""By their names in the pages."""


if __name__ == '__main__':
    write_pages(Path(sys.argv[1]))
