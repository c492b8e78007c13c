"""`python -m tests.benchmarks.speed_plot FIGURES.json PLOT.svg`: the README's plot, from measured figures.

The figures are those that `--output` writes of the rows `merges/*` and `bpe-ids/*`: for each contender
the megabytes of text a second on one core, as geometric means over the corpora.
"""

import json
import math
import statistics
import sys
from pathlib import Path

_PANELS = {
    'merges': 'Learn 32,768 entries of byte-level BPE,\nfrom file to merges',
    'bpe-ids': 'Text to ids by byte-level BPE',
}


def draw_speeds(figures: Path, plot: Path) -> None:
    """Draws a panel of bars for each task; raises ImportError without matplotlib (extra `bench`)."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    matplotlib.rcParams['svg.hashsalt'] = 'tokbeam'  # the same figures give the same file
    measured = json.loads(figures.read_text())
    rows, versions = measured['rows'], measured['versions']
    figure, panels = pyplot.subplots(1, len(_PANELS), figsize=(9, 2.6))
    for axis, (group, title) in zip(panels, _PANELS.items(), strict=True):
        speeds = sorted(_speeds(rows, group).items(), key=lambda item: item[1])
        labels, values = zip(*speeds, strict=True)
        colors = ['#2a6fbb' if label == 'tokbeam' else '#b5bcc4' for label in labels]
        bars = axis.barh([_with_version(label, versions) for label in labels], values, color=colors)
        axis.bar_label(bars, [f'{value:.3g}' for value in values], padding=3)
        axis.set(xlim=(0, 1.15 * max(values)), xlabel='MB of text a second, one core')
        axis.set_title(title, fontsize=10)
        axis.spines[['top', 'right']].set_visible(False)
    figure.tight_layout()
    figure.savefig(plot, metadata={'Date': None})
    pyplot.close(figure)


def _with_version(label: str, versions: dict[str, str]) -> str:
    """Returns 'tokenizers 0.22.2' for 'tokenizers BPE'; a label that has its version stays."""
    package = label.split()[0]
    if package == 'tokbeam' or package not in versions or any(map(str.isdigit, label)):
        return label
    return f'{package} {versions[package]}'


def _speeds(rows: list[dict], group: str) -> dict[str, float]:
    """Returns the geometric mean of each contender that was measured on every corpus."""
    speeds: dict[str, list[float]] = {}
    chosen = [row for row in rows if row['name'].startswith(f'{group}/')]
    for row in chosen:
        for position, comparison in enumerate(row['comparisons']):
            contenders = [comparison['ours']] if position == 0 else []
            for contender in [*contenders, comparison['peer']]:
                if contender is not None and contender['median_seconds']:
                    speed = comparison['text_bytes'] / 1e6 / contender['median_seconds']
                    speeds.setdefault(contender['label'], []).append(speed)
    return {
        label: math.exp(statistics.fmean(map(math.log, values)))
        for label, values in speeds.items()
        if len(values) == len(chosen)
    }


if __name__ == '__main__':
    draw_speeds(Path(sys.argv[1]), Path(sys.argv[2]))
