"""What the system refuses: each reason has its remedy, as an exception and as a text."""

import errno
import os

import pytest

from pipelines.files.system_errors import as_input_error, as_input_error_from_text, system_error
from tokcore.errors import FullDiskError, InputError, OperatingSystemError


def test_every_error_has_a_sentence_with_a_remedy():
    for number in errno.errorcode:
        error = system_error(OSError(number, os.strerror(number)), 'write /a/b')
        assert isinstance(error, OperatingSystemError)
        reason, _, remedy = str(error).partition('; ')
        assert reason == f'cannot write /a/b: {os.strerror(number)}' and remedy


@pytest.mark.parametrize('name', ['ENOSPC', 'EDQUOT', 'EFBIG'])
def test_no_room_is_a_kind_of_its_own(name):
    number = getattr(errno, name)
    assert isinstance(system_error(OSError(number, 'x'), 'write'), FullDiskError)
    assert not isinstance(system_error(OSError(errno.EACCES, 'x'), 'write'), FullDiskError)


def test_a_path_that_is_not_said_yet_is_added():
    error = FileNotFoundError(errno.ENOENT, 'No such file or directory', '/a/b')
    assert str(system_error(error, 'read /a/b')).count('/a/b') == 1
    assert '(/a/b)' in str(system_error(error, 'go on'))
    error.filename = b'/a/\xff'
    assert r'(/a/\udcff)' in str(system_error(error, 'go on'))  # escaped, as all that is printed


@pytest.mark.parametrize('error', [OSError(), OSError('the store\nis gone'), OSError(7)])
def test_an_error_without_a_number_has_a_sentence(error):
    assert str(system_error(error, 'go on')).startswith('cannot go on: ')


def test_only_what_the_system_refuses_is_turned():
    mistake = InputError('as it was')
    assert as_input_error(mistake, 'go on') is mistake
    for error in (MemoryError(), RuntimeError("can't start new thread"), PermissionError(13, 'x')):
        assert isinstance(as_input_error(error, 'go on'), OperatingSystemError)
    for error in (ValueError('x'), RuntimeError('x'), KeyError('x'), AssertionError()):
        assert as_input_error(error, 'go on') is None


TEXTS = {
    "OSError: [Errno 28] No space left on device: '/a/b'": 'No space left on device (/a/b); make',
    'OSError: [Errno 28] No space left on device': 'No space left on device; make room',
    "RuntimeError: OSError: [Errno 5] Input/output error [while running 'x']": 'error; the disk',
    'PermissionError: [Errno 13] Permission denied: "/it\'s"': "denied (/it's); check",
    "OSError: [Errno 18] Invalid cross-device link: '/a' -> '/b'": 'link (/a); ',
    'numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1. GiB': 'not enough memory',
    "RuntimeError: can't start new thread [while running 'x']": 'ulimit -u',
    'ValueError: 3\n\nDuring handling:\n  File "x", line 3\nMemoryError\n': 'not enough memory',
}


@pytest.mark.parametrize('text', TEXTS)
def test_the_last_exception_of_a_text_counts(text):
    for before in ('', 'Traceback (most recent call last):\nZeroDivisionError: 1\n'):
        assert TEXTS[text] in str(as_input_error_from_text(before + text, 'go on'))
    assert as_input_error_from_text(f'{text}\nValueError: 5', 'go on') is None


@pytest.mark.parametrize(
    'text', ['', 'worker lost: OSError: disk full', 'KeyError: 28', '[Errno 28] x']
)
def test_other_texts_are_none(text):
    assert as_input_error_from_text(text, 'go on') is None
