"""One word for an engine, and a user's mistake found however deep a runner has wrapped it."""

import inspect
import os

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import (
    DirectOptions,
    FlinkRunnerOptions,
    PipelineOptions,
    SetupOptions,
    StandardOptions,
)
from apache_beam.runners.worker.statesampler import StateSampler

from pipelines import engine as engine_module
from pipelines.engine import choose_engine
from tokcore.errors import InputError

LOCAL = [[], ['--runner=local'], ['--runner', 'DirectRunner'], ['--runner=FnApiRunner']]


def runner_of(engine):
    return engine.options().view_as(StandardOptions).runner


@pytest.mark.parametrize('flags', LOCAL, ids=' '.join)
def test_local_is_pinned_to_the_engine_in_this_process(flags):
    engine = choose_engine(flags, None)
    assert runner_of(engine) == 'FnApiRunner'
    assert engine.is_local
    assert engine.workers == os.cpu_count()


def test_workers_are_as_many_as_asked_for():
    assert choose_engine([], 3).workers == 3
    assert choose_engine(['--runner=FlinkRunner'], 3).workers == 3


def test_worker_processes_bring_the_parallelism():
    engine = choose_engine(
        ['--direct_running_mode=multi_processing', '--direct_num_workers=2'], None
    )
    assert engine.workers == 1
    assert engine.is_local
    assert runner_of(engine) == 'FnApiRunner'
    assert engine.options().view_as(DirectOptions).direct_num_workers == 2


def test_a_cluster_brings_the_parallelism():
    engine = choose_engine(['--flink_master=localhost:8081', '--runner', 'FlinkRunner'], None)
    assert engine.workers == 1
    assert not engine.is_local
    assert runner_of(engine) == 'FlinkRunner'
    options = engine.options().view_as(FlinkRunnerOptions)
    assert options.flink_master == 'localhost:8081'


def test_other_flags_are_passed_on_in_their_order():
    flags = ['--temp_location', '/x', '--runner', 'local', '--labels', 'a=b']
    kept = [flag for flag in choose_engine(flags, 1).flags if not flag.startswith('--runner')]
    assert kept == ['--temp_location', '/x', '--labels', 'a=b']


def test_the_main_session_stays_at_home():
    assert choose_engine([], 1).options().view_as(SetupOptions).save_main_session is False


def test_multi_threading_is_refused_by_name():
    with pytest.raises(InputError, match='--direct_running_mode=multi_threading.*--workers'):
        choose_engine(['--direct_running_mode=multi_threading'], None)


def refuse(element):
    raise InputError(f'{element}: line 3 is wrong; mend it')


def fail(element):
    raise ZeroDivisionError(element)


def test_a_mistake_met_in_a_pipeline_is_raised_as_it_was():
    def build(pipeline):
        pipeline | beam.Create(['corpus']) | 'Refuse' >> beam.Map(refuse)

    with pytest.raises(InputError) as raised:
        choose_engine([], 1).run(build)
    assert str(raised.value) == 'corpus: line 3 is wrong; mend it'


def test_another_failure_stays_what_it_is():
    def build(pipeline):
        pipeline | beam.Create(['corpus']) | 'Fail' >> beam.Map(fail)

    with pytest.raises(ZeroDivisionError):
        choose_engine([], 1).run(build)


@pytest.fixture
def end_with(monkeypatch):
    """Runs a pipeline that ends as told, whatever it is."""

    def run(outcome):
        class Result:
            def wait_until_finish(self, duration=None):
                return outcome

        class Pipeline:
            def __init__(self, runner=None, options: PipelineOptions | None = None):
                pass

            def run(self):
                if isinstance(outcome, Exception):
                    raise outcome
                return Result()

        monkeypatch.setattr(engine_module.beam, 'Pipeline', Pipeline)
        choose_engine([], 1).run(lambda pipeline: None)

    return run


# What comes back from a worker process: texts within texts, and the message several times.
NESTED = """bundle 7 failed: Traceback (most recent call last):
  File "worker.py", line 310, in _execute
    response = task()
  File "counting.py", line 37, in count_block
    raise reject_error(block)
tokcore.errors.InputError: /data/a.en: invalid UTF-8 at byte 5; mend the line

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "operations.py", line 955, in process
tokcore.errors.InputError: /data/a.en: invalid UTF-8 at byte 5; mend the line\
 [while running 'CountTokens/CountBlocks/ParDo(_CountBlocksFn)']

"""


def test_a_mistake_is_found_in_the_text_of_a_workers_traceback(end_with):
    with pytest.raises(InputError) as raised:
        end_with(RuntimeError(NESTED))
    assert str(raised.value) == '/data/a.en: invalid UTF-8 at byte 5; mend the line'
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_a_text_without_a_mistake_is_no_mistake(end_with):
    failure = RuntimeError('worker lost: Traceback (most recent call last): OSError: disk full')
    with pytest.raises(RuntimeError, match='worker lost'):
        end_with(failure)


@pytest.mark.parametrize('state', ['DONE', None])
def test_a_pipeline_that_is_done_returns(end_with, state):
    end_with(state)


@pytest.mark.parametrize('state', ['FAILED', 'CANCELLED', 'UNKNOWN'])
def test_a_pipeline_that_ends_otherwise_is_a_failure(end_with, state):
    with pytest.raises(RuntimeError, match=state):
        end_with(state)


def test_bundles_in_this_process_do_not_wait_long_for_beams_look_at_them():
    choose_engine([], 1).run(lambda pipeline: pipeline | beam.Create([1]))
    sampling = inspect.signature(StateSampler).parameters['sampling_period_ms']
    assert sampling.default == 20
