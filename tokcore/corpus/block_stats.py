"""What is known about a block once it has been read: enough to prove that nothing was lost."""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokcore.corpus.dataset import Block, CorpusFile, OnError, Split
from tokcore.corpus.range_checksums import RangeChecksum, checksums_of
from tokcore.corpus.rows import INVALID_UTF8, REASONS, TOO_LONG, Reason, Reject, Rows
from tokcore.errors import InputError


@dataclass(frozen=True)
class LineTally:
    """Lines of one split: lines = examples + empty + invalid_utf8 + missing_column + too_long."""

    split: str
    lines: int
    examples: int
    empty: int
    invalid_utf8: int = 0
    missing_column: int = 0
    too_long: int = 0

    @property
    def rejected(self) -> int:
        """Lines that could not be used."""
        return sum(getattr(self, reason) for reason in REASONS)


@dataclass(frozen=True)
class RejectedLines:
    """A block's lines left out for one reason, as lines of JSON in identity order."""

    split: str
    reason: Reason
    place: int
    offset: int  # of the block in its (source) file: with `place` it orders the blocks
    json_lines: bytes


@dataclass(frozen=True)
class BlockStats:
    tally: LineTally
    receipts: tuple[RangeChecksum, ...]
    rejected: tuple[RejectedLines, ...]


def stats_of(block: Block, rows: Rows, splits: Sequence[Split], on_error: OnError) -> BlockStats:
    """Returns a block's tally of lines, the receipts of its bytes, and its rejected lines.

    Args:
        block: the block that was read.
        rows: its rows.
        splits: the corpus, for the files' names.
        on_error: what to do with rejected lines.

    Raises:
        InputError: there are rejected lines, and `on_error` is 'stop'.
    """
    if rows.rejects and on_error == 'stop':
        raise reject_error(rows.rejects[0], block, splits)
    reasons = [reject.reason for reject in rows.rejects]
    tally = LineTally(
        block.split,
        rows.lines,
        len(rows),
        rows.empty,
        *(reasons.count(reason) for reason in REASONS),
    )
    rejected = tuple(
        RejectedLines(
            block.split,
            reason,
            block.place,
            block.offset,
            b''.join(
                _json_line(reject, _file_of(reject, block, splits).name)
                for reject in rows.rejects
                if reject.reason == reason
            ),
        )
        for reason in REASONS
        if reason in reasons
    )
    return BlockStats(tally, checksums_of(block), rejected)


def add_tallies(split: str, tallies: Iterable[LineTally]) -> LineTally:
    """Returns the sum of one split's tallies.

    Raises:
        RuntimeError: lines read and lines accounted for differ.
    """
    of_split = [tally for tally in tallies if tally.split == split]
    total = LineTally(
        split,
        sum(tally.lines for tally in of_split),
        sum(tally.examples for tally in of_split),
        sum(tally.empty for tally in of_split),
        *(sum(getattr(tally, reason) for tally in of_split) for reason in REASONS),
    )
    if total.lines != total.examples + total.empty + total.rejected:
        raise RuntimeError(f'lines were lost: {total}')
    return total


def reject_error(reject: Reject, block: Block, splits: Sequence[Split]) -> InputError:
    """Returns the error that stops a job at a rejected line."""
    file = _file_of(reject, block, splits)
    if reject.reason == TOO_LONG:
        return InputError(
            f'{file.path}: the line that starts at byte {reject.offset} has {reject.size} bytes, '
            f'more than the {block.max_line_bytes} of --max-line-size; give a larger '
            '--max-line-size, or leave such lines out with --on-error=skip'
        )
    if reject.reason == INVALID_UTF8:
        return InputError(
            f'{file.path}: invalid UTF-8 at byte {reject.position}, in the line that starts at '
            f'byte {reject.offset}; convert the file to UTF-8 or mend the line'
        )
    return InputError(
        f'{file.path}: the line at byte {reject.offset} has too few columns for '
        f'--columns {",".join(map(str, block.columns))}: {_shown(reject.line)}; '
        'mend the line or choose other columns'
    )


def _file_of(reject: Reject, block: Block, splits: Sequence[Split]) -> CorpusFile:
    split = next(split for split in splits if split.name == block.split)
    return (split.targets if reject.side else split.sources)[block.place]


def _json_line(reject: Reject, name: str) -> bytes:
    fields = {'file': name, 'offset': reject.offset}
    what, data = 'line', reject.line
    if reject.reason == TOO_LONG:
        fields['bytes'] = reject.size
        what, data = 'beginning', _whole_characters(data, reject.size)
    try:
        fields[what] = data.decode()
    except UnicodeDecodeError:
        fields[f'{what}_base64'] = base64.b64encode(data).decode()
    return json.dumps(fields, ensure_ascii=False).encode() + b'\n'


def _whole_characters(beginning: bytes, size: int) -> bytes:
    """A line's first bytes, without a last character that was cut; as they are if not UTF-8."""
    try:
        beginning.decode()
    except UnicodeDecodeError as error:
        if len(beginning) < size and error.reason == 'unexpected end of data':
            return beginning[: error.start]
    return beginning


def _shown(line: bytes) -> str:
    text = line.decode('utf-8', 'replace')
    return repr(text if len(text) <= 60 else text[:57] + '...')
