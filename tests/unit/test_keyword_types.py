"""The keyword arguments that type checkers see are those that formats, schemes and commands declare."""

import keyword_types
import pytest


@pytest.mark.parametrize('path', keyword_types.files(), ids=lambda path: path.parent.name)
def test_the_generated_file_is_current(path, tmp_path):
    expected = keyword_types.files()[path].split()
    written = path.read_text().split()
    assert [w.strip('\',"()') for w in written] == [w.strip('\',"()') for w in expected], (
        'run `python -m tests.keyword_types`, and ruff format'
    )
