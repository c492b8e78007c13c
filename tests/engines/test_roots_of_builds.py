"""The root of a build: the same however the job is run, and another one for anything that it is made of."""

import shutil

import pytest
from dataset_files import manifest_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs import succeed, write

pytestmark = pytest.mark.slow

LINES = [b'line %d of some' % number for number in range(60)]
BYTES = {'--seed': 0, '--shards': 3, '--scheme': 'byte'}

SETTINGS = settings(
    max_examples=8, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def root(tmp_path):
    """Builds a dataset of some lines; returns its root."""

    def root_of(lines, options, *running):
        text = write(tmp_path / 'text', b''.join(line + b'\n' for line in lines))
        out = tmp_path / 'out'
        shutil.rmtree(out, ignore_errors=True)
        words = [word for option in options.items() for word in option]
        succeed('build', '--text', text, '--name', 'n', '--output', out, *words, *running)
        return manifest_of(out)['root']

    return root_of


@SETTINGS
@given(
    changed=st.one_of(
        st.tuples(st.just('--seed'), st.integers(1, 2**64 - 1)),
        st.tuples(st.just('--shards'), st.sampled_from([1, 2, 4])),
        st.tuples(st.just('--target-prefix'), st.sampled_from(['a', '<en> '])),
        st.tuples(st.integers(0, 59), st.binary(min_size=1, max_size=8)),
    )
)
def test_what_a_dataset_is_made_of_changes_its_root(root, changed):
    what, value = changed
    lines, options = list(LINES), dict(BYTES)
    if isinstance(what, str):
        options[what] = value
    else:
        lines[what] = value.hex().encode()
    assert root(lines, options) != root(LINES, BYTES)
