"""A server that answers as Flink's REST interface does, as far as it is used."""

import http.server
import json
import re
import socket
import threading

import pytest

LEADERLESS = """<Exception on server side:
org.apache.flink.runtime.rpc.exceptions.RecipientUnreachableException: Could not send message [X] to Y.
\tat org.apache.flink.runtime.rpc.pekko.SupervisorActor.z(SupervisorActor.java:1)
End of exception on server side>"""
"""What a JobManager says that does not reach the one in charge."""


class FakeFlink:
    """What the server holds; tests read and change it.

    Attributes:
        overview: and
        configuration: its answers.
        archives: uploaded ones that are not deleted, by name.
        uploads: all of them.
        started: the requests to run one.
        names: of jobs, by id.
        states: of jobs, by id: each look at a job takes the first away, unless it is the last. A
            job that is restarting waits for slots.
        failures: of jobs, by id, oldest first.
        cancelled: ids of jobs.
        refusal: the error with which it answers a request to run a job.
        silences: how the next requests are answered instead: `cut` closes the connection, `lost` does so
            after the request was carried out, `leaderless` is a JobManager without a leader.
    """

    def __init__(self, address: str):
        self.address = address
        self.overview: dict[str, object] = {
            'slots-total': 2, 'slots-available': 2, 'taskmanagers': 2, 'flink-version': '1.20.5',
        }  # fmt: skip
        self.configuration = {
            'tokbeam.worker': '/opt/boot',
            'tokbeam.runner-jar': '/opt/runner.jar',
            'tokbeam.flink-versions': '1.19, 1.20',
            'restart-strategy.type': 'fixed-delay',
            'restart-strategy.fixed-delay.delay': '4 s',
        }
        self.archives: dict[str, bytes] = {}
        self.uploads: list[bytes] = []
        self.started: list[dict] = []
        self.names: dict[str, str] = {}
        self.states: dict[str, list[str]] = {}
        self.failures: dict[str, list[str]] = {}
        self.cancelled: list[str] = []
        self.refusal: str | None = None
        self.silences: list[str] = []

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        if (method, path) == ('GET', 'overview'):
            return 200, self.overview
        if (method, path) == ('GET', 'jobmanager/config'):
            return 200, [{'key': key, 'value': value} for key, value in self.configuration.items()]
        if (method, path) == ('GET', 'jobs/overview'):
            return 200, {
                'jobs': [
                    {'jid': job, 'name': self.names[job], 'state': states[0]}
                    for job, states in self.states.items()
                ]
            }
        if (method, path) == ('POST', 'jars/upload'):
            [content] = re.findall(rb'\r\n\r\n(.*)\r\n--', body, re.DOTALL)
            name = f'{len(self.uploads)}_tokbeam.jar'
            self.archives[name] = content
            self.uploads.append(content)
            return 200, {'filename': f'/tmp/flink-web/{name}', 'status': 'success'}
        if method == 'DELETE':
            del self.archives[path.removeprefix('jars/')]
            return 200, {}
        if method == 'POST':
            if self.refusal is not None:
                return 500, {'errors': ['Internal server error.', self.refusal]}
            self.started.append(json.loads(body))
            job = self.started[-1]['jobId']
            assert job not in self.states, 'it was started twice'
            self.names[job], self.states[job] = 'job', ['RUNNING']
            return 200, {'jobid': job}
        return self._answer_of_job(method, path)

    def _answer_of_job(self, method: str, path: str) -> tuple[int, object]:
        _, job, *rest = re.split('[/?]', path)
        if job not in self.states:
            return 404, {'errors': [f'org.apache.flink.NotFoundException: Job {job} not found']}
        if method == 'PATCH':
            if self.states[job][0] in ('FINISHED', 'FAILED', 'CANCELED'):
                return 409, {'errors': ['Job cancellation failed']}
            self.cancelled.append(job)
            if self.states[job] == ['RUNNING']:
                self.states[job] = ['CANCELED']
            return 202, {}
        if rest == ['exceptions']:
            failures = reversed(self.failures.get(job, []))
            entries = [{'stacktrace': text, 'endpoint': 'host7:6121'} for text in failures]
            return 200, {'exceptionHistory': {'entries': entries}}
        states = self.states[job]
        state = states.pop(0) if len(states) > 1 else states[0]
        second = {'FINISHED': 'FINISHED', 'RESTARTING': 'SCHEDULED'}.get(state, 'RUNNING')
        vertices = ['FINISHED', second]
        return 200, {'state': state, 'vertices': [{'status': each} for each in vertices]}


@pytest.fixture
def flink():
    """A `FakeFlink` that serves."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self):
            body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
            silence = fake.silences.pop(0) if fake.silences else ''
            if silence == 'leaderless':
                status, told = 500, {'errors': ['Internal server error.', LEADERLESS]}
            elif silence != 'cut':
                status, told = fake.answer(self.command, self.path.removeprefix('/v1/'), body)
            if silence in ('cut', 'lost'):
                self.close_connection = True
                return
            data = json.dumps(told).encode()
            self.send_response(status)
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer

        def log_message(self, *_):
            """Says nothing."""

    with http.server.ThreadingHTTPServer(('localhost', 0), Handler) as server:
        fake = FakeFlink(f'localhost:{server.server_address[1]}')
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        yield fake
        server.shutdown()


@pytest.fixture
def unused_port():
    """A port that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(('localhost', 0))
        return probe.getsockname()[1]
