"""Workers in processes of their own, started by the boot program as on a cluster, without Java.

Beam's embedded job service hands the stages to a worker pool, so what a cluster needs is seen here:
functions that can be pickled, modules that can be imported, options and logs that arrive.
"""

import sys

import pytest
from dataset_files import manifest_of, read_shards, shards_and_vocabularies
from deadlines import free_port, running, succeed_within, wait_for_port
from jobs import succeed
from sizes import command_of
from worker_processes import BOOT, worker_environment

pytestmark = pytest.mark.slow

POOL_SECONDS = 60
JOB_SECONDS = 240


@pytest.fixture(scope='module')
def worker_pool(tmp_path_factory):
    """The options that send a pipeline's work to a pool of workers."""
    port = free_port()
    command = [sys.executable, '-m', 'apache_beam.runners.worker.worker_pool_main']
    command += [f'--service_port={port}', f'--container_executable={BOOT}']
    log = tmp_path_factory.mktemp('pool') / 'pool.log'
    with running(command, log, worker_environment()) as process:
        wait_for_port(port, process, POOL_SECONDS)
        yield [
            '--runner=PortableRunner',
            '--job_endpoint=embed',
            '--environment_type=EXTERNAL',
            f'--environment_config=localhost:{port}',
        ]


@pytest.fixture
def run_module(tmp_path):
    """Runs a module as a program that must succeed in time; returns what it said."""

    def run(*arguments: object) -> str:
        module, *words = arguments
        is_program = module == 'pipelines'
        command = command_of(*words) if is_program else [sys.executable, '-m', module, *words]
        return succeed_within(JOB_SECONDS, command, tmp_path / 'log', worker_environment())

    return run


def test_options_and_logs_arrive_and_printing_stops_nothing(worker_pool, run_module):
    said = run_module('worker_probe', 'hello', *worker_pool, '--s3_region_name=eu-north-1')
    assert 'hello, region eu-north-1, in a worker' in said


def test_a_users_mistake_comes_back_as_one(worker_pool, run_module):
    said = run_module('worker_probe', 'mistake', *worker_pool)
    assert 'told: file x has a mistake; mend it' in said


def test_build_gives_the_same_bytes(worker_pool, run_module, small, tmp_path):
    arguments = [
        *('build', '--source', small.source, '--target', small.target, '--shared-vocab'),
        *('--name', 'small', '--shards', 3, '--vocab-size', 900, '--min-count-range', '5:5'),
    ]
    local, external = tmp_path / 'local', tmp_path / 'external'
    succeed(*arguments, '--output', local)
    cut = ['@item-size', '1KiB', '--learner', 'beam']
    run_module('pipelines', *arguments, *cut, *worker_pool, '--output', external)
    assert shards_and_vocabularies(external) == shards_and_vocabularies(local)
    assert manifest_of(external)['root'] == manifest_of(local)['root']
    read_shards(external)


@pytest.mark.parametrize(
    'asked', [('--vocab-size', 280), ('--preset', 'subword-nmt', '--merges', 20)], ids=str
)
def test_merges_are_those_learned_in_memory(worker_pool, run_module, small, tmp_path, asked):
    arguments = ['vocab', '--text', small.source, '--scheme', 'bpe', *asked]
    succeed(*arguments, '--output', tmp_path / 'local')
    there = ['--learner', 'beam', *worker_pool, '--output', tmp_path / 'external']
    assert 'learning on Beam, in rounds' in run_module('pipelines', *arguments, *there)
    assert (tmp_path / 'external').read_bytes() == (tmp_path / 'local').read_bytes()
