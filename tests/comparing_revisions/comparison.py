"""Two folders of results compared file by file, with what is meant to have changed between them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from new_records import without_new_records

EQUAL, MOVED, DIFFERENT, MISSING, ADDED = 'equal', 'moved', 'different', 'missing', 'added'
RECORDED = 'equal but for new records'


@dataclass(frozen=True)
class Move:
    """A file that has another name since some revision; its bytes are the same.

    `pattern` is of its former name below its job's folder, and `name` the present one, as for
    `re.Match.expand`. What has no such name, as in revisions since, is not concerned.
    """

    command: str
    pattern: str
    name: str
    why: str

    def __call__(self, command: str, name: str) -> str:
        found = re.fullmatch(self.pattern, name) if command == self.command else None
        return found.expand(self.name) if found else name


MOVES = (
    Move(
        'count', r'rejected/(.+\.jsonl)', r'counts.rejected/\1',
        'rejected lines of several counts in one folder never meet (after 6b30307)',
    ),
    Move(
        'vocab', r'rejected/(.+\.jsonl)', r'vocab.rejected/\1',
        'rejected lines of several vocabularies in one folder never meet (after 6b30307)',
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """A file that one or both have made."""

    name: str
    state: str  # EQUAL, MOVED, RECORDED, DIFFERENT, MISSING or ADDED
    note: str = ''

    @property
    def is_expected(self) -> bool:
        return self.state in (EQUAL, MOVED, RECORDED)


def compare_results(
    before: Path,
    now: Path,
    command: str,
    moves: Sequence[Move] = MOVES,
    new_records: bool = False,
) -> list[Compared]:
    """Compares what two revisions made of one job.

    Args:
        before: the job's folder of the other revision.
        now: that of this checkout.
        command: what was run.
        moves: the names that are meant to have changed.
        new_records: whether what is recorded since there are schemes may differ.
    """
    earlier, present = _files(before), _files(now)
    compared = []
    for name in sorted(earlier):
        place, why = name, ''
        for move in moves:
            if move(command, name) != name:
                place, why = move(command, name), move.why
        if place not in present:
            compared.append(Compared(name, MISSING, f'expected as {place}' if why else ''))
            continue
        data, found = earlier[name].read_bytes(), present.pop(place).read_bytes()
        if data == found:
            moved = Compared(name, MOVED, f'{place}: {why}')
            compared.append(moved if why else Compared(name, EQUAL))
            continue
        renamed = _renamed(data, command, moves) if name.endswith('tokbeam.json') else None
        if renamed is not None and renamed[0] == found:
            compared.append(Compared(name, MOVED, f'names in it: {renamed[1]}'))
            continue
        data = renamed[0] if renamed else data
        if new_records and without_new_records(name, data) == without_new_records(place, found):
            compared.append(Compared(name, RECORDED))
        else:
            compared.append(Compared(name, DIFFERENT, _first_difference(data, found)))
    return compared + [Compared(name, ADDED) for name in sorted(present)]


def _files(folder: Path) -> dict[str, Path]:
    """All files but the records of a run, which hold times, by their names below a folder."""
    return {
        str(path.relative_to(folder)): path
        for path in folder.rglob('*')
        if not path.is_dir() and not path.name.endswith('tokbeam.run.json')
    }


def _renamed(data: bytes, command: str, moves: Sequence[Move]) -> tuple[bytes, str] | None:
    """Returns a manifest with the names that moved, and why they did; None if none has."""
    manifest = json.loads(data)
    reasons = set()
    for file in manifest.get('rejected', ()):
        for move in moves:
            name = move(command, file['name'])
            if name != file['name']:
                file['name'] = name
                reasons.add(move.why)
    if not reasons:
        return None
    text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False)
    return f'{text}\n'.encode(), '; '.join(sorted(reasons))


def _first_difference(before: bytes, now: bytes) -> str:
    size = min(len(before), len(now))
    differs = np.frombuffer(before, np.uint8)[:size] != np.frombuffer(now, np.uint8)[:size]
    place = int(differs.argmax()) if differs.any() else size
    shown = [data[place : place + 40] for data in (before, now)]
    return f'from byte {place} of {len(before)} and {len(now)}: {shown[0]!r} and {shown[1]!r}'


def table_lines(rows: Mapping[str, Sequence[Compared]], show_all: bool) -> Iterator[str]:
    """Gives the lines of a table: a job with the number of its files, and files to be named."""
    width = max(map(len, rows), default=0)
    for job, compared in rows.items():
        counts = dict.fromkeys((EQUAL, MOVED, RECORDED, DIFFERENT, MISSING, ADDED), 0)
        for each in compared:
            counts[each.state] += 1
        said = ', '.join(f'{count} {state}' for state, count in counts.items() if count)
        yield f'{job:{width}}  {said or "nothing made"}'
        for each in compared:
            if show_all or each.state not in (EQUAL, RECORDED):
                yield f'{"":{width}}    {each.state:9}  {each.name}  {each.note}'.rstrip()
