"""What is asked of a Flink before a job, and what becomes of the job, against a server that answers so."""

import io
import logging
import tempfile
import threading
import uuid
import zipfile

import apache_beam as beam
import pytest
from apache_beam.internal import pickler
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PortableOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.transforms.environments import EmbeddedPythonEnvironment
from google.protobuf import json_format

from pipelines.engines.engine import check_engine, choose_engine, users_mistake
from pipelines.flink import probe as cluster_probe
from pipelines.flink.cluster import ClusterJob, ClusterRunner, _summary, ask_cluster
from pipelines.flink.rest import Failure, FlinkRest
from pipelines.options.beam import beam_options
from tokcore import process_end
from tokcore.errors import FullDiskError, InputError, UnreachableError


def ask(flink, *flags: str) -> dict:
    return dict(ask_cluster(beam_options([f'--flink_master={flink.address}', *flags])))


def test_an_address_is_all_that_is_typed(flink):
    assert ask(flink) == {
        '--parallelism': 2,
        '--environment_type': 'PROCESS',
        '--environment_options': 'process_command=/opt/boot',
        '--environment_cache_millis': 1000,
    }


def test_what_is_typed_stays(flink, caplog):
    flink.configuration['restart-strategy.type'] = 'none'
    answers = ask(flink, '--parallelism=1', '--environment_type=LOOPBACK')
    assert answers == {'--parallelism': 1, '--environment_cache_millis': 1000}
    assert 'restarts nothing' in caplog.text


def test_the_engine_has_what_the_cluster_told(flink):
    flags = ['--runner=FlinkRunner', f'--flink_master={flink.address}']
    engine = check_engine(choose_engine(flags, None))
    assert engine.runner.processes == 2
    assert engine.options().view_as(FlinkRunnerOptions).parallelism == 2
    portable = engine.options().view_as(PortableOptions)
    assert portable.lookup_environment_option('process_command') == '/opt/boot'
    assert portable.environment_cache_millis == '1000'


def test_checking_a_cluster_leaves_no_temporary_folder(flink, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    check_engine(choose_engine(['--runner=FlinkRunner', f'--flink_master={flink.address}'], None))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(('delay', 'expected'), [('10 s', 1000), ('1 s', 500), ('1 ms', 1)])
def test_workers_are_kept_for_less_than_the_restart_delay(flink, delay, expected):
    flink.configuration['restart-strategy.fixed-delay.delay'] = delay
    assert ask(flink)['--environment_cache_millis'] == expected


NONE = {'slots-total': 0, 'taskmanagers': 0}


@pytest.mark.parametrize(
    ('flags', 'overview', 'without', 'said'),
    [
        (['--environment_cache_millis=4000'], {}, None, '4000 ms'),
        (['--parallelism=3'], {}, None, 'more than the 2 slots of the 2 TaskManagers'),
        (
            [],
            {'flink-version': '2.2.1'},
            None,
            'is Flink 2.2.1, and its Beam jars are for 1.19, 1.20',
        ),
        ([], {'flink-version': '1.2'}, None, 'is Flink 1.2, and its Beam jars'),
        ([], NONE, None, 'no TaskManager'),
        ([], {}, 'tokbeam.worker', 'tokbeam.worker'),
        ([], {}, 'tokbeam.runner-jar', 'tokbeam.runner-jar'),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(flink, flags, overview, without, said):
    flink.overview |= overview
    flink.configuration.pop(without, None)
    with pytest.raises(InputError, match=said):
        ask(flink, *flags)


def test_a_cluster_that_does_not_say_for_which_flink_its_jars_are_is_taken(flink):
    del flink.configuration['tokbeam.flink-versions']
    flink.overview['flink-version'] = '2.2.1'
    assert ask(flink)['--parallelism'] == 2


def test_an_address_where_nobody_answers_is_refused(unused_port):
    with pytest.raises(InputError, match='refused'):
        ask_cluster(beam_options([f'--flink_master=localhost:{unused_port}']))


def test_no_address_is_refused():
    with pytest.raises(InputError, match='no Flink is to be asked there'):
        ask_cluster(beam_options(['--flink_master=,']))


@pytest.fixture
def run(flink, tmp_path):
    """Runs a pipeline for an output as a command does; returns the runner."""

    def run_pipeline(output=str(tmp_path), runner=None) -> ClusterRunner:
        flags = ['--runner=FlinkRunner', f'--flink_master={flink.address}']
        engine = check_engine(choose_engine(flags, None))
        runner = runner or ClusterRunner(output)
        pipeline = beam.Pipeline(runner=runner, options=engine.options())
        pipeline | beam.Create([1]) | beam.Map(abs)
        pipeline.run()
        return runner

    return run_pipeline


def load_steps(archive: bytes) -> list:
    """Loads the steps of a job as a worker does."""
    with zipfile.ZipFile(io.BytesIO(archive)) as jar:
        text = jar.read('BEAM-PIPELINE/pipeline/pipeline.json')
    pipeline = json_format.Parse(text, beam_runner_api_pb2.Pipeline())
    return [
        pickler.loads(beam_runner_api_pb2.ParDoPayload.FromString(each.spec.payload).do_fn.payload)
        for each in pipeline.components.transforms.values()
        if each.spec.urn == common_urns.primitives.PAR_DO.urn
    ]


def test_steps_of_the_first_job_alone_compare_the_workers(flink, run, monkeypatch):
    runner = run()
    run(runner=runner)
    compared = []
    monkeypatch.setattr(cluster_probe.Expected, 'refuse_others', lambda self: compared.append(self))
    first, second = map(load_steps, flink.uploads)
    assert len(first) == len(second) == len(compared) > 1
    assert [type(step[0]) for step in first] == [type(step[0]) for step in second]
    assert max(map(len, flink.uploads)) < 20_000


def test_the_job_of_a_killed_driver_is_cancelled_and_no_other(flink, run):
    digest = run()._digest
    assert digest == run()._digest != run('/another')._digest
    flink.states = {
        'left': ['RUNNING', 'CANCELLING', 'CANCELED'],
        'done': ['FINISHED'],
        'other': ['RUNNING'],
    }
    flink.names = {
        'left': f'tokbeam-vocab-7-{digest}',
        'done': f'tokbeam-count-1-{digest}',
        'other': 'tokbeam-vocab-7-0123456789ab',
    }
    run()
    assert flink.cancelled == ['left']


JOB = uuid.UUID(int=1).hex


@pytest.fixture
def job(flink, monkeypatch):
    monkeypatch.setattr(process_end, '_undoing', {})
    monkeypatch.setattr('pipelines.flink.rest._RETRY_SECONDS', 0.01)
    rest = FlinkRest(flink.address)
    with monkeypatch.context() as patch:
        patch.setattr(uuid, 'uuid4', lambda: uuid.UUID(JOB))
        rest.submit(b'')
    flink.started.clear()
    return ClusterJob(rest, JOB, 'tokbeam-count-1-x', slots=2)


def test_a_job_that_finishes_is_done(flink, job):
    flink.states[JOB] = ['RUNNING', 'FINISHED']
    assert job.wait_until_finish() == 'DONE'
    assert not process_end._undoing


def test_a_failure_that_the_cluster_survives_is_told(flink, job, caplog):
    flink.states[JOB] = ['RUNNING', 'RUNNING', 'FINISHED']
    flink.failures[JOB] = [
        'java.lang.X: lost\n\tat y\nCaused by: java.net.Z: reset\n\tat q',
        'java.lang.X: no slot\n\tat y',
    ]
    assert job.wait_until_finish() == 'DONE'
    assert caplog.messages == [
        'tokbeam-count-1-x: failure 1, the cluster goes on: java.net.Z: reset',
        'tokbeam-count-1-x: failure 2, the cluster goes on: java.lang.X: no slot',
    ]


NO_START = 'java.lang.X: y\nCaused by: java.io.Z: Cannot run program "/boot"'


@pytest.mark.parametrize(
    ('states', 'failures', 'error', 'said', 'cancelled'),
    [
        (['FAILED'], ['earlier', 'the reason'], RuntimeError, 'ended FAILED: the reason', []),
        (
            ['FAILED'],
            ['X: y\nCaused by: java.io.IOException: No space left on device\n\tat z'],
            FullDiskError,
            r'is full \(java.io.IOException: ',
            [],
        ),
        (
            ['RESTARTING', 'CANCELLING', 'CANCELED'],
            ['Caused by: tokcore.errors.InputError: file x, line 3: no column 2'],
            RuntimeError,
            'file x, line 3',
            [JOB],
        ),
        (
            ['RUNNING', 'CANCELLING', 'CANCELED'],
            [NO_START] * 3,
            InputError,
            'no worker starts on .*: java.io.Z: Cannot run ',
            [JOB],
        ),
        (
            ['FAILED'],
            [
                'X: y\nCaused by: java.lang.OutOfMemoryError: Java heap space\n\tat z',
                'call is closed',
            ],
            InputError,
            r'on host7 is out of memory \(Java heap space\); .* taskmanager.memory.process.size$',
            [],
        ),
        (
            ['FAILED'],
            ['X: TaskManager with id tm3:6122-1a is no longer reachable.'],
            RuntimeError,
            'the TaskManager on tm3 died or was cut off; if its log has an OutOfMemoryError',
            [],
        ),
        (None, [], RuntimeError, 'is lost: .*404', []),
    ],
)
def test_a_job_that_fails_says_why(flink, job, states, failures, error, said, cancelled):
    flink.states, flink.failures = {JOB: states} if states else {}, {JOB: failures}
    with pytest.raises(error, match=said):
        job.wait_until_finish()
    assert flink.cancelled == cancelled


def test_a_bad_line_is_what_is_reported_where_the_job_cannot_be_cancelled_in_time(
    flink, job, monkeypatch, caplog
):
    monkeypatch.setattr('pipelines.flink.rest._CANCEL_SECONDS', 0.01)
    flink.states[JOB] = ['RUNNING', 'CANCELLING']
    flink.failures[JOB] = ['Caused by: tokcore.errors.InputError: file x, line 3: no column 2']
    with pytest.raises(RuntimeError, match='file x, line 3'):
        job.wait_until_finish()
    assert 'may still be running: ' in caplog.text and 'is still CANCELLING' in caplog.text


def test_a_store_that_is_away_is_left_to_the_restarts_of_the_cluster(flink, job, caplog):
    flink.states[JOB] = ['RUNNING', 'RESTARTING', 'FINISHED']
    away = 'tokcore.errors.UnreachableError: s3://corpora/x cannot be reached: it is away'
    flink.failures[JOB] = [f'X: y\nCaused by: java.lang.Z: {away}']
    assert job.wait_until_finish() == 'DONE'
    [message] = caplog.messages
    assert message.endswith(f'failure 1, the cluster goes on: java.lang.Z: {away}')
    flink.states[JOB] = ['FAILED']
    with pytest.raises(RuntimeError) as caught:
        job.wait_until_finish()
    mistake = users_mistake(caught.value)
    assert type(mistake) is UnreachableError and str(mistake).startswith('s3://corpora/x cannot')


def test_a_new_jobmanager_counts_failures_anew(flink, job, caplog):
    flink.failures[JOB] = ['java.lang.X: first', 'java.lang.X: second']
    job._report_failures()
    flink.failures[JOB] = []
    job._report_failures()
    flink.failures[JOB] = ['java.lang.X: third']
    job._report_failures()
    assert [message.rpartition(' ')[2] for message in caplog.messages] == [
        'first',
        'second',
        'third',
    ]


def test_a_cluster_out_of_reach_may_still_run_the_job(flink, job, monkeypatch):
    monkeypatch.setattr('pipelines.flink.rest._PATIENCE_SECONDS', 0)
    monkeypatch.setattr(FlinkRest.state, '__defaults__', (0,))
    flink.silences = ['cut'] * 100
    with pytest.raises(UnreachableError, match='is out of reach .*may still be running'):
        job.wait_until_finish()
    assert flink.cancelled == []


def test_a_job_that_finished_while_the_cluster_was_out_of_reach_is_done(flink, job):
    flink.silences = ['cut'] * 5
    flink.states[JOB] = ['FINISHED']
    assert job.wait_until_finish() == 'DONE'


@pytest.mark.parametrize(
    ('text', 'summary'),
    [
        ('X: y\nCaused by: StatusRuntimeException: CANCELLED: client cancelled', 'the worker on tm1 died'),
        ('X: Process died with exit code 137', 'the worker on tm1 died'),
        (
            'TimeoutException: The heartbeat of TaskManager with id tm5:33081-c1e584 timed out.',
            'the TaskManager on tm5 died or was cut off',
        ),
        (
            'AskTimeoutException: Ask timed out on [Actor[pekko.tcp://flink@tm4:34487/user/rpc/taskmanager_0]]',
            'the TaskManager on tm4 died or was cut off',
        ),
        (
            'X: TaskManager with id taskmanager2:42155-1a2b3c is no longer reachable.',
            'the TaskManager on taskmanager2 died or was cut off',
        ),
        (
            "X: Connection unexpectedly closed by remote task manager 'taskmanager2/10.77.0.4:41111 [ "
            "taskmanager2:42155-1a2b3c ] '.\nRemoteTransportException",
            'the TaskManager on taskmanager2 died or was cut off',
        ),
        (
            'RecipientUnreachableException: Could not send message [RemoteRpcInvocation(submitTask)] '
            'to recipient [pekko.tcp://flink@10.77.0.4:34567/user/rpc/taskmanager_0]',
            'the TaskManager on 10.77.0.4 died or was cut off',
        ),
        (
            'X: y\nCaused by: OutOfMemoryError: Cannot reserve 10 bytes of direct buffer memory (limit 9)',
            'a TaskManager on tm1 is out of memory (Cannot reserve 10 bytes of direct buffer memory (limit '
            '9)); give more by taskmanager.memory.task.off-heap.size, and as much to '
            'taskmanager.memory.process.size',
        ),
        ('java.lang.X: y\n\tat a\nCaused by: java.lang.Z: reset\n\tat b', 'java.lang.Z: reset'),
    ],
)  # fmt: skip
def test_a_failure_is_told_by_what_died(text, summary):
    assert _summary(Failure(text, 'tm1')) == summary


def test_a_worker_that_was_killed_while_it_started_is_started_again(flink, job):
    flink.states[JOB] = ['RUNNING', 'FINISHED']
    died = ['Process died with exit code 137'] * 2
    flink.failures[JOB] = [*died, 'it is lost', *died]
    assert job.wait_until_finish() == 'DONE'


def test_a_deadline_returns_and_cancelling_is_seen_to_its_end(flink, job):
    assert job.wait_until_finish(duration=1) == 'RUNNING'
    assert flink.cancelled == []
    flink.states[JOB] = ['CANCELLING', 'CANCELED']
    assert job.cancel() == 'CANCELLED'


def test_a_job_is_cancelled_when_the_process_ends(flink, job):
    waiting = threading.Thread(target=lambda: pytest.raises(RuntimeError, job.wait_until_finish))
    waiting.start()
    while not process_end._undoing:
        pass
    assert list(process_end.undo_all(1)) == []
    process_end.unless_ending.release()  # which the end of a process never does
    waiting.join()
    assert flink.cancelled == [JOB]
    assert not process_end._undoing


@pytest.fixture
def waiting(flink, job, monkeypatch):
    """A job that waits at some looks, which are as if each came after the seconds between two."""
    monkeypatch.setattr('pipelines.flink.cluster._WAITING_SECONDS', -1)
    flink.states[JOB] = ['RESTARTING'] * 4 + ['FINISHED']
    return job


def test_waiting_for_slots_is_told_once(waiting, caplog):
    caplog.set_level(logging.INFO)
    assert waiting.wait_until_finish() == 'DONE'
    assert caplog.messages == [
        'tokbeam-count-1-x waits for 2 slots: 2 of 2 are free, of 2 TaskManagers'
    ]


def test_a_job_whose_slots_are_not_there_for_minutes_is_given_up(flink, waiting, monkeypatch):
    flink.overview |= {'slots-total': 1, 'slots-available': 1, 'taskmanagers': 1}
    monkeypatch.setattr('pipelines.flink.cluster._LACKING_SECONDS', -1)
    said = (
        '-1-x needs 2 slots, .* has had fewer, now 1 of 1 TaskManagers: .* log says why; give the'
    )
    with pytest.raises(RuntimeError, match=said):
        waiting.wait_until_finish()
    assert flink.cancelled == [JOB]


@pytest.mark.parametrize('slots', [1, 2], ids=['not yet for minutes', 'all there'])
def test_a_job_waits_on_for_slots_that_may_come(flink, waiting, monkeypatch, slots):
    flink.overview |= {'slots-total': slots, 'slots-available': 0, 'taskmanagers': slots}
    if slots == 2:  # another job has them
        monkeypatch.setattr('pipelines.flink.cluster._LACKING_SECONDS', -1)
    assert waiting.wait_until_finish() == 'DONE'


def test_equal_versions_pass_and_another_is_named():
    versions = cluster_probe.own_versions()
    cluster_probe.refuse_other_versions(versions)
    other = (versions[0], ('Unicode', '1.1'), *versions[2:])
    with pytest.raises(InputError, match='Unicode is .* for the workers on .*, and 1.1 where'):
        cluster_probe.refuse_other_versions(other)


def run_compared(expected: cluster_probe.Expected) -> None:
    """Runs a pipeline whose steps compare this process."""
    pipeline = beam.Pipeline(runner='FnApiRunner')
    pipeline | beam.Create([1]) | beam.Map(abs) | beam.combiners.Count.Globally()
    message = pipeline.to_runner_api(default_environment=EmbeddedPythonEnvironment.default())
    cluster_probe.add_checks(message, expected)
    FnApiRunner().run_via_runner_api(message, pipeline.options)


def test_a_job_ends_with_what_a_step_finds(tmp_path):
    run_compared(cluster_probe.Expected.for_output(str(tmp_path)))
    versions = (('Python', '2.7'), *cluster_probe.own_versions()[1:])
    with pytest.raises(Exception) as caught:
        run_compared(cluster_probe.Expected(versions))
    assert str(users_mistake(caught.value)).startswith('Python is ')


def test_workers_that_were_forked_before_an_upgrade_are_refused(monkeypatch):
    versions = cluster_probe.own_versions()
    monkeypatch.setattr(cluster_probe, '_checksum_of_sources', lambda: 1)
    assert cluster_probe.own_versions() == versions
    cluster_probe.own_versions.cache_clear()
    try:
        with pytest.raises(InputError, match='of sources 00000001 for .* start the cluster again'):
            cluster_probe.refuse_other_versions(versions)
    finally:
        cluster_probe.own_versions.cache_clear()


def test_a_folder_that_a_worker_does_not_see_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_probe, '_SEEN_SECONDS', 0)
    (tmp_path / '.tokbeam-lock').touch()
    cluster_probe.refuse_unseen(str(tmp_path), ('.tokbeam-attempt-1', '.tokbeam-lock'))
    for folder, names in ((tmp_path, ('.tokbeam-attempt-1',)), (tmp_path / 'none', ())):
        with pytest.raises(InputError, match=f'{folder} is not seen by the workers'):
            cluster_probe.refuse_unseen(str(folder), names)


def test_what_is_looked_for_is_what_the_tool_keeps_beside_an_output(tmp_path):
    for name in ('.tokbeam-lock', '.tokbeam', 'tokbeam.json'):
        (tmp_path / name).touch()
    of_folder = cluster_probe.Expected.for_output(str(tmp_path))
    of_file = cluster_probe.Expected.for_output(str(tmp_path / 'vocabulary'))
    assert of_folder == of_file
    assert (of_folder.folder, of_folder.names) == (str(tmp_path), ('.tokbeam-lock',))
    assert cluster_probe.Expected.for_output('s3://bucket/out').folder is None


def test_a_job_is_cut_for_as_many_slots_as_asked_for_and_one_by_default():
    for flags, slots in (([], 1), (['--parallelism=8'], 8)):
        assert choose_engine(['--runner=FlinkRunner', *flags], None).runner.processes == slots
    assert choose_engine(['--parallelism=8'], None).runner.processes == 1
