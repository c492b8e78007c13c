"""What is said of packages that are missing works from a clone: the project is on no index."""

import ast
import pathlib
import re

import pytest

from pipelines.cli.job_file import tomllib
from tokcore.errors import missing_package

ROOT = pathlib.Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['optional-dependencies']
PAGES = [ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', *(ROOT / 'docs').rglob('*.md')]
MODULES = [path for folder in ('tokcore', 'pipelines') for path in (ROOT / folder).rglob('*.py')]


@pytest.mark.parametrize('kind', ['modules', 'pages'])
def test_nothing_is_to_be_installed_from_an_index(kind):
    for path in {'modules': MODULES, 'pages': PAGES}[kind]:
        text = path.read_text()
        assert not re.search(r'tokbeam\[|pip install (-\S+ )*.?tokbeam\b', text), path
        for extras in re.findall(r"'\.\[([a-z0-9,-]+)\]'", text):
            assert set(extras.split(',')) <= EXTRAS.keys(), path


def test_a_missing_package_is_named_by_an_extra_that_there_is():
    named = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'missing_package':
                named.append(node.args[1])
    literals = {each.value for each in named if isinstance(each, ast.Constant)}
    assert literals == {'s3', 'hf', 'report', 'array-record'}
    assert len(named) == len(literals) + 1  # of the readers: their extras have their names
    assert {'tensorflow', 'torch', 'grain', *literals} <= EXTRAS.keys()
    assert str(missing_package('dataset.torch', 'torch')) == (
        "dataset.torch needs a package that is not installed; run `pip install '.[torch]'` in a clone of "
        'tokbeam'
    )
