"""The main job on Prism and on Spark: every byte as from the local run.

Prism is built through Go's module proxy; a job server for Spark 3 is put together from Maven. Both take
minutes the first time, and are kept as the environments of tests/neighbours are.
"""

import os
import shutil
import subprocess
import tempfile
import warnings
import zipfile
from pathlib import Path

import apache_beam as beam
import pytest
from dataset_files import read_shards, shards_and_vocabularies
from deadlines import succeed_within
from generated_text import as_bitext, chinese_lines, english_lines
from jobs import succeed, write
from sizes import command_of
from worker_processes import BOOT, worker_environment

pytestmark = [pytest.mark.neighbours, pytest.mark.large]

MAKE_SECONDS = 3600
BUILD_SECONDS = 900
LINES = 4000
BEAM, SPARK = '2.62.0', '3.5.1'
SPARK_PACKAGES = (
    ('org.apache.beam', 'beam-runners-spark-3', BEAM),
    *(('org.apache.spark', f'spark-{each}_2.12', SPARK) for each in ('core', 'streaming', 'sql')),
)
SPARK_SERVER = 'org.apache.beam.runners.spark.SparkJobServerDriver'
OPENED = (
    'java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util '
    'java.util.concurrent java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs '
    'sun.security.action sun.util.calendar'
)
"""What Spark wants of the packages of Java 17's `java.base`."""


@pytest.fixture(scope='module')
def made(pytestconfig):
    """Returns a folder of a name, made once by a function of it."""
    named = os.environ.get('TOKBEAM_NEIGHBOURS')
    cache = Path(named) if named else Path(pytestconfig.cache.mkdir('neighbours'))

    def folder(name: str, make) -> Path:
        final = cache / name
        if not final.exists():
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f'{name}-', dir=cache) as scratch:
                half = Path(scratch) / name
                half.mkdir()
                make(half)
                half.rename(final)
        return final

    return folder


def make_by(command: list[object], **environment: str) -> None:
    """Runs a program that fetches and makes; skips, loudly, where it is not there or fails."""
    name = str(command[0])
    if shutil.which(name) is None:
        _skip(f'{name} is not on the PATH')
    ended = subprocess.run(
        [*map(str, command)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=MAKE_SECONDS,
        env={**os.environ, **environment},
    )
    if ended.returncode:
        _skip((ended.stderr.strip() or ended.stdout.strip()).splitlines()[-1])


def _skip(reason: str):
    warnings.warn(f'NOTHING WAS TESTED ON THIS RUNNER: {reason}', stacklevel=2)
    pytest.skip(reason)


@pytest.fixture(scope='module')
def prism(made) -> list[str]:
    """The options for Prism of Beam's version, whose workers are threads of the command."""
    module = f'github.com/apache/beam/sdks/v2/go/cmd/prism@v{beam.__version__}'
    folder = made(
        f'prism-{beam.__version__}',
        lambda half: make_by(['go', 'install', module], GOBIN=str(half), GOFLAGS='-modcacherw'),
    )
    return ['--runner=PrismRunner', f'--prism_location={folder / "prism"}']


@pytest.fixture(scope='module')
def spark(made) -> list[str]:
    """The options for Spark within its job server, and processes that `boot` starts as workers."""
    folder = made(f'spark-{SPARK}-{BEAM}', _make_job_server)
    return [
        '--runner=SparkRunner',
        '--spark_master_url=local[2]',
        f'--spark_job_server_jar={folder / "job-server.jar"}',
        '--environment_type=PROCESS',
        f'--environment_options=process_command={BOOT}',
    ]


def _make_job_server(folder: Path) -> None:
    """Fetches the jars, and makes one that names them."""
    dependencies = ''.join(
        f'<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>'
        f'<version>{version}</version></dependency>'
        for group, name, version in SPARK_PACKAGES
    )
    pom = folder / 'pom.xml'
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        '<groupId>tokbeam</groupId><artifactId>spark-job-server</artifactId><version>1</version>'
        f'<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>'
    )
    make_by([
        *('mvn', '--batch-mode', '--quiet', '--file', pom, 'dependency:copy-dependencies'),
        *('-DincludeScope=runtime', f'-DoutputDirectory={folder / "lib"}'),
    ])  # fmt: skip
    jars = sorted(path.name for path in (folder / 'lib').glob('*.jar'))
    entries = {
        'Manifest-Version': '1.0',
        'Main-Class': SPARK_SERVER,
        'Add-Opens': ' '.join(f'java.base/{each}' for each in OPENED.split()),
        'Class-Path': ' '.join(f'lib/{name}' for name in jars),
    }
    lines = []
    for key, value in entries.items():
        entry = f'{key}: {value}'
        # A line that begins with a space goes on where the last one ended.
        lines += ['\r\n '.join(entry[at : at + 70] for at in range(0, len(entry), 70))]
    with zipfile.ZipFile(folder / 'job-server.jar', 'w') as jar:
        jar.writestr('META-INF/MANIFEST.MF', '\r\n'.join([*lines, '', '']))


@pytest.fixture(scope='module')
def arguments(tmp_path_factory) -> list[object]:
    """A build with the learner on Beam, of two files with Chinese on one side."""
    pairs = list(zip(english_lines(LINES, seed=1), chinese_lines(LINES, seed=2), strict=True))
    source, target = as_bitext(pairs)
    folder = tmp_path_factory.mktemp('corpus')
    return [
        *('build', '--source', write(folder / 'a.en', source)),
        *('--target', write(folder / 'a.zh', target), '--name', 'small', '--shards', 3),
        *('--vocab-size', 1500, '--min-count-range', '19:21', '--shared-vocab'),
        *('--learner', 'beam', '@item-size', '64KiB'),
    ]


@pytest.fixture(scope='module')
def local(arguments, tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp('local') / 'out'
    succeed(*arguments, '--output', folder)
    return shards_and_vocabularies(folder)


@pytest.mark.parametrize('runner', ['prism', 'spark'])
def test_build_gives_the_same_bytes(request, runner, arguments, local, tmp_path):
    options = request.getfixturevalue(runner)
    folder = tmp_path / 'out'
    command = command_of(*arguments, '--output', folder, *options)
    succeed_within(BUILD_SECONDS, command, tmp_path / 'log', worker_environment())
    assert shards_and_vocabularies(folder) == local
    read_shards(folder)


def test_unigram_models_learned_on_prism_are_the_same(prism, tmp_path):
    text = write(tmp_path / 'text', '\n'.join(english_lines(500, seed=1)).encode())
    arguments = ['build', '--text', text, '--name', 'small', '--scheme', 'unigram']
    arguments += ['--vocab-size', 500]
    here, there = tmp_path / 'here', tmp_path / 'there'
    succeed(*arguments, '--output', here)
    command = command_of(*arguments, '--learner', 'beam', '--output', there, *prism)
    succeed_within(BUILD_SECONDS, command, tmp_path / 'log', worker_environment())
    assert shards_and_vocabularies(there) == shards_and_vocabularies(here)
