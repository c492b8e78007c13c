"""The differences that a change is meant to make: read from a file, and matched with those found.

`expected_differences.toml` says of which revision they are, and has an entry for each of them:

    against = "b328c45"               # the last commit before the change

    [[expected]]
    reason = "The rule of byte-level schemes is called another name, since lines end otherwise."
    jobs = "*.bpe*"                   # default: all
    files = "*tokbeam.json"           # default: all
    fields = ["normalizer.name"]      # of manifests and outcome.json; without it: whole files
    before = "raw-lines"              # of a field; default: any value
    now = "own-lines"

In all of these `*` stands for any text. Without `fields`, `kind` may be "different", "missing" or "added".
How a command ended is in `outcome.json`, with the fields `status` and `sentence`.

What follows from expected differences needs no entry: in a manifest, sizes and checksums of files that
differ as expected, the index of such a shard, and the root of a folder without other differences.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from .comparison import ADDED, DIFFERENT, FIELD, MISSING, Difference

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_name('expected_differences.toml')

FOLLOWS = 'follows from others'

_RECORD_OF_FILE = re.compile(
    r'(?:files|rejected|index)\.(?P<made>.+)'
    r'|(?:inputs|vocabularies)\.(?:.+\.beside\.)?(?P<read>.+)'
    r'\.(?:bytes|crc32c|sha256|size)'
)
"""A field of a manifest that follows from a file's bytes. Of what a job read, other fields do not."""


@dataclass(frozen=True)
class Expected:
    """An entry of the file; see the module."""

    reason: str
    jobs: str = '*'
    files: str = '*'
    kind: str | None = None
    fields: Sequence[str] = ()
    before: str = '*'
    now: str = '*'

    def __post_init__(self):
        if not self.reason.strip():
            raise ValueError('an entry has no reason')
        if isinstance(self.fields, str):
            raise ValueError('fields is a list of patterns')
        object.__setattr__(self, 'fields', tuple(self.fields))  # a TOML list has no hash
        if self.kind not in (None, DIFFERENT, MISSING, ADDED) or (self.kind and self.fields):
            raise ValueError(f'kind {self.kind!r}: without fields, different, missing or added')
        if not self.fields and (self.before, self.now) != ('*', '*'):
            raise ValueError('before and now are of fields')

    def explains(self, job: str, difference: Difference) -> bool:
        """Returns whether a difference in the results of a job is this one."""
        if not (_matches(self.jobs, job) and _matches(self.files, difference.file)):
            return False
        if difference.kind != FIELD:
            return not self.fields and self.kind in (None, difference.kind)
        return (
            any(_matches(field, difference.field) for field in self.fields)
            and _matches(self.before, difference.before)
            and _matches(self.now, difference.now)
        )


def read_expected(path: Path = FILE) -> tuple[str, list[Expected]]:
    """Returns the revision that the entries of a file are about, and the entries.

    Raises:
        ValueError: it is not as the module says.
    """
    content: dict[str, Any] = tomllib.loads(path.read_text())
    try:
        revision, entries = content.pop('against'), content.pop('expected', [])
        read = [Expected(**entry) for entry in entries]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f'{path}: {error}') from error
    if content:
        raise ValueError(f'{path} has unknown keys: {", ".join(content)}')
    return revision, read


def explain(
    found: Mapping[str, Sequence[Difference]],
    entries: Sequence[Expected],
    uses: Mapping[str, set[str]],
) -> dict[tuple[str, Difference], Expected | str | None]:
    """Returns for each difference of each job what explains it: an entry, FOLLOWS, or None.

    Args:
        found: the differences by job.
        entries: the expected ones; the first that explains a difference counts.
        uses: by job, the jobs whose results it reads.
    """
    explained: dict[tuple[str, Difference], Expected | str | None] = {
        (job, each): next((entry for entry in entries if entry.explains(job, each)), None)
        for job, differences in found.items()
        for each in differences
    }
    # Files whose content, or being there, differs as expected. Manifests are not among them, so that an
    # entry for a field of one explains nothing about others.
    files = {
        job: {each.file for each in differences if each.kind != FIELD and explained[job, each]}
        for job, differences in found.items()
    }
    for job, differences in found.items():
        for each in differences:
            if not explained[job, each] and _is_index_of(each, files[job]):
                explained[job, each] = FOLLOWS
                files[job].add(each.file)
    for job, differences in found.items():
        read = [file for name in uses.get(job, ()) for file in files.get(name, ())]
        for each in differences:
            if not explained[job, each] and _says_what_a_file_is(each, files[job], read):
                explained[job, each] = FOLLOWS
    for job, differences in found.items():
        for each in differences:
            if not explained[job, each] and each.kind == FIELD and each.field == 'root':
                folder = PurePosixPath(each.file).parent
                others = [
                    other
                    for other in differences
                    if other != each and folder in PurePosixPath(other.file).parents
                ]
                if others and all(explained[job, other] for other in others):
                    explained[job, each] = FOLLOWS
    return explained


def _is_index_of(difference: Difference, files: set[str]) -> bool:
    path = PurePosixPath(difference.file)
    return path.parent.name == 'index' and str(path.parent.parent / path.name) in files


def _says_what_a_file_is(difference: Difference, files: set[str], read: Sequence[str]) -> bool:
    match = _RECORD_OF_FILE.fullmatch(difference.field)
    if difference.kind != FIELD or not match:
        return False
    folder = PurePosixPath(difference.file).parent
    if match['made']:
        return any(f'{folder / match["made"]}'.startswith(f'{file}.') for file in files)
    name = match['read']
    return str(folder / name) in files or any(f'/{file}'.endswith(f'/{name}') for file in read)


def _matches(pattern: str, text: str) -> bool:
    return bool(re.fullmatch('.*'.join(map(re.escape, pattern.split('*'))), text, re.DOTALL))
