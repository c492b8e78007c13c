"""How kernels are compiled, cached, and chosen by the type of an argument.

numba checks a cached kernel against its own source file only: it would use a stale one if a kernel
that it calls changed in another file, and compile again if a comment changed. Here a compiled kernel
is named by a digest of all that it depends on; see `code_digest`. Those that were not used for 30
days are deleted. A cache that cannot be used costs time only: kernels are then compiled in each
process, which logs the reason once.

A family is a function with a body for each type of state, a `NamedTuple` of arrays and numbers:

    @kernel_family('model')
    def segment(text, model, ids):
        '''What every body does.'''

    @segment.register(WordModel)
    @kernel_without_allocation
    def _segment_words(text, model, ids): ...

In kernels numba chooses the body when it compiles. Elsewhere, and with NUMBA_DISABLE_JIT=1, the
function looks it up by the argument's type.
"""

import contextlib
import enum
import functools
import hashlib
import inspect
import logging
import os
import pathlib
import pickle
import platform
import re
import sys
import time
import types
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, cast

import llvmlite
import numba
import numba.core.types
import numba.extending
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.extending import overload

from tokcore.kernels.cache_folder import (
    CACHE_FOLDER,
    NO_FOLDER,
    NUMBA_VARIABLE,
    note_kernels,
    read_cached,
    refusal_of,
    write_cached,
)

_LOGGER = logging.getLogger(__name__)

_Function = TypeVar('_Function', bound=Callable)

IS_DISABLED = bool(vars(numba.config)['DISABLE_JIT'])
"""Whether kernels run as plain Python (NUMBA_DISABLE_JIT=1)."""

if IS_DISABLED:
    # Sums of NumPy's integers are modulo 2⁶⁴, as in kernels; `np.seterr` is for one thread alone.
    warnings.filterwarnings('ignore', 'overflow encountered', RuntimeWarning)

_Decorator = Callable[[Callable], Callable]

_NOTED_EVERY = 24 * 3600  # seconds
_KEPT_FOR = 30 * _NOTED_EVERY

_KERNEL = '.nbc'

before_compiling: list[Callable[[], object]] = []
"""Called before a kernel is compiled that the cache does not have."""

_LONGEST_NAME = 150
"""Characters of a kernel's name in those of its files, which may have 255."""


def kernel(function: _Function) -> _Function:
    """Compiles a function over arrays and numbers; it runs without the interpreter lock.

    Two rules keep the cache right: tables are arguments, never globals, which numba compiles into the
    code; and no kernel is an argument of another.
    """
    return _compiled(function, allocates=True)


def kernel_without_allocation(function: _Function) -> _Function:
    """Compiles a kernel that neither makes nor returns an array, nor calls a kernel that does.

    numba counts the references to every array argument, also of inlined functions; in a loop over
    tokens that is an atomic instruction or two for each token. Here nothing is counted.
    """
    return _compiled(function, allocates=False)


def inlined_kernel(function: _Function) -> _Function:
    """Compiles a kernel without allocation into its callers, however large it is.

    LLVM does not inline large functions, and a call passes each array as seven numbers: with a state
    of many arrays, that takes as long as encoding some dozens of bytes.
    """
    return _compiled(function, allocates=False, is_inlined=True)


def intrinsic(plain: _Function) -> Callable[[Callable], _Function]:
    """Decorates the typing function of an LLVM intrinsic that computes what `plain` does.

    With NUMBA_DISABLE_JIT=1 `plain` takes its place, so that a debugger and coverage see a whole
    kernel.
    """
    if IS_DISABLED:
        return lambda typing: plain
    return numba.extending.intrinsic  # type: ignore[return-value]  # overloads


def read_only(array: np.ndarray) -> np.ndarray:
    """Returns a read-only view of an array, the type that kernels take for what they only read.

    numba compiles a kernel for each combination of argument types, and an array over `bytes`, which
    is read-only, has another type than a new one.
    """
    view = array.view()
    view.setflags(write=False)
    return view


def read_only_state(state: Any) -> Any:
    """Returns the state of a family, a `NamedTuple`, with read-only views of all arrays in it.

    An array that was pickled is no longer read-only, and kernels would be compiled for it anew.
    """
    if isinstance(state, np.ndarray):
        return read_only(state)
    if isinstance(state, tuple):
        return getattr(state, '_make', tuple)(map(read_only_state, state))
    return state


def type_key(value: Any) -> Any:
    """Returns a key that differs for values of different numba types; `numba.typeof` takes much longer."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num
    if isinstance(value, tuple):
        return type(value), *map(type_key, value)
    return type(value)


def compiled_for(function: Callable, arguments: Sequence[Any]) -> Callable:
    """Returns the compiled code of a kernel for arguments of these types; it does not check their types.

    A call of the kernel itself reads the types of all arrays in named tuples, in Python: with forty
    arrays, that takes as long as encoding some kilobytes.
    """
    if not isinstance(function, Dispatcher):
        return function
    return function.compile(tuple(map(numba.typeof, arguments)))


if CACHE_FOLDER is not None:
    os.environ[NUMBA_VARIABLE] = str(CACHE_FOLDER)
    vars(numba.config)['CACHE_DIR'] = str(CACHE_FOLDER)


def _compiled(function: _Function, allocates: bool, is_inlined: bool = False) -> _Function:
    # The option is not public. It leaves out numba's runtime, which allocates and counts references.
    options = {'forceinline': True} if is_inlined else {}
    compile_: Any = numba.njit
    # Only a kernel that is an argument of another needs a wrapper for C.
    compiled = compile_(nogil=True, no_cfunc_wrapper=True, _nrt=allocates, **options)(function)
    if not IS_DISABLED:
        compiled._cache = _KernelCache(compiled, CACHE_FOLDER)
    return compiled


class _KernelCache(FunctionCache):
    """The cache of a kernel, with a file of its own for each combination of argument types.

    numba keeps all combinations of a kernel in one index file, by the path and line of its source.
    Then two processes that compile at once can each write over what the other has written, a process
    that cannot import the module of a type cannot read any combination, and each copy of the same
    sources (an installed one, a checkout) compiles again. Nor would it see that a file is damaged.
    """

    def __init__(self, kernel: Any, folder: pathlib.Path | None):
        # Without numba's, which looks for a source file and makes a folder for it.
        self._kernel, self._folder = kernel, folder
        self._name, self._cache_path = repr(kernel.py_func), str(folder)  # numba shows them

    def load_overload(self, sig, target_context):
        # Without numba's refresh of its contexts, which imports all that it can compile.
        rtsys.initialize(target_context)
        if self._folder is None:
            return None
        path = self._path(self._folder, sig, target_context.codegen())
        content = read_cached(path)
        if content is None:
            for call in before_compiling:
                call()
            return None
        _note_use(path)
        note_kernels()
        return CompileResult._rebuild(target_context, *pickle.loads(content))

    def _save_overload(self, sig, data):
        if self._folder is None:
            _log_unkept(NO_FOLDER)
            return
        if data.library.has_dynamic_globals or not all(each.can_cache for each in data.lifted):
            return
        # What is compiled is in memory too.
        try:
            path = self._path(self._folder, sig, data.codegen)
            write_cached(path, dumps(data._reduce()))
            note_kernels()
            _sweep(self._folder)
        except OSError as error:
            _log_unkept(refusal_of(self._folder, error))

    def _path(self, folder: pathlib.Path, sig, codegen) -> pathlib.Path:
        function = self._kernel.py_func
        # All kernels, since many call a family.
        code = code_digest([self._kernel, _overload], getattr(sig, 'args', sig))
        # The second names the processor.
        digest = hashlib.sha256(repr((code, codegen.magic_tuple())).encode()).hexdigest()[:16]
        name = re.sub('[^.0-9A-Za-z_]', '', f'{function.__module__}.{function.__qualname__}')
        return folder / f'{name[-_LONGEST_NAME:]}-{digest}{_KERNEL}'


_unkept: list[str] = []


def unkept_reason() -> str | None:
    """Returns why this process could not keep what it compiled; None if it could."""
    return _unkept[0] if _unkept else None


def _log_unkept(reason: str) -> None:
    if not _unkept:
        _unkept.append(reason)
        _LOGGER.warning('kernels are compiled for this run alone: %s', reason)


def _note_use(path: pathlib.Path) -> None:
    """Notes in the time of a file that its kernel is used, at most once a day."""
    with contextlib.suppress(OSError):  # another process has swept it, or the disk is full
        if time.time() - path.stat().st_mtime > _NOTED_EVERY:
            os.utime(path)


@functools.cache
def _sweep(folder: pathlib.Path) -> None:
    """Deletes what was not used for 30 days: once in a process that compiles; no other has to look."""
    oldest = time.time() - _KEPT_FOR
    for path in folder.iterdir():
        # A use is noted up to a day late, and marks of what is compiled must go first.
        late = 2 * _NOTED_EVERY if path.suffix == _KERNEL else 0
        with contextlib.suppress(FileNotFoundError):  # another process deletes it at the same time
            if path.is_file() and path.stat().st_mtime < oldest - late:
                path.unlink()


def compiled_kernels() -> Iterator[tuple[pathlib.Path, list[pathlib.Path]]]:
    """Yields the folder of compiled kernels, with what can be deleted while others use it."""
    if CACHE_FOLDER is not None:
        yield CACHE_FOLDER, [*CACHE_FOLDER.iterdir()]


class KernelFamily(Protocol):
    """A function with a body for each type of state."""

    def __call__(self, *arguments: Any) -> Any: ...

    def register(self, state: type) -> _Decorator:
        """Decorates the body for this type of state, a kernel with the same arguments."""


def kernel_family(argument: str) -> Callable[[Callable], KernelFamily]:
    """Decorates the declaration of a family, whose body is chosen by the type of `argument`."""

    def decorated(declared: Callable) -> KernelFamily:
        signature = inspect.signature(declared)
        index = list(signature.parameters).index(argument)
        bodies: dict[type, Callable] = {}

        @functools.wraps(declared)
        def generic(*arguments):
            try:
                body = bodies[type(arguments[index])]
            except KeyError as error:
                raise TypeError(f'{declared.__name__} has no body for {error}') from None
            return body(*arguments)

        def register(state: type) -> _Decorator:
            def registered(body: Callable) -> Callable:
                if inspect.signature(body) != signature:
                    raise TypeError(f'{body.__name__} has other arguments than {declared.__name__}')
                bodies[state] = body
                if not IS_DISABLED:
                    _overload(generic, signature, index, state, body)
                return body

            return registered

        generic.register = register  # type: ignore[attr-defined]  # as of functools.singledispatch
        # `code_digest` reads both.
        generic.argument, generic.bodies = argument, bodies  # type: ignore[attr-defined]
        return cast(KernelFamily, generic)

    return decorated


def _overload(
    generic: Callable, signature: inspect.Signature, index: int, state: type, body: Any
) -> None:
    """Makes numba compile a body, with its own options, into the kernels that call the family."""

    def selected(*argument_types):
        is_chosen = getattr(argument_types[index], 'instance_class', None) is state
        return body.py_func if is_chosen else None

    selected.__signature__ = signature  # type: ignore[attr-defined]  # numba reads it
    options: Any = {'_nrt': body.targetoptions['_nrt']}
    overload(generic, jit_options=options)(selected)


_VERSIONED = {*sys.stdlib_module_names, 'numba', 'llvmlite', 'numpy'}

_PLAIN = {type(None), bool, int, float, str, bytes}

_OPTIONS = ('targetoptions', 'locals', '_prefer_literal')
"""Attributes of numba's objects for functions."""

_ADDRESS = re.compile(' at 0x[0-9a-fA-F]+')

# What a word is made from has no such character: names, numbers and the results of `repr`.
_SEPARATOR = '\0'


def code_digest(functions: Sequence[Any], argument_types: Any) -> str:
    """Returns a digest, 16 hexadecimal digits, of what numba compiles for some argument types.

    Args:
        functions: the kernel, and others on which its code depends.
        argument_types: a tuple of numba's types.
    """
    versions = [platform.python_implementation(), platform.python_version(), platform.machine()]
    versions += [numba.__version__, llvmlite.__version__, np.__version__]
    digest = hashlib.sha256(_SEPARATOR.join([*versions, repr(argument_types)]).encode())
    parts = [*dict.fromkeys([*functions, *_named_tuples(argument_types)])]
    numbers = {id(part): number for number, part in enumerate(parts)}
    families: list[Any] = []
    states: list[type] = []
    for part in parts:  # which grows
        part_digest, reached = _digest_part(part)
        bodies = []
        if isinstance(part, type):
            states.append(part)
            bodies = [family.bodies[part] for family in families if part in family.bodies]
        elif hasattr(part, 'bodies'):
            families.append(part)
            bodies = [part.bodies[state] for state in states if state in part.bodies]
        for other in [*reached, *bodies]:
            if id(other) not in numbers:
                numbers[id(other)] = len(parts)
                parts.append(other)
            part_digest += numbers[id(other)].to_bytes(4, 'little')
        digest.update(part_digest)
    return digest.hexdigest()[:16]


def _named_tuples(key: Any) -> Iterator[type]:
    """The classes of the named tuples among the types of arguments, nested ones too."""
    if isinstance(key, numba.core.types.Type):
        key = key.key
    if isinstance(key, tuple):
        for part in key:
            yield from _named_tuples(part)
    elif isinstance(key, type) and hasattr(key, '_fields'):
        yield key


@functools.cache
def _digest_part(part: Any) -> tuple[bytes, list[Any]]:
    """Returns the digest of a function or class by itself, and the others that it names.

    Once in a process: as numba does, it takes the globals of kernels for constants.
    """
    reached: list[Any] = []
    words = _words_of_class if isinstance(part, type) else _words_of_function
    text = _SEPARATOR.join([part.__module__ or '', part.__qualname__, *words(part, reached)])
    return hashlib.sha256(text.encode('utf-8', 'surrogatepass')).digest(), reached


def _words_of_class(part: type, reached: list[Any]) -> Iterator[str]:
    yield repr(getattr(part, '_fields', None))
    yield from _words(getattr(part, '_field_defaults', None), (), reached)
    if issubclass(part, enum.Enum):
        yield repr([*part])


def _words_of_function(part: Any, reached: list[Any]) -> Iterator[str]:
    if hasattr(part, 'bodies'):
        # Its bodies depend on the types of arguments; `code_digest` adds them.
        yield part.argument
        return
    for option in _OPTIONS:
        yield from _words(getattr(part, option, None), (), reached)
    yield from _words(getattr(part, '__wrapped__', None), (), reached)
    if isinstance(part, types.FunctionType):
        yield from _words_of_code(part.__code__, part.__globals__, part.__doc__, reached)
        cells = [cell.cell_contents for cell in part.__closure__ or ()]
        names = part.__code__.co_names
        for value in (part.__defaults__, part.__kwdefaults__, cells):
            yield from _words(value, names, reached)


def _words_of_code(
    code: types.CodeType, scope: dict[str, Any], docstring: str | None, reached: list[Any]
) -> Iterator[str]:
    yield repr(
        (
            *(code.co_code, getattr(code, 'co_exceptiontable', b''), code.co_flags),
            *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            *(code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars),
        )
    )
    for index, constant in enumerate(code.co_consts):
        if isinstance(constant, types.CodeType):
            yield from _words_of_code(constant, scope, None, reached)
        elif index or docstring is None or constant != docstring:
            yield from _words(constant, (), reached)
    for name in code.co_names:
        if name in scope:
            yield name
            yield from _words(scope[name], code.co_names, reached)


def _words(value: Any, names: Collection[str], reached: list[Any]) -> Iterator[str]:
    """Describes a value; appends the functions and classes in it to `reached`.

    Args:
        value: of a global, a constant or an option.
        names: those of the attributes that may be read from it.
        reached: is appended to.
    """
    if type(value) in _PLAIN:
        yield f'{type(value).__name__} {value!r}'
    elif isinstance(value, types.ModuleType):
        yield value.__name__
        if not _is_versioned(value.__name__):
            for name in names:
                if name in vars(value):
                    yield name
                    others = [other for other in names if other != name]
                    yield from _words(vars(value)[name], others, reached)
    elif hasattr(value, '__qualname__'):
        yield f'{value.__module__}.{value.__qualname__}'
        if not _is_versioned(value.__module__ or ''):
            reached.append(value)
    else:
        yield from _words(type(value), (), reached)
        yield from _words_of_content(value, names, reached)


def _words_of_content(value: Any, names: Collection[str], reached: list[Any]) -> Iterator[str]:
    def each(values: Iterable[Any]) -> Iterator[str]:
        for one in values:
            yield from _words(one, names, reached)

    if isinstance(value, (np.ndarray, np.void)):
        array = np.asarray(value)
        yield repr((array.dtype, array.shape, array.strides))
        yield hashlib.sha256(array.tobytes()).hexdigest()
    elif isinstance(value, (tuple, list)):
        yield str(len(value))
        yield from each(value)
    elif isinstance(value, (set, frozenset)):
        # Their order depends on the seed of hashes.
        yield str(len(value))
        yield from sorted(repr([*each([one])]) for one in value)
    elif isinstance(value, dict):
        yield str(len(value))
        yield from each(one for item in value.items() for one in item)
    else:
        yield _ADDRESS.sub('', repr(value))


def _is_versioned(module: str) -> bool:
    return module.partition('.')[0] in _VERSIONED
