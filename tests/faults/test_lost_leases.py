"""A run that has lost its lease says so, whatever it is at, and deletes nothing of the run that has it."""

import json
import types

import pytest
from object_store import keep_stores_in_memory

from pipelines.artifacts.outputs import StageKey, StageOutput, StageTask
from pipelines.files import filesystem
from pipelines.files.claims import LostError
from pipelines.jobs.job import Execution
from pipelines.learning.rounds import OutputRounds, SearchRounds
from pipelines.shuffle.plan import PLAN_NAME, KeptRuns, fingerprint_of, plan_json
from pipelines.stages.run_stage import StageResult, run_stage
from tokcore.records.manifest import OutputFile
from tokcore.schemes import find_scheme

pytest.importorskip('obstore')

FOLDER, WORK = 's3://bucket/out', 's3://bucket/work'
SHARD, CRC32C = 'n-train-00000-of-00001', '364b3fb7'  # of b'abc'
OTHER = {'id': 'o', 'pid': 7, 'host': 'elsewhere', 'since': 'then'}
LOST = f'{FOLDER} was taken over by process 7 on host elsewhere'

FILES_OF_OTHER = {
    f'{WORK}/shuffle-{fingerprint_of({"output": FOLDER}).hex()}/{PLAN_NAME}': plan_json({'output': FOLDER}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def stores(monkeypatch):
    keep_stores_in_memory(monkeypatch)


def take_over():
    """Another run takes the lease, sweeps what this one has begun, and begins to work itself."""
    for file in filesystem.list_folder(FOLDER):
        filesystem.delete_file(file.path)
    filesystem.write_bytes(f'{FOLDER}/.tokbeam-lock', json.dumps(OTHER).encode())
    for path, data in FILES_OF_OTHER.items():
        filesystem.write_bytes(path, data)
    rounds_of_other()._write_description()


def rounds_of_other():
    return SearchRounds(OutputRounds(WORK, FOLDER), {'seed': 1})


def run(make, overwrite=False):
    key = StageKey('encode', {}, (), find_scheme('subword').rules)
    engine = types.SimpleNamespace(flags=(), scheme=None)
    run_stage(
        [StageTask(key, StageOutput.of_dataset(FOLDER), [SHARD])],
        lambda attempt: [StageResult(key.manifest((), files=make(attempt)))],
        Execution(engine, overwrite=overwrite),
        kept=[KeptRuns(WORK, FOLDER), OutputRounds(WORK, FOLDER)],
    )


def write_shard(attempt):
    filesystem.write_bytes(f'{attempt.path}/{SHARD}', b'abc')
    return (OutputFile(SHARD, 3, CRC32C, 1),)


def read_again(attempt):
    write_shard(attempt)
    take_over()
    filesystem.read_bytes(f'{attempt.path}/{SHARD}')


def refuse(attempt):
    take_over()
    raise KeyError('whatever follows from it')


@pytest.mark.parametrize('make', [read_again, refuse])
def test_it_is_said_in_place_of_what_follows_from_it(make):
    with pytest.raises(LostError, match=LOST):
        run(make)
    assert_other_is_unharmed()


def assert_other_is_unharmed(*files):
    for path, data in FILES_OF_OTHER.items():
        assert filesystem.read_bytes(path) == data
    assert filesystem.exists(f'{rounds_of_other().folder}/search.json')
    names = {file.name for file in filesystem.list_folder(FOLDER)}
    assert names == {'.tokbeam-lock', *files}


@pytest.mark.parametrize('request_', range(2))
def test_a_run_that_stops_while_it_publishes_deletes_no_manifest_of_the_other(
    monkeypatch, request_
):
    """As it stands still within one request, for longer than its lease."""

    def make(attempt):
        publish, calls = attempt.publish, []

        def stand_still(moves):
            calls.append(moves)
            if len(calls) > request_:
                monkeypatch.setattr(attempt, 'publish', publish)
                take_over()
                filesystem.write_bytes(f'{FOLDER}/tokbeam.json', b'of the other')
            publish(moves)

        monkeypatch.setattr(attempt, 'publish', stand_still)
        return write_shard(attempt)

    with pytest.raises(LostError, match=LOST):
        run(make)
    assert filesystem.read_bytes(f'{FOLDER}/tokbeam.json') == b'of the other'


def test_a_manifest_that_was_there_goes_before_its_files_do(monkeypatch):
    run(write_shard)
    seen = []

    def make(attempt):
        publish = attempt.publish

        def look(moves):
            if dict(moves).keys() == {SHARD}:
                seen.extend(names_in_folder())
            publish(moves)

        monkeypatch.setattr(attempt, 'publish', look)
        return write_shard(attempt)

    filesystem.write_bytes(f'{FOLDER}/tokbeam.json', b'{}')
    run(make, overwrite=True)
    assert 'tokbeam.run.json' in seen and 'tokbeam.json' not in seen
    assert 'tokbeam.json' in names_in_folder()


def names_in_folder():
    return [file.name for file in filesystem.list_folder(FOLDER)]
