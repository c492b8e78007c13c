"""A digest of this package's sources, for what must not outlive an edit of any of them."""

import functools
import hashlib
import pathlib
import platform

_PACKAGE = pathlib.Path(__file__).resolve().parent


@functools.cache
def source_digest(package: pathlib.Path = _PACKAGE) -> str:
    """Returns a digest, 16 hexadecimal digits, of the sources in a folder and of what runs them."""
    from importlib.metadata import (
        version,
    )  # not for commands that are done in less time than it takes

    digest = hashlib.sha256()
    versions = [platform.python_implementation(), platform.python_version(), platform.machine()]
    versions += [version(name) for name in ('numba', 'llvmlite', 'numpy')]
    digest.update('\0'.join(versions).encode())
    for path in sorted(package.rglob('*.py')):
        digest.update(path.relative_to(package).as_posix().encode() + b'\0')
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
