"""Whatever servers answer when a download is resumed, what comes is one state of the file."""

import os
import random
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st
from web_server import Page, web_server

from pipelines.files.local import LocalFolder
from pipelines.files.transfer import Transfer, web_address
from tokcore.errors import InputError

SIZE = 3000
CASES = int(os.environ.get('TOKBEAM_FETCH_CASES', '40'))

STATES = [random.Random(size).randbytes(size) for size in (SIZE, SIZE - 1)]
STATES += [random.Random(2).randbytes(SIZE), random.Random(3).randbytes(SIZE)]
TIMES = [f'Wed, 2{number} Oct 2015 07:28:00 GMT' for number in range(4)]

tags = st.sampled_from(['"{}"', 'W/"{}"', '"same"', ''])
headers = st.sampled_from(
    [
        {},
        {'Content-Range': f'bytes 0-2999/{SIZE}'},
        {'Content-Range': 'bytes 1000-2999/*'},
        {'Content-Range': f'bytes 1000-2999/{"9" * 5000}'},
        {'Content-Length': '9' * 5000},
        {'ETag': '"other"'},
        {'Last-Modified': 'long ago'},
        {'Date': 'never'},
    ]
)


@st.composite
def answers(draw):
    """Some answers of one server, whose file may change between them.

    It tells the time of each state, since of a server that passes over If-Range and tells no state
    from another nobody could know.
    """
    tag, order = draw(tags), draw(st.lists(st.sampled_from(range(4)), min_size=1, max_size=5))
    return [
        Page(
            STATES[state],
            ranges=draw(st.sampled_from([True, True, False])),
            minds_if_range=draw(st.booleans()),
            etag=tag.format(state),
            modified=TIMES[state],
            cuts=[draw(st.integers(0, SIZE))],
            status=draw(st.sampled_from([200] * 9 + [500, 416, 206])),
            headers=draw(headers) if draw(st.booleans()) else {},
        )
        for state in order
    ]


class InTurn(dict):
    """Gives one answer after another, the last one again and again."""

    def __init__(self, answers):
        super().__init__()
        self.answers = answers

    def get(self, path, default=None):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@settings(max_examples=CASES)
@given(answers=answers(), runs=st.integers(1, 3))
def test_what_comes_is_one_state_of_the_file_or_a_sentence(answers, runs):
    with (
        tempfile.TemporaryDirectory() as path,
        web_server(InTurn(answers)) as server,
        LocalFolder.open(path) as folder,
    ):
        for _ in range(runs):
            try:
                came = Transfer(web_address(f'{server.address}/a'), folder, 'part').run()
            except InputError as error:
                assert str(error).startswith('cannot fetch http://127.0.0.1:')
                continue
            assert folder.read('part', SIZE + 1) in STATES
            assert came.bytes == len(folder.read('part', SIZE + 1))
            return
