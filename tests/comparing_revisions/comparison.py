"""Two folders of results compared file by file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

EQUAL, RENUMBERED, DIFFERENT, MISSING, ADDED = (
    'equal',
    'equal but for the number of the format',
    'different',
    'missing',
    'added',
)


@dataclass(frozen=True)
class Compared:
    """A file that one or both revisions have made."""

    name: str
    state: str  # EQUAL, RENUMBERED, DIFFERENT, MISSING or ADDED
    note: str = ''

    @property
    def is_expected(self) -> bool:
        return self.state in (EQUAL, RENUMBERED)


def compare_results(before: Path, now: Path) -> list[Compared]:
    """Compares what two revisions made of one job.

    Args:
        before: the job's folder of the other revision.
        now: that of this checkout.
    """
    old_files, new_files = _files(before), _files(now)
    compared = []
    for name in sorted(old_files):
        if name not in new_files:
            compared.append(Compared(name, MISSING))
            continue
        old, new = old_files[name].read_bytes(), new_files.pop(name).read_bytes()
        if old == new:
            compared.append(Compared(name, EQUAL))
        elif name.endswith('tokbeam.json') and _without_format(old) == _without_format(new):
            compared.append(Compared(name, RENUMBERED))
        else:
            compared.append(Compared(name, DIFFERENT, _first_difference(old, new)))
    return compared + [Compared(name, ADDED) for name in sorted(new_files)]


def _files(folder: Path) -> dict[str, Path]:
    """All files but the records of a run, which hold times, by their names below a folder."""
    return {
        str(path.relative_to(folder)): path
        for path in folder.rglob('*')
        if not path.is_dir() and not path.name.endswith('tokbeam.run.json')
    }


def _without_format(manifest: bytes) -> bytes:
    fields = json.loads(manifest)
    fields.pop('format', None)
    return f'{json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False)}\n'.encode()


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
        counts = dict.fromkeys((EQUAL, RENUMBERED, DIFFERENT, MISSING, ADDED), 0)
        for each in compared:
            counts[each.state] += 1
        said = ', '.join(f'{count} {state}' for state, count in counts.items() if count)
        yield f'{job:{width}}  {said or "nothing made"}'
        for each in compared:
            if show_all or each.state not in (EQUAL, RENUMBERED):
                yield f'{"":{width}}    {each.state:9}  {each.name}  {each.note}'.rstrip()
