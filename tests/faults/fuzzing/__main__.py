"""`python -m tests.faults.fuzzing`: runs random cases and prints the violations."""

import argparse
import collections
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

# As pytest finds what is beside this package.
sys.path[:0] = [str(Path(__file__).resolve().parents[level]) for level in (1, 2)]

from forked_commands import ForkedCommands  # noqa: E402

from .campaign import KINDS, play  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases; returns 1 if there are violations."""
    parser = argparse.ArgumentParser(prog='python -m tests.faults.fuzzing', description=__doc__)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--cases', type=int, default=100, help='of each kind (default: 100)')
    parser.add_argument('--first', type=int, default=0, help='number of the first (default: 0)')
    parser.add_argument('--kinds', nargs='+', choices=KINDS, default=list(KINDS))
    parser.add_argument('--keep', type=Path, help='folder that failing cases are kept in')
    parser.add_argument('--at-once', type=int, default=2, help='lanes (default: 2)')
    options = parser.parse_args(arguments)
    started = time.monotonic()
    counts: dict[str, collections.Counter] = {kind: collections.Counter() for kind in KINDS}
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix='fuzzing-'))
        lanes = stack.enter_context(ForkedCommands(options.at_once))
        for each in play(
            lanes, options.kinds, options.seed, options.cases, Path(scratch), options.first,
            options.keep,
        ):  # fmt: skip
            counts[each.kind].update(
                cases=1, commands=each.commands, found=int(bool(each.found)), seconds=each.seconds
            )
            if each.found:
                print(f'{each}\n', flush=True)
    for kind in options.kinds:
        count = counts[kind]
        print(
            f'{kind}: {count["cases"]} cases, {count["commands"]} commands, '
            f'{count["seconds"]:.0f} s, {count["found"]} found'
        )
    print(f'{time.monotonic() - started:.0f} s in all')
    return int(any(count['found'] for count in counts.values()))


if __name__ == '__main__':
    sys.exit(main())
