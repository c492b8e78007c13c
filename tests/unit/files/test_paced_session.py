"""How slowly a server may send: this many bytes in a window, whatever pauses are between them."""

import io

import pytest

from pipelines.files.paced_session import LEAST_WINDOW_BYTES, WINDOW_SECONDS, Pace, TooSlowError
from pipelines.files.transfer import ANSWER_SECONDS


class Connection(io.RawIOBase):
    """Sends this many bytes after this many seconds, for one read after another."""

    def __init__(self, *sent):
        self.sent, self.now = [*sent], 0.0

    def clock(self):
        return self.now

    def readinto(self, buffer):
        size, seconds = self.sent.pop(0)
        self.now += seconds
        return size


def read_all(connection):
    pace = Pace(connection.clock)
    while connection.sent:
        pace.read(connection, bytearray(1))


def test_a_byte_a_second_is_too_slow():
    connection = Connection(*[(1, 1)] * 1000)
    with pytest.raises(TooSlowError):
        read_all(connection)
    assert connection.now == WINDOW_SECONDS


def test_a_server_that_becomes_slow_is_left_in_the_window_after():
    connection = Connection(*[(LEAST_WINDOW_BYTES, WINDOW_SECONDS)] * 10, *[(1, 1)] * 1000)
    with pytest.raises(TooSlowError):
        read_all(connection)
    assert connection.now == 11 * WINDOW_SECONDS


@pytest.mark.parametrize(
    'sent',
    [
        [(LEAST_WINDOW_BYTES // WINDOW_SECONDS, 1)] * 1000,
        [(1, ANSWER_SECONDS - 1), (LEAST_WINDOW_BYTES, 1), (1, ANSWER_SECONDS)],
        [(1, WINDOW_SECONDS - 1), (0, 1)],
    ],
    ids=['slow and steady', 'two silences', 'its end'],
)
def test_others_are_waited_for(sent):
    read_all(Connection(*sent))


def test_what_this_machine_needs_between_two_reads_does_not_count():
    connection = Connection(*[(1, 0)] * 1000)
    pace = Pace(connection.clock)
    while connection.sent:
        pace.read(connection, bytearray(1))
        connection.now += WINDOW_SECONDS
