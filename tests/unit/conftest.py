"""The mark `fast`: tests that neither draw examples nor start processes, nor bound what a process has."""

from pathlib import Path

import pytest

_NOT_FAST = {'subprocess', 'multiprocessing', 'resource', 'tracemalloc'}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not item.path.is_relative_to(Path(__file__).parent):
            continue
        draws = getattr(item.obj, 'is_hypothesis_test', False)
        if not draws and _NOT_FAST.isdisjoint(vars(item.module)):
            item.add_marker(pytest.mark.fast)
