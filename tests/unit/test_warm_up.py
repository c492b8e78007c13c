"""Kernels that a job needs are compiled ahead, once for a machine, in processes of their own."""

import dataclasses
import pathlib

import numba
import pytest

from tokcore import warm_up
from tokcore.schemes import find_scheme
from tokcore.warm_up import KERNELS, PARTS, compile_in_processes, missing_parts

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason='it is about compilation')


@pytest.fixture
def marks(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder for the marks of what is compiled; the kernels themselves stay where they are."""
    monkeypatch.setattr(warm_up, 'CACHE_FOLDER', tmp_path)
    return tmp_path


def test_a_part_is_compiled_once_and_marked(marks):
    scheme, done = find_scheme('byte'), []
    assert missing_parts(scheme, list(PARTS)) == list(PARTS)
    parts = ['counting', 'learning']
    failed = compile_in_processes(scheme, parts, 2, done.append)
    assert failed == {} and sum(done) == sum(KERNELS[part] for part in parts)
    assert {*missing_parts(scheme, list(PARTS))} == {*PARTS} - {*parts}
    assert missing_parts(find_scheme('word'), ['counting']) == ['counting']
    assert all(each.stat().st_size == 0 for each in marks.iterdir())


def test_a_part_that_fails_is_named_with_its_error_and_not_marked(marks):
    broken = dataclasses.replace(find_scheme('word'))
    object.__setattr__(broken, 'tokens', None)
    failed = compile_in_processes(broken, ['learning'], 1, lambda _: None)
    assert failed == {'learning': "TypeError: 'NoneType' object is not callable"}
    assert missing_parts(broken, ['learning']) == ['learning']


def test_without_a_folder_nothing_is_compiled_ahead(monkeypatch):
    monkeypatch.setattr(warm_up, 'CACHE_FOLDER', None)
    assert missing_parts(find_scheme(), list(PARTS)) == []
