"""Runners that are reached by a job server, and what of it Beam would fetch from the network."""

import os
import platform
import re
import shutil
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    JobServerOptions,
    PipelineOptions,
    PrismRunnerOptions,
    SparkRunnerOptions,
)
from apache_beam.runners.portability.job_server import JavaJarJobServer
from apache_beam.runners.portability.prism_runner import PrismJobServer
from apache_beam.runners.portability.spark_runner import LOCAL_MASTER_PATTERN, SparkJarJobServer
from apache_beam.utils.subprocess_server import JavaJarServer, is_service_endpoint

from pipelines.engines.runner import Runner
from tokcore.errors import InputError


def spark_runner(name: str, options: PipelineOptions) -> Runner:
    master = options.view_as(SparkRunnerOptions).spark_master_url
    return Runner(
        name,
        has_containers=re.match(LOCAL_MASTER_PATTERN, master) is None,
        refuse_unasked=JobServerJar(SparkJarJobServer, 'spark_job_server_jar').refuse_unasked,
    )


def prism_runner(name: str, options: PipelineOptions) -> Runner:
    return Runner(name, refuse_unasked=_refuse_unasked_prism)


def portable_runner(name: str, options: PipelineOptions) -> Runner:
    return Runner(name, has_containers=True, refuse_unasked=_refuse_missing_server)


@dataclass(frozen=True)
class JobServerJar:
    """A job server in Java, which Beam starts and, if it is not here, downloads.

    Attributes:
        server: of Beam's.
        option: that gives the jar, without its dashes.
        is_other: whether it may be of another version, so that it is not known to be here.
    """

    server: type[JavaJarJobServer]
    option: str
    is_other: bool = False

    def refuse_unasked(self, name: str, options: PipelineOptions) -> None:
        """Refuses a jar that would be downloaded for a runner and that nobody asked for.

        Raises:
            InputError: that, or there is no Java, or no such jar.
        """
        given = options.view_as(JobServerOptions)
        java = given.job_server_java_launcher
        if shutil.which(java) is None:
            raise InputError(
                f'--runner {name} starts its job server with {java!r}, which is not there; install '
                'Java, or give its path as --job_server_java_launcher'
            )
        try:
            jar = self.server(options).path_to_jar()
        except (ValueError, RuntimeError) as error:
            raise InputError(f'--runner {name}: {in_a_line(error)}') from error
        if is_service_endpoint(jar) or os.path.exists(jar):
            return
        cache = getattr(given, 'jar_cache_dir', None) or JavaJarServer.JAR_CACHE
        is_cached = os.path.exists(os.path.join(cache, os.path.basename(jar)))
        if not options.get_all_options()[self.option] and (self.is_other or not is_cached):
            _refuse_download(name, 'its job server', jar, f'--{self.option}')


def _refuse_download(name: str, what: str, url: str, option: str) -> None:
    raise InputError(
        f'--runner {name} would download {what}, {url}; give {option}={url} to allow it, the path '
        'of such a file, or the --job_endpoint of a job server that runs'
    )


def in_a_line(error: BaseException) -> str:
    """Returns what an error says, or else its name."""
    return ' '.join(str(error).split()) or type(error).__name__


def _refuse_unasked_prism(name: str, options: PipelineOptions) -> None:
    prism = options.view_as(PrismRunnerOptions)
    if prism.prism_location:
        return
    asked = prism.prism_beam_version_override or f'v{beam.__version__}'
    server = PrismJobServer(options)
    try:
        url = server.construct_download_url(asked, platform.system(), platform.machine())
    except ValueError as error:
        raise InputError(f'--runner {name}: {in_a_line(error)}; give --prism_location') from error
    if not os.path.exists(os.path.join(PrismJobServer.BIN_CACHE, os.path.basename(url))):
        _refuse_download(name, 'Prism', url, '--prism_location')


def _refuse_missing_server(name: str, options: PipelineOptions) -> None:
    raise InputError(
        f'--runner {name} needs --job_endpoint, the HOST:PORT of a job server that runs'
    )
