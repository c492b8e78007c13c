"""What docstrings show is what happens."""

import doctest
import importlib
import pkgutil

import pytest

import pipelines
import tokcore


def modules_with_examples():
    for package in (tokcore, pipelines):
        for found in pkgutil.walk_packages(package.__path__, f'{package.__name__}.'):
            if '>>>' in (found.module_finder.find_spec(found.name).loader.get_source(found.name)):
                yield found.name


EXAMPLES = list(modules_with_examples())


def test_there_are_some():
    assert 'tokcore.subword.plain_iteration' in EXAMPLES


@pytest.mark.parametrize('name', EXAMPLES)
def test_examples_give_what_they_show(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
