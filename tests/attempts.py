"""Attempts at the outputs of tests, without a claim."""

from pipelines.files.attempts import Attempt
from pipelines.files.local import LocalFolder


def attempt_at(folder, names=()):
    """Returns an attempt at an output on this machine; the folder is made."""
    return Attempt(str(folder), names, LocalFolder.open(str(folder), make=True))
