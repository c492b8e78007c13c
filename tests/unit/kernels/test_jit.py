"""Kernels are compiled once for each state of the sources, and chosen by the type of an argument."""

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
from tokcore.kernels.jit import kernel, kernel_family, kernel_without_allocation

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

CALLER = """
    from tokcore.kernels.jit import kernel
    from tokcore.small.callee import callee

    @kernel
    def caller(number):
        return callee(number) * 10
"""
CALLEE = """
    from tokcore.kernels.jit import kernel

    @kernel
    def callee(number):
        return number + {}
"""

# Python's own cache tells files by size and second, and what is edited here differs in neither.
NO_BYTECODE = {'PYTHONDONTWRITEBYTECODE': '1'}

STATE = """
    from typing import NamedTuple
    import numpy as np

    class State(NamedTuple):
        {}: np.ndarray
        {}: np.ndarray
"""
READER = """
    from tokcore.kernels.jit import kernel

    @kernel
    def read(state):
        return state.tens[0] * 10 + state.ones[0]
"""

FAMILY = """
    from typing import NamedTuple
    import numpy as np
    from tokcore.kernels.jit import kernel_without_allocation
    from tokcore.kernels.jit import kernel_family

    class Doubled(NamedTuple):
        number: int

    @kernel_family('state')
    def value(state): ...

    @value.register(Doubled)
    @kernel_without_allocation
    def doubled(state):
        return {} * state.number
"""
CALLER_OF_FAMILY = """
    from tokcore.kernels.jit import kernel
    from tokcore.small.family import value

    @kernel
    def caller(state):
        return value(state) * 10
"""
CALL_ALL = """
    import numpy as np
    from tokcore.small.caller import caller
    from tokcore.small.caller_of_family import caller as caller_of_family
    from tokcore.small.family import Doubled
    from tokcore.small.reader import read
    from tokcore.small.state import State

    state = State(tens=np.array([4]), ones=np.array([2]))
    found = caller(1), read(state), caller_of_family(Doubled(7))
    kernels = caller, read, caller_of_family
    print(*found, sum(sum(each.stats.cache_hits.values()) for each in kernels))
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


def link_package(folder: pathlib.Path) -> None:
    (folder / 'tokcore').symlink_to(PACKAGE)


def small_room(folder: pathlib.Path) -> pathlib.Path:
    """A copy of the package with what kernels need and an empty room, which is returned."""
    copy = folder / 'tokcore'
    (copy / 'kernels').mkdir(parents=True)
    for path in [*PACKAGE.glob('*.py'), *(PACKAGE / 'kernels').glob('*.py')]:
        (copy / path.relative_to(PACKAGE)).write_bytes(path.read_bytes())
    small = copy / 'small'
    small.mkdir()
    (small / '__init__.py').touch()
    return small


@pytest.mark.slow
def test_kernels_are_cached_until_a_source_is_edited(tmp_path):
    """Callers in other files too: numba's own stamp is of the caller's file alone.

    Nor does numba know the order of the fields of a named tuple: it would give 24.
    """
    small = small_room(tmp_path)
    (small / 'caller.py').write_text(textwrap.dedent(CALLER))
    (small / 'reader.py').write_text(textwrap.dedent(READER))
    (small / 'caller_of_family.py').write_text(textwrap.dedent(CALLER_OF_FAMILY))

    def edit(added, fields, factor):
        (small / 'callee.py').write_text(textwrap.dedent(CALLEE.format(added)))
        (small / 'state.py').write_text(textwrap.dedent(STATE.format(*fields)))
        (small / 'family.py').write_text(textwrap.dedent(FAMILY.format(factor)))

    edit(1, ('tens', 'ones'), 2)
    assert run_python(CALL_ALL, tmp_path, **NO_BYTECODE) == '20 42 140 0\n'
    assert run_python(CALL_ALL, tmp_path, **NO_BYTECODE) == '20 42 140 3\n'
    edit(2, ('ones', 'tens'), 3)
    assert run_python(CALL_ALL, tmp_path, **NO_BYTECODE) == '30 42 210 0\n'


@pytest.mark.slow
@pytest.mark.parametrize('variable', ['NUMBA_CACHE_DIR', 'XDG_CACHE_HOME', 'HOME'])
def test_the_environment_chooses_the_cache_folder(tmp_path, variable):
    link_package(tmp_path)
    chosen = tmp_path / 'chosen'
    code = 'from tokcore.kernels.jit import CACHE_FOLDER; print(CACHE_FOLDER)'
    folder = pathlib.Path(run_python(code, tmp_path, **{variable: str(chosen)}).strip())
    assert folder.is_relative_to(chosen)
    assert folder.name.startswith('kernels-')


@pytest.mark.slow
def test_kernels_run_without_a_writable_folder(tmp_path):
    """A read-only install and no home: a file stands where each folder would be made."""
    link_package(tmp_path)
    (tmp_path / 'file').touch()
    blocked = str(tmp_path / 'file' / 'folder')
    code = """
        import numpy as np
        from tokcore.kernels.bytes import write_varints
        from tokcore.kernels.jit import CACHE_FOLDER

        assert CACHE_FOLDER is None
        assert write_varints(np.array([300]), np.empty(9, np.uint8)) == 2
    """
    run_python(code, tmp_path, HOME=blocked, XDG_CACHE_HOME=blocked, NUMBA_CACHE_DIR=blocked)


@pytest.mark.slow
def test_a_child_process_finds_the_folder_of_its_parent(tmp_path):
    link_package(tmp_path)
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
