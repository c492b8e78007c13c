"""Tensor2Tensor's modules of problems, which name much that is not installed and never used."""

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types

import pytest

_UNUSED = {'scipy', 'tensorflow_addons', 'tensorflow_probability'}
"""Packages that are imported on the way: those that are missing are stood in for."""


class _AnyName(type):
    def __getattr__(cls, name: str) -> type:
        if name.startswith('__'):
            raise AttributeError(name)
        return cls


class _Nothing(metaclass=_AnyName):
    """Stands for `tf.estimator` and for whatever is in a package that is not there."""


class _ModeKeys:
    TRAIN, EVAL, PREDICT = 'train', 'eval', 'infer'


class _Estimators(_Nothing):
    """Its modes name the splits of a problem."""

    ModeKeys = _ModeKeys


class _Package(types.ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name: str) -> type:
        return getattr(_Nothing, name)


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.partition('.')[0] in _UNUSED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Package(spec.name)

    def exec_module(self, module):
        pass


def problem_module(name: str) -> types.ModuleType:
    """Returns a module of `tensor2tensor.data_generators`; skips the test if there is none."""
    try:
        import tensorflow.compat.v1 as tf

        if not hasattr(tf, 'estimator'):
            tf.estimator = _Estimators
        stand_ins = _StandIns()
        sys.meta_path.append(stand_ins)  # the last that is asked: what is installed is taken
        try:
            return importlib.import_module(f'tensor2tensor.data_generators.{name}')
        finally:
            sys.meta_path.remove(stand_ins)
            for imported in [*sys.modules]:
                if isinstance(sys.modules[imported], _Package):
                    del sys.modules[imported]
    except ImportError as error:
        reason = f'Tensor2Tensor cannot be imported: {error}'
        if os.environ.get('CI') == 'true':
            pytest.fail(reason)
        pytest.skip(reason)
