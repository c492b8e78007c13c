"""Kernels are compiled once for each state of the sources, and chosen by the type of an argument."""

import collections
import itertools
import json
import os
import pathlib
import subprocess
import sys
import textwrap
from typing import NamedTuple

import numba
import numpy as np
import pytest

from tokcore.kernels import jit
from tokcore.kernels.jit import (
    compiled_for,
    kernel,
    kernel_family,
    kernel_without_allocation,
    type_key,
)

pytestmark = pytest.mark.skipif(
    numba.config.DISABLE_JIT or jit.CACHE_FOLDER is None, reason='it is about compilation'
)

PACKAGE = pathlib.Path(jit.__file__).parents[1]

WARM_UP = """
    import json
    import numba
    from tokcore.schemes import find_scheme
    from tokcore.warm_up import compile_kernels
    from tokcore.counts.token_table import TokenTable
    from tokcore.subword.learner import MemoryLearner

    compile_kernels(find_scheme())
    MemoryLearner(TokenTable.from_items([('one', 3), ('two', 2)])).build(1)

    import gc
    misses = hits = 0
    for kernel in gc.get_objects():
        if isinstance(kernel, numba.core.dispatcher.Dispatcher):
            if kernel.py_func.__module__.startswith('tokcore'):
                misses += sum(kernel.stats.cache_misses.values())
                hits += sum(kernel.stats.cache_hits.values())
    print(json.dumps([misses, hits]))
"""

NUMBERS = np.arange(5)


def run_python(code: str, folder: pathlib.Path, **environment: str) -> str:
    """Runs code in a process of its own, with `folder` as its working directory."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ('NUMBA_CACHE_DIR', 'XDG_CACHE_HOME', 'PYTHONDONTWRITEBYTECODE')
    }
    done = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(code)],
        cwd=folder,
        env={**kept, 'HOME': str(folder), 'PYTHONPATH': str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_second_run_compiles_nothing():
    # With the cache of all tests, which has most kernels: to compile them takes a minute.
    cache = {'NUMBA_CACHE_DIR': str(jit.CACHE_FOLDER)}
    exec(textwrap.dedent(WARM_UP), {})
    misses, hits = json.loads(run_python(WARM_UP, PACKAGE.parent, **cache))
    assert misses == 0
    assert hits > 0


@pytest.mark.slow
def test_a_child_process_finds_the_folder_of_its_parent(tmp_path):
    (tmp_path / 'tokcore').symlink_to(PACKAGE)
    code = """
        import subprocess, sys
        from tokcore.kernels.jit import CACHE_FOLDER
        print(CACHE_FOLDER)
        child = 'from tokcore.kernels.jit import CACHE_FOLDER; print(CACHE_FOLDER)'
        print(subprocess.run([sys.executable, '-c', child], capture_output=True, text=True).stdout)
    """
    parent, child = run_python(code, tmp_path).split()
    assert parent == child


class Plain(NamedTuple):
    numbers: np.ndarray


class Doubled(NamedTuple):
    numbers: np.ndarray


class Unknown(NamedTuple):
    numbers: np.ndarray


@kernel_family('state')
def value(place, state):
    """A number."""


@value.register(Plain)
@kernel_without_allocation
def _plain_value(place, state):
    return state.numbers[place]


@value.register(Doubled)
@kernel
def _doubled_value(place, state):
    both = np.empty(2, np.int64)
    both[:] = state.numbers[place]
    return both.sum()


@kernel
def total(state):
    found = 0
    for place in range(len(state.numbers)):
        found += value(place, state)
    return found


def test_the_type_of_the_state_chooses_in_kernels():
    assert total(Plain(NUMBERS)) == 10
    assert total(Doubled(NUMBERS)) == 20


def test_the_type_of_the_state_chooses_from_python():
    assert value(3, Plain(NUMBERS)) == 3
    assert value(3, Doubled(NUMBERS)) == 6


def test_a_state_without_a_body_is_refused():
    with pytest.raises(TypeError, match='value has no body for .*Unknown'):
        value(3, Unknown(NUMBERS))
    with pytest.raises((TypeError, numba.TypingError), match='Unknown'):
        total(Unknown(NUMBERS))


def test_a_body_has_the_arguments_of_its_family():
    with pytest.raises(TypeError, match='_other has other arguments than value'):

        @value.register(Unknown)
        @kernel
        def _other(state, place):
            return 0


class Parts(NamedTuple):
    array: np.ndarray
    number: object


class OtherParts(NamedTuple):
    array: np.ndarray
    number: object


def test_values_with_one_key_have_one_type():
    types_of = collections.defaultdict(set)
    dtypes, numbers = (
        ('u1', '<i4', '<i8', '<u8', '<f8'),
        (1, True, 1.0, np.uint8(1), np.uint64(1)),
    )
    cuts = (slice(None), slice(None, None, 2), slice(None, None, -1), (slice(None), 0), 0)
    for dtype, cut, is_read_only, number, tuple_of in itertools.product(
        dtypes, cuts, (False, True), numbers, (Parts, OtherParts, lambda *values: values)
    ):
        array = np.zeros((4, 4), dtype)[cut]
        array.flags.writeable = not is_read_only
        value = tuple_of(array, tuple_of(array, number))
        types_of[type_key(value)].add(numba.typeof(value))
    assert all(len(types) == 1 for types in types_of.values())
    assert len(types_of) >= len(dtypes) * 4 * 2 * len(numbers) * 3


def test_what_is_compiled_for_types_does_what_the_kernel_does():
    compiled = compiled_for(total, [Plain(NUMBERS)])
    assert compiled is not total
    assert compiled(Plain(NUMBERS)) == total(Plain(NUMBERS)) == 10
    assert compiled_for(len, [NUMBERS]) is len
