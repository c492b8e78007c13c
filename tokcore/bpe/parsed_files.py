"""Large vocabulary files as they were parsed before: a cache on disk, beside that of kernels.

To parse a tokenizer.json of 33 MB, and to see that its merges are of its entries, takes seconds. The
result is kept as plain strings and numbers, from which a process has the same vocabulary at once. A
kept file is named by a digest of the original and of the sources of this package; a damaged one is
written again. Others cannot write to the folder; see `kernels.jit`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.errors import InputError
from tokcore.kernels.cache_folder import PART, read_cached, source_digest, write_cached

LEAST_BYTES = 1 << 20
"""Smaller files are parsed within some 50 ms, and are not kept."""

_VARIABLE = 'TOKBEAM_VOCABULARY_CACHE_MB'
_DEFAULT_MB = 512  # some 50 vocabularies

_KEPT_NAME = re.compile(rf'[0-9a-f]{{64}}-[0-9a-f]{{16}}|{re.escape(PART)}\w+')


class ParsedFile(NamedTuple):
    """What a file of byte pair encoding holds.

    Attributes:
        rest: the rest of it, as JSON.
        entries: ids by entry.
        merges: (left, right) by rank; their parts and results are entries.
        merge_ids: int32[merges, 3]: the ids of both parts and of the result of each.
    """

    rest: bytes
    entries: dict[str, int]
    merges: Sequence[tuple[str, str]]
    merge_ids: np.ndarray


class _KeptMerges(Sequence[tuple[str, str]]):
    """The merges of a kept file, whose strings are put together once they are asked for.

    Encoding takes `merge_ids` alone, and half a million pairs take a quarter of a second.
    """

    def __init__(self, entries: Sequence[str], parts: np.ndarray):
        """Takes all entries, and int64[merges, 2]: the numbers of those that are parts."""
        self._entries = entries
        self._parts = parts

    @functools.cached_property
    def _pairs(self) -> tuple[tuple[str, str], ...]:
        columns = self._parts.T.tolist()
        lefts, rights = (map(self._entries.__getitem__, column) for column in columns)
        return tuple(zip(lefts, rights, strict=True))

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index):
        return self._pairs[index]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._pairs == tuple(other)


def parsed_file(data: bytes) -> ParsedFile | None:
    """Returns what a file holds if it was kept; None if it has to be parsed."""
    return _kept(data) if LEAST_BYTES <= len(data) <= most_bytes() else None


def keep_parsed(data: bytes, parsed: Callable[[], ParsedFile]) -> None:
    """Keeps what a file holds for other processes, if it is large and not kept yet."""
    if not LEAST_BYTES <= len(data) <= most_bytes() or _kept(data) is not None:
        return
    folder = _folder()
    if folder is None:
        return
    path = folder / _name(data)
    # The vocabulary is there without the cache, so a full disk is not a failure.
    with contextlib.suppress(OSError):
        write_cached(path, _packed(parsed()))
        _remove_oldest()
    _kept.cache_clear()


def most_bytes() -> int:
    """Returns how much all kept files may take together; those not used for longest are removed.

    Raises:
        InputError: the environment variable for it is not a number.
    """
    text = os.environ.get(_VARIABLE, str(_DEFAULT_MB))
    if not text.isdecimal():
        raise InputError(
            f'{_VARIABLE} is {text!r:.40}; give the megabytes that parsed vocabularies may take on '
            'disk, or 0 to keep none'
        )
    return int(text) << 20


def parsed_files() -> Iterator[tuple[pathlib.Path, list[pathlib.Path]]]:
    """Yields the folder of kept files with their paths, also of those that were not written to the end."""
    folder = _folder()
    if folder is not None:
        # The user may have chosen a folder above that has other things by this name.
        yield folder, [path for path in folder.iterdir() if _KEPT_NAME.fullmatch(path.name)]


# Schemes, options and the vocabulary ask for it one after the other.
@functools.lru_cache(maxsize=1)
def _kept(data: bytes) -> ParsedFile | None:
    folder = _folder()
    if folder is None:
        return None
    path = folder / _name(data)
    content = read_cached(path)
    if content is None:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return _unpacked(content)


def _name(data: bytes) -> str:
    # Many modules parse, and one entry that they put elsewhere would be wrong ids.
    return f'{hashlib.sha256(data).hexdigest()}-{source_digest()}'


@functools.cache
def _folder() -> pathlib.Path | None:
    from tokcore.kernels.cache_folder import CACHE_FOLDER, private_folder

    if CACHE_FOLDER is None:
        return None
    try:
        return private_folder(CACHE_FOLDER.parent / 'vocabularies')
    except OSError:
        return None


def _packed(parsed: ParsedFile) -> bytes:
    parts = [
        parsed.rest,
        ''.join(parsed.entries).encode('utf-8', 'surrogatepass'),
        *(
            np.array(numbers, '<i4').tobytes()
            for numbers in (
                [*map(len, parsed.entries)], [*parsed.entries.values()], parsed.merge_ids,
            )
        ),
    ]  # fmt: skip
    return b''.join([np.array([*map(len, parts)], '<u8').tobytes(), *parts])


def _unpacked(content: bytes) -> ParsedFile:
    sizes = np.frombuffer(content, '<u8', 5)
    bounds = [*itertools.accumulate(sizes.tolist(), initial=sizes.nbytes)]
    parts = [content[start:end] for start, end in zip(bounds, bounds[1:], strict=False)]
    rest, text, *columns = parts
    lengths, ids, merge_ids = (np.frombuffer(column, '<i4').astype(np.int32) for column in columns)
    merge_ids = merge_ids.reshape(-1, 3)
    ends = np.cumsum(lengths).tolist()
    joined = text.decode('utf-8', 'surrogatepass')
    entries = [joined[start:end] for start, end in zip([0, *ends], ends)]
    index_of = np.zeros(1 + ids.max(initial=-1), np.int64)
    index_of[ids] = np.arange(len(ids))
    return ParsedFile(
        rest,
        dict(zip(entries, ids.tolist(), strict=True)),
        _KeptMerges(entries, index_of[merge_ids[:, :2]]),
        merge_ids,
    )


def _remove_oldest() -> None:
    """Removes files, also those of writers that were killed, until the rest is within the bound."""
    states = {path: path.stat() for _, paths in parsed_files() for path in paths}
    size = sum(state.st_size for state in states.values())
    for path in sorted(states, key=lambda path: states[path].st_mtime_ns):
        if size <= most_bytes():
            break
        path.unlink()
        size -= states[path].st_size
