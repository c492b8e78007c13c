"""A run goes on after the blocks that its finished parts were made of."""

import gzip

import pytest

from pipelines.engines.progress import WorkDone, listening, track_work
from pipelines.options.job import rejection_limit
from pipelines.shuffle.plan import RunItem, ShufflePlan
from pipelines.shuffle.write_runs import RunWriter
from pipelines.transforms.encode_blocks import BlockEncoder, EncodedFeature, SplitShards
from pipelines.transforms.read import READING
from pipelines.transforms.stats import RejectionBudget
from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.formats import plan_items
from tokcore.corpus.plain_text import PlainText
from tokcore.errors import InputError
from tokcore.records.examples import Feature
from tokcore.schemes import find_scheme

BLOCK_BYTES = 1000
LINE = b'the cat ' * 20 + b'\n'
LONG = b'the cat ' * 1000 + b'\n'


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / 'vocabulary'
    path.write_text(''.join(f"'{each}'\n" for each in ['<pad>_', '<EOS>_', 'the_', 'cat_']))
    return str(path)


@pytest.fixture
def writing(tmp_path, vocabulary):
    """Makes the runs of a text, with a bound on its lines."""

    def write(text, max_line_bytes, on_error='skip', parts=None, budget=None):
        path = tmp_path / 'text.gz'
        path.write_bytes(gzip.compress(text, mtime=0))
        file = CorpusFile(str(path), 'text.gz', path.stat().st_size, True)
        split = Split('train', PlainText(), ((file,),))
        layout = (SplitShards('train', 1, 1),)
        plan = ShufflePlan(
            str(tmp_path / 'runs'), bytes(16), layout, 4000, BLOCK_BYTES, max_line_bytes
        )
        features = [EncodedFeature(Feature('targets', 0), vocabulary)]
        encoder = BlockEncoder(features, (split,), 0, on_error, find_scheme())
        writer = RunWriter(plan, encoder.load(), 1, budget)
        made = []
        for part in writer.take(RunItem(0, 0, tuple(plan_items(split)))):
            made.append(part)
            if len(made) == parts:
                return made
        return made + list(writer.finish())

    return write


def test_a_run_goes_on_after_lines_that_were_left_out(writing, tmp_path):
    text = (LINE * 30 + LONG) * 6
    first = writing(text, 1000, parts=3)
    assert len(first) == 3 and sum(part.stats.tally.rejected for part in first) > 0
    all_parts = writing(text, 1000)
    assert all_parts[:3] == first
    assert sum(part.stats.tally.lines for part in all_parts) == 6 * 31
    assert sum(part.stats.tally.rejected for part in all_parts) == 6


@pytest.mark.parametrize('finished', [0, 3, None])
def test_lines_left_out_of_finished_parts_count_too_and_once(writing, finished):
    text = (LINE * 30 + LONG) * 6
    if finished != 0:
        assert sum(part.stats.tally.rejected for part in writing(text, 1000, parts=finished)) > 0
    with pytest.raises(InputError, match='6 of .* lines read could not be used'):
        writing(text, 1000, budget=RejectionBudget(rejection_limit('5'), None))
    writing(text, 1000, budget=RejectionBudget(rejection_limit('6'), None))


def test_what_an_earlier_attempt_has_finished_is_work_done(writing, tmp_path):
    text = LINE * 200
    for parts in (1, 3, None, None):  # the last time, the run is whole
        told = []
        with listening(told.append), track_work('encode', READING, total=1 << 10):
            writing(text, 1000, parts=parts)
        done = [event.done for event in told if isinstance(event, WorkDone)]
        if parts is None:
            assert done[-1] == (tmp_path / 'text.gz').stat().st_size
