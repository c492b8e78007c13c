"""A small corpus for tests to damage, and the options of a job that reads it."""

from dataclasses import dataclass
from pathlib import Path

PAIRS = tuple(
    (f'Line {n} of a small corpus, read in {n % 7} parts.', f'小语料的第{n}行,分{n % 7}段。')
    for n in range(1, 81)
)
KINDS = ('bitext', 'tsv', 'text')
SPLITS = ('train', 'dev', 'test')

BUILD_OPTIONS = ('--name', 'small', '--vocab-size', '120', '--shards', '3')


@dataclass(frozen=True)
class SmallCorpus:
    """The files of one split, and the arguments that name them."""

    arguments: tuple[str, ...]
    files: tuple[Path, ...]  # one for each side of bitext, else one

    @property
    def last(self) -> Path:
        return self.files[-1]
