"""Flink as a cluster that is set up for tokbeam: it is asked for all that a job needs.

The cluster says in its configuration where its workers start and where Beam's main class is
(`deploy/flink/README.md`), so a user types its address alone. A job is sent without a job server. It has
the name of the output that it works for, which is how a driver that is started again knows the job
of the one that was killed, and cancels it.
"""

import functools
import hashlib
import logging
import re
import time
import uuid

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
)
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.flink_runner import (
    MAGIC_HOST_NAMES,
    FlinkJarJobServer,
    FlinkRunner,
)
from apache_beam.runners.portability.job_server import JobServer
from apache_beam.runners.portability.portable_runner import JobServiceHandle, PortableRunner
from apache_beam.runners.runner import PipelineResult, PipelineState
from apache_beam.transforms.environments import (
    Environment,
    ProcessEnvironment,
    python_sdk_capabilities,
    resource_hints_from_options,
)
from google.protobuf import json_format

from pipelines.engines.progress import AT_ONCE, advance, running_stage, set_total, track_work
from pipelines.engines.runners import Runner, refuse_unasked_jar
from pipelines.engines.work_reports import workers_report
from pipelines.flink.probe import Expected, add_checks
from pipelines.flink.rest import (
    RUNNER_JAR,
    VERSIONS,
    WORKER,
    Failure,
    FlinkError,
    FlinkRest,
    JobState,
    UnansweredError,
    job_archive,
    milliseconds,
)
from tokcore.errors import FullDiskError, InputError, UnreachableError
from tokcore.options import shown
from tokcore.process_end import undone_at_end

_LOGGER = logging.getLogger(__name__)

_CACHE_MILLISECONDS = 1000
"""How long Flink keeps a worker between two stages of a job. A second is enough, for the next stage
begins at once; and a worker that died is kept as long, which must be less than the restart delay."""

_DELAYS = {
    'fixeddelay': ('restart-strategy.fixed-delay.delay', '1 s'),
    'exponentialdelay': ('restart-strategy.exponential-delay.initial-backoff', '1 s'),
    'failurerate': ('restart-strategy.failure-rate.delay', '1 s'),
}
"""For each restart strategy, without hyphens, the setting of its shortest delay, and Flink's default."""

_FIRST_LOOK_SECONDS, _MOST_LOOK_SECONDS = 0.1, 1.0
_LOOK_SHARE = 0.1
"""A job is looked at after such a share of the time that it has run: most last for seconds."""

_FAILURES_SECONDS = 1
_WAITING_SECONDS = 10
"""After so many a job that waits for slots is reported; as often the cluster is asked whether they are there."""

_LACKING_SECONDS = 300
"""So long may a cluster have fewer slots than a waiting job needs: a TaskManager is started again in less."""

_MISTAKE = re.compile(r'tokcore\.errors\.(\w+): ')
"""In a failure: an error of a worker that the user or the system is to blame for."""

_NOT_STARTED = ('Cannot run program', 'Process died with exit code')
"""What Beam's Java says of a worker that did not come to work."""

_STARTS = 3
"""So many in a row may fail; a worker that is killed while it starts is one."""

_MANAGER = re.compile(r"(?:[Tt]ask ?[Mm]anager (?:with id )?'?|flink@)([\w.-]+)(?:/[\w.]*)?:\d")
"""In a failure: the host of a TaskManager that is meant, before its port."""

_MANAGER_DIED = re.compile(
    '(?i)no longer reachable|heartbeat of task|AskTimeout|RecipientUnreachable|RemoteTransport'
)
_WORKER_DIED = re.compile('client cancelled|Process died with exit code')

_MEMORY = (
    (
        'direct',
        'taskmanager.memory.task.off-heap.size, and as much to taskmanager.memory.process.size',
    ),
    ('Metaspace', 'taskmanager.memory.jvm-metaspace.size'),
    ('', 'taskmanager.memory.process.size'),
)
"""For words in an error of Java about memory, the setting that gives more."""

_OUT_OF_MEMORY = re.compile(r'OutOfMemoryError: (.*)')

_NO_ROOM = 'No space left on device'
_WORK = 'flink'

_STATES = {
    'FINISHED': PipelineState.DONE,
    'FAILED': PipelineState.FAILED,
    'CANCELED': PipelineState.CANCELLED,
    'CANCELLING': PipelineState.CANCELLING,
}


def ask_cluster(options: PipelineOptions) -> tuple[tuple[str, object], ...]:
    """Returns the options of Beam, as pairs of name and value, that follow from a cluster.

    Raises:
        InputError: no Flink answers, it is not set up for tokbeam, its Beam jars are for another version
            of Flink, it has fewer slots than `--parallelism`, or workers would be kept for longer than
            its restart delay.
    """
    flink = options.view_as(FlinkRunnerOptions)
    master = f'--flink_master {flink.flink_master.strip()}'
    rest = FlinkRest(flink.flink_master)
    try:
        overview, configuration = rest.overview(patience=0), rest.configuration()
        slots, managers = int(overview['slots-total']), int(overview['taskmanagers'])
    except (FlinkError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f'{master}: no Flink is to be asked there ({error}); start the cluster, or give the '
            'HOST:PORT of its REST interface'
        ) from error
    settings: list[tuple[str, object]] = [('--parallelism', _parallelism(flink, slots, managers))]
    portable = options.view_as(PortableOptions)
    if not configuration.get(RUNNER_JAR):
        raise InputError(
            f'{master}: this Flink is not set up for tokbeam, for its configuration has no '
            f'{RUNNER_JAR}; see deploy/flink/README.md, or give --flink_job_server_jar to send '
            'jobs through a job server'
        )
    versions = configuration.get(VERSIONS, '').replace(',', ' ').split()
    version = str(overview.get('flink-version'))
    if versions and not any(f'{version}.'.startswith(f'{each}.') for each in versions):
        raise InputError(
            f'{master}: this is Flink {version}, and its Beam jars are for {", ".join(versions)} '
            f'({VERSIONS}); use such a Flink, or the jars for this one'
        )
    if not portable.environment_type:
        worker = configuration.get(WORKER)
        if not worker:
            raise InputError(
                f"{master}: the cluster's configuration does not say how a worker is started "
                f'({WORKER}); set it to the path of `boot`, or give --environment_type'
            )
        settings.append(('--environment_type', 'PROCESS'))
        settings.append(('--environment_options', f'process_command={worker}'))
    settings.append(('--environment_cache_millis', _cache(portable, configuration, master)))
    return tuple(settings)


def _parallelism(flink: FlinkRunnerOptions, slots: int, managers: int) -> int:
    if slots == 0:
        raise InputError(
            f'--flink_master {flink.flink_master.strip()}: the cluster has no TaskManager; start one'
        )
    if flink.parallelism > slots:
        raise InputError(
            f'--parallelism {flink.parallelism} is more than the {slots} slots of the {managers} '
            f'TaskManagers; give at most {slots}, or start more of them'
        )
    return flink.parallelism if flink.parallelism > 0 else slots


def _cache(portable: PortableOptions, configuration: dict[str, str], master: str) -> int:
    typed = portable.environment_cache_millis or '0'  # Beam has it as text
    if not str(typed).isdecimal():
        raise InputError(f'--environment_cache_millis {shown(str(typed))} is not a whole number')
    asked = int(typed)
    name = configuration.get('restart-strategy.type', configuration.get('restart-strategy', 'none'))
    delay_setting = _DELAYS.get(name.replace('-', ''))
    if delay_setting is None:
        _LOGGER.warning(
            '%s: the cluster restarts nothing (restart-strategy.type is %s), so a worker that dies '
            'ends the job',
            master,
            name,
        )
        return asked or _CACHE_MILLISECONDS
    setting, default = delay_setting
    delay = milliseconds(configuration.get(setting, default))
    if asked and asked >= delay:
        raise InputError(
            f"--environment_cache_millis {asked} is not below the cluster's restart delay of "
            f'{delay} ms ({setting}), and a restart would get the worker that died; give less, '
            'or leave it out'
        )
    return asked or max(1, min(_CACHE_MILLISECONDS, delay // 2))


@functools.cache
def cluster_runner(flags: tuple[str, ...], output: str | None) -> 'ClusterRunner':
    """Returns the runner of all pipelines of a command."""
    return ClusterRunner(output)


class ClusterRunner(PortableRunner):
    """Sends pipelines to a cluster whose answers to `ask_cluster` are among the options.

    Before the first one it cancels what a killed driver of the same output has left. The steps of the
    first one see that the workers have the same versions as this process, and see the output's folder.

    Args:
        output: the path of what the pipelines make; None: something that nobody else makes.
    """

    def __init__(self, output: str | None):
        super().__init__()
        self._output = output
        of_output = uuid.uuid4().hex if output is None else output
        self._digest = hashlib.sha256(of_output.encode()).hexdigest()[:12]
        self._jobs = 0
        self._runner_jar = ''

    def default_environment(self, options: PipelineOptions) -> Environment:
        portable = options.view_as(PortableOptions)
        if portable.environment_type != 'PROCESS' or portable.environment_config:
            return super().default_environment(options)
        # As Beam's own, but for a list of installed packages that takes it a second a job.
        variables = portable.lookup_environment_option('process_variables')
        return ProcessEnvironment(
            portable.lookup_environment_option('process_command'),
            env=ProcessEnvironment.parse_environment_variables(
                variables.split(',') if variables else []
            ),
            capabilities=python_sdk_capabilities(),
            resource_hints=resource_hints_from_options(portable),
        )

    def run_portable_pipeline(
        self, pipeline: beam_runner_api_pb2.Pipeline, options: PipelineOptions
    ) -> 'ClusterJob':
        rest = FlinkRest(options.view_as(FlinkRunnerOptions).flink_master)
        pipeline = self._optimize_pipeline(pipeline, options)
        if self._jobs == 0:
            self._runner_jar = rest.configuration()[RUNNER_JAR]
            self._cancel_left(rest)
            add_checks(pipeline, Expected.for_output(self._output))
        self._jobs += 1
        name = f'tokbeam-{running_stage() or "job"}-{self._jobs}-{self._digest}'
        everything = options.get_all_options(retain_unknown_options=True)
        # Run within the cluster, Beam's Java would start another one for an address.
        everything |= {'flink_master': '[auto]', 'job_name': name, 'runner': None}
        archive = job_archive(
            json_format.MessageToJson(pipeline),
            json_format.MessageToJson(JobServiceHandle.encode_pipeline_options(everything)),
            self._runner_jar,
        )
        # It may run before its id is known here, so until then it is known by its name.
        with undone_at_end(functools.partial(self._cancel_left, rest, patience=0)):
            slots = options.view_as(FlinkRunnerOptions).parallelism
            return ClusterJob(rest, rest.submit(archive), name, slots)

    def _cancel_left(self, rest: FlinkRest, **patience: float) -> None:
        """Cancels the jobs of an earlier driver; the output is claimed, so there is no other one."""
        for job, name in rest.running(**patience):
            if name.endswith(f'-{self._digest}'):
                _LOGGER.info('%s, left by an earlier run, is cancelled', name)
                rest.cancel(job)


class ClusterJob(PipelineResult):
    """A job on a cluster, cancelled when this process ends before it.

    Args:
        rest: the cluster.
        job: its id there.
        name: its name.
        slots: that it needs.
    """

    def __init__(self, rest: FlinkRest, job: str, name: str, slots: int):
        super().__init__(PipelineState.RUNNING)
        self._rest, self._job, self._name, self._slots = rest, job, name, slots
        self._failures = 0
        self._has_reported_waiting = False
        self._slots_due: float | None = None
        self._lacks_since: float | None = None

    @property
    def state(self) -> str:
        return _STATES.get(self._rest.state(self._job).state, PipelineState.RUNNING)

    def cancel(self) -> str:
        """Cancels the job and waits for its end; returns the state that it ended in."""
        return _STATES.get(self._rest.cancel(self._job), PipelineState.RUNNING)

    def wait_until_finish(self, duration: int | None = None) -> str:
        """Waits for the job's end; returns its state, after `duration` milliseconds in any case.

        Raises:
            RuntimeError: it failed or was cancelled, or the cluster has lost it, or has had too few
                slots for it for five minutes. What a worker raised is in the text. A user's mistake
                ends the job at once, without a restart.
            InputError: no worker starts, a disk of the cluster is full, or its memory.
            UnreachableError: the cluster has not answered for some minutes.
        """
        end = float('inf') if duration is None else time.monotonic() + duration / 1000
        try:
            with undone_at_end(self.cancel):
                state = self._look_until(end)
        except UnansweredError as error:
            raise UnreachableError(
                f'the job {self._name} is out of reach ({error}), and may still be running; give the '
                'command again when the cluster can be reached'
            ) from error
        except FlinkError as error:
            raise RuntimeError(
                f'the job {self._name} is lost: {error}; give the command again when the cluster '
                'is there'
            ) from error
        except BaseException:
            try:
                self.cancel()
            except FlinkError as error:  # the first error is the one to report
                _LOGGER.warning('the job %s may still be running: %s', self._name, error)
            raise
        if not state.has_ended:
            return PipelineState.RUNNING
        if state.state != 'FINISHED':
            self._raise_reason(state.state)
        return PipelineState.DONE

    def _raise_reason(self, state: str) -> None:
        """Raises an error about why the job has failed or was cancelled."""
        failures = self._rest.failures(self._job)
        reason = failures[-1].text if failures else 'no reason is known'
        if _NO_ROOM in reason:
            raise FullDiskError(
                f'a disk of the cluster at {self._rest.address} is full ({_last_cause(reason)}); '
                'make room for its temporary files (io.tmp.dirs), and give the command again'
            )
        # What follows from it may come last.
        for failure in failures:
            if _OUT_OF_MEMORY.search(failure.text):
                raise InputError(f'the job {self._name} ended {state}: {_summary(failure)}')
        if failures and ' TaskManager on ' in (summary := _summary(failures[-1])):
            reason = (
                f'{summary}; if its log has an OutOfMemoryError, give it more memory '
                f'(taskmanager.memory.process.size)\n{reason}'
            )
        raise RuntimeError(f'the job {self._name} ended {state}: {reason}')

    def _look_until(self, end: float) -> JobState:
        began, done = time.monotonic(), 0
        failures_due = began
        with track_work(running_stage() or self._name, _WORK, None, 'steps'):
            while True:
                state = self._rest.state(self._job)
                if not workers_report():  # which report more of the same stage
                    set_total(_WORK, state.vertices)
                    advance(_WORK, max(0, state.finished - done))
                    done = max(done, state.finished)
                now = time.monotonic()
                if state.has_ended or now >= end:
                    return state
                if now >= failures_due:
                    self._report_failures()
                    failures_due = now + _FAILURES_SECONDS
                self._watch_waiting(state)
                time.sleep(
                    min(_MOST_LOOK_SECONDS, max(_FIRST_LOOK_SECONDS, _LOOK_SHARE * (now - began)))
                )

    def _report_failures(self) -> None:
        """Logs what the job met since the last look, from which the cluster restarts it."""
        failures = self._rest.failures(self._job)
        # A new JobManager counts anew.
        self._failures = min(self._failures, len(failures))
        for failure in failures[self._failures :]:
            mistakes = _MISTAKE.findall(failure.text)
            if mistakes and mistakes[-1] != UnreachableError.__name__:
                raise RuntimeError(failure.text)  # it would be met again after each restart
            _LOGGER.warning(
                '%s: failure %d, the cluster goes on: %s',
                self._name,
                self._failures + 1,
                _summary(failure),
                extra={AT_ONCE: True},
            )
            self._failures += 1
        last = failures[-_STARTS:]
        if len(last) == _STARTS and all(
            any(reason in failure.text for reason in _NOT_STARTED) for failure in last
        ):
            raise InputError(
                f'no worker starts on the cluster at {self._rest.address}: {_last_cause(last[-1].text)}; '
                "its TaskManager's log and `log` next to the workers' socket have more"
            )

    def _watch_waiting(self, state: JobState) -> None:
        """Logs once that the job waits for slots; raises RuntimeError if they do not come."""
        now = time.monotonic()
        if state.running or state.finished == state.vertices:
            self._has_reported_waiting, self._slots_due, self._lacks_since = False, None, None
            return
        if self._slots_due is None:
            self._slots_due = now + _WAITING_SECONDS
        if now <= self._slots_due:
            return
        overview = self._rest.overview()
        total, managers = overview['slots-total'], overview['taskmanagers']
        if not self._has_reported_waiting:
            _LOGGER.info(
                '%s waits for %d slots: %d of %d are free, of %d TaskManagers',
                self._name,
                self._slots,
                overview['slots-available'],
                total,
                managers,
            )
            self._has_reported_waiting = True
        self._slots_due = now + _WAITING_SECONDS
        if total >= self._slots:
            self._lacks_since = None
            return
        if self._lacks_since is None:
            self._lacks_since = now
        if now - self._lacks_since > _LACKING_SECONDS:
            raise RuntimeError(
                f'the job {self._name} needs {self._slots} slots, and for {_LACKING_SECONDS} seconds '
                f'{self._rest.address} has had fewer, now {total} of {managers} TaskManagers: one is '
                'lost and does not start again, and its log says why; give the command again when it '
                'is there, or with a smaller --parallelism'
            )


def _summary(failure: Failure) -> str:
    """Returns what a failure was for a user: what died where, what memory lacks, or its innermost cause."""
    memory = _OUT_OF_MEMORY.search(failure.text)
    if memory is not None:
        setting = next(setting for word, setting in _MEMORY if word in memory[1])
        return f'a TaskManager on {failure.host} is out of memory ({memory[1][:100]}); give more by {setting}'
    if _MANAGER_DIED.search(failure.text):
        # Where it was noticed, another host may be named as the one that is lost.
        named = _MANAGER.search(failure.text)
        return f'the TaskManager on {named[1] if named else failure.host} died or was cut off'
    if _WORKER_DIED.search(failure.text):
        return f'the worker on {failure.host} died'
    return _last_cause(failure.text)


def _last_cause(failure: object) -> str:
    """Returns the innermost cause of an error as Java writes it, on one line."""
    lines = str(failure).strip().splitlines()
    causes = [line for line in lines if line.startswith('Caused by: ')]
    last = causes[-1] if causes else lines[0] if lines else ''
    return last.removeprefix('Caused by: ').strip()[:300]


def flink_runner(name: str, options: PipelineOptions) -> Runner:
    """Returns Flink with as many slots as `--parallelism` says.

    It is a cluster that is set up for tokbeam, or one behind Beam's job server.
    """
    flink = options.view_as(FlinkRunnerOptions)
    # Without --parallelism it is the cluster's default, which is unknown here, or 1.
    slots = max(1, flink.parallelism)
    is_cluster = flink.flink_master.strip() not in MAGIC_HOST_NAMES
    by_server = flink.flink_job_server_jar or flink.flink_submit_uber_jar
    # Without a job server, jobs are sent to a cluster by REST.
    if is_cluster and not by_server and not options.view_as(PortableOptions).job_endpoint:
        return Runner(
            name,
            processes=slots,
            through_files=True,
            has_containers=True,
            ask=ask_cluster,
            beam_runner=cluster_runner,
        )
    return Runner(
        name,
        processes=slots,
        through_files=True,
        has_containers=is_cluster,
        beam_runner=_shared_runner,
        # An uber jar contains the cluster's version, which only the cluster knows.
        refuse_unasked=functools.partial(
            refuse_unasked_jar,
            FlinkJarJobServer,
            'flink_job_server_jar',
            flink.flink_submit_uber_jar,
        ),
    )


class _FlinkRunner(FlinkRunner):
    """Starts one job server; Beam's class starts one for each job, and all live until the end."""

    def __init__(self):
        super().__init__()
        self._job_server: JobServer | None = None

    def default_job_server(self, options: PipelineOptions) -> JobServer:
        if self._job_server is None:
            self._job_server = super().default_job_server(options)
        return self._job_server


@functools.cache
def _shared_runner(flags: tuple[str, ...], output: str | None) -> _FlinkRunner:
    return _FlinkRunner()
