"""How kernels are compiled, cached, and chosen by the type of an argument.

numba stamps a cached kernel with its own file only, so a kernel whose callee changed in another
file would be stale. Here the cache folder is named by a digest of all sources of this package and
of the versions that compile them: any edit gives a new, empty folder. Kernels are cached as
pickles, and whoever writes a pickle decides what its reader runs; so a folder that others can write
to is not used, and kernels are compiled in memory then.

A family is a function with a body for each type of state, a `NamedTuple` of arrays and numbers:

    @kernel_family('model')
    def segment(text, model, ids):
        '''Says what every body does.'''

    @segment.register(WordModel)
    @kernel_without_allocation
    def _segment_words(text, model, ids): ...

In kernels numba chooses the body while it compiles, one specialisation a type. Elsewhere, and with
NUMBA_DISABLE_JIT=1, the function looks it up by the argument's type.
"""

import functools
import hashlib
import importlib.metadata
import inspect
import os
import pathlib
import platform
import shutil
import stat
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numba.extending import overload

_Function = TypeVar('_Function', bound=Callable)

# numba reads this when it is imported; a user who set it chose the disk, not the folder's name.
_NUMBA_VARIABLE = 'NUMBA_CACHE_DIR'

_PACKAGE = pathlib.Path(__file__).resolve().parents[1]

import numba  # noqa: E402  (the variable above must be set first)
import numba.extending  # noqa: E402
from numba.core import types  # noqa: E402
from numba.core.caching import FunctionCache, IndexDataCacheFile  # noqa: E402

SOURCES = (
    ('byte_copying.py', '12c43ec94765e437aae46d4c505f7a5b77f306db548ce458c473bdcd2782a775'),
    ('compilation.py', '673269d91d204bf52b4719112bb7e67e4387b800346fe0e353d1a3f67af07ce7'),
    ('corpus/line_kernels.py', '3c49142120182b5f07d7ad13bfad4275abac48bf07ea249f40264c689f3e9a2a'),
    ('counts_text.py', '3b799413afb7ccd5565d73e958c379f58124e08afeace60afb9916217ec68dc2'),
    ('intrinsics/atomics.py', '323d9a18a70d4c3e6a85930455fc0dc458f0bc77dbaea0276adfd91d1f4a5ea4'),
    (
        'intrinsics/chunk_bits.py',
        '272d16d329a15c30fea3213d975d1315aa4ee9a58612bec6de37bf3749a8c5cc',
    ),
    (
        'intrinsics/word_loads.py',
        '68311b811bd173293f53704b13735184f1e21d1228af538ebe0758ca05df3f66',
    ),
    ('pretokenization.py', '9dca8c3c1bce3f7f264c12705ff8c2a471d9b2bf7c248e86bad7b8825df5d8a3'),
    ('records/tfrecord.py', '8197feb724e80d00b0bf77643d6a652ac60a186cd8e3eff22bc30bd46324fef4'),
    ('records/run_kernels.py', '65ddf19891b7dc902d4702c1444dc6b43f63b17730f79cc10b12f23968ffd5b1'),
    ('row_counting.py', '4be841d6d8e4061d7f9204f561b181a59f5060cabf0cbe0f9ad912d79a8508c3'),
    (
        'subword/cutting_kernels.py',
        '6769c5f4c65b70197fc88d8a9ef8a55e78cb04c0ac04634420a4c73517dccbfb',
    ),
    (
        'subword/encoding_kernels.py',
        'cb4f0072c7f8b712c8320ed896409fb350301f7621fe18c23ce9570a8f9a845b',
    ),
    ('subword/escaped_text.py', 'b9e2fafbfe314eeab1cf8f3dcfb52f0dd7e14ce5a711508b7b43c7197db9c635'),
    ('subword/group_tree.py', '869b50844774965374228eaf446990ef8e153519151229b6481e985ff1358773'),
    ('subword/learner.py', '30ed9f19f1f58f676ea7dd70fc03d325d516a2201b318c8ce94e0adc184b4588'),
    ('subword/list_parting.py', '2437253d2be64ea61de7d382ffbf08d6bd95213154beefadcfc7f02f1c93f2d3'),
    ('subword/memo_kernels.py', '8ad805acdb97c584d5637a00eb6348a393b67f22e81115b4ac2e29760df5b5d9'),
    (
        'subword/pair_planting.py',
        '1907eb4d21ae0808df115f9e16417f04dc5e4df9ac09a8212ef01e286e755b08',
    ),
    ('subword/pair_sorting.py', 'c2a45a0c13c621dd7ecdd06aa9b8eca7a406d7e2c9408f947b1c196513ff4204'),
    (
        'subword/prefix_groups.py',
        '42ec6a529b75b6d9d641d7728d6311ce4bbe01cbce08d04cbbb291cf6ea7230f',
    ),
    ('subword/run_planting.py', 'b9475020c6b47ded2dec6f618c7b958fe82b2e40abd949a6244bb42f4b029b03'),
    ('subword/learner.py', '9aa6b6f7826d22ca54cd65139b0bcb866362e933c1ff4c8981907f0b5a790e22'),
    (
        'subword/suffix_listing.py',
        '392541e65e430ddad43ac65d15748287cfc473e8383882fac1537931d8cb9969',
    ),
    (
        'subword/suffix_packing.py',
        '4d2495a3a50eaa04b4cc48c7e3d9eb93ef37d326d81c51ab3ab9a28e6dade1f6',
    ),
    (
        'subword/suffix_table_kernels.py',
        'c2503bae1eb084f090c3289a45d98600f647d7282c64f405ccfe0a3b75d122c6',
    ),
    ('subword/suffixes.py', '0866b8cd5e9cf2304ab2d4dbb06b07f0c78cbdcc544b881f6f00238c1d5aabaf'),
    ('subword/tree.py', '738ca5cdaf27bf5e7549c18ff993154b7a95ea0c05bb9c6bd8bd1508e17cc55a'),
    ('subword/trie_kernels.py', '19bc2bde722d4623952044d0332e2c5fc9c520393a99b882fd9c6abb28d57feb'),
    ('subword/whole_tree.py', '153abf0d27330a4c60b48ce351da5622084cc7fa125bf94b4588fc40574488b4'),
    ('token_hashing.py', '9f039495b09379195be55d32892dcec1484bed896b475f879dcebc15b3337fca'),
    ('token_packing.py', '7a52adfa49a7addaaf19357b9c45cfc77612b063747352f0b5d8dd53373ca0bf'),
    ('token_scanning.py', '656c53c23bb8481beaae5f535a11f7d58411f5da921c2edfa303cd5a2cb4fb2b'),
)
"""For each, in order, its name below `tokcore` and its SHA-256, at 6b30307."""

EDITED = {
    # The cache folder has to be the user's alone.
    'compilation.py': '10231e7474f14145b50e396b3b9078a9ba2e87e3606580e3b63e3339a3d46723',
}
"""The SHA-256 of what was edited since then without a change to what is computed."""

_Decorator = Callable[[Callable], Callable]

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH


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


def read_only(array: np.ndarray) -> np.ndarray:
    """Returns a read-only view, so that a kernel's inputs have one type wherever they come from.

    numba compiles a kernel once for each combination of argument types, and an array over `bytes`
    (read-only) is another type than a fresh one.
    """
    view = array.view()
    view.flags.writeable = False
    return view


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


def private_folder(path: pathlib.Path, own_parent: bool = False) -> pathlib.Path | None:
    """Makes or takes a folder that is this user's alone; None if it cannot be that.

    An own folder that others may look into is narrowed to mode 0700; in place of one that others
    could write to, with whatever it holds by now, a new one is made. Where the system knows no
    owners, the folder is made and taken as it is.

    Args:
        path: of the folder, no link itself; missing folders above it are made for this user alone.
        own_parent: the folder above it is narrowed likewise.

    Raises:
        OSError: it cannot be made.
    """
    if not hasattr(os, 'geteuid'):
        path.mkdir(parents=True, exist_ok=True)
        return path
    _make(path.parent)
    # Links on the way are the user's choice; what counts is who may change where they lead.
    parent = path.parent.resolve(strict=True)
    if own_parent and not _narrow(parent):
        return None
    if not only_owner_may_replace([each.stat() for each in [*reversed(parent.parents), parent]]):
        return None
    path = parent / path.name
    _make(path)
    found = path.lstat()
    if _is_own(found) and _others_may_write(found):
        _put_away(path)
        _make(path)
    return path if _narrow(path) else None


def _make(path: pathlib.Path) -> None:
    if not os.path.lexists(path):
        _make(path.parent)
        path.mkdir(mode=stat.S_IRWXU, exist_ok=True)


def _narrow(path: pathlib.Path) -> bool:
    """Takes others' rights to a folder away; tells whether it is one, and this user's."""
    found = path.lstat()
    if not _is_own(found):
        return False
    if found.st_mode & _OTHERS:
        path.chmod(stat.S_IRWXU)
    return True


def _is_own(found: os.stat_result) -> bool:
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _put_away(folder: pathlib.Path) -> None:
    # Renamed first: what belongs to others within it may not let itself be deleted.
    aside = folder.with_name(f'{folder.name}-{uuid.uuid4().hex}')
    folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def only_owner_may_replace(folders: Sequence[os.stat_result]) -> bool:
    """Tells whether nobody else can rename what this user has in the last of some folders.

    The folders are those of a path, from the root on: who may rename one of them, may replace all
    that is in it.
    """
    user = os.geteuid()
    # Who owns the root is trusted: the administrator, whatever number a container gives him.
    trusted = {0, user, folders[0].st_uid}
    for found in folders:
        if found.st_uid not in trusted:
            return False
        if found.st_uid == user and not found.st_mode & _OTHERS_ENTER:
            return True  # nobody else gets any further
        # In a folder with the sticky bit, as /tmp, each may rename their own entries only.
        if _others_may_write(found) and not found.st_mode & stat.S_ISVTX:
            return False
    return True


def _others_may_write(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_users_own_group(found.st_gid)


def _is_users_own_group(number: int) -> bool:
    """Tells whether a group has the user alone, as where the umask is 002 every user has one."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


CACHE_FOLDER: pathlib.Path | None = _writable_cache_folder('kernels-' + source_digest())
"""Where compiled kernels are kept, or None if there is no such place."""

if CACHE_FOLDER is not None:
    os.environ[_NUMBA_VARIABLE] = str(CACHE_FOLDER)
    if 'numba' in sys.modules:
        sys.modules['numba'].config.CACHE_DIR = str(CACHE_FOLDER)


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


def kernel_family(argument: str) -> _Decorator:
    """Decorates the signature and docstring of a family; `argument` has the type that selects."""

    def decorated(declared: Callable) -> Callable:
        signature = inspect.signature(declared)
        place = list(signature.parameters).index(argument)
        bodies: dict[type, Callable] = {}

        @functools.wraps(declared)
        def generic(*arguments):
            try:
                body = bodies[type(arguments[place])]
            except KeyError as error:
                raise TypeError(f'{declared.__name__} has no body for {error}') from None
            return body(*arguments)

        def register(state: type) -> _Decorator:
            """Decorates the kernel, of the same arguments, for this type of state."""

            def registered(body: Callable) -> Callable:
                if inspect.signature(body) != signature:
                    raise TypeError(f'{body.__name__} has other arguments than {declared.__name__}')
                bodies[state] = body
                if not numba.config.DISABLE_JIT:
                    _overload(generic, signature, place, state, body)
                return body

            return registered

        generic.register = register
        return generic

    return decorated


def _overload(generic, signature: inspect.Signature, place: int, state: type, body) -> None:
    """Tells numba of a body, which is compiled with its own options into whoever calls it."""

    def selected(*argument_types):
        is_chosen = getattr(argument_types[place], 'instance_class', None) is state
        return body.py_func if is_chosen else None

    selected.__signature__ = signature
    overload(generic, jit_options={'_nrt': body.targetoptions['_nrt']})(selected)
