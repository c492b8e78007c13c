"""An edit compiles exactly the kernels whose code depends on what was edited.

A small package of kernels is imported again after each edit. numba counts which kernels it found in
the cache; what they return shows that none was an old one.
"""

import errno
import importlib
import os
import pathlib
import subprocess
import sys
import textwrap
import time

import llvmlite
import numba
import numpy as np
import pytest

from tokcore.kernels import jit
from tokcore.kernels.jit import kernel, kernel_family

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason='it is about compilation')

ROOT = pathlib.Path(jit.__file__).parents[2]

STATES = """
    from typing import NamedTuple

    class Plain(NamedTuple):
        tens: int
        ones: int

    class Doubled(NamedTuple):
        number: int

    class Outer(NamedTuple):
        inner: Plain
"""
CALLEE = """
    import numpy as np
    from tokcore.kernels.jit import kernel

    STEP = 3
    WEIGHTS = np.array([1, 2])
    SCALE = np.uint64(5)

    @kernel
    def callee(number):
        return number + STEP

    @kernel
    def alone(number):
        return number + 1
"""
INTRINSIC = """
    from llvmlite import ir
    from numba import types
    from tokcore.kernels.jit import intrinsic

    NARROW = ir.IntType(32)

    @intrinsic(lambda one, two: one < two)
    def compare(typing_context, one, two):
        def generate(context, builder, signature, arguments):
            return _compared(builder, *arguments)
        return types.uint64(types.int64, types.int64), generate

    def _compared(builder, one, two):
        one, two = builder.trunc(one, NARROW), builder.trunc(two, NARROW)
        return builder.zext(builder.icmp_signed('<', one, two), ir.IntType(64))
"""
FAMILY = """
    from tiny.states import Doubled, Plain
    from tokcore.kernels.jit import kernel_family, kernel_without_allocation

    @kernel_family('state')
    def value(state): ...

    @value.register(Plain)
    @kernel_without_allocation
    def _plain(state):
        return state.tens * 10 + state.ones

    @value.register(Doubled)
    @kernel_without_allocation
    def _doubled(state):
        return state.number * 2
"""
CALLERS = """
    from tiny import callee as module
    from tiny.callee import SCALE, WEIGHTS, callee
    from tiny.family import value
    from tiny.intrinsic import compare
    from tiny.states import Doubled
    from tokcore.kernels.jit import inlined_kernel, kernel

    # A comment.
    @kernel
    def calls(number):
        '''A docstring.'''
        return callee(number)

    @kernel
    def calls_a_caller(number):
        return calls(number)

    @kernel
    def calls_through_module(number):
        return module.callee(number)

    @kernel
    def recurses(number):
        return callee(0) if number <= 0 else recurses(number - 1)

    @kernel
    def reads_array(number):
        return number * WEIGHTS[1]

    @kernel
    def reads_scalar(number):
        return number * SCALE

    @kernel
    def has_default(number, step=7):
        return number + step

    @kernel
    def compares(number):
        return compare(number, 4)

    @kernel
    def reads_fields(state):
        return state.tens * 10 + state.ones

    @kernel
    def reads_inner_fields(state):
        return state.inner.tens * 10 + state.inner.ones

    @kernel
    def calls_family(state):
        return value(state)

    @kernel
    def calls_a_caller_of_the_family(state):
        return calls_family(state)

    @kernel
    def makes_a_state(number):
        return value(Doubled(number))

    def of_closure(added):
        @kernel
        def closed(number):
            return number + added
        return closed

    closed = of_closure(8)
"""
FILES = {
    'states': STATES, 'callee': CALLEE, 'intrinsic': INTRINSIC, 'family': FAMILY, 'callers': CALLERS
}  # fmt: skip

BEFORE = {
    'calls': 7, 'calls_a_caller': 7, 'calls_through_module': 7, 'recurses': 3, 'reads_array': 8,
    'reads_scalar': 20, 'has_default': 11, 'compares': 0, 'reads_fields': 42,
    'reads_inner_fields': 42, 'calls_family': 42, 'calls_family of Doubled': 14,
    'calls_a_caller_of_the_family': 14, 'makes_a_state': 8, 'closed': 12,
}  # fmt: skip

OF_CALLEE = {'calls', 'calls_a_caller', 'calls_through_module', 'recurses'}


class Tiny:
    """The package in a folder; `run` imports it anew and calls all kernels."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        (folder / 'tiny').mkdir()
        for name, text in {'__init__': '', **FILES}.items():
            (folder / 'tiny' / f'{name}.py').write_text(textwrap.dedent(text))

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / 'tiny' / f'{name}.py'
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def run(self) -> tuple[dict[str, int], set[str]]:
        """Returns what each call returned, and the calls whose kernel was compiled."""
        for name in [name for name in sys.modules if name.partition('.')[0] == 'tiny']:
            del sys.modules[name]
        importlib.invalidate_caches()
        kernels = importlib.import_module('tiny.callers')
        states = importlib.import_module('tiny.states')
        plain, doubled = states.Plain(tens=4, ones=2), states.Doubled(7)
        arguments = {
            'reads_fields': plain, 'reads_inner_fields': states.Outer(plain),
            'calls_family': plain, 'calls_family of Doubled': doubled,
            'calls_a_caller_of_the_family': doubled,
        }  # fmt: skip
        results, compiled = {}, set()
        for call in BEFORE:
            kernel = getattr(kernels, call.partition(' ')[0])
            misses = kernel.stats.cache_misses.total()
            results[call] = kernel(arguments.get(call, 4))
            if kernel.stats.cache_misses.total() > misses:
                compiled.add(call)
        return results, compiled


@pytest.fixture(scope='module')
def compiled(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A cache with all kernels of the package as it is before an edit."""
    folder = tmp_path_factory.mktemp('compiled')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, 'CACHE_FOLDER', folder)
        patch.setattr(sys, 'dont_write_bytecode', True)
        patch.syspath_prepend(folder)
        assert Tiny(folder).run() == (BEFORE, {*BEFORE})
    return folder


@pytest.fixture
def tiny(compiled, tmp_path, monkeypatch) -> Tiny:
    """The package in another folder, with that cache."""
    monkeypatch.setattr(jit, 'CACHE_FOLDER', compiled)
    # Python tells an edited file by its size and second, and here they may be equal.
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    monkeypatch.syspath_prepend(tmp_path)
    return Tiny(tmp_path)


@pytest.mark.parametrize(
    ('name', 'old', 'new'),
    [
        ('callers', '# A comment.', '# Another.\n\n# It moves all lines.'),
        ('callers', 'A docstring.', 'Another.'),
        ('callee', 'number + 1', 'number + 2'),
    ],
    ids=['comment', 'docstring', 'kernel that none calls'],
)
def test_an_edit_that_changes_no_code_compiles_nothing(tiny, name, old, new):
    tiny.edit(name, old, new)
    assert tiny.run() == (BEFORE, set())


@pytest.mark.parametrize(
    ('name', 'old', 'new', 'after'),
    [
        ('callee', 'STEP = 3', 'STEP = 4', {'calls': 8, 'calls_a_caller': 8, 'calls_through_module': 8, 'recurses': 4}),
        pytest.param('callee', 'number + STEP', 'number - STEP', {'calls': 1, 'calls_a_caller': 1, 'calls_through_module': 1, 'recurses': -3}, marks=pytest.mark.slow),
        ('callee', '[1, 2]', '[1, 3]', {'reads_array': 12}),
        pytest.param('callee', 'uint64(5)', 'uint64(6)', {'reads_scalar': 24}, marks=pytest.mark.slow),
        pytest.param('callers', 'step=7', 'step=8', {'has_default': 12}, marks=pytest.mark.slow),
        pytest.param('callers', 'of_closure(8)', 'of_closure(9)', {'closed': 13}, marks=pytest.mark.slow),
        ('intrinsic', "'<'", "'<='", {'compares': 1}),
        pytest.param('intrinsic', 'zext', 'sext', {'compares': 0}, marks=pytest.mark.slow),
        pytest.param('intrinsic', 'NARROW = ir.IntType(32)', 'NARROW = ir.IntType(16)', {'compares': 0}, marks=pytest.mark.slow),
        ('family', 'state.number * 2', 'state.number * 3', {'calls_family of Doubled': 21, 'calls_a_caller_of_the_family': 21, 'makes_a_state': 12}),
        pytest.param('family', 'state.tens * 10', 'state.tens * 20', {'calls_family': 82}, marks=pytest.mark.slow),
        ('states', 'tens: int\n    ones: int', 'ones: int\n    tens: int', {'reads_fields': 42, 'reads_inner_fields': 42, 'calls_family': 42}),
        ('callers', '@kernel\ndef calls_through', '@inlined_kernel\ndef calls_through', {'calls_through_module': 7}),
    ],
    ids=[
        'constant', 'called kernel', 'array', 'scalar', 'default', 'closure', 'operator', 'builder',
        'type of LLVM', 'body', 'other body', 'order of fields', 'option',
    ],
)  # fmt: skip
def test_an_edit_compiles_the_kernels_that_depend_on_it(tiny, name, old, new, after):
    tiny.edit(name, old, new)
    results, compiled = tiny.run()
    assert results == BEFORE | after
    assert compiled == {*after}
    assert tiny.run() == (results, set())


@pytest.mark.parametrize(
    'package',
    [numba, *(pytest.param(each, marks=pytest.mark.slow) for each in (llvmlite, np))],
    ids=lambda package: package.__name__,
)
def test_another_version_compiles_all(tiny, monkeypatch, package):
    assert tiny.run() == (BEFORE, set())
    monkeypatch.setattr(package, '__version__', '0.1')
    assert tiny.run() == (BEFORE, {*BEFORE})


def test_a_use_is_noted_at_most_once_a_day(tiny, compiled):
    kernels = [*compiled.glob('*.nbc')]
    now = time.time()
    for hours, noted in ((23, 0), (25, len(BEFORE))):
        for path in kernels:
            os.utime(path, (now - hours * 3600,) * 2)
        tiny.run()
        assert sum(path.stat().st_mtime > now - 3600 for path in kernels) == noted


def test_what_was_not_used_for_thirty_days_is_deleted(tiny, tmp_path, monkeypatch):
    folder = tmp_path / 'above' / 'kernels-by-code'
    folder.mkdir(parents=True)
    monkeypatch.setattr(jit, 'CACHE_FOLDER', folder)
    names = {
        'used.nbc': 31, 'unused.nbc': 33, 'new.nbc': 1, '.part-killed': 31,
        'compiled-counting-0123': 31, 'compiled-encoding-0123': 29,
    }  # fmt: skip
    for name in names:
        (folder / name).touch()
    for name, days in names.items():
        os.utime(folder / name, (time.time() - days * 86400,) * 2)
    tiny.run()
    left = {path.name for path in folder.iterdir() if not path.name.startswith('tiny.')}
    assert left == {'used.nbc', 'new.nbc', 'compiled-encoding-0123'}


@pytest.mark.parametrize(
    'damage',
    [
        lambda data: b'',
        pytest.param(lambda data: bytes(len(data)), marks=pytest.mark.slow),
        pytest.param(lambda data: data[:-1], marks=pytest.mark.slow),
        lambda data: data and data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],  # some are empty by now
    ],
    ids=['empty', 'zeros', 'cut', 'flipped bit'],
)  # fmt: skip
def test_a_damaged_kernel_is_compiled_and_kept_again(tiny, compiled, damage):
    for path in compiled.glob('*.nbc'):
        path.write_bytes(damage(path.read_bytes()))
    assert tiny.run() == (BEFORE, {*BEFORE})
    assert tiny.run() == (BEFORE, set())


def full(path, content):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def over_quota(path, content):
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


@pytest.mark.parametrize(
    ('write', 'folder', 'reason'),
    [
        (full, 'kernels', 'the cache at {} cannot be written (No space left on device)'),
        pytest.param(over_quota, 'kernels', 'the cache at {} cannot be written (Disk quota exceeded)', marks=pytest.mark.slow),
        (jit.write_cached, 'deleted', 'the cache at {} cannot be written (No such file or directory)'),
        (jit.write_cached, None, 'the cache at /nowhere cannot be written (Permission denied)'),
    ],
    ids=['full', 'quota', 'deleted', 'none'],
)  # fmt: skip
def test_kernels_run_without_a_cache_and_one_line_says_so(
    tiny, tmp_path, monkeypatch, caplog, write, folder, reason
):
    (tmp_path / 'kernels').mkdir()
    path = None if folder is None else tmp_path / folder
    monkeypatch.setattr(jit, 'CACHE_FOLDER', path)
    monkeypatch.setattr(
        jit, 'NO_FOLDER', 'the cache at /nowhere cannot be written (Permission denied)'
    )
    monkeypatch.setattr(jit, 'write_cached', write)
    monkeypatch.setattr(jit, '_unkept', [])
    assert tiny.run()[0] == BEFORE
    [line] = [record.getMessage() for record in caplog.records if record.name == jit.__name__]
    assert line == f'kernels are compiled for this run alone: {reason.format(path)}'
    assert jit.unkept_reason() == reason.format(path)


DIGEST = """
    from tokcore.kernels.jit import code_digest

    NAMES = {'one', 'two', 'three', 4}

    def function(name):
        return name in {'five', 'six', 'seven', 8} or name in NAMES

    print(code_digest([function], ()))
"""


def run_python(code: str, folder: pathlib.Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, '-c', textwrap.dedent(code)],
        cwd=folder,
        env={**os.environ, 'PYTHONPATH': f'{folder}{os.pathsep}{ROOT}', **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_digest_does_not_depend_on_the_seed_of_hashes(tmp_path):
    running = [run_python(DIGEST, tmp_path, PYTHONHASHSEED=seed) for seed in '12']
    one, two = (process.communicate()[0] for process in running)
    assert len(one.strip()) == 16
    assert one == two


def test_a_digest_is_of_values_and_their_types():
    values = [
        None, 1, 1.0, True, '1', b'1', (1,), [1], {1}, {1: 2}, {1: 3}, -0.0, 0.0, np.uint64(1),
        np.int64(1), np.array([1]), np.array([1], np.uint8), np.array([[1]]), np.arange(2000),
        np.arange(2000)[::-1], np.zeros(1, [('one', 'i4')])[0], np.zeros(1, [('two', 'i4')])[0],
        len, max, np.uint64, np.int64,
    ]  # fmt: skip

    def digest(value: object) -> str:
        def function():
            return value

        return jit.code_digest([function], ())

    assert len({digest(value) for value in values}) == len(values)


def test_a_digest_is_of_the_argument_that_chooses_a_body():
    digests = set()
    for argument in ('one', 'two'):

        @kernel_family(argument)
        def chosen(one, two): ...

        @kernel
        def calls(one, two, chosen=chosen):
            return chosen(one, two)

        digests.add(jit.code_digest([calls], ()))
    assert len(digests) == 2
