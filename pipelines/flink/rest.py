"""A Flink cluster by its REST interface: what it is, a job sent to it, watched and cancelled.

A job is an archive of Java with nothing in it but a pipeline as JSON, some kilobytes. Beam's jars lie
in the cluster's `lib/`. Only the classes that look for the pipeline must be loaded with it; the
archive's manifest names a jar on the cluster that has them. So neither this machine nor a job carries
any Java.

Source of the layout of the archive: `PortablePipelineJarUtils` of Beam's Java. Of the addresses: Flink's
page on its REST API.
"""

import contextlib
import functools
import io
import json
import logging
import pathlib
import re
import time
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import requests

from pipelines.engines.progress import AT_ONCE
from tokcore.errors import InputError

_LOGGER = logging.getLogger(__name__)

_Answer = TypeVar('_Answer')

WORKER = 'tokbeam.worker'
"""In the cluster's configuration: the path of `boot`, which a TaskManager starts as a worker."""

RUNNER_JAR = 'tokbeam.runner-jar'
"""In the cluster's configuration: the path of the jar with Beam's main class, on all its machines."""

VERSIONS = 'tokbeam.flink-versions'
"""In the cluster's configuration: the versions of Flink that its Beam jars are for, with commas."""

_MAIN_CLASS = 'org.apache.beam.runners.flink.FlinkPipelineRunner'
_LINE = 70  # bytes of a manifest; the format allows 72, with a space before a line that goes on
_NAME = 'pipeline'
_FOLDER = 'BEAM-PIPELINE'

_ENDED = frozenset(['FINISHED', 'FAILED', 'CANCELED'])

_AT_WORK = ('DEPLOYING', 'INITIALIZING', 'RUNNING')
"""States of a stage that has its slots."""

_ANSWER_SECONDS = 10
"""A request without an answer is repeated after so many: what was sent into a cut network is lost."""

_SUBMIT_SECONDS = 60
"""The JobManager translates a pipeline within one request; a large one took some seconds."""

_PATIENCE_SECONDS = 300
"""So long may a cluster not answer: a network that is cut, a JobManager that is being restarted."""

_SILENCE_SECONDS = 10
"""After so many it is reported that nobody answers, and again whenever twice as many have passed."""

_RETRY_SECONDS = 0.5
_CANCEL_SECONDS = 30
_CANCEL_LOOK_SECONDS = 0.1

_NOT_SERVING = re.compile(
    r'(RecipientUnreachable|FencingToken|LeaderRetrieval|Timeout)Exception|leader election', re.I
)
"""In an error 500: no JobManager leads at the moment, or the one that answers does not reach it."""

_EXCEPTION = re.compile(r'[\w$.]+(Exception|Error)\b')

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


class UnansweredError(FlinkError):
    """Nobody answers, which may change."""


class UnknownJobError(FlinkError):
    """The cluster does not know a job."""


@dataclass(frozen=True)
class Failure:
    """An error that a job has met.

    Attributes:
        text: as Java writes it.
        host: where it was.
    """

    text: str
    host: str


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
    """The cluster at an address, `HOST:PORT` or a URL.

    With high availability every JobManager serves, so there may be several addresses, with commas
    between them: if one does not answer, the next one is asked.
    """

    def __init__(self, addresses: str):
        stripped = [address.strip().rstrip('/') for address in addresses.split(',')]
        self._addresses = [each if '://' in each else f'http://{each}' for each in stripped]
        self._session = requests.Session()

    @property
    def address(self) -> str:
        """The address that is asked next."""
        return self._addresses[0]

    def overview(self, patience: float = _PATIENCE_SECONDS) -> dict[str, Any]:
        """Returns the number of TaskManagers and slots, and Flink's version, by Flink's names."""
        return self._get('overview', patience)

    def configuration(self) -> dict[str, str]:
        """Returns the JobManager's configuration."""
        return {setting['key']: setting['value'] for setting in self._get('jobmanager/config')}

    def running(self, patience: float = _PATIENCE_SECONDS) -> list[tuple[str, str]]:
        """Returns the id and the name of each job that has not ended."""
        jobs = self._get('jobs/overview', patience)['jobs']
        return [(job['jid'], job['name']) for job in jobs if job['state'] not in _ENDED]

    def submit(self, archive: bytes) -> str:
        """Starts a job; returns its id.

        The id is chosen here, so a job is not started twice if only the answer was lost.
        """
        job = uuid.uuid4().hex
        self._patiently(functools.partial(self._start, archive, job))
        return job

    def _start(self, archive: bytes, job: str) -> None:
        with contextlib.suppress(UnknownJobError):
            self._request('get', f'jobs/{job}')
            return  # an earlier request has started it
        uploaded = self._request(
            'post',
            'jars/upload',
            _SUBMIT_SECONDS,
            files={'jarfile': ('tokbeam.jar', archive, 'application/x-java-archive')},
        )
        name = uploaded['filename'].rpartition('/')[2]
        try:
            body = {'entryClass': _MAIN_CLASS, 'jobId': job}
            self._request('post', f'jars/{name}/run', _SUBMIT_SECONDS, json=body)
        except FlinkError as error:
            if 'DuplicateJobSubmission' not in str(error):
                raise
        finally:
            # The job has its own copy by now, and another JobManager none.
            with contextlib.suppress(FlinkError):
                self._request('delete', f'jars/{name}')

    def state(self, job: str, patience: float = _PATIENCE_SECONDS) -> JobState:
        """Returns how far a job is.

        Raises:
            UnansweredError: the cluster has not answered for some minutes.
            UnknownJobError: it does not know the job.
        """
        answer = self._get(f'jobs/{job}', patience)
        states = [vertex['status'] for vertex in answer['vertices']]
        return JobState(
            answer['state'],
            len(states),
            states.count('FINISHED'),
            sum(state in _AT_WORK for state in states),
        )

    def failures(self, job: str) -> list[Failure]:
        """Returns the errors that a job has met, oldest first."""
        answer = self._get(f'jobs/{job}/exceptions')
        history = answer.get('exceptionHistory', {}).get('entries', [])
        return [
            Failure(entry['stacktrace'], (entry.get('endpoint') or 'a machine').partition(':')[0])
            for entry in reversed(history)
        ]

    def cancel(self, job: str) -> str:
        """Cancels a job and waits for its end; returns the state in which it ended.

        Raises:
            FlinkError: it has not ended within half a minute, or the cluster does not answer.
        """
        try:
            self._request('patch', f'jobs/{job}?mode=cancel')
        except FlinkError:
            state = self.state(job, _CANCEL_SECONDS)
            if not state.has_ended:
                raise
            return state.state
        end = time.monotonic() + _CANCEL_SECONDS
        while time.monotonic() < end:
            state = self.state(job, _CANCEL_SECONDS)
            if state.has_ended:
                return state.state
            time.sleep(_CANCEL_LOOK_SECONDS)
        raise FlinkError(
            f'job {job} at {self.address} was cancelled, and is still {state.state} after '
            f'{_CANCEL_SECONDS} seconds'
        )

    def _get(self, path: str, patience: float = _PATIENCE_SECONDS) -> Any:
        return self._patiently(functools.partial(self._request, 'get', path), patience)

    def _patiently(
        self, ask: Callable[[], _Answer], patience: float = _PATIENCE_SECONDS
    ) -> _Answer:
        """Asks again for some seconds if nobody answers, each address at least once.

        A cluster that answers that it does not serve yet is there, and always waited for.
        """
        began, reported, asked = time.monotonic(), float(_SILENCE_SECONDS), 0
        while True:
            try:
                answer = ask()
                if reported > _SILENCE_SECONDS:
                    _LOGGER.info('the JobManager answers again', extra={AT_ONCE: True})
                return answer
            except UnansweredError as error:
                silent, asked = time.monotonic() - began, asked + 1
                patience = _PATIENCE_SECONDS if isinstance(error, _NotServingError) else patience
                if silent >= patience and asked >= len(self._addresses):
                    raise
                if silent >= reported:
                    _LOGGER.warning(
                        'the JobManager does not answer, for %d s: %s',
                        silent,
                        error,
                        extra={AT_ONCE: True},
                    )
                    reported = 2 * silent
            time.sleep(_RETRY_SECONDS)

    def _request(
        self, method: str, path: str, seconds: float = _ANSWER_SECONDS, **arguments: Any
    ) -> Any:
        address = self.address
        url = f'{address}/v1/{path}'
        try:
            response = self._session.request(method, url, timeout=seconds, **arguments)
        except requests.RequestException as error:
            self._ask_next(address)
            raise UnansweredError(f'{address} does not answer: {_reason(error)}') from error
        is_error = response.status_code >= 500
        if response.status_code == 503 or (is_error and _NOT_SERVING.search(response.text)):
            self._ask_next(address)
            raise _NotServingError(f'{address} does not serve yet: {_exception_line(response)}')
        if not response.ok:
            kind = UnknownJobError if response.status_code == 404 else FlinkError
            raise kind(f'{url} answers {response.status_code}: {_exception_line(response)}')
        try:
            return response.json() if response.content else {}
        except ValueError as error:
            raise FlinkError(f'{url} is not the REST interface of a Flink') from error

    def _ask_next(self, silent: str) -> None:
        """Puts an address last."""
        self._addresses.sort(key=silent.__eq__)


class _NotServingError(UnansweredError):
    """A JobManager answers that it does not serve yet: it starts, or waits for a leader."""


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


def _exception_line(response: requests.Response) -> str:
    """Returns the innermost exception of an error that Flink answers, a Java traceback in JSON."""
    try:
        text = '\n'.join(map(str, response.json()['errors']))
    except (ValueError, KeyError, TypeError):
        text = response.text
    lines = [line.lstrip('<') for line in text.strip().splitlines()] or ['nothing']
    causes = [line for line in lines if line.startswith('Caused by: ')]
    # Without a cause the first exception counts: those below it are of other levels.
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    told = causes[-1] if causes else (exceptions or lines[-1:])[0]
    told = told.removeprefix('Caused by: ')
    return told.strip()[:500]
