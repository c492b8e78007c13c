"""The rules of lines once more, as plainly as they can be said.

A line ends at a line feed. A byte order mark before the first of a file is not text. One longer than may be is left out as `too_long`; so is one that is not
UTF-8 once every carriage return is dropped, as `invalid_utf8`, and one with too few columns, as
`missing_column`. What is left is stripped, and a line or pair without text is `empty`.
"""

import base64
import codecs
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

_KEPT = 1000  # bytes of a line that is too long

REASONS = (
    'too_long', 'invalid_utf8', 'missing_column', 'invalid_json', 'missing_field', 'not_a_string',
    'lone_surrogate', 'null', 'invalid_csv', 'outside_segment', 'unmatched_segment',
)  # fmt: skip


@dataclass(frozen=True)
class Reject:
    reason: str
    file: str
    offset: int
    line: bytes
    identity: str = 'offset'
    number: int | None = None  # of its line, where results show it


@dataclass
class SplitRows:
    """What the lines of one split become: lines = rows + empty + missing_side + rejects."""

    lines: int = 0
    rows: list[tuple[str, ...]] = field(default_factory=list)
    empty: int = 0
    missing_side: int = 0
    rejects: list[Reject] = field(default_factory=list)

    def tally(self) -> dict[str, int]:
        """Returns the counts that a manifest has of a split."""
        return {
            'lines': self.lines,
            'examples': len(self.rows),
            'empty': self.empty,
            'missing_side': self.missing_side,
            **{reason: sum(each.reason == reason for each in self.rejects) for reason in REASONS},
        }


@dataclass(frozen=True)
class NamedText:
    """A file's name, as results show it, and its text."""

    name: str
    text: bytes


def lines_of(text: bytes) -> list[tuple[int, bytes]]:
    """Returns each line without its line feed, after the place where it begins."""
    lines = text.split(b'\n')
    if not lines[-1]:
        lines.pop()
    places = [0]
    for line in lines:
        places.append(places[-1] + len(line) + 1)
    return list(zip(places, lines))


def without_mark(offset: int, line: bytes) -> bytes:
    """Returns what may be text of a line that begins at a place of its file."""
    return line if offset else line.removeprefix(codecs.BOM_UTF8)


def single_rows(
    files: Sequence[NamedText], columns: Sequence[int] | None, longest: int
) -> SplitRows:
    """Returns the rows of plain lines, or of columns."""
    found = SplitRows()
    for file in files:
        for offset, line in lines_of(file.text):
            found.lines += 1
            reason = _reason(line, longest)
            text = '' if reason else _text(without_mark(offset, line))
            cells = [text]
            if columns is not None and text.strip():
                fields = text.split('\t')
                if len(fields) <= max(columns):
                    reason = 'missing_column'
                else:
                    cells = [fields[column] for column in columns]
            add_row(found, cells, [Reject(reason, file.name, offset, line)] if reason else [])
    return found


def paired_rows(
    sources: Sequence[NamedText], targets: Sequence[NamedText], longest: int
) -> SplitRows:
    """Returns the rows of aligned files, which have as many lines each."""
    found = SplitRows()
    for files in zip(sources, targets, strict=True):
        for pair in zip(*(lines_of(file.text) for file in files), strict=True):
            found.lines += 1
            bad = [
                Reject(reason, file.name, offset, line)
                for file, (offset, line) in zip(files, pair)
                if (reason := _reason(line, longest))
            ]
            # A pair is left out once: for the earlier reason, and by that for the source.
            bad.sort(key=lambda reject: REASONS.index(reject.reason))
            add_row(found, [] if bad else [_text(without_mark(*line)) for line in pair], bad[:1])
    return found


def json_lines(rejects: Sequence[Reject], reason: str) -> list[dict]:
    """Returns the objects that the file of one reason must hold."""
    objects = []
    for reject in rejects:
        if reject.reason == reason:
            shown = {'file': reject.file, reject.identity: reject.offset}
            if reject.number is not None:
                shown['number'] = reject.number
            what, kept = 'line', reject.line
            if reason == 'too_long':
                shown['bytes'] = len(reject.line)
                what, kept = 'beginning', _beginning(reject.line)
            try:
                shown[what] = kept.decode()
            except UnicodeDecodeError:
                shown[f'{what}_base64'] = base64.b64encode(kept).decode()
            objects.append(shown)
    return objects


def parsed_json_lines(data: bytes) -> list[dict]:
    """Returns the objects of such a file."""
    return [json.loads(line) for line in data.split(b'\n')[:-1]]


def _beginning(line: bytes) -> bytes:
    """The first bytes of a line, and not half a character where that is what ends them."""
    kept = line[:_KEPT]
    if len(kept) < len(line):
        for cut in range(4):
            try:
                kept[: len(kept) - cut].decode()
            except UnicodeDecodeError:
                continue
            whole = kept[: len(kept) - cut]
            rest = kept[len(whole) :]
            return whole if _could_go_on(rest) else kept
    return kept


def _could_go_on(rest: bytes) -> bool:
    """Whether bytes are none, or the beginning of a character."""
    try:
        codecs.getincrementaldecoder('utf-8')().decode(rest)
    except UnicodeDecodeError:
        return False
    return True


def add_row(found: SplitRows, cells: Sequence[str], rejects: Sequence[Reject]) -> None:
    """Counts one line: as left out if there are rejects, else as a row, or as empty."""
    cells = [cell.strip() for cell in cells]
    if rejects:
        found.rejects += rejects
    elif all(cells):
        found.rows.append(tuple(cells))
    else:
        found.empty += 1


def _reason(line: bytes, longest: int) -> str:
    if len(line) > longest:
        return 'too_long'
    try:
        _text(line)
    except UnicodeDecodeError:
        return 'invalid_utf8'
    return ''


def _text(line: bytes) -> str:
    return line.replace(b'\r', b'').decode('utf-8')
