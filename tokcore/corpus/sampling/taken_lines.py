"""Which lines of a file Tensor2Tensor's `generate_lines_for_vocab` takes: a pass over the file.

With `countermax = int(size / budget / 2)` it skips so many lines, takes one, and so on; what it
takes is stripped, and its characters are taken off the budget. It ends at a line that it would take
when nothing is left. So lines are taken by their numbers in the file, whatever is in them, and those
without text cost nothing; here neither do lines that cannot be used, at which the original fails.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.corpus.dataset import CorpusFile, LongLine, OpenBinary
from tokcore.corpus.formats.whole_lines import whole_lines
from tokcore.corpus.sampling.sampling_kernels import count_characters, every_line
from tokcore.corpus.storage.corpus_text import text_pieces
from tokcore.corpus.storage.gzip_text import PIECE_BYTES
from tokcore.text.sides import Side
from tokcore.text.t2t_lines import T2T_LINES


@dataclass(frozen=True)
class TakenLines:
    """The lines of a file that are taken: the last of each `period`, of the first `lines` periods.

    Attributes:
        period: 1 takes all.
        lines: how many are taken.
    """

    period: int
    lines: int

    def among(self, first: int, count: int) -> slice:
        """Returns the places of those taken among so many lines, the first of which is `first`."""
        behind = self.period * self.lines - first
        return slice(_to_skip(first, self.period), max(0, min(count, behind)), self.period)


@dataclass(frozen=True)
class FileSample:
    """What a pass over a file found.

    Attributes:
        taken: its lines that are taken.
        first_lines: for each byte that was asked about, the number of the first line that begins
            there or behind; or, where that is behind all that are taken, any number behind those.
    """

    taken: TakenLines
    first_lines: tuple[int, ...]


def sample_file(
    file: CorpusFile,
    budget: int,
    open_binary: OpenBinary,
    max_line_bytes: int,
    starts: Sequence[int] = (),
) -> FileSample:
    """Finds the lines of a file that are taken.

    The file is read to where the budget is used up. What is decompressed is read through before,
    for its size. Memory: some MB, or a line of `max_line_bytes`.

    Args:
        file: of lines.
        budget: at least 1.
        open_binary: opens it.
        max_line_bytes: a longer line cannot be used.
        starts: bytes of a plain file, ascending, for `first_lines`.

    Raises:
        InputError: it cannot be read, has changed its size, or is compressed and damaged.
    """
    size = file.size
    if file.compressed:
        size = sum(map(len, text_pieces(file, open_binary)))
    period = int(size / budget / 2) + 1
    first_lines: list[int] = []
    number = offset = spent = lines = 0
    for block in _blocks(file, open_binary, max_line_bytes):
        length = block.length if isinstance(block, LongLine) else len(block)
        while len(first_lines) < len(starts) and starts[len(first_lines)] <= offset + length:
            first_lines.append(number + _lines_before(block, starts[len(first_lines)] - offset))
        offset += length
        if isinstance(block, LongLine):
            lines += _to_skip(number, period) == 0  # one that is taken, for nothing
            number += 1
            continue
        found, characters = _characters(block, number, period, max_line_bytes)
        spent_before = spent + np.cumsum(characters) - characters
        taken = int(np.searchsorted(spent_before, budget))
        number, lines = number + found, lines + taken
        spent += int(characters[:taken].sum())
        if spent >= budget:
            break
    first_lines += [number] * (len(starts) - len(first_lines))
    return FileSample(TakenLines(period, lines), tuple(first_lines))


def _blocks(
    file: CorpusFile, open_binary: OpenBinary, max_line_bytes: int
) -> Iterator[bytes | LongLine]:
    return whole_lines(text_pieces(file, open_binary), PIECE_BYTES, max_line_bytes)


def _to_skip(first: int, period: int) -> int:
    """How many lines there are from `first` on before one is taken."""
    return period - 1 - first % period


def _lines_before(block: bytes | LongLine, start: int) -> int:
    """How many lines of a block begin before its byte `start`, which may be its end."""
    if start <= 0:
        return 0
    return 1 if isinstance(block, LongLine) else 1 + block.count(b'\n', 0, start - 1)


def _characters(
    block: bytes, first: int, period: int, max_line_bytes: int
) -> tuple[int, np.ndarray]:
    """The number of lines of a block, and the characters of each that would be taken: int64[...]."""
    text = np.frombuffer(block, np.uint8)
    # No block has 2^62 lines: where the next one taken is further off, none is found.
    skipped, step = (min(each, 1 << 62) for each in (_to_skip(first, period), period))
    found, starts, ends = every_line(text, skipped, step)
    too_long = ends - starts > max_line_bytes
    ends[too_long] = starts[too_long]
    stripped = T2T_LINES.apply(Side(text, starts, ends)).side
    characters = np.empty(len(starts), np.int64)
    count_characters(
        read_only(stripped.text), read_only(stripped.starts), read_only(stripped.ends), characters
    )
    return found, characters
