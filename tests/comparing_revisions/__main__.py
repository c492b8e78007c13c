"""`python -m tests.comparing_revisions`: says which files differ from those of another revision."""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

# As pytest finds what is beside this package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from earlier_revisions import MissingRevisionError, packages_of  # noqa: E402

from .expected import FILE, FOLLOWS, Expected, explain, read_expected  # noqa: E402
from .running import Ran, compare_with  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares and prints the table.

    Returns 0 if every file is equal or differs as expected, and every expected difference is found;
    else 1, or 2 for a mistake.
    """
    revision, entries = read_expected()
    parser = argparse.ArgumentParser(
        prog='python -m tests.comparing_revisions',
        description='Build corpora with this checkout and with another revision, and compare all '
        f'that they made. Differences are expected where {FILE.name} says so.',
    )
    parser.add_argument(
        '--against', default=revision, metavar='REVISION', help=f'(default: {revision})'
    )
    parser.add_argument(
        '--corpora', type=Path, metavar='DIR',
        help='folder with docs.en.txt.gz, poetry.zh.txt.gz, enzh.tsv.gz for those jobs that do not '
        'need texts with odd rows (default: generated text)',
    )  # fmt: skip
    parser.add_argument('--small', action='store_true', help='only the beginning of each corpus')
    parser.add_argument(
        '--workers', type=int, nargs='+', default=[1, 2], metavar='N', help='(default: 1 2)'
    )
    parser.add_argument(
        '--only', default='', metavar='PREFIX', help='jobs whose names begin so, and what they need'
    )
    parser.add_argument('--keep', type=Path, metavar='DIR', help='keep texts and results there')
    parser.add_argument('--all', action='store_true', help='name what is equal or expected, too')
    options = parser.parse_args(arguments)
    if options.keep and options.keep.exists():
        parser.error(f'{options.keep} exists; give --keep a folder that does not')
    try:
        packages = packages_of(options.against)
    except MissingRevisionError as error:
        print(f'{options.against} cannot be had: {error}', file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix='comparing-') as scratch:
        folder = (options.keep or Path(scratch)).absolute()
        corpora = options.corpora and options.corpora.absolute()
        ran = compare_with(packages, folder, corpora, options.small, options.workers, options.only)
    if not ran:
        print(
            f'no job has a name that begins with {options.only!r}; give --only another',
            file=sys.stderr,
        )
        return 2
    report = Report(ran, entries)
    for line in report.lines(options.all):
        print(line)
    # A part of the jobs may show a part of the differences.
    unused = [] if options.only else report.unused
    return int(bool(report.unexplained or unused))


class Report:
    """What all jobs show together.

    Attributes:
        unexplained: how many differences no entry explains.
        unused: the entries that explain no difference.
    """

    def __init__(self, ran: Sequence[Ran], entries: Sequence[Expected]):
        self._ran = ran
        self._explained = []
        for number in {each.workers: None for each in ran}:
            some = [each for each in ran if each.workers == number]
            found = {each.job.name: each.compared.differences for each in some}
            uses = {each.job.name: each.job.uses for each in some}
            self._explained.append(explain(found, entries, uses))
        reasons = [reason for some in self._explained for reason in some.values()]
        self.unexplained = reasons.count(None)
        self._follow = reasons.count(FOLLOWS)
        self._counts = {entry: reasons.count(entry) for entry in entries}
        self.unused = [entry for entry, count in self._counts.items() if not count]

    def lines(self, show_all: bool) -> Iterator[str]:
        """Yields a line for each job with differences, and for each of these; then the sums."""
        numbers = [*{each.workers: None for each in self._ran}]
        for each in self._ran:
            explained = self._explained[numbers.index(each.workers)]
            differences = each.compared.differences
            expected = sum(explained[each.job.name, one] is not None for one in differences)
            if show_all or expected < len(differences):
                yield (
                    f'{each.job.name}, workers {each.workers}: status {each.status}, '
                    f'{len(each.compared.equal)} files equal, {expected} differences expected, '
                    f'{len(differences) - expected} not'
                )
            for one in differences:
                reason = explained[each.job.name, one]
                if reason is None:
                    yield f'    NOT EXPECTED  {one}'
                elif show_all:
                    yield f'    {reason if isinstance(reason, str) else "expected"}  {one}'
        for entry, count in self._counts.items():
            nothing = '' if count else ' (remove this entry: nothing differs so)'
            yield f'{count} differences expected: {entry.reason}{nothing}'
        refused = sum(each.status != 0 for each in self._ran)
        equal = sum(len(each.compared.equal) for each in self._ran)
        yield (
            f'{len(self._ran)} jobs, {refused} of them refused; {equal} files equal; '
            f'{sum(self._counts.values())} differences expected, {self._follow} follow from these, '
            f'{self.unexplained} not expected'
        )


if __name__ == '__main__':
    sys.exit(main())
