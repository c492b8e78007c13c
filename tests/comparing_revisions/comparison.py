"""Two folders of results compared file by file, and those of JSON field by field."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DIFFERENT, MISSING, ADDED, FIELD = 'different', 'missing', 'added', 'field'

_ABSENT = '(absent)'


@dataclass(frozen=True)
class Difference:
    """A file that only one revision has made, or that differs; or a field of a JSON file that differs.

    Attributes:
        file: its path in the job's folder.
        kind: DIFFERENT, MISSING, ADDED or FIELD.
        field: of FIELD, the keys that lead to the value, with dots between them. Where objects of a
            list have different names, such a name is the key, else the index.
        before: of FIELD, the value of the other revision, as JSON unless it is a string.
        now: that of this checkout.
    """

    file: str
    kind: str
    field: str = ''
    before: str = ''
    now: str = ''

    def __str__(self) -> str:
        if self.kind == FIELD:
            return f'{self.file}: {self.field}: {_shortened(self.before)} -> {_shortened(self.now)}'
        shown = f'{self.file}: {self.kind}'
        return f'{shown}, {self.before} and {self.now}' if self.kind == DIFFERENT else shown


@dataclass(frozen=True)
class Compared:
    """The results of one job.

    Attributes:
        equal: the names of files that are the same.
        differences: in the order of files and fields.
    """

    equal: tuple[str, ...]
    differences: tuple[Difference, ...]


def compare_results(before: Path, now: Path) -> Compared:
    """Compares what two revisions made of one job.

    Args:
        before: the job's folder of the other revision.
        now: that of this checkout.
    """
    old_files, new_files = _files(before), _files(now)
    equal: list[str] = []
    differences: list[Difference] = []
    for name in sorted({*old_files, *new_files}):
        if name not in new_files:
            differences.append(Difference(name, MISSING))
        elif name not in old_files:
            differences.append(Difference(name, ADDED))
        else:
            old, new = old_files[name].read_bytes(), new_files[name].read_bytes()
            found = [*_differences(name, old, new)] if old != new else []
            differences += found
            if not found:
                equal.append(name)
    return Compared(tuple(equal), tuple(differences))


def _files(folder: Path) -> dict[str, Path]:
    """All files but the records of a run, which hold times, by their names below a folder."""
    return {
        str(path.relative_to(folder)): path
        for path in folder.rglob('*')
        if not path.is_dir() and not path.name.endswith('tokbeam.run.json')
    }


def _differences(name: str, before: bytes, now: bytes) -> Iterator[Difference]:
    """Yields the differing fields of a manifest or outcome, unless its bytes differ in another way."""
    if not name.endswith(('tokbeam.json', 'outcome.json')):
        yield _first_difference(name, before, now)
        return
    old, new = dict(_fields(json.loads(before))), dict(_fields(json.loads(now)))
    differing = [field for field in {**old, **new} if old.get(field) != new.get(field)]
    for field in sorted(differing):
        yield Difference(name, FIELD, field, old.get(field, _ABSENT), new.get(field, _ABSENT))
    if not differing:  # the order of keys, or white space
        yield _first_difference(name, before, now)


def _fields(value: object, path: str = '') -> Iterator[tuple[str, str]]:
    children: dict[str, object] = {}
    if isinstance(value, dict):
        children = value
    elif isinstance(value, list):
        names = [each.get('name') if isinstance(each, dict) else None for each in value]
        are_names = all(isinstance(name, str) for name in names) and len({*names}) == len(names)
        keys = names if are_names else range(len(value))
        children = {str(key): each for key, each in zip(keys, value, strict=True)}
    if not children:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    for key, child in children.items():
        yield from _fields(child, f'{path}.{key}' if path else key)


def _first_difference(name: str, before: bytes, now: bytes) -> Difference:
    size = min(len(before), len(now))
    differs = np.frombuffer(before, np.uint8)[:size] != np.frombuffer(now, np.uint8)[:size]
    offset = int(differs.argmax()) if differs.any() else size
    old, new = (
        f'{data[offset : offset + 40]!r} from byte {offset} of {len(data)}'
        for data in (before, now)
    )
    return Difference(name, DIFFERENT, '', old, new)


def _shortened(value: str) -> str:
    return value if len(value) <= 200 else f'{value[:100]} ... {value[-97:]}'
