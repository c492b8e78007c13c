"""Real text beside the repository, which tests use where it is and never need."""

import gzip
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora'
ENZH = FOLDER / 'enzh.tsv.gz'
ENZH_PAIRS = 209_419


def read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the two columns of a gzipped file of pairs."""
    with gzip.open(path, 'rt', encoding='utf-8', newline='\n') as lines:
        for line in lines:
            source, target = line.rstrip('\n').split('\t')
            yield source, target
