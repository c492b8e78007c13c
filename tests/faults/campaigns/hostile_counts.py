"""Counts of files that would fill memory or disk: each ends soon, in little memory."""

from forked_commands import Ended
from fuzzing.format_cases import SMALL_FILE_BYTES

MOST_BYTES = SMALL_FILE_BYTES


def count(lane, folder, *arguments, statuses=(2,)) -> Ended:
    """Counts in another process; returns its end, which must be one sentence or a success."""
    words = ['count', *map(str, arguments), '--output', 'counts']
    ended = lane.run(words, folder, seconds=120)
    assert ended.status in statuses, ended.stderr
    assert 'Traceback' not in ended.stderr
    assert ended.peak < MOST_BYTES, f'{ended.peak >> 20} MiB'
    if ended.status == 2:
        assert len(ended.complaints) == 1
    return ended
