"""The README's plot, from the figures that `--output` writes for the rows `merges/*` and `bpe-ids/*`.

A bar is a contender's speed as geometric mean over the corpora, of the median round; its line goes
from the mean of the slowest rounds to that of the fastest.
"""

import json
import statistics
from pathlib import Path

import numpy as np

from .contenders import OURS

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
"""By the first word of a label, where that is not the name of the package."""


def draw_speeds(figures: Path, plot: Path) -> None:
    """Draws a panel of bars for each task; raises ImportError without matplotlib (extra `bench`)."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    matplotlib.rcParams['svg.hashsalt'] = 'tokbeam'  # the same figures give the same file
    measured = json.loads(figures.read_text())
    figure, panels = pyplot.subplots(1, len(_PANELS), figsize=(9, 2.6))
    for axis, (group, title) in zip(panels, _PANELS.items(), strict=True):
        speeds = dict(sorted(_speeds(measured, group).items(), key=lambda item: item[1]))
        labels = list(speeds)
        values, slowest, fastest = map(np.array, zip(*speeds.values(), strict=True))
        colors = ['#2a6fbb' if label == OURS else '#b5bcc4' for label in labels]
        ranges = [values - slowest, fastest - values]
        bars = axis.barh(labels, values, color=colors, xerr=ranges, ecolor='#50565c')
        axis.bar_label(bars, [f'{value:.3g}' for value in values], padding=3)
        axis.set(xlim=(0, 1.15 * max(values)), xlabel='MB of text a second, one core')
        axis.set_title(title, fontsize=10)
        axis.spines[['top', 'right']].set_visible(False)
    figure.tight_layout()
    figure.savefig(plot, metadata={'Date': None})
    pyplot.close(figure)


def labelled(contender: dict, versions: dict[str, str]) -> str:
    """Returns a contender's label with the version that its run reported, or else that was installed."""
    package, _, kind = contender['label'].partition(' ')
    installed = None if kind[:1].isdigit() else versions.get(_PACKAGES.get(package, package))
    return with_version(contender['label'], contender['facts'].get('version', installed))


def with_version(label: str, version: str | None) -> str:
    """Returns 'tokenizers 0.22.2, BPE' for 'tokenizers BPE', and 'tokenizers 1.0.0' for 'tokenizers 1.0'."""
    if version in (None, 'missing'):
        return label
    package, *kind = label.replace(',', '').split(' ', 1)
    return ', '.join([f'{package} {version}', *(each for each in kind if not each[0].isdigit())])


def _speeds(measured: dict, group: str) -> dict[str, tuple[float, float, float]]:
    """Returns the means of the median, slowest and fastest rounds; for contenders with all corpora."""
    speeds: dict[str, list[tuple[float, float, float]]] = {}
    rows = [row for row in measured['rows'] if row['name'].startswith(f'{group}/')]
    for row in rows:
        for number, comparison in enumerate(row['comparisons']):
            contenders = {OURS: comparison['ours']} if number == 0 else {}
            if peer := comparison['peer']:
                contenders[labelled(peer, measured['versions'])] = peer
            for label, contender in contenders.items():
                if contender['median_seconds']:
                    rounds = contender['all_seconds']
                    seconds = contender['median_seconds'], max(rounds), min(rounds)
                    megabytes = comparison['text_bytes'] / 1e6
                    speeds.setdefault(label, []).append(tuple(megabytes / each for each in seconds))
    return {
        label: tuple(map(statistics.geometric_mean, zip(*values)))
        for label, values in speeds.items()
        if len(values) == len(rows)
    }
