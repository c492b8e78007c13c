"""A Flink cluster by its REST interface: what it is, a job sent to it, watched and cancelled.

A job is an archive of Java with nothing in it but a pipeline as JSON, some kilobytes. Beam's jars lie
in the cluster's `lib/`. Only the classes that look for the pipeline must be loaded with it; the
archive's manifest names a jar on the cluster that has them. So neither this machine nor a job carries
any Java.

Source of the layout of the archive: `PortablePipelineJarUtils` of Beam's Java. Of the addresses: Flink's
page on its REST API.
"""

import io
import json
import pathlib
import re
import time
import zipfile
from dataclasses import dataclass
from typing import Any

import requests

from tokcore.errors import InputError

WORKER = 'tokbeam.worker'
"""In the cluster's configuration: the path of `boot`, which a TaskManager starts as a worker."""

RUNNER_JAR = 'tokbeam.runner-jar'
"""In the cluster's configuration: the path of the jar with Beam's main class, on all its machines."""

_MAIN_CLASS = 'org.apache.beam.runners.flink.FlinkPipelineRunner'
_LINE = 70  # bytes of a manifest; the format allows 72, with a space before a line that goes on
_NAME = 'pipeline'
_FOLDER = 'BEAM-PIPELINE'

_ENDED = frozenset(['FINISHED', 'FAILED', 'CANCELED'])

_AT_WORK = ('DEPLOYING', 'INITIALIZING', 'RUNNING')
"""States of a stage that has its slots."""

_ANSWER_SECONDS = 60
"""The JobManager translates a pipeline within one request; a large one took some seconds."""

_PATIENCE_SECONDS = 60
"""So long may a JobManager that knows a job of ours not answer, as one that is being restarted."""

_RETRY_SECONDS = 0.5
_CANCEL_SECONDS = 30
_CANCEL_LOOK_SECONDS = 0.1

_DURATION = re.compile(r'([0-9]+)\s*([a-z]*)')
_MILLISECONDS = {
    'ms': 1, 'milli': 1, 'millis': 1, 'millisecond': 1, 'milliseconds': 1, '': 1,
    's': 1_000, 'sec': 1_000, 'secs': 1_000, 'second': 1_000, 'seconds': 1_000,
    'm': 60_000, 'min': 60_000, 'minute': 60_000, 'minutes': 60_000,
    'h': 3_600_000, 'hour': 3_600_000, 'hours': 3_600_000,
    'd': 86_400_000, 'day': 86_400_000, 'days': 86_400_000,
}  # fmt: skip


class FlinkError(RuntimeError):
    """The cluster refuses a request, or does not answer."""


@dataclass(frozen=True)
class JobState:
    """How far a job is.

    Attributes:
        state: Flink's word.
        vertices: how many stages Flink made of the pipeline.
        finished: how many of them are done.
        running: how many have slots and are at work, or about to be.
    """

    state: str
    vertices: int
    finished: int
    running: int

    @property
    def has_ended(self) -> bool:
        return self.state in _ENDED


class FlinkRest:
    """The cluster at an address, `HOST:PORT` or a URL."""

    def __init__(self, address: str):
        address = address.strip().rstrip('/')
        self.address = address if '://' in address else f'http://{address}'
        self._session = requests.Session()

    def overview(self) -> dict[str, Any]:
        """Returns the number of TaskManagers and slots, and Flink's version, by Flink's names."""
        return self._get('overview')

    def configuration(self) -> dict[str, str]:
        """Returns the JobManager's configuration."""
        return {setting['key']: setting['value'] for setting in self._get('jobmanager/config')}

    def running(self) -> list[tuple[str, str]]:
        """Returns the id and the name of each job that has not ended."""
        jobs = self._get('jobs/overview', _PATIENCE_SECONDS)['jobs']
        return [(job['jid'], job['name']) for job in jobs if job['state'] not in _ENDED]

    def submit(self, archive: bytes) -> str:
        """Starts a job; returns its id."""
        uploaded = self._request(
            'post',
            'jars/upload',
            files={'jarfile': ('tokbeam.jar', archive, 'application/x-java-archive')},
        )
        name = uploaded['filename'].rpartition('/')[2]
        try:
            body = {'entryClass': _MAIN_CLASS}
            return self._request('post', f'jars/{name}/run', json=body)['jobid']
        finally:
            # The job has its own copy by now.
            self._request('delete', f'jars/{name}')

    def state(self, job: str) -> JobState:
        """Returns how far a job is.

        Raises:
            FlinkError: the cluster does not know the job, or has not answered for a minute.
        """
        answer = self._get(f'jobs/{job}', _PATIENCE_SECONDS)
        states = [vertex['status'] for vertex in answer['vertices']]
        return JobState(
            answer['state'],
            len(states),
            states.count('FINISHED'),
            sum(state in _AT_WORK for state in states),
        )

    def failures(self, job: str) -> list[str]:
        """Returns the errors that a job has met, as Java writes them, oldest first."""
        answer = self._get(f'jobs/{job}/exceptions', _PATIENCE_SECONDS)
        history = answer.get('exceptionHistory', {}).get('entries', [])
        return [entry['stacktrace'] for entry in reversed(history)]

    def cancel(self, job: str) -> str:
        """Cancels a job and waits for its end; returns the state in which it ended.

        Raises:
            FlinkError: it has not ended within half a minute, or the cluster does not answer.
        """
        try:
            self._request('patch', f'jobs/{job}?mode=cancel')
        except FlinkError:
            state = self.state(job)
            if not state.has_ended:
                raise
            return state.state
        end = time.monotonic() + _CANCEL_SECONDS
        while time.monotonic() < end:
            state = self.state(job)
            if state.has_ended:
                return state.state
            time.sleep(_CANCEL_LOOK_SECONDS)
        raise FlinkError(
            f'job {job} at {self.address} was cancelled, and is still {state.state} after '
            f'{_CANCEL_SECONDS} seconds'
        )

    def _get(self, path: str, patience: float = 0) -> Any:
        """Asks again for some seconds if nobody answers."""
        end = time.monotonic() + patience
        while True:
            try:
                return self._request('get', path)
            except _NoAnswer:
                if time.monotonic() >= end:
                    raise
            time.sleep(_RETRY_SECONDS)

    def _request(self, method: str, path: str, **arguments: Any) -> Any:
        url = f'{self.address}/v1/{path}'
        try:
            response = self._session.request(method, url, timeout=_ANSWER_SECONDS, **arguments)
        except requests.RequestException as error:
            raise _NoAnswer(f'{self.address} does not answer: {_reason(error)}') from error
        if response.status_code == 503:  # the JobManager has not begun to serve
            raise _NoAnswer(f'{self.address} does not serve yet')
        if not response.ok:
            raise FlinkError(f'{url} answers {response.status_code}: {_last_line(response)}')
        try:
            return response.json() if response.content else {}
        except ValueError as error:
            raise FlinkError(f'{url} is not the REST interface of a Flink') from error


class _NoAnswer(FlinkError):
    """Nobody answers at the address, which may change."""


def job_archive(pipeline: str, options: str, runner_jar: str) -> bytes:
    """Returns the archive that a cluster runs as a job.

    Args:
        pipeline: Beam's `Pipeline` message as JSON.
        options: Beam's options as JSON.
        runner_jar: the path, on the cluster, of the jar with the main class.
    """
    entry = f'Class-Path: {pathlib.PurePosixPath(runner_jar).as_uri()}'
    lines = [entry[start : start + _LINE] for start in range(0, len(entry), _LINE)]
    # A line that begins with a space goes on where the last one ended.
    manifest = ['Manifest-Version: 1.0', '\r\n '.join(lines), '', '']
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, 'w', zipfile.ZIP_DEFLATED) as jar:
        for name, text in (
            ('META-INF/MANIFEST.MF', '\r\n'.join(manifest)),
            (f'{_FOLDER}/pipeline-manifest.json', json.dumps({'defaultJobName': _NAME})),
            (f'{_FOLDER}/{_NAME}/pipeline.json', pipeline),
            (f'{_FOLDER}/{_NAME}/pipeline-options.json', options),
        ):
            jar.writestr(name, text)
    return archive.getvalue()


def milliseconds(duration: str) -> int:
    """Returns a duration as Flink writes it, `4 s` or `500ms`, in milliseconds.

    Raises:
        InputError: it is not a duration.
    """
    match = _DURATION.fullmatch(duration.strip().lower())
    if match is None or match[2] not in _MILLISECONDS:
        raise InputError(f"{duration!r} in the cluster's configuration is not a duration")
    return int(match[1]) * _MILLISECONDS[match[2]]


def _reason(error: Exception) -> str:
    """Returns the innermost cause, which is what the system said."""
    inner: BaseException = error
    while inner.__context__ is not None:
        inner = inner.__context__
    return str(getattr(inner, 'strerror', None) or inner)


def _last_line(response: requests.Response) -> str:
    """Returns the last line of an error that Flink answers, which is a Java traceback in JSON."""
    try:
        text = '\n'.join(map(str, response.json()['errors']))
    except (ValueError, KeyError, TypeError):
        text = response.text
    causes = [line for line in text.splitlines() if line.startswith('Caused by: ')]
    lines = causes or text.strip().splitlines() or ['nothing']
    return lines[-1].removeprefix('Caused by: ').strip()[:500]
