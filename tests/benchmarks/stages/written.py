"""What a contender wrote: its digest, taken after the clock has stopped, and its end."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path


def files_digest(paths: Sequence[Path]) -> str:
    """Returns one digest of files in their order."""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, 'rb') as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()[:16]


def remove(path: str | None) -> None:
    """Removes a file or a folder, if it is there."""
    if path is None:
        return
    if Path(path).is_dir():
        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)


def take_file(path: str) -> dict[str, object]:
    """Returns a file's digest and size, and removes it."""
    file = Path(path)
    facts = {'digest': files_digest([file]), 'bytes_written': file.stat().st_size}
    file.unlink()
    return facts
