"""`cache`: what is kept on this machine for later runs, where and how large; deletes it on request.

Each kind of cache lists what is its own. Whatever else is in its folder is neither listed nor deleted.
"""

import argparse
import os
import pathlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence

from pipelines.cli.terminal import format_amount, print_lines
from pipelines.engines.progress import BYTES
from pipelines.options.folders import ALL_CACHES
from tokcore.bpe.parsed_files import parsed_files
from tokcore.kernels.jit import compiled_kernels
from tokcore.reading.manifest import copied_datasets

_KINDS: dict[str, Callable[[], Iterable[tuple[pathlib.Path, list[pathlib.Path]]]]] = {
    'kernels': compiled_kernels,
    'vocabularies': parsed_files,
    'datasets': copied_datasets,
}
"""For each kind: a function that returns folders, each with what is to be deleted of it."""


def cache(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Lists all caches, or deletes some; returns the command's status."""
    print_lines(_lines(options.delete))
    return 0


def _lines(deleted: str | None) -> Iterator[str]:
    kinds = _KINDS if deleted in (None, ALL_CACHES) else {deleted: _KINDS[deleted]}
    for kind, listed in kinds.items():
        folders = [*listed()]
        if not folders:
            yield f'no {kind} are cached'
        for folder, paths in folders:
            sizes = [size for path in paths for size in _sizes(path)]
            if deleted is not None:
                for path in paths:
                    _delete(path)
            outcome = 'deleted' if deleted is not None else 'cached'
            count = f'{len(sizes):,} files'
            yield f'{outcome}  {kind:12}  {count:>12}  {format_amount(sum(sizes), BYTES):>9}  {folder}'


def _sizes(path: pathlib.Path) -> Iterator[int]:
    if path.is_dir() and not path.is_symlink():
        for folder, _, names in os.walk(path):
            yield from (os.lstat(os.path.join(folder, name)).st_size for name in names)
    else:
        yield path.lstat().st_size


def _delete(path: pathlib.Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
