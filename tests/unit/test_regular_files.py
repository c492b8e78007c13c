"""Regular files are read; what may never end is refused before it is waited for."""

import os

import pytest

from tokcore.encoding.vocabulary import read_vocabulary_file
from tokcore.errors import InputError
from tokcore.reading.dataset import open_dataset
from tokcore.regular_files import open_regular, read_regular
from tokcore.tokenizers import load_tokenizer


def test_files_and_links_to_them_are_read(tmp_path):
    (tmp_path / 'file').write_bytes(b'text')
    (tmp_path / 'link').symlink_to('file')
    assert read_regular(tmp_path / 'link') == read_regular(str(tmp_path / 'file'), 4) == b'text'
    with pytest.raises(InputError, match='more than 3 bytes'):
        read_regular(tmp_path / 'file', 3)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / 'none')


def test_other_files_than_regular_ones_are_refused(tmp_path):
    os.mkfifo(tmp_path / 'fifo')
    for path, what in ((tmp_path, 'a folder'), (tmp_path / 'fifo', 'a pipe or a device'),
                       ('/dev/zero', 'a pipe or a device'), ('a\0b', 'not the name of a file')):  # fmt: skip
        with pytest.raises(InputError, match=what):
            read_regular(path)
        with pytest.raises(InputError, match=what):
            read_vocabulary_file(path)


@pytest.mark.parametrize(
    'address, call',
    [
        ('hf://datasets/me/x', "snapshot_download('me/x', repo_type='dataset') returns"),
        ('hf://me/x@v1/vocab.txt', "snapshot_download('me/x', revision='v1') returns"),
    ],
)
def test_an_address_of_the_hub_is_refused_with_the_call_that_fetches_it(address, call):
    for opens in (open_dataset, load_tokenizer, read_vocabulary_file):
        with pytest.raises(InputError) as caught:
            opens(address)
        assert str(caught.value).endswith(call)


def test_errors_hold_nothing_that_a_terminal_obeys():
    assert str(InputError('a\x1b]0;b\x07\nc\u3000\ud800 é中')) == r'a\x1b]0;b\x07 c\u3000\ud800 é中'
    again = InputError(str(InputError('a\x1b')))
    assert str(again) == r'a\x1b'
