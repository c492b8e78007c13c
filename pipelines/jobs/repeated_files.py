"""Files that a corpus reads several times: mostly a mistake, which no number in the result shows."""

import collections
import functools
import logging
import os
from collections.abc import Iterable, Sequence

from pipelines.files import filesystem
from tokcore.corpus.corpus import CorpusFile, MemberFile, Split

_LOGGER = logging.getLogger(__name__)


def warn_of_repeated(splits: Iterable[Split]) -> None:
    """Logs which files a split reads several times, and which of them another split reads too.

    A file is the same under all of its names. Files that are read side by side count together, since a
    source may have several targets.
    """
    identity = functools.cache(_identity)
    readers: dict[tuple[object, ...], collections.Counter[str]] = {}
    paths: dict[tuple[object, ...], str] = {}
    for split in splits:
        if split.key_range is not None and split.name != 'train':
            continue  # its share of the training corpus is rows that no other split has
        for files in split.files:
            key = (repr(split.format), *map(identity, files))
            readers.setdefault(key, collections.Counter())[split.name] += 1
            paths.setdefault(key, ' with '.join(file.path for file in files))
    twice: dict[str, list[str]] = {}
    shared: dict[tuple[str, str], list[str]] = {}
    for key, counts in readers.items():
        first, *others = counts
        for other in others:
            shared.setdefault((first, other), []).append(paths[key])
        for split_name, count in counts.items():
            if count > 1:
                twice.setdefault(split_name, []).append(paths[key])
    for split_name, repeated in twice.items():
        _LOGGER.warning(
            '%s is read more than once for %s, and each of its rows is in the result as often; name '
            'it once, if that is not wanted',
            _shown(repeated),
            split_name,
        )
    for (first, other), repeated in shared.items():
        _LOGGER.warning(
            '%s is read for %s and for %s; give other files, if these are to have no row in common',
            _shown(repeated),
            first,
            other,
        )


def _shown(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return paths[0]
    return f'each of {len(paths):,} files, the first of them {paths[0]},'


def _identity(file: CorpusFile) -> object:
    """Returns what is the same for all names of a file, and for no other file."""
    stored = file.archive if isinstance(file, MemberFile) else file
    if filesystem.is_shared(stored.path):
        return file.path
    state = os.stat(stored.path)
    return state.st_dev, state.st_ino, file.path.removeprefix(stored.path)
