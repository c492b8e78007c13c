"""How kernels are compiled, cached, and chosen by the type of an argument.

numba checks a cached kernel against its own source file only: it would use a stale one if a kernel
that it calls changed in another file, and compile again if a comment changed. Here a compiled kernel
is named by a digest of all that it depends on; see `code_digest`. Those that were not used for 30
days are deleted. Kernels are cached as pickles, and a pickle can run any code; so a folder that
others can write to is not used, and kernels are then compiled in memory.

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
import functools
import inspect
import os
import pathlib
import re
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, cast

import numba
import numba.extending
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler import CompileResult
from numba.extending import overload

from tokcore.kernels.code_digest import code_digest

_Function = TypeVar('_Function', bound=Callable)

# A user who sets it chooses the disk, not the folder's name.
_NUMBA_VARIABLE = 'NUMBA_CACHE_DIR'

IS_DISABLED = bool(vars(numba.config)['DISABLE_JIT'])
"""Whether kernels run as plain Python (NUMBA_DISABLE_JIT=1)."""

_Decorator = Callable[[Callable], Callable]

_NOTED_EVERY = 24 * 3600  # seconds
_KEPT_FOR = 30 * _NOTED_EVERY
_EARLIER_FOLDER = re.compile('kernels-[0-9a-f]{16}')

_LONGEST_NAME = 150
"""Characters of a kernel's name in those of its files, which may have 255."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH


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
    view.flags.writeable = False
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


def _candidate_folders() -> Iterator[tuple[pathlib.Path, bool]]:
    """Yields folders for caches, and whether each belongs to this program alone."""
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
            private = private_folder(folder, is_own)
            if private is not None:
                with tempfile.TemporaryFile(dir=private):
                    return private
        except OSError:
            continue
    return None


def private_folder(path: pathlib.Path, own_parent: bool = False) -> pathlib.Path | None:
    """Returns a folder that only this user can change, made if needed; None if that is impossible.

    The user's own folder gets mode 0700 if others may read it. If others may write to it, it is
    replaced by a new one, since its contents are not to be trusted. On systems without owners the
    folder is used as it is.

    Args:
        path: of the folder, which is not a link; missing parents are made with mode 0700.
        own_parent: whether the parent gets mode 0700 too.

    Raises:
        OSError: it cannot be made.
    """
    if not hasattr(os, 'geteuid'):
        path.mkdir(parents=True, exist_ok=True)
        return path
    _make(path.parent)
    # Links in the path are the user's choice; what matters is who may change their targets.
    parent = path.parent.resolve(strict=True)
    if own_parent and not _narrow(parent):
        return None
    if not only_owner_may_replace(
        [folder.stat() for folder in [*reversed(parent.parents), parent]]
    ):
        return None
    path = parent / path.name
    _make(path)
    state = path.lstat()
    if _is_own(state) and _others_may_write(state):
        _put_away(path)
        _make(path)
    return path if _narrow(path) else None


def _make(path: pathlib.Path) -> None:
    if not os.path.lexists(path):
        _make(path.parent)
        path.mkdir(mode=stat.S_IRWXU, exist_ok=True)


def _narrow(path: pathlib.Path) -> bool:
    """Removes the rights of others; returns False if it is not a folder of this user."""
    state = path.lstat()
    if not _is_own(state):
        return False
    if state.st_mode & _OTHERS:
        path.chmod(stat.S_IRWXU)
    return True


def _is_own(state: os.stat_result) -> bool:
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()


def _put_away(folder: pathlib.Path) -> None:
    # Renamed first: files of others in it perhaps cannot be deleted.
    aside = folder.with_name(f'{folder.name}-{uuid.uuid4().hex}')
    folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def only_owner_may_replace(folders: Sequence[os.stat_result]) -> bool:
    """Whether nobody else can replace a folder of this user in the last of the folders of a path.

    The folders are those from the root on: whoever may rename one of them can replace all in it.
    """
    user = os.geteuid()
    # The owner of the root is trusted: the administrator, whatever number a container gives him.
    trusted = {0, user, folders[0].st_uid}
    for folder in folders:
        if folder.st_uid not in trusted:
            return False
        if folder.st_uid == user and not folder.st_mode & _OTHERS_ENTER:
            return True  # nobody else can enter it
        # In a folder with the sticky bit, as /tmp, users may rename only their own entries.
        if _others_may_write(folder) and not folder.st_mode & stat.S_ISVTX:
            return False
    return True


def _others_may_write(state: os.stat_result) -> bool:
    if state.st_mode & stat.S_IWOTH:
        return True
    return bool(state.st_mode & stat.S_IWGRP) and not _is_users_own_group(state.st_gid)


def _is_users_own_group(number: int) -> bool:
    """Whether this user is the only member of a group, as is usual where the umask is 002."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


CACHE_FOLDER: pathlib.Path | None = _writable_cache_folder('kernels-by-code')
"""The folder of compiled kernels, or None if there is none that can be used."""

if CACHE_FOLDER is not None:
    os.environ[_NUMBA_VARIABLE] = str(CACHE_FOLDER)
    vars(numba.config)['CACHE_DIR'] = str(CACHE_FOLDER)


def _compiled(function: _Function, allocates: bool, is_inlined: bool = False) -> _Function:
    # The option is not public. It leaves out numba's runtime, which allocates and counts references.
    options = {'forceinline': True} if is_inlined else {}
    compile_: Any = numba.njit
    compiled = compile_(nogil=True, _nrt=allocates, **options)(function)
    if CACHE_FOLDER is not None and not IS_DISABLED:
        compiled._cache = _KernelCache(compiled, CACHE_FOLDER)
    return compiled


class _KernelCache(FunctionCache):
    """The cache of a kernel, with files of its own for each combination of argument types.

    numba keeps all combinations of a kernel in one index file, by the path and line of its source.
    Then two processes that compile at once can each write over what the other has written, a process
    that cannot import the module of a type cannot read any combination, and each copy of the same
    sources (an installed one, a checkout) compiles again.
    """

    def __init__(self, kernel: Any, folder: pathlib.Path):
        # Without numba's, which looks for a source file and makes a folder for it.
        self._kernel = kernel
        self._cache_path = str(folder)

    def _load_overload(self, sig, target_context):
        file = self._file(sig)
        data = file.load(self._index_key(sig, target_context.codegen()))
        if data is None:
            return None
        _note_use(file._index_path)
        return CompileResult._rebuild(target_context, *data)

    def _save_overload(self, sig, data):
        if data.library.has_dynamic_globals or not all(each.can_cache for each in data.lifted):
            return
        # What is compiled is in memory too, so a full disk is not a failure.
        with contextlib.suppress(OSError):
            self._file(sig).save(self._index_key(sig, data.codegen), data._reduce())
        _sweep(pathlib.Path(self._cache_path))

    def _index_key(self, sig, codegen):
        return sig, codegen.magic_tuple()  # which names the processor

    def _file(self, sig) -> IndexDataCacheFile:
        function = self._kernel.py_func
        # All kernels, since many call a family.
        digest = code_digest([self._kernel, _overload], getattr(sig, 'args', sig))
        name = re.sub('[^.0-9A-Za-z_]', '', f'{function.__module__}.{function.__qualname__}')
        return IndexDataCacheFile(self._cache_path, f'{name[-_LONGEST_NAME:]}-{digest}', '')


def _note_use(index: str) -> None:
    """Notes in the time of an index file that its kernel is used, at most once a day."""
    with contextlib.suppress(FileNotFoundError):  # another process has swept it
        if time.time() - os.stat(index).st_mtime > _NOTED_EVERY:
            os.utime(index)


@functools.cache
def _sweep(folder: pathlib.Path) -> None:
    """Deletes what was not used for 30 days: once in a process that compiles; no other has to look."""
    oldest = time.time() - _KEPT_FOR
    with contextlib.suppress(FileNotFoundError):  # another process deletes it at the same time
        # Indexes first: other files are kept with theirs.
        for path in sorted(folder.iterdir(), key=lambda path: path.suffix != '.nbi'):
            if path.suffix == '.nbi':
                # A use is noted up to a day late, and marks of what is compiled must go first.
                if path.stat().st_mtime < oldest - 2 * _NOTED_EVERY:
                    path.unlink()
            elif path.is_file() and path.stat().st_mtime < oldest:
                if not path.with_name(path.name.rsplit('.', 2)[0] + '.nbi').exists():
                    path.unlink()
        for path in _earlier_folders(folder):
            if path.stat().st_mtime < oldest:
                shutil.rmtree(path, ignore_errors=True)


def _earlier_folders(folder: pathlib.Path) -> list[pathlib.Path]:
    """The folders of earlier versions, which had one for each state of the sources."""
    return [
        path
        for path in folder.parent.iterdir()
        if _EARLIER_FOLDER.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    ]


def compiled_kernels() -> Iterator[tuple[pathlib.Path, list[pathlib.Path]]]:
    """Yields the folders of compiled kernels, each with what can be deleted while others use it."""
    if CACHE_FOLDER is not None:
        yield CACHE_FOLDER, [*CACHE_FOLDER.iterdir()]
        for folder in _earlier_folders(CACHE_FOLDER):
            yield folder, [folder]


class KernelFamily(Protocol):
    """A function of which each type of state has a body of its own."""

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
