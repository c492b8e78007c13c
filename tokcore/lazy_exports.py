"""Imports a package's public names when they are first used.

`tokbeam --help` imports the packages, but needs neither compiled kernels nor Beam.
"""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence


def exporter(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Returns a package's `__getattr__` (PEP 562).

    Args:
        package: the package's name.
        names: the public names, by the modules that define them.
    """
    origins = {name: module for module, own in names.items() for name in own}

    def __getattr__(name: str) -> object:
        if name not in origins:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        value = getattr(importlib.import_module(origins[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
