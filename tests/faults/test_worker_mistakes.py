"""A user's mistake that a worker process meets is told as one that this process meets."""

import pytest
from command_outcome import Outcome
from leftovers import assert_nothing_made

pytestmark = pytest.mark.slow

WORKER_PROCESSES = ('--direct_running_mode=multi_processing', '--direct_num_workers=1')


def test_invalid_utf8_met_by_a_worker_process(build, write_corpus, tmp_path):
    corpus = write_corpus('tsv')
    lines = corpus.last.read_bytes().splitlines(keepends=True)
    start = sum(map(len, lines[:50]))
    lines[50] = b'good\tbad\xff\n'
    corpus.last.write_bytes(b''.join(lines))
    ended = build(corpus, extra=['@item-size', 512, *WORKER_PROCESSES])
    # Beam's worker processes write their own log to the same stderr; the sentence comes last.
    sentence = ended.stderr.splitlines()[-1]
    Outcome(ended.status, sentence).assert_refused(
        f'{corpus.last}, line 51: invalid UTF-8 at byte {start + 8}', f'starts at byte {start};'
    )
    assert_nothing_made(tmp_path / 'out')
