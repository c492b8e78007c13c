"""Packages that tokbeam does without until a method of a dataset needs them: its extras."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tokcore.errors import InputError


@contextlib.contextmanager
def extra_package(name: str) -> Iterator[None]:
    """Raises InputError with the command that installs a package, if its import fails without it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise InputError(
            f'dataset.{name} needs a package that is not installed; get it by '
            f"pip install 'tokbeam[{name}]', or '.[{name}]' in a clone"
        ) from None
