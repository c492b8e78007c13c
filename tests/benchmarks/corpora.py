"""The texts: real ones where they lie beside the repository, else generated, and cuts of them."""

import gzip
import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

from . import zipf_text
from .running import ROOT

FOLDER = ROOT.parent / 'shared' / 'corpora'

ENGLISH, CHINESE, MIXED = 'docs.en', 'poetry.zh', 'enzh'
CORPORA = (ENGLISH, CHINESE, MIXED)
SOURCES, TARGETS = 'enzh.en', 'enzh.zh'
"""The columns of the mixed corpus."""
LARGE = 'large'
"""All three, repeated."""

_STORED = {ENGLISH: 'docs.en.txt.gz', CHINESE: 'poetry.zh.txt.gz', MIXED: 'enzh.tsv.gz'}
_GENERATED_BYTES = {ENGLISH: 120_000_000, CHINESE: 30_000_000, MIXED: 18_000_000}
_WRITERS = {
    ENGLISH: zipf_text.write_english,
    CHINESE: zipf_text.write_chinese,
    MIXED: zipf_text.write_pairs,
}

_SMALL_BYTES = 1000


class Corpora:
    """Plain files of the corpora, made in a scratch folder when they are first asked for."""

    def __init__(self, scratch: Path, large_bytes: int, generated_bytes: int | None = None):
        """Takes how long the repeated text is; `generated_bytes` makes all the texts generated."""
        self.scratch = scratch
        self._large_bytes = large_bytes
        self._generated_bytes = generated_bytes

    def origin(self, name: str) -> str:
        """`real` or `generated`."""
        return 'real' if self._stored(name) else 'generated'

    def path(self, name: str, limit: int | None = None) -> Path:
        """Returns a corpus, or if it is longer than `limit` bytes a sample of its lines."""
        path = self.scratch / f'{name}.txt'
        if not path.exists():
            self._make(name, path)
        if limit is None or path.stat().st_size <= limit:
            return path
        sample = self.scratch / f'{name}.{limit}.txt'
        if not sample.exists():
            _write_whole(sample, _evenly(path, limit))
        return sample

    def small(self, name: str) -> Path:
        """Returns the first kilobyte of lines: what a command takes on it is its start-up."""
        return self.beginning(name, _SMALL_BYTES)

    def beginning(self, name: str, size: int) -> Path:
        """Returns the lines of the first `size` bytes."""
        path = self.scratch / f'{name}.first{size}.txt'
        if not path.exists():
            with open(self.path(name), 'rb') as lines:
                _write_whole(path, _up_to(lines, size))
        return path

    def _stored(self, name: str) -> Path | None:
        if self._generated_bytes is not None or name not in _STORED:
            return None
        path = FOLDER / _STORED[name]
        return path if path.exists() else None

    def _make(self, name: str, path: Path) -> None:
        part = path.with_suffix('.part')
        if name in (SOURCES, TARGETS):
            column = (SOURCES, TARGETS).index(name)
            with open(self.path(MIXED), 'rb') as lines:
                _write_whole(path, (_column(line, column) for line in lines))
            return
        if name == LARGE:
            self._repeat(part)
        elif stored := self._stored(name):
            with gzip.open(stored) as packed, open(part, 'wb') as plain:
                shutil.copyfileobj(packed, plain, 1 << 20)
        else:
            _WRITERS[name](part, self._generated_bytes or _GENERATED_BYTES[name])
        part.rename(path)

    def _repeat(self, path: Path) -> None:
        texts = [self.path(name) for name in CORPORA]
        with open(path, 'wb') as large:
            for text in itertools.cycle(texts):
                left = self._large_bytes - large.tell()
                with open(text, 'rb') as lines:
                    if left < text.stat().st_size:
                        large.writelines(_up_to(lines, left))
                        return
                    shutil.copyfileobj(lines, large, 1 << 20)


def _column(line: bytes, column: int) -> bytes:
    return line.rstrip(b'\n').split(b'\t')[column] + b'\n'


def _up_to(lines: Iterator[bytes], size: int) -> Iterator[bytes]:
    for line in lines:
        size -= len(line)
        yield line
        if size <= 0:
            return


def _evenly(path: Path, size: int) -> Iterator[bytes]:
    """Lines from all over the file: one whenever the share wanted falls behind."""
    share = size / path.stat().st_size
    read = taken = 0
    with open(path, 'rb') as lines:
        for line in lines:
            read += len(line)
            if taken < read * share:
                taken += len(line)
                yield line


def _write_whole(path: Path, lines: Iterator[bytes]) -> None:
    part = path.with_suffix('.part')
    with open(part, 'wb') as out:
        out.writelines(lines)
    part.rename(path)
