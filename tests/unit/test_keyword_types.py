"""The keyword arguments that type checkers see are those that formats, schemes and commands declare."""

import re

import keyword_types
import pytest


@pytest.mark.parametrize('path', keyword_types.files(), ids=lambda path: path.parent.name)
def test_the_generated_file_is_current(path, tmp_path):
    # The formatter breaks lines, and puts parentheses and commas around what it breaks.
    written, expected = (
        re.sub(r'[\s\'",()]+', '', text) for text in (path.read_text(), keyword_types.files()[path])
    )
    assert written == expected, 'run `python -m tests.keyword_types`, and ruff format'
