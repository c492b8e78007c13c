"""What a refused or killed run leaves in its output folder."""

import os
from pathlib import Path


def final_files(folder: Path) -> dict[str, bytes]:
    """The files of a folder at any depth, but for those of attempts and work still to be done."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob('*'))
        if path.is_file() and not (is_attempt(path, folder) or is_work(path, folder))
    }


def result_files(folder: Path) -> dict[str, bytes]:
    """The final files that are the same in each run: all but what is remembered of the run."""
    return {
        name: data
        for name, data in final_files(folder).items()
        if not name.endswith('tokbeam.run.json')
    }


def attempts(folder: Path) -> list[Path]:
    """What attempts left in a folder; nothing ever uses it."""
    return [path for path in folder.rglob('*') if is_attempt(path, folder)]


def is_attempt(path: Path, folder: Path) -> bool:
    prefixes = ('.tokbeam-attempt-', '.tokbeam-new-')
    return any(part.startswith(prefixes) for part in path.relative_to(folder).parts)


def is_work(path: Path, folder: Path) -> bool:
    """Whether this is what a stopped stage keeps until its rerun, which goes on with it, is done.

    The lock of a killed run too: the system has given it back, and the rerun deletes the file.
    """
    parts = path.relative_to(folder).parts
    return any(part == '.tokbeam' or part.startswith('.tokbeam-lock') for part in parts)


def assert_finished(folder: Path) -> None:
    """Nothing of an attempt and no work to be done is left."""
    assert attempts(folder) == []
    assert [path for path in folder.rglob('*') if is_work(path, folder)] == []


def assert_nothing_made(folder: Path) -> None:
    """Neither a file under a final name, nor a manifest, nor anything of an attempt."""
    left = [path for path in folder.rglob('*') if not path.is_dir()] if folder.is_dir() else []
    assert left == []
    assert not folder.is_dir() or attempts(folder) == []


def assert_only_counts_made(folder: Path) -> None:
    """The counting stage is whole, and nothing of the build that failed after it is there."""
    assert {name.split(os.sep)[0].split('.')[0] for name in final_files(folder)} <= {'counts'}
    assert attempts(folder) == []
