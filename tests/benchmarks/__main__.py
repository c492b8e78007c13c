"""`python -m tests.benchmarks`: measures, prints a table, and writes it as JSON and as a plot."""

import argparse
import bisect
import fnmatch
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.earlier_revisions import MissingRevisionError, packages_of

from . import page, plots, report, revisions, tokbench
from .comparing import RowResult
from .contenders import DEFAULT_RUNS, Row
from .corpora import CORPORA, Corpora
from .inputs import Materials
from .lanes import measure_rows
from .rows import all_rows
from .scale import FULL, SMOKE, Scale

_EPILOG = """\
The texts are those of ../shared/corpora, or generated if that folder does not exist. Peers come with the
extra `bench` (Tensor2Tensor: pip install --no-deps tensor2tensor==1.15.7 six; with PyTorch,
mosaicml-streaming and litdata); one that is not installed is reported as missing. kitoken and other
versions of tokenizers are installed into the scratch folder. A ratio is a peer's time divided by ours. A
peer that needs over 20 seconds is compared once, on 20 MB. Tensor2Tensor builds a vocabulary that both
of its searches need once, and its time counts for both. Rows that compare what one core does are
measured two at a time, each on its own core; --lanes 1 measures them one by one. Rows that say "extra"
in --list are measured only if named.
"""

_LANES = 2  # more would share caches and memory with too many

_DISK_FACTOR = 6  # the large text, its cuts, two times its records, and one run to spare


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the rows asked for; returns 0, or 2 if none match or the disk is too small."""
    options = _parser().parse_args(arguments)
    scale = SMOKE if options.smoke else FULL
    patterns = options.rows or (page.ROWS if options.page else ['*'] if options.list else [])
    only_cells = options.tokbench is not None and not patterns
    rows = [] if only_cells else wanted_rows(all_rows(scale), patterns)
    models = [] if options.page and options.tokbench is None else options.tokbench
    if options.page and options.output is None:
        print('--page needs --output, the file of the figures', file=sys.stderr)
        return 2
    if options.page and options.no_peers:
        print('the pages compare with other tools; leave --no-peers out', file=sys.stderr)
        return 2
    if models is not None and not tokbench.models_named(models):
        print(f'no model has such a name; there are {", ".join(tokbench.MODELS)}', file=sys.stderr)
        return 2
    if not rows and not only_cells:
        print('no row has such a name; --list shows them', file=sys.stderr)
        return 2
    if options.list:
        for row in rows:
            print(f'{row.name:<28} {row.task}{" (extra)" if row.is_extra else ""}')
        return 0
    with tempfile.TemporaryDirectory(prefix='tokbeam-benchmarks-') as temporary:
        scratch = options.scratch or Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        if options.limits:
            print(page.limits_table(_limits(scratch, scale)))
            return 0
        needed, free = _DISK_FACTOR * scale.large_bytes, shutil.disk_usage(scratch).free
        if free < needed:
            print(
                f'{scratch} has {free / 1e9:.1f} GB free and the rows need {needed / 1e9:.1f} GB; '
                'give another folder with --scratch',
                file=sys.stderr,
            )
            return 2
        if options.no_peers:
            rows = revisions.without_peers(rows)
        if options.against:
            try:
                root = packages_of(options.against)
            except MissingRevisionError as error:
                print(f'{options.against} is not available: {error}', file=sys.stderr)
                return 2
            rows = revisions.against(rows, options.against, root)
        limits = _limits(scratch, scale) if options.page else None
        runs = 1 if options.smoke else options.runs
        lanes = max(1, min(options.lanes, os.cpu_count() or 1))
        results = _measure_all(
            rows, scale, scratch, runs, lanes, options.output, options.plot, limits, models
        )
        if options.page and not options.smoke:
            page.write_pages(options.output)
        if options.against:
            ratio = revisions.speed_ratio(results, options.against)
            print('\n'.join(report.revision_lines(ratio, options.against)))
    return 0


def wanted_rows(rows: Sequence[Row], patterns: Sequence[str]) -> list[Row]:
    """Returns the rows whose names match one of the patterns; without any, all but extra ones."""
    if not patterns:
        return [row for row in rows if not row.is_extra]
    return [row for row in rows if any(fnmatch.fnmatchcase(row.name, each) for each in patterns)]


def _limits(scratch: Path, scale: Scale) -> dict[str, Any]:
    from .limits import measure_limits  # the command, which other rows run in processes

    return measure_limits(scratch, scale)


def _measure_all(
    rows: Sequence[Row],
    scale: Scale,
    scratch: Path,
    runs: int,
    lanes: int,
    output: Path | None,
    plot: Path | None,
    limits: Mapping[str, Any] | None,
    models: Sequence[str] | None,
) -> list[RowResult]:
    corpora = Corpora(scratch, scale.large_bytes, scale.generated_bytes)
    materials = Materials(corpora)
    origins = {name: corpora.origin(name) for name in CORPORA}
    print('texts:', ', '.join(f'{name} {origin}' for name, origin in origins.items()))
    if rows:
        print(report.table_head())
    started = time.monotonic()
    places = {row.name: place for place, row in enumerate(rows)}
    results: list[RowResult] = []
    for result in measure_rows(rows, materials, runs, lanes):
        print('\n'.join(report.table_lines(result)), flush=True)
        bisect.insort(results, result, key=lambda each: places[each.row.name])
        if output is not None:  # after each row: what was measured is not lost with a killed run
            report.write_json(output, results, origins, lanes, time.monotonic() - started, limits)
    cells = []
    for cell in (
        tokbench.measure_cells(materials, scale, models, runs) if models is not None else ()
    ):
        cells.append(cell)
        print(tokbench.cell_line(cell), flush=True)
        if output is not None:
            report.write_json(
                output, results, origins, lanes, time.monotonic() - started, limits, cells
            )
    print('\n'.join(['', *report.mean_lines(results)]))
    print(f'\n{len(results)} rows in {time.monotonic() - started:.0f} s')
    if plot is not None:
        try:
            drawn = plots.plot_sizes(plot, results)
            print(f'plot: {plot}' if drawn else 'no plot: no curve has two points')
        except ImportError as error:
            print(f'no plot: {error}')
    return results


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='python -m tests.benchmarks', description=__doc__, epilog=_EPILOG
    )
    parser.add_argument(
        '--rows', nargs='+', default=[], metavar='NAME', help='rows by name or glob, as "count/*"'
    )
    parser.add_argument(
        '--tokbench',
        nargs='*',
        metavar='MODEL',
        help="measure encoders by tokbench's protocol, with these models or all (globs)",
    )
    parser.add_argument(
        '--page',
        action='store_true',
        help='measure all that the README and docs/benchmarks.md show, and write their tables '
        '(with --smoke, without writing)',
    )
    parser.add_argument('--list', action='store_true', help='list the rows and end')
    parser.add_argument('--runs', type=int, default=DEFAULT_RUNS, help='rounds (default: 5)')
    parser.add_argument(
        '--lanes', type=int, default=_LANES, help='rows of one core measured at once (default: 2)'
    )
    parser.add_argument('--smoke', action='store_true', help='one round on 1 MB of generated text')
    parser.add_argument(
        '--against', metavar='REV', help='compare with an earlier revision too, as git knows it'
    )
    parser.add_argument(
        '--limits',
        action='store_true',
        help='print the stages of build next to what the machine allows',
    )
    parser.add_argument('--no-peers', action='store_true', help='measure this project alone')
    parser.add_argument('--output', type=Path, metavar='FILE', help='write all figures as JSON')
    parser.add_argument('--plot', type=Path, metavar='FILE', help='plot cost against size (.png)')
    parser.add_argument(
        '--scratch',
        type=Path,
        metavar='DIR',
        help='keep texts, counts and models here for the next run (default: a temporary folder)',
    )
    return parser


if __name__ == '__main__':
    sys.exit(main())
