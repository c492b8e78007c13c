"""What can happen to files while nobody looks, or while a job runs."""

import contextlib
import os
import random
import shutil
from pathlib import Path

from killed_runs import names_in


def change_file(dice: random.Random, path: Path) -> None:
    """Makes a file longer, shorter, different or another one, or deletes it."""
    how = dice.choice(['grow', 'shrink', 'alter', 'vanish', 'empty', 'replace'])
    data = path.read_bytes()
    if how == 'grow':
        path.write_bytes(data + b'more\tmore\n')
    elif how == 'shrink':
        os.truncate(path, len(data) // 2)
    elif how == 'alter':
        with path.open('r+b') as file:
            file.seek(dice.randrange(max(1, len(data))))
            file.write(b'x')
    elif how == 'vanish':
        path.unlink()
    elif how == 'empty':
        os.truncate(path, 0)
    else:
        new = path.with_name('new')
        new.write_bytes(data[::-1])
        os.replace(new, path)


def disturb_folder(dice: random.Random, folder: Path, victim: Path) -> None:
    """Does something to a drawn entry below a folder, be it of an attempt, of work or a result."""
    names = list(names_in(folder))
    if not names:
        return
    path = Path(dice.choice(names))
    how = dice.choice(['delete', 'delete', 'change', 'link', 'folder', 'all'])
    with contextlib.suppress(OSError):  # it may be gone by now
        if how == 'all':
            shutil.rmtree(folder)
        elif how == 'change' and path.is_file():
            change_file(dice, path)
        else:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            if how == 'link':
                path.symlink_to(victim)
            elif how == 'folder':
                (path / 'mine').mkdir(parents=True)
