"""Runs random cases; each depends only on the seed, its kind and its number."""

import random
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from forked_commands import Lane

from .archive_cases import attack_archives
from .content_cases import attack_contents
from .count_cases import attack_counts
from .filter_cases import attack_filters
from .format_cases import attack_damaged_files, attack_formats
from .input_cases import attack_inputs
from .limit_cases import attack_limits
from .link_cases import attack_with_links
from .option_cases import attack_options
from .path_cases import attack_paths
from .reader_cases import (
    attack_parquet_shards,
    attack_reader_manifests,
    attack_reader_states,
    attack_record_shards,
    attack_text_batches,
)
from .record_cases import attack_manifests, attack_run_records, make_results
from .room import Room
from .tokenizer_cases import attack_tokenizer_files
from .vocabulary_cases import attack_vocabularies

KINDS: dict[str, Callable[[Room, random.Random], None]] = {
    'inputs': attack_inputs,
    'formats': attack_formats,
    'damaged files': attack_damaged_files,
    'archives': attack_archives,
    'contents': attack_contents,
    'filters': attack_filters,
    'vocabularies': attack_vocabularies,
    'tokenizer files': attack_tokenizer_files,
    'counts': attack_counts,
    'manifests': attack_manifests,
    'run records': attack_run_records,
    'options': attack_options,
    'paths': attack_paths,
    'limits': attack_limits,
    'links': attack_with_links,
    'record shards': attack_record_shards,
    'parquet shards': attack_parquet_shards,
    'text batches': attack_text_batches,
    'reader manifests': attack_reader_manifests,
    'reader states': attack_reader_states,
}

_NEEDING_RESULTS = {'counts', 'manifests', 'run records'}
_COMPILING_SECONDS = 300


@dataclass(frozen=True)
class Played:
    """A case that was run, and its violation; '' if there is none."""

    kind: str
    seed: int
    number: int
    found: str
    commands: int
    seconds: float

    def __str__(self) -> str:
        again = f'--kinds {self.kind!r} --seed {self.seed} --first {self.number} --cases 1'
        return f'python -m tests.faults.fuzzing {again}\n{self.found}'


def play(
    lanes: Sequence[Lane],
    kinds: Sequence[str],
    seed: int,
    cases: int,
    scratch: Path,
    first: int = 0,
    keep: Path | None = None,
) -> Iterator[Played]:
    """Plays cases of each kind, one in each lane at once, and yields them in their order.

    Args:
        lanes: run the commands.
        kinds: of `KINDS`.
        seed: from which all is drawn.
        cases: how many of each kind.
        scratch: an empty folder.
        first: the number of the first one.
        keep: the folder that failing cases are kept in; None keeps none.
    """
    free = list(lanes)
    made = scratch / 'made'
    made.mkdir()
    if not _NEEDING_RESULTS.isdisjoint(kinds):
        make_results(lambda words: _make(free[0], words, made), made)

    def play_one(kind: str, number: int) -> Played:
        lane = free.pop()
        folder = scratch / f'{kind}-{number}'
        folder.mkdir()
        try:
            return _play(kind, seed, number, Room(folder, lane, made), keep)
        finally:
            free.append(lane)
            shutil.rmtree(folder)

    with ThreadPoolExecutor(len(lanes)) as pool:
        played = [
            pool.submit(play_one, kind, number)
            for number in range(first, first + cases)
            for kind in kinds
        ]
        try:
            for each in played:
                yield each.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _make(lane: Lane, words: Sequence[str], folder: Path) -> None:
    ended = lane.run(words, folder, seconds=_COMPILING_SECONDS)
    assert ended.status == 0, ended.stderr


def _play(kind: str, seed: int, number: int, room: Room, keep: Path | None) -> Played:
    started = time.monotonic()
    name = f'{kind}-{seed}-{number}'
    found = ''
    try:
        KINDS[kind](room, random.Random(name))
    except Exception as error:
        what = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
        found = '\n'.join([*room.history, what])
        if keep is not None:
            kept = keep / name
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(room.folder, kept, symlinks=True, ignore=_specials)
            found += f'\nkept in {kept}'
    seconds = time.monotonic() - started
    return Played(kind, seed, number, found, len(room.history), seconds)


def _specials(folder: str, names: Sequence[str]) -> list[str]:
    """Returns the names of pipes and sockets, which cannot be copied."""
    paths = [Path(folder, name) for name in names]
    return [path.name for path in paths if path.exists() and not (path.is_file() or path.is_dir())]
