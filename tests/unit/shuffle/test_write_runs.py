"""A run goes on after the blocks that its finished parts were made of."""

import contextlib
import gzip
import itertools
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.engines.progress import WorkDone, listening, track_work
from pipelines.options.job import rejection_limit
from pipelines.shuffle import write_runs
from pipelines.shuffle.plan import RunItem, ShufflePlan
from pipelines.shuffle.write_runs import RunWriter
from pipelines.transforms.encode_blocks import BlockEncoder, EncodedFeature, SplitShards
from pipelines.transforms.read import READING
from pipelines.transforms.stats import RejectionBudget
from tokcore import process_end
from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.declarations import PlainText
from tokcore.corpus.formats import plan_items
from tokcore.corpus.stats import join_adjacent
from tokcore.errors import InputError
from tokcore.records.examples import Feature
from tokcore.schemes import find_scheme

BLOCK_BYTES = 1000
RUN_BYTES = 19_000  # of a part, with what a row takes
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

    def write(
        text, max_line_bytes, on_error='skip', parts=None, budget=None, workers=1, run_bytes=4000
    ):
        path = tmp_path / 'text.gz'
        path.write_bytes(gzip.compress(text, mtime=0))
        file = CorpusFile(str(path), 'text.gz', path.stat().st_size, True)
        split = Split('train', PlainText(), ((file,),))
        layout = (SplitShards('train', 1, 1),)
        plan = ShufflePlan(
            str(tmp_path / 'runs'), bytes(16), layout, run_bytes, BLOCK_BYTES, max_line_bytes
        )
        features = [EncodedFeature(Feature('targets', 0), vocabulary)]
        encoder = BlockEncoder(features, (split,), 0, on_error, find_scheme())
        writer = RunWriter(plan, encoder.load(), workers, budget)
        made = []
        for part in writer.take(RunItem(0, 0, tuple(plan_items(split)))):
            made.append(part)
            if len(made) == parts:
                return made
        made += list(writer.finish())
        writer.close()
        return made

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


class EndedError(BaseException):
    """In place of the end of the process, which a worker waits for."""


@pytest.fixture
def interrupted_after(monkeypatch):
    """Has a signal come when so many batches have been taken; a worker then raises EndedError."""

    def end():
        if write_runs.is_interrupted():
            raise EndedError

    def interrupt(batches):
        taken = itertools.count()
        monkeypatch.setattr(write_runs, 'is_interrupted', lambda: next(taken) >= batches)
        monkeypatch.setattr(write_runs, 'hold_if_interrupted', end)

    return interrupt


def rows_of(parts):
    return sum(part.stats.tally.lines for part in parts)


@pytest.mark.parametrize('workers', [2, 3])
def test_threads_share_the_last_part(writing, tmp_path, workers):
    text = b''.join(b'the cat ' * (number % 7 + 1) + b'\n' for number in range(300))
    *others, last = writing(text, 1000, run_bytes=RUN_BYTES)
    shutil.rmtree(tmp_path / 'runs')
    parts = writing(text, 1000, run_bytes=RUN_BYTES, workers=workers)
    assert others and parts[: len(others)] == others
    assert len(parts) == len(others) + workers
    assert [part.stats.first for part in parts] == [0, *(part.stats.blocks for part in parts[:-1])]
    assert parts[-1].stats.blocks == last.stats.blocks
    assert rows_of(parts) == 300
    for again in (1, workers):  # a rerun finds them
        assert writing(text, 1000, run_bytes=RUN_BYTES, workers=again) == parts


@given(st.lists(st.integers(0, 40), max_size=5), st.randoms(use_true_random=False))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10, deadline=None
)
def test_interrupted_runs_lose_nothing_and_double_nothing(
    writing, interrupted_after, monkeypatch, tmp_path, batches, dice
):
    """With any number of workers each time, also where a kill has left a later part without an earlier one."""
    shutil.rmtree(tmp_path / 'runs', ignore_errors=True)
    text = b''.join(b'the cat ' * (number % 7 + 1) + b'\n' for number in range(300))
    for count in batches:
        interrupted_after(count)
        with contextlib.suppress(EndedError):
            writing(text, 1000, workers=dice.randrange(1, 4))
        there = sorted((tmp_path / 'runs').glob('run-*'))
        if there and dice.random() < 0.4:
            dice.choice(there).unlink()
    monkeypatch.setattr(write_runs, 'is_interrupted', lambda: False)
    parts = writing(text, 1000, workers=dice.randrange(1, 4))
    assert [part.stats.first for part in parts] == [0, *(part.stats.blocks for part in parts[:-1])]
    assert rows_of(parts) == 300
    [checksum] = join_adjacent([each for part in parts for each in part.stats.checksums])
    assert (checksum.offset, checksum.length) == (0, len(text))


def test_what_was_encoded_when_a_signal_came_is_written_and_told(
    writing, interrupted_after, monkeypatch
):
    monkeypatch.setattr(process_end, '_text', {'kept': 0, 'total': 0})
    monkeypatch.setattr(process_end, '_busy', set())
    monkeypatch.setattr(process_end, '_kept', {})
    interrupted_after(3)
    with pytest.raises(EndedError):
        writing(LINE * 100, 1000)
    assert not process_end.has_busy_workers()
    said = process_end.kept_work()
    kept = int(said.split()[0].replace(',', ''))
    assert kept > 2 * BLOCK_BYTES and said == f'{kept:,} of {kept:,} bytes encoded'
    monkeypatch.setattr(write_runs, 'is_interrupted', lambda: False)
    first, *_ = writing(LINE * 100, 1000)
    assert sum(each.length for each in first.stats.checksums) <= kept


@pytest.mark.parametrize(
    ('kept', 'total', 'said'),
    [
        (0, 10, ''), (5, 10, '5 of 10 bytes encoded'), (1_234, 9_876, '1,234 of 9,876 bytes encoded'),
        (34_000_000, 48_400_000, '34 of 48 MB encoded'), (7 * 10**9, 5 * 10**9, '7,000 of 7,000 MB encoded'),
    ],
)  # fmt: skip
def test_kept_text_is_told_in_a_unit(monkeypatch, kept, total, said):
    monkeypatch.setattr(process_end, '_kept', {})
    monkeypatch.setattr(process_end, '_text', {})
    process_end.expect_text(total)
    process_end.keep_text(kept)
    assert process_end.kept_work() == said
    process_end.keep('the vocabulary')
    assert process_end.kept_work() == ', '.join(filter(None, ['the vocabulary', said]))
