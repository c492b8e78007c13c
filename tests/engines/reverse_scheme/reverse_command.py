"""The `tokbeam` command with one scheme more."""

import sys

from pipelines.cli.main import main
from tokcore import schemes

schemes.register('reverse', 'reverse_scheme')

if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
