"""Results as a table for people and as JSON for machines."""

import dataclasses
import importlib.metadata
import json
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .comparing import Comparison, Figure, RowResult
from .goals import mean_ratios
from .revisions import SpeedRatio

_PACKAGES = (
    'tokbeam', 'apache-beam', 'numba', 'numpy', 'tensor2tensor', 'tensorflow', 'tensorflow-text',
    'tokenizers', 'sentencepiece', 'gigabpe', 'rustbpe', 'gigatoken', 'nanotoken', 'tiktoken',
    'grain', 'array-record', 'mosaicml-streaming', 'litdata',
)  # fmt: skip

_NOT_BY_BYTES = (
    'start-up', 'search', 'wordpiece', 'shuffled', 'sizes', 'open', 'row', 'rows',
)  # fmt: skip
"""Groups whose time is not for the whole text, so that they have no speed."""

_HEAD = (
    f'{"row":<28} {"ours":>10} {"MB/s":>7} {"memory":>8}  {"peer":<34} {"theirs":>10} {"ratio":>8}'
)


def table_head() -> str:
    """Returns the head of the table."""
    return f'{_HEAD}  remarks\n{"-" * (len(_HEAD) + 9)}'


def table_lines(result: RowResult) -> list[str]:
    """Returns the lines of a row, one for each peer."""
    lines = []
    for number, comparison in enumerate(result.comparisons):
        ours, peer = comparison.ours, comparison.peer
        speed = comparison.text_bytes / ours.seconds / 1e6 if ours.seconds else 0
        by_bytes = result.row.group not in _NOT_BY_BYTES
        line = (
            f'{result.row.name if number == 0 else "":<28} '
            f'{_seconds(ours):>10} '
            f'{f"{speed:.1f}" if by_bytes and speed else "":>7} '
            f'{ours.peak_bytes / 1e6:>5.0f} MB  '
        )
        if peer is not None:
            ratio = f'{comparison.ratio:.2f}' if comparison.ratio else ''
            line += f'{peer.label:<34} {_seconds(peer):>10} {ratio:>8}'
        lines.append(f'{line}  {"; ".join(_remarks(result, comparison))}'.rstrip())
    return lines


def mean_lines(results: Sequence[RowResult]) -> list[str]:
    """Returns the lines of the geometric means over the corpora."""
    return [
        f'{mean.group:<10} {mean.peer:<24} {mean.mean:>8.2f} times over {mean.rows} rows, '
        f'the least {mean.least:.2f}; wanted {mean.target:g}: '
        f'{"reached" if mean.reached else "MISSED"}'
        for mean in mean_ratios(results)
    ]


def revision_lines(ratio: SpeedRatio | None, revision: str) -> list[str]:
    """Returns lines that compare all rows with an earlier revision."""
    if ratio is None:
        return [f'no row has a ratio to {revision}']
    lines = [f'{revision} takes {ratio.mean:.3f} times as long, the mean of {ratio.rows} rows']
    return lines + [f'slower than {revision}: {name} {each:.2f}' for name, each in ratio.slower]


def write_json(
    path: Path,
    results: Sequence[RowResult],
    origins: Mapping[str, str],
    lanes: int,
    seconds: float,
    limits: Mapping[str, object] | None,
    cells: Sequence[Mapping[str, object]] = (),
) -> None:
    """Writes all figures, with the machine and the versions of packages."""
    document = {
        'date': time.strftime('%d %B %Y').lstrip('0'),
        'machine': _machine(),
        'versions': _versions(),
        'corpora': dict(origins),
        'lanes': lanes,
        'seconds': seconds,
        'rows': [_row(result) for result in results],
        'means': [
            {**dataclasses.asdict(mean), 'reached': mean.reached} for mean in mean_ratios(results)
        ],
        'tokbench': list(cells),
        'limits': limits,
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')


def _seconds(figure: Figure) -> str:
    if figure.seconds is None:
        return figure.problem.partition(':')[0] or '-'
    return f'{figure.seconds:.3f} s' if figure.seconds < 100 else f'{figure.seconds:.0f} s'


def _remarks(result: RowResult, comparison: Comparison) -> list[str]:
    peer = comparison.peer
    remarks = []
    if comparison.target is not None and comparison.ratio is not None:
        met = comparison.ratio >= comparison.target
        remarks.append(f'wanted {comparison.target:.3g}: {"reached" if met else "MISSED"}')
    if comparison.ratio_of is not None and comparison.ratio is not None:
        ours, theirs = (each.facts[comparison.ratio_of] for each in (comparison.ours, peer))
        remarks.append(f'{comparison.ratio_of.replace("_", " ")} {ours:,} and {theirs:,}')
    if comparison.agrees is False:
        remarks.append('THE RESULTS DIFFER')
    if peer is not None and len(peer.all_seconds) == 1 < len(comparison.ours.all_seconds):
        remarks.append('one run')
    if any(other.text_bytes != comparison.text_bytes for other in result.comparisons):
        remarks.append(f'on {comparison.text_bytes / 1e6:.0f} MB')
    for figure in (comparison.ours, peer):
        if figure is not None and figure.problem:
            remarks.append(f'{figure.label} {figure.problem}')
    return [*remarks, *result.notes]


def _row(result: RowResult) -> dict:
    return {
        'name': result.row.name,
        'task': result.row.task,
        'notes': result.notes,
        'comparisons': [
            {
                'text_bytes': each.text_bytes,
                'ours': _figure(each.ours),
                'peer': _figure(each.peer) if each.peer else None,
                'ratio': each.ratio,
                'target': each.target,
                'results_agree': each.agrees,
            }
            for each in result.comparisons
        ],
    }


def _figure(figure: Figure) -> dict:
    return {
        'label': figure.label,
        'median_seconds': figure.seconds,
        'all_seconds': figure.all_seconds,
        'peak_bytes': figure.peak_bytes,
        'problem': figure.problem or None,
        'facts': dict(figure.facts),
    }


def _machine() -> dict:
    return {
        'system': platform.platform(),
        'processor': _processor(),
        'cores': os.cpu_count(),
        'python': platform.python_version(),
    }


def _processor() -> str:
    try:
        found = re.search(r'^model name\s*: (.+)', Path('/proc/cpuinfo').read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = 'missing'
    return versions
