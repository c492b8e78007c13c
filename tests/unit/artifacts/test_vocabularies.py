"""What files state of a vocabulary: the options of its scheme, and its licence."""

import base64

import pytest

from pipelines.artifacts.vocabularies import scheme_of, stated_licence
from tokcore.errors import InputError


def test_a_file_that_states_no_options_goes_with_one_that_does(tmp_path):
    paths = [tmp_path / name / 'vocab.txt' for name in ('cased', 'plain')]
    for path in paths:
        path.parent.mkdir()
        path.write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nline\n##s\n')
    (tmp_path / 'cased' / 'tokenizer_config.json').write_text('{"do_lower_case": false}')
    for files in (paths, paths[::-1]):
        assert scheme_of(map(str, files)).lower_case is False


def test_ranks_of_an_unknown_name_do_not_take_the_pattern_of_others(tmp_path):
    paths = [tmp_path / name for name in ('cl100k_base.tiktoken', 'mine.tiktoken')]
    for path in paths:
        path.write_text(
            ''.join(f'{base64.b64encode(bytes([byte])).decode()} {byte}\n' for byte in range(256))
        )
    with pytest.raises(
        InputError, match=r'--pattern is cl100k for .*/cl100k_base.tiktoken and None'
    ):
        scheme_of(map(str, paths))


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
