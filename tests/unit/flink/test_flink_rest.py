"""The REST client, against a server of this test's own that answers as Flink 1.19 does."""

import io
import json
import zipfile

import pytest

from pipelines.flink.rest import (
    FlinkError,
    FlinkRest,
    JobState,
    UnansweredError,
    job_archive,
    milliseconds,
)
from tokcore.errors import InputError


def test_a_job_is_an_archive_of_the_pipeline_alone():
    path = f'/opt/{"long/" * 30}a jar'
    archive = job_archive('{"pipeline": 1}', '{"option": 2}', path)
    assert len(archive) < 2000
    with zipfile.ZipFile(io.BytesIO(archive)) as jar:
        assert json.loads(jar.read('BEAM-PIPELINE/pipeline-manifest.json')) == {
            'defaultJobName': 'pipeline'
        }
        assert jar.read('BEAM-PIPELINE/pipeline/pipeline.json') == b'{"pipeline": 1}'
        assert jar.read('BEAM-PIPELINE/pipeline/pipeline-options.json') == b'{"option": 2}'
        manifest = jar.read('META-INF/MANIFEST.MF').decode()
        assert max(map(len, manifest.splitlines())) <= 72
        url = path.replace(' ', '%20')
        assert manifest.replace('\r\n ', '').splitlines() == [
            'Manifest-Version: 1.0', f'Class-Path: file://{url}', '',
        ]  # fmt: skip
        assert not [name for name in jar.namelist() if name.endswith('.class')]


def test_a_job_is_sent_and_its_archive_is_removed(flink):
    rest = FlinkRest(flink.address)
    archive = job_archive('{}', '{}', '/opt/runner.jar')
    job = rest.submit(archive)
    assert flink.uploads == [archive]
    entry = 'org.apache.beam.runners.flink.FlinkPipelineRunner'
    assert flink.started == [{'entryClass': entry, 'jobId': job}]
    assert flink.archives == {}
    assert rest.running() == [(job, 'job')]
    assert rest.state(job) == JobState('RUNNING', 2, 1, 1)


def test_a_job_that_flink_refuses_is_told_by_its_cause_and_leaves_no_archive(flink):
    flink.refusal = 'java.lang.X\n\tat y\nCaused by: java.lang.Z: no such class\n\tat z'
    with pytest.raises(FlinkError, match='java.lang.Z: no such class$'):
        FlinkRest(flink.address).submit(b'')
    assert flink.archives == {}


def test_cancelling_waits_for_the_end(flink):
    rest = FlinkRest(flink.address)
    job = rest.submit(b'')
    flink.states[job] = ['CANCELLING', 'CANCELLING', 'CANCELED']
    assert rest.cancel(job) == 'CANCELED'
    assert flink.cancelled == [job]
    assert flink.states[job] == ['CANCELED']
    flink.states[job] = ['FINISHED']
    assert rest.cancel(job) == 'FINISHED' and flink.cancelled == [job]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr('pipelines.flink.rest._RETRY_SECONDS', 0.01)


@pytest.mark.parametrize('answered', range(5))
@pytest.mark.parametrize('silence', ['cut', 'lost', 'leaderless'])
def test_a_job_is_started_once_whichever_request_gets_no_answer(flink, quick, answered, silence):
    flink.silences = [''] * answered + [silence]
    job = FlinkRest(flink.address).submit(b'jar')
    assert [each['jobId'] for each in flink.started] == [job]
    assert list(flink.states) == [job]


def test_silence_is_reported_and_the_answer_then(flink, quick, monkeypatch, caplog):
    caplog.set_level('INFO')
    monkeypatch.setattr('pipelines.flink.rest._SILENCE_SECONDS', -1)
    flink.silences = ['leaderless']
    FlinkRest(flink.address).configuration()
    silent, answers = caplog.messages
    assert silent.startswith('the JobManager does not answer, for 0 s: http://localhost:')
    assert 'does not serve yet: org.apache.flink.' in silent
    assert silent.endswith('RecipientUnreachableException: Could not send message [X] to Y.')
    assert answers == 'the JobManager answers again'


def test_a_cluster_without_a_leader_is_waited_for_and_one_that_is_not_there_is_not(flink, quick):
    flink.silences = ['cut']
    with pytest.raises(UnansweredError, match='does not answer'):
        FlinkRest(flink.address).overview(patience=0)
    flink.silences = ['leaderless', 'cut', 'leaderless']
    assert FlinkRest(flink.address).overview(patience=0) == flink.overview


def test_of_several_addresses_any_that_answers_is_asked(flink, quick, unused_port):
    rest = FlinkRest(f'localhost:{unused_port}, {flink.address}')
    assert rest.overview(patience=0) == flink.overview
    assert rest.address == f'http://{flink.address}'
    assert rest.running() == []


@pytest.mark.parametrize(
    ('typed', 'expected'),
    [('4 s', 4000), ('500ms', 500), ('1 min', 60_000), ('250', 250), ('2 H', 7_200_000)],
)
def test_durations_are_read_as_flink_writes_them(typed, expected):
    assert milliseconds(typed) == expected


@pytest.mark.parametrize('typed', ['', 's', '4 weeks', '-1 s'])
def test_what_is_not_a_duration_is_refused(typed):
    with pytest.raises(InputError, match='is not a duration'):
        milliseconds(typed)
