"""The files that a refused or killed run leaves in its output folder."""

import os
from pathlib import Path


def final_files(folder: Path) -> dict[str, bytes]:
    """Returns the files of a folder at any depth, without those of attempts and unfinished work."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob('*'))
        if path.is_file() and not (is_attempt(path, folder) or is_work(path, folder))
    }


def result_files(folder: Path) -> dict[str, bytes]:
    """Returns the final files that are the same in each run: all but the run record."""
    return {
        name: data
        for name, data in final_files(folder).items()
        if not name.endswith('tokbeam.run.json')
    }


def attempts(folder: Path) -> list[Path]:
    """Returns the paths that attempts left in a folder; nothing uses them again."""
    return [path for path in folder.rglob('*') if is_attempt(path, folder)]


def is_attempt(path: Path, folder: Path) -> bool:
    return any(part.startswith('.tokbeam-attempt-') for part in path.relative_to(folder).parts)


def is_work(path: Path, folder: Path) -> bool:
    """Returns whether a path is work that a stopped stage keeps until a rerun has finished it.

    The lock of a killed run too: the system has given it back, and the rerun deletes the file.
    """
    parts = path.relative_to(folder).parts
    return any(part == '.tokbeam' or part.startswith('.tokbeam-lock') for part in parts)


def assert_finished(folder: Path) -> None:
    """Asserts that no attempt and no unfinished work is left."""
    assert attempts(folder) == []
    assert [path for path in folder.rglob('*') if is_work(path, folder)] == []


def assert_nothing_made(folder: Path) -> None:
    """Asserts that there is no final file, no manifest and no attempt."""
    left = [path for path in folder.rglob('*') if not path.is_dir()] if folder.is_dir() else []
    assert left == []
    assert not folder.is_dir() or attempts(folder) == []


def assert_only_counts_made(folder: Path) -> None:
    """Asserts that only the counting stage of a failed build left results."""
    assert {name.split(os.sep)[0].split('.')[0] for name in final_files(folder)} <= {'counts'}
    assert attempts(folder) == []
