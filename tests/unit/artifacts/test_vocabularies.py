"""What is known of the licence of a vocabulary's file."""

import pytest

from pipelines.artifacts.vocabularies import stated_licence


@pytest.mark.parametrize(
    ('text', 'licence'),
    [
        ('---\nlicense: apache-2.0\ntags: [x]\n---\ntext', 'apache-2.0'),
        ('---\r\nlicense: "mit"\r\n---\r\n', 'mit'),
        ('---\nlicense: other\nlicense_name: llama3.1\n---\n', 'llama3.1'),
        ('---\nlicense_name: llama3.1\nlicense: other\n---\n', 'llama3.1'),
        ('---\nlicense: other\n---\n', 'other'),
        ('---\ntags:\n- x\n---\nlicense: mit\n---\n', None),
        ('# A title\n---\nlicense: mit\n---\n', None),
        ('---\nbase_license: mit\n  license: mit\n---\n', None),
        ('---\nlicense:\n- mit\n---\n', None),
        ('', None),
    ],
)
def test_the_licence_that_a_readme_states(tmp_path, text, licence):
    (tmp_path / 'README.md').write_text(text, newline='')
    assert stated_licence(str(tmp_path / 'tokenizer.json')) == licence


def test_no_readme(tmp_path):
    (tmp_path / 'README.md').write_bytes(b'---\nlicense: \xff\n---\n')
    assert stated_licence(str(tmp_path / 'tokenizer.json')) is None
    assert stated_licence(str(tmp_path / 'other' / 'tokenizer.json')) is None
