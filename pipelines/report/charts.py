"""Charts of figures as SVG that stands within an HTML page, drawn by Matplotlib.

Colours are those of the page's style sheet, so that a chart is legible in light and dark and in print:
Matplotlib draws with marks of its own, which are replaced by `currentColor` and the page's variables.
"""

from __future__ import annotations

import html
import importlib.util
import io
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tokcore.errors import missing_package

Points = Sequence[tuple[float, float]]

_TEXT = '#010101'
_GRID = '#020202'
_SERIES = ('#030303', '#040404', '#050505', '#060606')

COLOURS = {
    _TEXT: 'currentColor',
    _GRID: 'var(--grid)',
    **{mark: f'var(--series-{number})' for number, mark in enumerate(_SERIES)},
}
"""By the colour that is drawn the one of the page."""

_SIZE = (4.4, 2.7)
"""Inches of 72 units each: at 400 pixels a page's column is as wide, and text of 9 units has 10 pixels."""

_MARGINS = {'left': 0.16, 'right': 0.98, 'bottom': 0.19, 'top': 0.97}
"""Shares of a chart outside of which numbers and labels stand; a layout that measures them takes as long
as drawing does."""

_LINES = ('-', '--', '-.', ':')
"""Series differ in more than colour, for print and for those who see few colours."""


def require_charts() -> None:
    """Raises InputError if Matplotlib is not installed: before a corpus is read for nothing."""
    if importlib.util.find_spec('matplotlib') is None:
        raise missing_package('the page (but not --json)', 'report')


def import_charts_ahead() -> None:
    """Raises as `require_charts`; imports Matplotlib in a thread, while kernels read a corpus."""
    require_charts()
    threading.Thread(target=_import_matplotlib).start()


def _import_matplotlib() -> None:
    for name in ('matplotlib.figure', 'matplotlib.backends.backend_svg'):
        importlib.import_module(name)


def line_chart(series: Mapping[str, Points], x: str, y: str, log: str = '') -> str:
    """Returns a chart of lines; '' without any.

    Args:
        series: by name, in the order of the legend.
        x, y: what the axes show.
        log: the axes that are logarithmic, `x`, `y` or `xy`.

    Raises:
        InputError: Matplotlib is not installed.
    """

    def draw(axes: Any) -> None:
        for number, (name, points) in enumerate(series.items()):
            # With a colour that comes again, another line.
            style = _LINES[(number + number // len(_SERIES)) % len(_LINES)]
            xs, ys = [x for x, _ in points], [y for _, y in points]
            colour = _SERIES[number % len(_SERIES)]
            axes.plot(xs, ys, label=name, color=colour, linestyle=style, linewidth=1.5)
        _scale(axes, log)

    return _chart(x, y, series, draw)


def bar_chart(labels: Sequence[str], series: Mapping[str, Sequence[float]], x: str, y: str) -> str:
    """Returns a chart of bars, those of several series side by side; else as `line_chart`."""

    def draw(axes: Any) -> None:
        width = 0.8 / max(1, len(series))
        for number, (name, values) in enumerate(series.items()):
            places = [place + number * width for place in range(len(labels))]
            axes.bar(
                places,
                values,
                width,
                align='edge',
                label=name,
                color=_SERIES[number % len(_SERIES)],
            )
        axes.set_xticks([place + 0.4 for place in range(len(labels))], labels)
        axes.tick_params(axis='x', length=0, labelsize=7)
        _shorten(axes.yaxis)

    return _chart(x, y, series, draw)


def _chart(x: str, y: str, series: Mapping[str, object], draw: Callable[[Any], None]) -> str:
    """Returns the SVG of a chart, which `draw` draws on its axes."""
    if not series:
        return ''
    require_charts()
    import matplotlib
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {  # newer versions of Matplotlib list all keys in its type
        'svg.fonttype': 'none',  # text stays text: it is found, and read aloud
        'svg.hashsalt': f'{x}\n{y}',  # the same figures give the same file
        'font.family': 'sans-serif',
        'font.size': 9,
        'text.color': _TEXT,
        'text.parse_math': False,
        'axes.edgecolor': _GRID,
        'axes.labelcolor': _TEXT,
        'xtick.color': _GRID,
        'ytick.color': _GRID,
        'xtick.labelcolor': _TEXT,
        'ytick.labelcolor': _TEXT,
        'grid.color': _GRID,
        'grid.linewidth': 0.5,
        'axes.spines.top': False,
        'axes.spines.right': False,
        'legend.frameon': False,
        'legend.fontsize': 8,
        'axes.formatter.use_mathtext': False,
    }
    with matplotlib.rc_context(style):
        figure = Figure(_SIZE)
        axes = figure.subplots(gridspec_kw=_MARGINS)
        draw(axes)
        axes.set(xlabel=x, ylabel=y)
        axes.grid(visible=True, axis='y')
        axes.set_axisbelow(True)
        if len(series) > 1:
            axes.legend()
        stream = io.StringIO()
        figure.savefig(stream, format='svg', transparent=True, metadata={'Date': None})
    return _for_page(stream.getvalue(), f'{y} by {x}')


def _scale(axes: Any, log: str) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    for name, axis in (('x', axes.xaxis), ('y', axes.yaxis)):
        if name in log:
            axes.set(**{f'{name}scale': 'log'})
            least, most = axis.get_view_interval()
            if most < 100 * least:  # else a short axis would have one number, or none
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_minor_locator(NullLocator())
        _shorten(axis)


def _shorten(axis: Any) -> None:
    """Writes the numbers of an axis in few characters, so that they fit its margin."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def short(value: float) -> str:
    """Returns a number in few characters: `1.5k`, `20M`.

    >>> short(1500), short(0.25), short(2e9)
    ('1.5k', '0.25', '2G')
    """
    for bound, suffix in ((1e12, 'T'), (1e9, 'G'), (1e6, 'M'), (1e3, 'k')):
        if abs(value) >= bound:
            return f'{value / bound:.3g}{suffix}'
    return f'{value:.3g}'


def _for_page(svg: str, label: str) -> str:
    """Makes an SVG file a part of a page: its colours, its size, and names that no other chart has."""
    svg = svg[svg.index('<svg') :]
    head, body = svg.split('>', 1)
    view_box = re.search(r'viewBox="[^"]*"', head)
    assert view_box is not None, 'Matplotlib writes one'
    body = re.sub(r'<metadata>.*?</metadata>\s*', '', body, flags=re.DOTALL)
    names = re.sub(r'\W+', '-', label)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf'\g<1>{names}-', body)
    for mark, colour in COLOURS.items():
        body = body.replace(mark, colour)
    label = html.escape(label)
    return f'<svg {view_box[0]} role="img" aria-label="{label}" xmlns:xlink="http://www.w3.org/1999/xlink">{body}'
