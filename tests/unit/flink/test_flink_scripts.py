"""What `prepare` and `cluster` do with packages, without fetching any."""

import io
import os
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

DEPLOY = Path(__file__).resolve().parents[3] / 'deploy' / 'flink'


def script(name: str) -> dict:
    return runpy.run_path(str(DEPLOY / name))


@pytest.mark.skipif(os.name != 'posix', reason='it runs a script of the shell')
def test_the_old_jars_stay_until_maven_has_fetched_the_new_ones(tmp_path):
    folder, programs = tmp_path / 'jars', tmp_path / 'programs'
    for path in (folder, programs):
        path.mkdir()
    for name in ('runner.jar', 'job-server.jar', 'pom.xml'):  # of an earlier pom
        (folder / name).write_bytes(b'old')
    (programs / 'mvn').write_text('#!/bin/sh\necho no network; exit 1\n')
    (programs / 'mvn').chmod(0o755)
    ended = subprocess.run(
        [sys.executable, DEPLOY / 'prepare', folder],
        env={**os.environ, 'PATH': f'{programs}:{os.environ["PATH"]}'},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1 and 'Maven could not fetch the jars' in ended.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        'runner.jar': b'old', 'job-server.jar': b'old', 'pom.xml': b'old',
    }  # fmt: skip


SCRIPTS = {
    'pyflink/bin/flink.sh': b'#!/bin/sh',
    'pyflink/bin/x.py': b'',
    'pyflink/conf/log4j.properties': b'x=1',
    'pyflink/lib/no.txt': b'',
    'pyflink/table.py': b'',
}
OF_FLINK_1 = {
    'a-1.20/deps/lib/dist.jar': b'jar',
    'a-1.20/deps/opt/s3.jar': b's3',
    'a-1.20/x.py': b'',
}
OF_FLINK_2 = {'pyflink/lib/dist.jar': b'jar', 'pyflink/opt/s3.jar': b's3', 'pyflink/LICENSE': b''}


def wheel(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, 'w') as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def sources(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, 'w:gz') as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize('version', [1, 2])
def test_flink_is_put_together_from_its_packages(tmp_path, version):
    if version == 1:
        libraries = sources(tmp_path / 'libraries.tar.gz', OF_FLINK_1)
    else:
        libraries = wheel(tmp_path / 'libraries.whl', OF_FLINK_2)
    fetched = {
        'apache-flink-libraries': libraries,
        'apache-flink': wheel(tmp_path / 'f.whl', SCRIPTS),
    }
    home = tmp_path / 'home'
    script('cluster')['_unpack'](fetched, home)
    files = {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in home.rglob('*')
        if path.is_file()
    }
    assert files == {
        'lib/dist.jar': b'jar', 'opt/s3.jar': b's3',
        'bin/flink.sh': b'#!/bin/sh', 'bin/x.py': b'', 'conf/log4j.properties': b'x=1',
    }  # fmt: skip
    assert os.access(home / 'bin' / 'flink.sh', os.X_OK)


@pytest.mark.parametrize(
    ('printed', 'reason'),
    [
        (
            'x.IllegalConfigurationException: too little\n\tat a\nCaused by: y.Z: other\nq.FooError: last\n'
            '\t... 3 more\n',
            'q.FooError: last',
        ),
        ('a plain line\nthe last one\n', 'the last one'),
        ('', 'it said nothing'),
    ],
)
def test_the_reason_why_a_process_of_flink_ended_is_its_last_error(tmp_path, printed, reason):
    log = tmp_path / 'log'
    log.write_text(printed)
    assert script('cluster')['_last_reason'](log) == reason
