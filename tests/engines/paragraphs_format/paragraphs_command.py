"""The `tokbeam` command with one format more."""

import sys

from pipelines.cli.main import main
from tokcore.corpus import formats

formats.register('paragraphs', 'paragraphs:Paragraphs')

if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
