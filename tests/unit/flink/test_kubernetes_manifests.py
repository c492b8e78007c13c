"""The manifests for Kubernetes: their schemas, and the settings that they repeat from `config.yaml`."""

from pathlib import Path

import pytest

yaml = pytest.importorskip('yaml')

DEPLOY = Path(__file__).resolve().parents[3] / 'deploy'

OTHERWISE = {
    'tokbeam.worker', 'tokbeam.runner-jar',  # where the image has them
    'env.java.opts.taskmanager', 'taskmanager.memory.task.off-heap.size',
    'kubernetes.taskmanager.memory.limit-factor',
    'high-availability.type', 'high-availability.storageDir',
}  # fmt: skip
"""Settings of the session cluster that are not those of `config.yaml`."""


def read(name: str) -> dict:
    return yaml.safe_load((DEPLOY / name).read_text())


def pod_of_session() -> dict:
    template = read('kubernetes/session.yaml')['spec']['podTemplate']
    pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'taskmanager'}, **template}
    for container in pod['spec']['containers']:
        container['image'] = read('kubernetes/session.yaml')['spec']['image']
    return pod


@pytest.mark.parametrize(
    'manifest',
    [read('kubernetes/job.yaml'), pod_of_session()],
    ids=lambda manifest: manifest['kind'],
)
def test_a_manifest_is_valid(manifest):
    validate = pytest.importorskip('kubernetes_validate')
    validate.validate(manifest, validate.latest_version(), strict=True)
    manifest['spec']['volume'] = []
    with pytest.raises(validate.ValidationError):
        validate.validate(manifest, validate.latest_version(), strict=True)


def test_the_session_has_the_settings_of_a_cluster():
    session = read('kubernetes/session.yaml')['spec']
    ours, there = read('flink/config.yaml'), session['flinkConfiguration']
    for name in there.keys() - OTHERWISE:
        assert yaml.safe_load(there[name]) == ours[name], name
    assert all(isinstance(value, str) for value in there.values())
    assert (
        session['flinkVersion'].removeprefix('v').replace('_', '.')
        in ours['tokbeam.flink-versions']
    )


def test_image_flink_and_jars_have_versions_that_go_together():
    [pinned] = [
        line.partition('==')[2].partition(' ')[0]
        for line in (DEPLOY / 'flink' / 'requirements.txt').read_text().splitlines()
        if line.startswith('apache-flink==')
    ]
    assert f"_FLINK = 'flink-{pinned}'" in (DEPLOY / 'flink' / 'cluster').read_text()
    assert f'FROM flink:{pinned}-' in (DEPLOY / 'flink' / 'Dockerfile').read_text()
    versions = read('flink/config.yaml')['tokbeam.flink-versions'].split(', ')
    assert pinned.rpartition('.')[0] in versions
    pom = (DEPLOY / 'flink' / 'pom.xml').read_text()
    assert any(f'<artifactId>beam-runners-flink-{version}<' in pom for version in versions)
    image = read('kubernetes/session.yaml')['spec']['image']
    [container] = read('kubernetes/job.yaml')['spec']['template']['spec']['containers']
    assert container['image'] == image
