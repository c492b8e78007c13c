"""The README's plot, from measured figures; `tests.benchmarks.page` draws it.

The figures are those that `--output` writes of the rows `merges/*` and `bpe-ids/*`: for each contender
the megabytes of text a second on one core, as geometric means over the corpora, of the medians of
all rounds and of the slowest and the fastest ones.
"""

import json
import math
import statistics
from pathlib import Path

_PANELS = {
    'merges': 'Learn 32,768 entries of byte-level BPE,\nfrom file to merges',
    'bpe-ids': 'Text to ids by byte-level BPE',
}

_PACKAGES = {
    'SentencePiece': 'sentencepiece',
    'ArrayRecord': 'array-record',
    'TensorFlow': 'tensorflow',
    'tf.data': 'tensorflow',
}
"""Of labels that are not the names of packages."""


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
        speeds = sorted(_speeds(rows, versions, group).items(), key=lambda item: item[1])
        labels = [label for label, _ in speeds]
        values, slowest, fastest = zip(*(each for _, each in speeds), strict=True)
        colors = ['#2a6fbb' if label == 'tokbeam' else '#b5bcc4' for label in labels]
        ranges = [
            [value - low for value, low in zip(values, slowest, strict=True)],
            [high - value for value, high in zip(values, fastest, strict=True)],
        ]
        bars = axis.barh(labels, values, color=colors, xerr=ranges, ecolor='#50565c')
        axis.bar_label(bars, [f'{value:.3g}' for value in values], padding=3)
        axis.set(xlim=(0, 1.15 * max(values)), xlabel='MB of text a second, one core')
        axis.set_title(title, fontsize=10)
        axis.spines[['top', 'right']].set_visible(False)
    figure.tight_layout()
    figure.savefig(plot, metadata={'Date': None})
    pyplot.close(figure)


def with_version(contender: dict, versions: dict[str, str]) -> str:
    """Returns 'tokenizers 0.22.2, BPE' for 'tokenizers BPE', by the version that a run reported if any."""
    label = contender['label']
    package, _, kind = label.partition(' ')
    version = contender['facts'].get('version') or versions.get(_PACKAGES.get(package, package))
    if package == 'tokbeam' or version in (None, 'missing'):
        return label
    is_kind = kind and not kind[0].isdigit()
    return f'{package} {version}' + (f', {kind}' if is_kind else '')


def _speeds(
    rows: list[dict], versions: dict[str, str], group: str
) -> dict[str, tuple[float, float, float]]:
    """Returns the geometric means of each contender that was measured on every corpus."""
    speeds: dict[str, list[tuple[float, float, float]]] = {}
    chosen = [row for row in rows if row['name'].startswith(f'{group}/')]
    for row in chosen:
        for position, comparison in enumerate(row['comparisons']):
            contenders = [comparison['ours']] if position == 0 else []
            for contender in [*contenders, comparison['peer']]:
                if contender is not None and contender['median_seconds']:
                    rounds = contender['all_seconds']
                    seconds = (contender['median_seconds'], max(rounds), min(rounds))
                    megabytes = comparison['text_bytes'] / 1e6
                    label = with_version(contender, versions)
                    speed = tuple(megabytes / each for each in seconds)
                    speeds.setdefault(label, []).append(speed)
    return {
        label: tuple(math.exp(statistics.fmean(map(math.log, each))) for each in zip(*values))
        for label, values in speeds.items()
        if len(values) == len(chosen)
    }
