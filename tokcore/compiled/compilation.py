"""How kernels are compiled: one decorator, and one cache folder for each state of the sources.

numba stamps a cached kernel with its own file only, so a kernel whose callee changed in another
file would be stale. Here the cache folder is named by a digest of all sources of this package and of
the versions that compile them: any edit gives a new, empty folder. Where no folder can be written
that is this user's alone, kernels are compiled in memory and nothing fails.
"""

import hashlib
import importlib.metadata
import os
import pathlib
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from tokcore.compiled.earlier_sources import EDITED, SOURCES
from tokcore.compiled.private_folder import private_folder

_Function = TypeVar('_Function', bound=Callable)

# numba reads this when it is imported; a user who set it chose the disk, not the folder's name.
_NUMBA_VARIABLE = 'NUMBA_CACHE_DIR'

_PACKAGE = pathlib.Path(__file__).resolve().parents[1]


def source_digest(package: pathlib.Path = _PACKAGE) -> str:
    """Returns 16 hexadecimal digits that name the sources in a folder and their compilers.

    All sources share one digest, so an edit renews the callers in other files too, and what only
    gives kernels their types: numba's own key of a named tuple, say, is blind to the order of fields.
    """
    return _digest(
        (path.relative_to(package).as_posix(), hashlib.sha256(path.read_bytes()).digest())
        for path in sorted(package.rglob('*.py'))
    )


def earlier_digests() -> tuple[str, ...]:
    """Returns the digests that earlier sources had whose kernels compute the same bytes as these.

    Work of theirs that was left half done can be gone on with.
    """
    return tuple(
        _digest((name, bytes.fromhex(edited.get(name, known))) for name, known in SOURCES)
        for edited in ({}, EDITED)
    )


def _digest(sources: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    versions = [platform.python_implementation(), platform.python_version(), platform.machine()]
    versions += [importlib.metadata.version(name) for name in ('numba', 'llvmlite', 'numpy')]
    digest.update('\0'.join(versions).encode())
    for name, checksum in sources:
        digest.update(name.encode() + b'\0')
        digest.update(checksum)
    return digest.hexdigest()[:16]


def _candidate_folders() -> Iterator[tuple[pathlib.Path, bool]]:
    """Yields folders for caches, and whether each is this program's own."""
    chosen = os.environ.get(_NUMBA_VARIABLE)
    if chosen:
        yield pathlib.Path(chosen), False
    home = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    if os.path.isabs(home):
        yield pathlib.Path(home) / 'tokbeam', True


def _writable_cache_folder(name: str) -> pathlib.Path | None:
    for parent, is_own in _candidate_folders():
        # A child process inherits the variable with the folder already named.
        folder = parent if parent.name == name else parent / name
        try:
            found = private_folder(folder, is_own)
            if found is not None:
                with tempfile.TemporaryFile(dir=found):
                    return found
        except OSError:
            continue
    return None


CACHE_FOLDER: pathlib.Path | None = _writable_cache_folder('kernels-' + source_digest())
"""Where compiled kernels are kept, or None if there is no such place."""

if CACHE_FOLDER is not None:
    os.environ[_NUMBA_VARIABLE] = str(CACHE_FOLDER)
    if 'numba' in sys.modules:
        sys.modules['numba'].config.CACHE_DIR = str(CACHE_FOLDER)

import numba  # noqa: E402  (the variable above must be set first)
import numba.extending  # noqa: E402
from numba.core import types  # noqa: E402
from numba.core.caching import FunctionCache, IndexDataCacheFile  # noqa: E402


def kernel(function: _Function) -> _Function:
    """Compiles a function over arrays and numbers; it runs without the interpreter lock.

    Rules that the cache needs: tables are arguments, never globals (numba freezes those into the
    compiled code), and no kernel is an argument of another.
    """
    return _compiled(function, allocates=True)


def kernel_without_allocation(function: _Function) -> _Function:
    """Compiles a kernel that makes and returns no array, nor calls a kernel that does.

    numba counts references to every array that a function is given, also in those that it inlines;
    in a loop over tokens that is an atomic instruction or two for each. Here nothing is counted.
    """
    return _compiled(function, allocates=False)


def inlined_kernel(function: _Function) -> _Function:
    """Compiles a kernel without allocation into whoever calls it, however large it is.

    LLVM leaves large functions out of line, and a call hands over each array as seven numbers: for
    a state of many arrays that takes as long as some dozens of bytes of text do.
    """
    return _compiled(function, allocates=False, is_inlined=True)


def intrinsic(plain: _Function) -> Callable[[Callable], _Function]:
    """Decorates the typing function of an LLVM intrinsic that does what `plain` does.

    Where numba compiles nothing (NUMBA_DISABLE_JIT=1), `plain` stands in its place, so that a
    debugger and coverage see all of a kernel.
    """
    if numba.config.DISABLE_JIT:
        return lambda typing: plain
    return numba.extending.intrinsic


def _compiled(function: _Function, allocates: bool, is_inlined: bool = False) -> _Function:
    # The option has no public name. It leaves out numba's run time, which allocates and counts.
    is_cached = CACHE_FOLDER is not None
    options = {'forceinline': True} if is_inlined else {}
    made = numba.njit(nogil=True, cache=is_cached, _nrt=allocates, **options)(function)
    if is_cached and not numba.config.DISABLE_JIT:
        made._cache = _KernelCache(function)  # what `cache=True` has put there, with more files
    return made


class _KernelCache(FunctionCache):
    """A kernel's cache, with files of their own for types of states from outside this package.

    An index file names the types of all that is compiled, so a process that cannot import the
    module of one of them could read nothing of it. And the folder's name says nothing of what such
    a module and those beside it hold: the digest of their sources is in the files' names.
    """

    def _load_overload(self, sig, target_context):
        self._cache_file = self._file(sig)
        return super()._load_overload(sig, target_context)

    def _save_overload(self, sig, data):
        self._cache_file = self._file(sig)
        super()._save_overload(sig, data)

    def _file(self, sig) -> IndexDataCacheFile:
        modules = {self._py_func.__module__, *_modules_of(getattr(sig, 'args', sig))}
        folders = {_folder_of(module) for module in modules} - {None}
        others = sorted(each for each in folders if not each.is_relative_to(_PACKAGE))
        digests = [source_digest(each) for each in others]
        name = '-'.join([self._impl.filename_base, *digests])
        return IndexDataCacheFile(self._cache_path, name, self._impl.locator.get_source_stamp())


def _modules_of(argument_types: Iterable[types.Type]) -> Iterator[str]:
    """The names of the modules that named tuples among some types are of, nested ones too."""
    for each in argument_types:
        if isinstance(each, types.BaseTuple):
            if hasattr(each, 'instance_class'):
                yield each.instance_class.__module__
            yield from _modules_of(each)


def _folder_of(module: str) -> pathlib.Path | None:
    path = getattr(sys.modules.get(module), '__file__', None)
    return pathlib.Path(path).resolve().parent if path else None


def read_only(array: np.ndarray) -> np.ndarray:
    """Returns a read-only view, so that a kernel's inputs have one type wherever they come from.

    numba compiles a kernel once for each combination of argument types, and an array over `bytes`
    (read-only) is another type than a fresh one.
    """
    view = array.view()
    view.flags.writeable = False
    return view
