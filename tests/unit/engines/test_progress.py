"""Events of a running job: who is told of what, and how work is counted."""

import logging
import threading

import pytest

from pipelines.engines.events import LinesLeftOut, PassesHalved, RoundEnded, SizeMissed
from pipelines.engines.progress import (
    StageBegan,
    StageEnded,
    WorkDone,
    advance,
    counted,
    expect,
    listening,
    stage_running,
    tell,
)


@pytest.fixture
def told():
    """All events of a test, in order."""
    events = []
    with listening(events.append):
        yield events


def done(events):
    return [(each.done, each.total) for each in events]


def test_a_listener_is_told_while_it_listens():
    first, second = [], []
    with listening(first.append):
        with listening(second.append):
            tell(StageBegan('count'))
        tell(StageEnded('count'))
    tell(StageBegan('vocab'))
    assert first == [StageBegan('count'), StageEnded('count')]
    assert second == [StageBegan('count')]


def test_a_stage_that_fails_has_ended(told):
    with pytest.raises(OSError), stage_running('count'):
        raise OSError
    assert told == [StageBegan('count'), StageEnded('count')]


def test_work_is_told_from_nothing_to_all_of_it(told):
    with counted('count', 'reading', 10):
        advance('reading', 4)
        advance('reading', 0)
        advance('reading', 6)
    assert told[0] == WorkDone('count', 'reading', 0, 10, 'B')
    assert done(told) == [(0, 10), (4, 10), (10, 10)]


def test_how_much_there_is_may_be_known_later(told):
    with counted('shuffle', 'merging', None, 'examples'):
        assert not told
        expect('merging', 3)
        advance('merging', 3)
    assert done(told) == [(0, 3), (3, 3)]


def test_work_that_nobody_counts_is_no_event(told):
    advance('reading', 4)
    expect('reading', 4)
    with counted('count', 'reading', 1):
        advance('merging', 1)
    advance('reading', 1)
    assert done(told) == [(0, 1)]


def test_nothing_is_lost_between_threads(told):
    def work():
        for _ in range(500):
            advance('reading', 3)

    threads = [threading.Thread(target=work) for _ in range(8)]
    with counted('count', 'reading', 12_000):
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert [each.done for each in told] == list(range(0, 12_001, 3))


def test_news_are_logged_as_the_sentence_that_they_are(caplog):
    caplog.set_level(logging.INFO, 'pipelines')
    tell(RoundEnded('vocab.x', 3, 62, 1650, 2048, 0.26))
    tell(StageBegan('count'))
    tell(LinesLeftOut(2, '/out/rejected/train.invalid_utf8.jsonl'))
    tell(PassesHalved('vocab.x', 512 << 20))
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ('INFO', 'vocab.x: round 3: min-count 62 gives 1650 entries of 2048 (-398) in 0.3 s'),
        ('WARNING', '2 lines were left out: /out/rejected/train.invalid_utf8.jsonl'),
        ('INFO', 'vocab.x: a worker had more than 512 MB to send; taking fewer groups at once'),
    ]


def test_a_missed_size_tells_those_around_it():
    near = ((7, 130), (8, 110))
    assert str(SizeMissed('v', 110, 120, near, 50)) == (
        'v has 110 entries, asked for 120: reachable around it are 130 at min-count 7 and 110 at '
        'min-count 8'
    )
    assert str(SizeMissed('v', 50, 40, (), 50)).endswith(
        'are no others; no fewer than 50 are possible'
    )
