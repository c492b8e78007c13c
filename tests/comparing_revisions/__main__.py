"""`python -m tests.comparing_revisions`: says which files differ from those of another revision."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# As pytest finds what is beside this package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from earlier_revisions import MissingRevisionError, packages_of  # noqa: E402

from .comparison import table_lines  # noqa: E402
from .running import compare_with  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares and prints the table; returns 1 if a file differs that need not, 2 for a mistake."""
    parser = argparse.ArgumentParser(
        prog='python -m tests.comparing_revisions',
        description='Build corpora with this checkout and with another revision, and compare all '
        'that they made.',
    )
    parser.add_argument('--against', required=True, metavar='REVISION')
    parser.add_argument(
        '--corpora', type=Path, metavar='DIR',
        help='folder with docs.en.txt.gz, poetry.zh.txt.gz, enzh.tsv.gz (default: generated text)',
    )  # fmt: skip
    parser.add_argument('--small', action='store_true', help='only the beginning of each corpus')
    parser.add_argument(
        '--workers', type=int, nargs='+', default=[1, 2], metavar='N', help='(default: 1 2)'
    )
    parser.add_argument(
        '--only', default='', metavar='PREFIX', help='jobs whose names begin so, and what they need'
    )
    parser.add_argument('--keep', type=Path, metavar='DIR', help='keep texts and results there')
    parser.add_argument('--all', action='store_true', help='name the files that are equal, too')
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
        rows = compare_with(packages, folder, corpora, options.small, options.workers, options.only)
    for line in table_lines(rows, options.all):
        print(line)
    compared = [each for files in rows.values() for each in files]
    unexpected = [each for each in compared if not each.is_expected]
    print(f'{len(compared)} files, {len(unexpected)} not as expected')
    return int(bool(unexpected) or not compared)


if __name__ == '__main__':
    sys.exit(main())
