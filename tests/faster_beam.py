"""Beam in tests: what it works out again for each transform is remembered by the process.

A job of some dozen rows is three pipelines, in which Beam inspects the methods of its `DoFn`s and
makes parsers of its options hundreds of times: most of the job's time. Processes that tests start
are without this, and so are `slow` tests of other engines.
"""

import argparse
import bz2
import copy
import functools
import types
import weakref
from typing import Any


@functools.cache
def install() -> None:
    """Replaces functions of Beam in this process by ones that remember results."""
    import apache_beam.internal.cloudpickle_pickler as cloudpickle_pickler
    import apache_beam.io.filesystems as filesystems
    import apache_beam.options.pipeline_options as pipeline_options
    import apache_beam.transforms.core as core
    import apache_beam.transforms.userstate as userstate
    import apache_beam.typehints.decorators as decorators

    userstate.get_dofn_specs = _by_class(userstate.get_dofn_specs)
    core.get_function_args_defaults = _by_function(core.get_function_args_defaults)
    core._check_fn_use_yield_and_return = _by_callable(core._check_fn_use_yield_and_return)
    decorators.get_signature = _by_callable(decorators.get_signature)
    decorators.IOTypeHints._make_origin = classmethod(_without_stack)
    from_callable = decorators.IOTypeHints.from_callable
    decorators.IOTypeHints.from_callable = staticmethod(_by_callable(from_callable))
    cloudpickle_pickler.bz2 = types.SimpleNamespace(
        compress=_compressed_fast, decompress=bz2.decompress
    )
    pipeline_options.PipelineOptions.view_as = _view_as
    pipeline_options.PipelineOptions._visible_option_list = _visible_option_list
    options = pipeline_options.PipelineOptions
    options.get_all_options = _all_options(options.get_all_options)
    systems = filesystems.FileSystems
    systems.get_filesystem = staticmethod(_local_at_once(systems.get_filesystem))


def _by_function(inspect_function: Any) -> Any:
    """Remembers arguments and defaults by function, which methods of all instances share."""
    known: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def remembered(function: Any) -> tuple[list, list]:
        if not isinstance(function, types.MethodType):
            return inspect_function(function)
        if function.__func__ not in known:
            known[function.__func__] = inspect_function(function)
        names, defaults = known[function.__func__]
        return [*names], [*defaults]

    return remembered


def _compressed_fast(data: bytes, compresslevel: int) -> bytes:
    """Compresses as the least level does: the greatest clears megabytes for each function."""
    return bz2.compress(data, 1)


def _by_callable(inspect_callable: Any) -> Any:
    """Remembers what there is to know of functions, that of methods apart: they have no `self`."""
    of_functions: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
    of_methods: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def remembered(function: Any) -> Any:
        known, key = of_functions, function
        if isinstance(function, types.MethodType):
            known, key = of_methods, function.__func__
        if not isinstance(key, types.FunctionType):
            return inspect_callable(function)
        if key not in known:
            known[key] = inspect_callable(function)
        return known[key]

    return remembered


def _without_stack(cls: type, bases: Any, tb: bool = True, msg: Any = ()) -> list[str]:
    """Leaves out where hints of types come from: the stack as text, for each transform."""
    return [*msg]


def _local_at_once(get_filesystem: Any) -> Any:
    """Knows the file system of local paths without a look at all classes of file systems."""
    local = type(get_filesystem('/'))

    def known(path: str) -> Any:
        return get_filesystem(path) if '://' in path else local(pipeline_options=None)

    return known


def _by_class(get_specs: Any) -> Any:
    """Remembers states and timers by class of `DoFn`, unless an instance has methods of its own."""
    known: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def remembered(dofn: Any) -> tuple[set, set]:
        if any(isinstance(value, types.MethodType) for value in vars(dofn).values()):
            return get_specs(dofn)
        if type(dofn) not in known:
            known[type(dofn)] = get_specs(dofn)
        states, timers = known[type(dofn)]
        return {*states}, {*timers}

    return remembered


_parsed: dict[tuple[type, tuple[str, ...]], dict[str, Any]] = {}
"""By class of options and flags, the options of that class."""


def _view_as(self: Any, cls: type) -> Any:
    """As `PipelineOptions.view_as`."""
    flags = self._flags
    if flags is None:  # those of the process
        parsed = vars(cls(flags)._visible_options)
    else:
        key = cls, tuple(flags)
        if key not in _parsed:
            _parsed[key] = vars(cls(flags)._visible_options)
        parsed = _parsed[key]
    visible = {
        name: [*value] if isinstance(value, list) else value for name, value in parsed.items()
    }
    for name in sorted(visible):
        self._all_options.setdefault(name, visible[name])
    view = cls.__new__(cls)
    vars(view).update(
        _flags=flags, _visible_options=argparse.Namespace(**visible), _all_options=self._all_options
    )
    return view


def _visible_option_list(self: Any) -> list[str]:
    """As in Beam, which lists the attributes of `object` too, at each look at an option."""
    return sorted(name for name in vars(self._visible_options) if name[0] != '_')


def _all_options(get_all_options: Any) -> Any:
    """Remembers the values of all classes of options by flags, and by what was set beside them."""
    known: dict[object, dict[str, Any]] = {}

    def remembered(self: Any, **how: Any) -> dict[str, Any]:
        if self._flags is None or 'add_extra_args_fn' in how:
            return get_all_options(self, **how)
        key = repr((self._flags, self._all_options, how, type(self)))
        if key not in known:
            known[key] = get_all_options(self, **how)
        return copy.deepcopy(known[key])

    return remembered
