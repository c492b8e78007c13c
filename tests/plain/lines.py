"""The rules of lines: plain text, columns, aligned files, labels.

'\\n' or '\\r\\n' ends a line. A byte order mark before the first line of a file is not text. A line that is
longer than allowed is rejected as `too_long`, one that is not UTF-8 as `invalid_utf8`, one with too few
columns as `missing_column`. The normalizer makes text of what is left, and a row without text is empty.
"""

import base64
import codecs
import json
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tokcore.text.normalizers import (
    STRIPPED_LINES,
    T2T_LINES,
    UNSTRIPPED_LINES,
    StrippedLines,
    UnstrippedLines,
)
from tokcore.text.rows import Normalizer

NORMALIZERS: dict[Normalizer, Callable[[str], str]] = {
    UNSTRIPPED_LINES: lambda text: text,
    UnstrippedLines('NFKC'): lambda text: unicodedata.normalize('NFKC', text),
    STRIPPED_LINES: str.strip,
    StrippedLines('\r\n '): lambda text: text.strip('\r\n '),
    T2T_LINES: lambda text: text.replace('\r', '').strip(),
}

REASONS = (
    'too_long', 'invalid_utf8', 'missing_column', 'invalid_json', 'missing_field', 'not_a_string',
    'lone_surrogate', 'null', 'invalid_csv', 'outside_segment', 'unmatched_segment', 'wrong_type',
    'unknown_label',
)  # fmt: skip
"""For several reasons against the files of a pair, the first one counts."""

_KEPT = 1000  # bytes of a line that is too long


@dataclass(frozen=True)
class Reject:
    reason: str
    file: str
    offset: int
    line: bytes
    identity: str = 'offset'
    number: int | None = None  # of its line, where results show it
    damage: int = 0  # the position in the line of its first byte that is not UTF-8


@dataclass
class SplitRows:
    """What the lines of one split become: lines = rows + empty + missing_side + rejects."""

    lines: int = 0
    rows: list[tuple[str, ...]] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)  # of the rows
    empty: int = 0
    missing_side: int = 0
    rejects: list[Reject] = field(default_factory=list)

    def add(
        self, offset: int, cells: Sequence[str], rejects: Sequence[Reject] = (),
        normalizer: Normalizer = T2T_LINES,
    ) -> None:  # fmt: skip
        """Adds one line: its first reject in the order of reasons, else a row, or an empty one."""
        self.lines += 1
        cells = [NORMALIZERS[normalizer](cell) if cell.strip() else '' for cell in cells]
        if rejects:
            self.rejects.append(min(rejects, key=lambda each: REASONS.index(each.reason)))
        elif all(cells):
            self.rows.append(tuple(cells))
            self.offsets.append(offset)
        else:
            self.empty += 1

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
    """Returns each line without its line feed, after the offset where it begins."""
    lines = text.split(b'\n')
    if not lines[-1]:
        lines.pop()
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    return list(zip(offsets, lines))


def without_mark(offset: int, line: bytes) -> bytes:
    """Returns what may be text of a line that begins at an offset of its file."""
    return line if offset else line.removeprefix(codecs.BOM_UTF8)


def judged_lines(
    file: NamedText, longest: int, normalizer: Normalizer
) -> Iterator[tuple[int, bytes, Reject | None]]:
    """Yields the offset of each line, its text in bytes, and its reject if it is too long or not UTF-8."""
    for offset, line in lines_of(file.text):
        raw = without_mark(offset, line)
        if offset + len(line) < len(file.text):
            raw = raw.removesuffix(b'\r')
        if len(line) > longest:
            yield offset, b'', Reject('too_long', file.name, offset, line)
        elif (damage := damage_of(raw, normalizer)) is not None:
            damage += len(line) - len(without_mark(offset, line))
            yield offset, b'', Reject('invalid_utf8', file.name, offset, line, damage=damage)
        else:
            yield offset, raw.replace(b'\r', b'') if normalizer is T2T_LINES else raw, None


def damage_of(line: bytes, normalizer: Normalizer) -> int | None:
    """Returns where a line is not UTF-8; Tensor2Tensor's rule drops each '\\r' before."""
    kept = [at for at, byte in enumerate(line) if normalizer is not T2T_LINES or byte != 13]
    try:
        bytes(line[at] for at in kept).decode()
    except UnicodeDecodeError as error:
        return kept[error.start]
    return None


def single_rows(
    files: Sequence[NamedText], columns: Sequence[int] | None, longest: int,
    keep_tabs: bool = False, normalizer: Normalizer = T2T_LINES,
) -> SplitRows:  # fmt: skip
    """Returns the rows of plain lines, or of columns."""
    found = SplitRows()
    for file in files:
        for offset, raw, reject in judged_lines(file, longest, normalizer):
            cells = [raw.decode()]
            if columns is not None and cells[0].strip():
                fields = cells[0].split('\t', max(columns) if keep_tabs else -1)
                if len(fields) <= max(columns):
                    line = file.text[offset:].split(b'\n')[0]
                    reject = reject or Reject('missing_column', file.name, offset, line)
                else:
                    cells = [fields[column] for column in columns]
            found.add(offset, cells, [reject] if reject else [], normalizer)
    return found


def paired_rows(
    sources: Sequence[NamedText], targets: Sequence[NamedText], longest: int,
    normalizer: Normalizer = T2T_LINES,
) -> SplitRows:  # fmt: skip
    """Returns the rows of aligned files, which have as many lines each."""
    found = SplitRows()
    for files in zip(sources, targets, strict=True):
        for pair in zip(*(judged_lines(each, longest, normalizer) for each in files), strict=True):
            rejects = [reject for _, _, reject in pair if reject]
            found.add(pair[0][0], [raw.decode() for _, raw, _ in pair], rejects, normalizer)
    return found


def labelled_rows(
    texts: NamedText, labels: NamedText, names: Sequence[str], longest: int,
    normalizer: Normalizer = T2T_LINES,
) -> SplitRows:  # fmt: skip
    """Returns the rows of a file of texts, whose labels are the lines of another."""
    found = SplitRows()
    lines = zip(
        judged_lines(texts, longest, normalizer),
        judged_lines(labels, longest, T2T_LINES),
        lines_of(labels.text),
        strict=True,
    )
    for (offset, raw, of_text), (start, word, of_label), (_, line) in lines:
        rejects = [reject for reject in (of_text, of_label) if reject]
        text = raw.decode()
        if text.strip() and label_of(word.decode().strip(), names) is None:
            reason = 'unknown_label' if names else 'wrong_type'
            rejects.append(Reject(reason, labels.name, start, line))
        found.add(offset, [text], rejects, normalizer)
    return found


def label_of(word: str, names: Sequence[str]) -> int | None:
    """Returns the number of a label: the index of its name, or a whole number of 64 bits."""
    if names:
        return names.index(word) if word in names else None
    digits = word[1:] if word[:1] in ('+', '-') else word
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    return int(word) if -(1 << 63) <= int(word) < 1 << 63 else None


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
    """Returns the first bytes of a line, without half a character at their end if the rest is UTF-8."""
    kept = line[:_KEPT]
    decoder = codecs.getincrementaldecoder('utf-8')()
    try:
        whole = len(decoder.decode(kept).encode())
    except UnicodeDecodeError:
        return kept
    return kept[:whole] if len(kept) < len(line) else kept
