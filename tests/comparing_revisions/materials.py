"""The texts that both revisions are given: each kind, plain and gzip, sound and with bad lines."""

import gzip
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from generated_text import chinese_lines, english_lines, pairs_with_gaps

_LINES = 4000
"""Of generated text: some 300 KB, so that a file has several work items of 64 KiB."""

_SMALL_BYTES = 400_000

_LEARNED_BYTES = 1_500_000
"""Of text for the learner on Beam, which takes seconds for a round over it."""

_BAD_EVERY = 97
# The first one is not the byte order mark of UTF-16.
_BAD_TEXT = (b'a surrogate \xed\xa0\x80', b'\xff\xfe is no UTF-8', b'\xc3\x28', b'', b' \t ')
_BAD_PAIRS = (b'no second column', b'a\t\xff', b'\xc3\x28\tb', b'\t', b'a\t ')


@dataclass(frozen=True)
class Materials:
    """Files, by what they hold."""

    english_gz: Path
    english: Path
    bad_english: Path
    chinese_gz: Path
    pairs_gz: Path
    bad_pairs: Path
    source: Path
    target: Path
    few_pairs: Path  # for another split
    few_english: Path  # for the learner on Beam


def make_materials(folder: Path, corpora: Path | None, small: bool) -> Materials:
    """Writes the texts into a folder.

    Args:
        folder: an empty one.
        corpora: a folder with `docs.en.txt.gz`, `poetry.zh.txt.gz` and `enzh.tsv.gz`; None for
            generated text.
        small: whether only the beginnings of these are taken.
    """
    if corpora is None:
        english: Iterable[bytes] = _encoded(english_lines(_LINES, seed=1))
        chinese: Iterable[bytes] = _encoded(chinese_lines(_LINES, seed=2))
        pairs: Iterable[bytes] = _encoded(map('\t'.join, pairs_with_gaps(_LINES, seed=3)))
    else:
        english, chinese, pairs = (
            _stored_lines(corpora / name)
            for name in ('docs.en.txt.gz', 'poetry.zh.txt.gz', 'enzh.tsv.gz')
        )
    if small:
        english, chinese, pairs = (
            _beginning(lines, _SMALL_BYTES) for lines in (english, chinese, pairs)
        )
    english, chinese, pairs = list(english), list(chinese), list(pairs)
    columns = [line.split(b'\t') for line in pairs]
    return Materials(
        _write(folder / 'english.txt.gz', english),
        _write(folder / 'english.txt', english),
        _write(folder / 'bad.txt', _with_bad(english, _BAD_TEXT)),
        _write(folder / 'chinese.txt.gz', chinese),
        _write(folder / 'pairs.tsv.gz', pairs),
        _write(folder / 'bad.tsv', _with_bad(pairs, _BAD_PAIRS)),
        _write(folder / 'pairs.en', [each[0] for each in columns]),
        _write(folder / 'pairs.zh', [each[1] for each in columns]),
        _write(folder / 'few.tsv', pairs[:500]),
        _write(folder / 'few.txt', _beginning(english, _LEARNED_BYTES)),
    )


def _encoded(lines: Iterable[str]) -> Iterator[bytes]:
    return (line.encode() for line in lines)


def _stored_lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path, 'rb') as lines:
        for line in lines:
            yield line.rstrip(b'\n')


def _beginning(lines: Iterable[bytes], size: int) -> Iterator[bytes]:
    total = 0
    for line in lines:
        total += len(line) + 1
        if total > size:
            return
        yield line


def _with_bad(lines: Iterable[bytes], bad: tuple[bytes, ...]) -> Iterator[bytes]:
    kinds = itertools.cycle(bad)
    for number, line in enumerate(lines):
        if number % _BAD_EVERY == 0:
            yield next(kinds)
        yield line


def _write(path: Path, lines: Iterable[bytes]) -> Path:
    data = b''.join(line + b'\n' for line in lines)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == '.gz' else data)
    return path
