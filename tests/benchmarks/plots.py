"""The plot of cost against size: seconds and peak memory of the rows that are points of a curve."""

from collections.abc import Sequence
from pathlib import Path

from .comparing import RowResult


def plot_sizes(path: Path, results: Sequence[RowResult]) -> bool:
    """Draws the curves with two points or more; returns whether there were any.

    Raises ImportError without matplotlib, which the extra `bench` installs.
    """
    curves = _curves(results)
    if not curves:
        return False
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, len(curves), figsize=(4 * len(curves), 6), squeeze=False)
    for column, (name, points) in enumerate(sorted(curves.items())):
        sizes, seconds, peaks = zip(*sorted(points))
        unit = 'million distinct tokens' if name == 'build' else 'MB of text'
        for row, (values, label) in enumerate(((seconds, 'seconds'), (peaks, 'peak memory, MB'))):
            axis = axes[row][column]
            axis.plot(sizes, values, marker='o')
            axis.set(xlabel=unit, ylabel=label, ylim=(0, None), xlim=(0, None))
        axes[0][column].set_title(name)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return True


def _curves(results: Sequence[RowResult]) -> dict[str, list[tuple[float, float, float]]]:
    """Returns the points of each curve as (size, seconds, MB of memory), by name."""
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for result in results:
        ours = result.comparisons[0].ours
        if result.row.size is not None and ours.seconds is not None:
            name = result.row.name.split('/')[1]
            point = (result.row.size, ours.seconds, ours.peak_bytes / 1e6)
            curves.setdefault(name, []).append(point)
    return {name: points for name, points in curves.items() if len(points) > 1}
