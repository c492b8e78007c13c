"""What a runner's own shuffle needs is measured by the text, however it is compressed."""

import gzip
import random

import pytest
from jobs import refuse, succeed

from pipelines.engines import runners

LINES = 3000


def drawn_lines():
    """Lines that compress to about half of their size."""
    dice = random.Random(4)
    return ''.join(f'{dice.getrandbits(400):0100x}\n' for _ in range(LINES)).encode()


def one_line():
    """As much text, which compresses to some hundredth."""
    return (b'0' * 100 + b'\n') * LINES


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Returns the words of a job over a gzip of a text, for which this many times its size are free."""

    def words(text, times):
        monkeypatch.setattr(runners, 'available_bytes', lambda: times * len(text))
        path = tmp_path / 'a.gz'
        path.write_bytes(gzip.compress(text))
        given = ['--text', path, '--name', 'n', '--shuffle', 'engine', '--output', tmp_path / 'out']
        return ['encode', '--scheme', 'byte', *given]

    return words


def test_text_that_compresses_little_is_not_taken_for_five_times_its_file(asked):
    # It is shuffled within six times its records, which have some bytes more than their text.
    succeed(*asked(drawn_lines(), 9))


def test_text_that_compresses_well_is_not_taken_for_little(asked):
    said = refuse(*asked(one_line(), 5))
    assert 'shuffling about' in said and '--shuffle=files' in said
