"""How far a job is: a bar on a terminal, a line each half minute elsewhere."""

import io
import itertools
import json
import logging
import re
import threading
import time

import pytest
from pseudo_terminal import PseudoTerminal

from pipelines.cli.terminal import (
    Bar,
    JsonProgress,
    Pace,
    ProgressLog,
    format_time,
    line_is_open,
    shown_progress,
    terminal_lock,
)
from pipelines.engines.progress import (
    BYTES,
    COMPRESSED_BYTES,
    ON_BAR,
    RoundEnded,
    StageBegan,
    StageEnded,
    WorkDone,
    advance,
    notify,
    track_work,
)
from tokcore import process_end

MIB = 1 << 20


class Clock:
    """A clock that stands until it is set."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lines(clock):
    """The lines of a listener, which it is called as."""
    written = []
    shown = ProgressLog(clock, written.append)
    shown.written = written
    return shown


def reading(done, total=100 * MIB, unit=BYTES):
    return WorkDone('count', 'reading', done, total, unit)


@pytest.mark.parametrize(
    ('events', 'expected'),
    [
        ([reading(0), 29.9, reading(50 * MIB)], []),
        ([40.0], []),  # between stages
        (
            [reading(0), 10.0, reading(10 * MIB), 10.0, reading(20 * MIB), 10.0, 30.0],
            [
                'count: 20 % of 100.0 MiB, 1.0 MiB/s, 70 s left',
                'count: 20 % of 100.0 MiB, 341.3 KiB/s, 4 min left',  # the next step is late
            ],
        ),
        (
            [
                reading(0, unit=COMPRESSED_BYTES),
                15.0,
                reading(15 * MIB, unit=COMPRESSED_BYTES),
                15.0,
            ],
            ['count: 15 % of 100.0 MiB compressed, 1.0 MiB/s, 70 s left'],
        ),
        (
            [
                *(WorkDone('compile', 'compiling', 0, 3, 'parts'), 31.0),
                WorkDone('compile', 'compiling', 1, 3, 'parts'),
            ],
            ['compile: 0 % of 3 parts, for 31 s'],
        ),
        (
            [
                *(StageBegan('build'), StageBegan('vocab'), 31.0, RoundEnded(1), 300.0),
                *(StageEnded('vocab'), 31.0),
            ],
            ['vocab, for 31 s', 'vocab: round 2, for 6 min', 'build, for 31 s'],
        ),
        (
            [
                *(StageBegan('encode'), reading(0), reading(100 * MIB), 40.0),
                WorkDone('shuffle', 'merging', 0, 4000, 'examples'),
                40.0,
            ],
            ['encode, for 40 s', 'shuffle: 0 % of 4,000 examples, for 40 s'],
        ),
        (
            [
                StageBegan('build', ('count', 'vocab', 'encode')),
                *(StageBegan('vocab'), RoundEnded(1, 1900, 2048), 31.0, StageEnded('vocab')),
                *(StageBegan('encode'), WorkDone('write shards', 'merging', 0, 4000, 'examples')),
                31.0,
            ],
            [
                'vocab (2 of 3): round 2, the last made 1,900 of 2,048 entries, for 31 s',
                'write shards (3 of 3): 0 % of 4,000 examples, for 31 s',
            ],
        ),
    ],
)
def test_a_line_comes_each_half_minute(lines, clock, events, expected):
    """Events, and the seconds between them, after which somebody looks."""
    for event in events:
        if isinstance(event, float):
            clock.now += event
            lines.look()
        else:
            lines(event)
    assert lines.written == expected


REPORTS = {
    'two threads that end together': [
        (2 + 2 * step + late, 2 * step + 1 + more)
        for step in range(100)
        for more, late in enumerate((0, 0.05))
    ],
    'steps of four sizes': [
        (at, at) for at in sorted({*range(7, 200, 7), *range(3, 200, 10), 1, 2, 100, 101, 200})
    ],
    'a rerun that finds half of it finished': [
        (0.5, 100),
        *((at, 100 + at / 2) for at in range(2, 201, 2)),
    ],
}
"""When is reported what of 200 units that are done, all of them after some 200 s."""


@pytest.mark.parametrize('reports', REPORTS.values(), ids=REPORTS)
def test_the_time_that_is_left_goes_down_as_a_clock_does(reports):
    """Somebody looks twice a second. By the last rate alone the time would jump by some 90 seconds."""
    pace, coming, seen = Pace(1000.0), list(reports), []
    for now in (step / 2 for step in range(20, 2 * 195)):
        while coming and coming[0][0] <= now:
            at, done = coming.pop(0)
            pace.take(done, 1000.0 + at)
        seen.append((now, pace.rate_and_left(200, 1000.0 + now)[1]))
    for now, left in seen[60:]:
        assert left == pytest.approx(200 - now, rel=0.1, abs=2)
    for (_, before), (_, after) in itertools.pairwise(seen[60:]):
        assert abs(after - before) < 1 + before / 25


def test_nothing_is_said_of_the_time_that_is_left_before_there_is_a_measure():
    pace = Pace(1000.0)
    assert pace.rate_and_left(100, 1060.0) == (0, None)  # no step yet
    pace.take(50, 1000.5)
    assert pace.rate_and_left(100, 1002.0) == (0, None)
    assert None not in pace.rate_and_left(100, 1004.0)


def test_the_time_that_is_left_grows_where_work_is_late():
    pace = Pace(1000.0)
    for second in range(1, 61):
        pace.take(second, 1000.0 + second)
    lefts = [pace.rate_and_left(120, 1000.0 + now)[1] for now in (60, 61, 90)]
    assert [round(left) for left in lefts] == [60, 59, 127]


def test_work_that_stands_still_is_measured_anew_when_it_goes_on():
    pace = Pace(1000.0)
    for second in range(1, 61):
        pace.take(second, 1000.0 + second)
    for now in (91, 240, 3600):  # a cluster has restarted, and says nothing meanwhile
        assert pace.rate_and_left(120, 1000.0 + now) == (0, None)
    for second in range(21):  # with half as many machines
        pace.take(60 + second // 2, 4600.0 + second)
    rate, left = pace.rate_and_left(120, 4620.0)
    assert rate == pytest.approx(0.5, rel=0.1) and left == pytest.approx(100, rel=0.1)


def test_work_whose_steps_are_long_does_not_stand_still():
    pace = Pace(1000.0)
    for step in range(1, 4):
        pace.take(step, 1000.0 + 100 * step)
        assert pace.rate_and_left(10, 1050.0 + 100 * step)[1] is not None


def test_times_are_said_in_their_largest_units():
    said = {0.2: '0 s', 89: '89 s', 100: '2 min', 3599: '1 h 0 min', 7500: '2 h 5 min'}
    assert {seconds: format_time(seconds) for seconds in said} == said


@pytest.fixture
def handler(monkeypatch):
    """A handler of the log, the only one."""
    found = logging.StreamHandler()
    monkeypatch.setattr(logging.getLogger(), 'handlers', [found])
    return found


def test_a_terminal_has_a_bar_and_what_is_logged_above_it(handler):
    terminal = PseudoTerminal()
    handler.setStream(terminal.stream)
    with shown_progress(terminal.stream):
        notify(StageBegan('count'))
        with track_work('count', 'reading', 100 * MIB, COMPRESSED_BYTES):
            time.sleep(0.2)  # tqdm draws no more often
            advance('reading', 25 * MIB)
            assert line_is_open.is_set()
            logging.getLogger('pipelines').warning('a word')
            advance('reading', 75 * MIB)
        notify(StageEnded('count'))
    assert handler.stream is terminal.stream and not line_is_open.is_set()
    seen = terminal.close()
    assert re.search(r'count:  25%\|█+. +\| 25\.0/100\.0 MiB compressed \[00:0\d<\?\]', seen)
    assert re.search(r'\r *\ra word\r\n\r?count:', seen)
    assert seen.rpartition('\r')[2] == ''  # the last line is empty


def test_the_time_goes_on_from_round_to_round(handler, clock):
    terminal = PseudoTerminal()
    bar = Bar(terminal.stream, clock)
    bar(StageBegan('vocab'))
    first = bar._bar
    bar(RoundEnded(1))
    bar(RoundEnded(2, 900, 1000))
    assert bar._bar is first
    bar(StageEnded('vocab'))
    bar.close()
    assert re.search(
        r'\rvocab: round 3, the last made 900 of 1,000 entries \[00:0\d\]', terminal.close()
    )


def test_a_line_that_is_longer_than_the_terminal_is_cut_off(handler, clock):
    terminal = PseudoTerminal(columns=40)
    bar = Bar(terminal.stream, clock)
    bar(StageBegan('vocab'))
    bar(RoundEnded(2, 900, 1000))
    bar.look()
    bar.close()
    assert max(map(len, terminal.close().split('\r'))) <= 40


@pytest.mark.parametrize(
    ('columns', 'shown'),
    [
        (
            100,
            r'count \(1 of 2\):  50%\|█+. +\| 50\.0/100\.0 MiB compressed \[00:10<00:10, 5\.0 MiB/s\]',
        ),
        (76, r'count \(1 of 2\):  50%\|█+.? +\| 50\.0/100\.0 MiB compressed \[00:10<00:10\]'),
        (40, r'count \(1 of 2\):  50%\|█+.? *\| \[00:10<00:10\]'),
        (29, r'count:  50%\|.+\| \[00:10<00:10\]'),
    ],
)
def test_a_narrow_terminal_has_the_time_that_is_left_at_least(handler, clock, columns, shown):
    terminal = PseudoTerminal(columns)
    bar = Bar(terminal.stream, clock)
    bar(StageBegan('build', ('count', 'encode')))
    bar(StageBegan('count'))
    for step in range(11):
        bar(reading(5 * step * MIB, unit=COMPRESSED_BYTES))
        clock.now += step < 10
    bar.look()
    bar.close()
    lines = terminal.close().split('\r')
    assert any(re.fullmatch(shown, line) for line in lines) and max(map(len, lines)) <= columns


def test_a_round_is_on_the_bar_of_a_terminal_and_a_line_elsewhere(handler, tmp_path):
    with open(tmp_path / 'log', 'w') as stream:
        handler.setStream(stream)
        with shown_progress(stream):
            logging.getLogger('pipelines').warning('a round', extra={ON_BAR: True})
        terminal = PseudoTerminal()
        handler.setStream(terminal.stream)
        with shown_progress(terminal.stream):
            logging.getLogger('pipelines').warning('another round', extra={ON_BAR: True})
    assert (tmp_path / 'log').read_text() == 'a round\n'
    assert 'round' not in terminal.close()


def test_progress_as_json_has_every_stage_and_at_most_one_line_a_second_of_a_work():
    times = iter([0.0, 0.5, 5.0, 5.1, 5.2])
    stream = io.StringIO()
    progress = JsonProgress(stream, lambda: next(times))
    progress(StageBegan('build', ('count', 'encode')))
    for done in (0, 10, 20, 30, 40):
        progress(WorkDone('count', 'reading', done, 40, 'B'))
    progress(RoundEnded(3, 900, 1000))
    progress(StageEnded('build'))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line['event'] for line in lines] == ['stage', 'work', 'work', 'work', 'round', 'stage']
    assert lines[0] == {
        'event': 'stage', 'stage': 'build', 'state': 'began', 'parts': ['count', 'encode']
    }  # fmt: skip
    assert [line['done'] for line in lines[1:4]] == [0, 20, 40]
    assert lines[2] == {
        'event': 'work', 'stage': 'count', 'work': 'reading', 'done': 20, 'total': 40,
        'unit': 'bytes', 'seconds': 5.0, 'left': 8.333,
    }  # fmt: skip
    assert (lines[1]['left'], lines[3]['left']) == (None, 0)
    assert lines[4] == {'event': 'round', 'number': 3, 'size': 900, 'target': 1000}
    assert lines[5] == {'event': 'stage', 'stage': 'build', 'state': 'ended'}


def test_a_reader_of_json_that_is_gone_stops_nothing(tmp_path):
    stream = open(tmp_path / 'x', 'w')
    stream.close()
    JsonProgress(stream)(StageEnded('build'))


@pytest.mark.parametrize('kind', [Bar, JsonProgress])
def test_after_a_signal_nothing_is_shown_and_nobody_waits_to_show_it(monkeypatch, kind):
    """The thread that ends the process keeps the terminal, while workers write what they hold."""
    stream = io.StringIO()
    shown = kind(stream)
    signalled, is_kept, is_done = threading.Event(), threading.Event(), threading.Event()
    monkeypatch.setattr(process_end, '_signalled', signalled)

    def end():
        with terminal_lock:
            is_kept.set()
            is_done.wait()

    ending = threading.Thread(target=end)
    ending.start()
    is_kept.wait()
    signalled.set()
    working = threading.Thread(target=shown, args=[StageBegan('encode')], daemon=True)
    working.start()
    working.join(30)
    is_waiting = working.is_alive()
    is_done.set()
    ending.join()
    assert not is_waiting and stream.getvalue() == ''
