"""Runners by name: what Beam gets of options, and what is refused before any work."""

import contextlib
import errno
import inspect
import logging

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.runners.worker.statesampler import StateSampler

from pipelines.engines import engine as engines_engine
from pipelines.engines.engine import choose_engine
from pipelines.engines.machine import usable_cores
from tokcore.errors import FullDiskError, InputError, OperatingSystemError

LOCAL = [[], ['--runner=local'], ['--runner', 'DirectRunner'], ['--runner=FnApiRunner']]

REFUSALS = {
    'a full disk': (OSError(errno.ENOSPC, 'No space left on device', '/d/x'), 'make room'),
    'a file too large': (OSError(errno.EFBIG, 'File too large'), 'ulimit -f'),
    'no right': (PermissionError(errno.EACCES, 'Permission denied', '/d/x'), 'permissions'),
    'a broken disk': (OSError(errno.EIO, 'Input/output error'), 'does not answer'),
    'too many files': (OSError(errno.EMFILE, 'Too many open files'), 'ulimit -n'),
    'an error of Beam': (OSError('the store is gone'), 'check the path'),
    'memory': (MemoryError('Unable to allocate 5 GiB'), 'not enough memory'),
    'threads': (RuntimeError("can't start new thread"), 'ulimit -u'),
}

SECRET = ['--s3_secret_access_key', 'HUSH']

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

REFUSED = """bundle 7 failed: Traceback (most recent call last):
  File "worker.py", line 310, in _execute
    response = task()
PermissionError: [Errno 13] Permission denied: '/work/x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "common.py", line 955, in process
RuntimeError: PermissionError: [Errno 13] Permission denied: '/work/x' [while running 'Write']
"""

PROCESSES = ['--direct_running_mode=multi_processing', '--direct_num_workers=3']
EMBEDDED = ['--runner=PortableRunner', '--job_endpoint=embed', '--environment_type=EXTERNAL']


def runner_of(engine):
    return engine.options().view_as(StandardOptions).runner


@pytest.mark.parametrize('flags', LOCAL, ids=' '.join)
def test_local_is_pinned_to_the_engine_in_this_process(flags):
    engine = choose_engine(flags, None)
    assert runner_of(engine) == 'FnApiRunner'
    assert engine.runner.is_local
    assert engine.workers == usable_cores()


@pytest.mark.parametrize(
    ('given', 'name'),
    [
        ('LOCAL', 'FnApiRunner'),
        ('direct', 'FnApiRunner'),
        ('SwitchingDirectRunner', 'FnApiRunner'),
        ('apache_beam.runners.direct.direct_runner.DirectRunner', 'FnApiRunner'),
        ('flink', 'FlinkRunner'),
        ('flinkrunner', 'FlinkRunner'),
        ('apache_beam.runners.portability.flink_runner.FlinkRunner', 'FlinkRunner'),
        ('dataflow', 'DataflowRunner'),
        ('nix', 'nix'),
        ('my.own.Runner', 'my.own.Runner'),
    ],
)
def test_a_runners_name_is_what_beam_takes_it_for(given, name):
    engine = choose_engine([f'--runner={given}'], None)
    assert engine.runner.name == runner_of(engine) == name
    assert engine.runner.in_process == (name == 'FnApiRunner')


def test_other_flags_are_passed_on_in_their_order():
    flags = ['--temp_location', '/x', '--runner', 'local', '--labels', 'a=b']
    kept = [flag for flag in choose_engine(flags, 1).flags if not flag.startswith('--runner')]
    assert kept == ['--temp_location', '/x', '--labels', 'a=b']


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

        monkeypatch.setattr(engines_engine.beam, 'Pipeline', Pipeline)
        choose_engine([], 1).run(lambda pipeline: None)

    return run


def fail_as(name):
    raise REFUSALS[name][0]


@pytest.mark.parametrize('name', REFUSALS)
def test_what_the_system_refuses_a_step_is_a_sentence(name, caplog):
    def build(pipeline):
        pipeline | beam.Create([name]) | 'Fail' >> beam.Map(fail_as)

    error, remedy = REFUSALS[name]
    with pytest.raises(OperatingSystemError) as raised:
        choose_engine([], 1).run(build)
    sentence = str(raised.value)
    assert sentence.startswith('cannot run the job: ')
    assert remedy in sentence
    assert 'while running' not in sentence
    assert isinstance(raised.value, FullDiskError) == (name in ('a full disk', 'a file too large'))
    if getattr(error, 'filename', None):
        assert error.filename in sentence
    # Beam would tell it too, with a traceback.
    assert not caplog.records


@pytest.mark.parametrize(
    ('outcome', 'kind', 'said'),
    [
        (NESTED, InputError, '^/data/a.en: invalid UTF-8 at byte 5; mend the line$'),
        (
            NESTED.replace('InputError: /data/a.en: invalid', 'FullDiskError: no room; invalid'),
            FullDiskError,
            '^no room; ',
        ),
        (REFUSED, InputError, 'Permission denied .*/work/x.*check the permissions$'),
        (REFUSED + 'ZeroDivisionError: division\n', RuntimeError, 'ZeroDivisionError'),
        ('worker lost: Traceback: OSError: disk full', RuntimeError, 'worker lost'),
    ],
)
def test_a_mistake_is_found_in_the_text_of_a_workers_traceback(end_with, outcome, kind, said):
    with pytest.raises(kind, match=said) as raised:
        end_with(RuntimeError(outcome))
    assert isinstance(raised.value.__cause__ or raised.value, RuntimeError)


@pytest.mark.parametrize('state', ['DONE', None, 'FAILED', 'CANCELLED', 'UNKNOWN'])
def test_a_pipeline_that_is_not_done_is_a_failure(end_with, state):
    failure = pytest.raises(RuntimeError, match=str(state))
    with contextlib.nullcontext() if state in ('DONE', None) else failure:
        end_with(state)


@pytest.mark.parametrize('number', [0, 2])
def test_worker_processes_bring_the_parallelism(number):
    """As many as there are cores are those that may be used."""
    flags = ['--direct_running_mode=multi_processing', '--direct_num_workers', str(number)]
    engine = choose_engine(flags, None)
    assert engine.workers == 1 and runner_of(engine) == 'FnApiRunner'
    options = engine.options().view_as(DirectOptions)
    assert options.direct_num_workers == (number or usable_cores())


@pytest.mark.parametrize(
    'flags',
    [
        *([f'--direct_num_workers={number}'] for number in (-1, 1025, 10**30)),
        *(['--runner=FlinkRunner', f'--parallelism={number}'] for number in (0, -2, 32769)),
    ],
)
def test_numbers_of_workers_have_bounds(flags):
    with pytest.raises(InputError, match=r'--(direct_num_workers|parallelism) .* from [01] to '):
        choose_engine(flags, None)


def test_bundles_in_this_process_do_not_wait_long_for_beams_look_at_them():
    choose_engine([], 1).run(lambda pipeline: pipeline | beam.Create([1]))
    sampling = inspect.signature(StateSampler).parameters['sampling_period_ms']
    assert sampling.default == 20


def test_options_that_beam_discards_are_logged_without_secrets(caplog):
    choose_engine([], 1)
    logger = logging.getLogger('apache_beam.options.pipeline_options')
    logger.warning('Discarding args: %s', ['--x_password', 'HUSH', '--token=HUSH', '-n'])
    logger.warning('%(a)s of %(b)s', {'a': 1, 'b': 'key=HUSH'})
    assert 'HUSH' not in caplog.text
    assert "Discarding args: ['--x_password', '***', '--token=***', '-n']" in caplog.text
    assert '1 of key=***' in caplog.text


@pytest.mark.parametrize(
    ('flags', 'expected'),
    [
        ([], (True, True, True, False)),
        (PROCESSES, (True, False, True, False)),
        (EMBEDDED, (True, False, True, True)),
        (['--runner=FlinkRunner', '--flink_master=[local]'], (False, False, True, False)),
        (['--runner=FlinkRunner', '--flink_master=there:8081'], (False, False, True, True)),
        (['--runner=SparkRunner'], (False, False, False, False)),
        (['--runner=SparkRunner', '--spark_master_url=spark://there:7077'],
         (False, False, False, True)),
        (['--runner=PrismRunner'], (False, False, False, False)),
        (['--runner=DataflowRunner'], (False, False, False, False)),
        (['--runner=my.own.Runner'], (False, False, False, False)),
    ],
    ids=lambda each: ' '.join(map(str, each)),
)  # fmt: skip
def test_where_a_runner_works_what_it_can_and_whether_it_starts_containers(flags, expected):
    runner = choose_engine(flags, None).runner
    traits = (runner.is_local, runner.in_process, runner.through_files, runner.has_containers)
    assert traits == expected


DATAFLOW = [
    '--project=some-project',
    '--region=europe-west4',
    '--temp_location=gs://bucket/temp',
    '--sdk_container_image=europe-docker.pkg.dev/project/images/tokbeam:0.2.0',
]


@pytest.mark.parametrize('left_out', DATAFLOW)
def test_dataflow_is_refused_without_what_its_workers_need(left_out):
    engine = choose_engine(
        ['--runner=DataflowRunner', *(each for each in DATAFLOW if each != left_out)], None
    )
    option = left_out.partition('=')[0]
    with pytest.raises(InputError, match=rf'not given: {option}\.'):
        engine.runner.refuse_unasked('DataflowRunner', engine.options())


def test_dataflow_takes_options_that_are_whole_and_places_on_a_store_alone():
    engine = choose_engine(['--runner=DataflowRunner', *DATAFLOW], None)
    engine.runner.refuse_unasked('DataflowRunner', engine.options())
    engine.runner.refuse_place('--output', 'gs://bucket/out')
    with pytest.raises(InputError, match='--work /here is on the disk of this machine'):
        engine.runner.refuse_place('--work', '/here')


@pytest.mark.parametrize('flags', [[], PROCESSES, EMBEDDED, ['--runner=FlinkRunner']])
def test_a_share_of_the_memory_is_never_below_none_at_all(flags):
    assert choose_engine(flags, None).runner.memory_share(1) == 0


def test_nobody_knows_the_memory_of_a_cluster():
    runner = choose_engine(['--runner=FlinkRunner', '--parallelism=4'], None).runner
    assert runner.memory_share(None) is None
    assert runner.memory_share(4 << 30) == (1 << 30) - (320 << 20)


def test_light_work_on_few_bytes_is_done_here():
    cluster = choose_engine(['--runner=FlinkRunner', '--flink_master=localhost:1'], None)
    near = cluster.near(16 << 20)
    assert cluster.near((16 << 20) + 1) is cluster
    assert near.runner.in_process and near.workers == near.runner.workers
    near.run(lambda pipeline: pipeline | beam.Create([1]) | beam.Map(abs))
    local = choose_engine([], None)
    assert local.near(0) is local


@pytest.mark.parametrize('runner', ['FlinkRunner', 'DataflowRunner', 'PrismRunner', 'SparkRunner'])
def test_no_secret_goes_to_a_cluster(runner):
    with pytest.raises(InputError, match='set AWS_SECRET_ACCESS_KEY in the environment of this'):
        choose_engine([f'--runner={runner}', *SECRET], None)


@pytest.mark.parametrize(
    'flags', [*LOCAL, ['--runner=PortableRunner', '--job_endpoint=embed']], ids=' '.join
)
def test_on_this_machine_secrets_stay_in_it(flags):
    assert choose_engine([*flags, *SECRET], None).runner.is_local


def test_an_interrupt_within_a_step_is_one(caplog):
    """A notebook's kernel is interrupted wherever its main thread is, mostly in a step."""

    def interrupted(_):
        raise KeyboardInterrupt

    def build(pipeline):
        pipeline | beam.Create([1]) | beam.Map(interrupted)

    with pytest.raises(KeyboardInterrupt):
        choose_engine([], 1).run(build)
    assert 'KeyboardInterrupt' not in caplog.text
